#include <algorithm>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include <dunlin/run.hpp>

#include "fabric/processors.hpp"
#include "fabric/sleeping.hpp"
#include "run/threads.hpp"

namespace dunlin {
namespace {

using threads::kPollsPerYield;
// The clock is read once in so many fruitless polls.
constexpr std::uint32_t kPollsPerClock = 32;
// Where processors are shared, time passes while others run; a sleep needs this many turns in vain
// too.
constexpr std::uint32_t kLeastTurns = 16;

}  // namespace

void threads::pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &set);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (error != 0) {
    throw Error("runner: cannot pin its thread to core " + std::to_string(core) + ": " +
                std::generic_category().message(error) +
                "; choose one of those that 'taskset -p $$' shows");
  }
}

bool threads::spun_enough(Fabric& fabric, std::uint32_t fruitless, bool crowded,
                          std::uint32_t spin_us, std::uint64_t& since_ns) noexcept {
  if (fruitless == 1) since_ns = 0;
  if (fruitless < kLeastTurns || (!crowded && fruitless % kPollsPerClock != 0)) return false;
  const std::uint64_t now_ns = fabric.now_ns();
  if (since_ns == 0) since_ns = now_ns;
  return now_ns - since_ns >= std::uint64_t{spin_us} * 1000;
}

Loop::Loop(Fabric& fabric, RunOptions options)
    : fabric_(fabric),
      options_(std::move(options)),
      crowded_(fabric.host_members() > usable_processors()) {
  if (fabric.cpu_costs() != nullptr) {
    throw Error("runner: node " + std::to_string(fabric.rank()) +
                " is simulated, and polled by its World: attach the table there and use "
                "World::run_until");
  }
}

void Loop::run() {
  const std::stop_callback wake(options_.stop, [this] { fabric_.wake(); });
  const std::function<bool()> never = [] { return false; };
  for (std::uint32_t turn = 1; !options_.stop.stop_requested(); ++turn) {
    if (poll_parts() == 0) wait(never, UINT64_MAX);
    if (turn % kPollsPerYield == 0) check_parts();
  }
}

bool Loop::run_until(const std::function<bool()>& condition, std::uint32_t timeout_ms) {
  const std::stop_callback wake(options_.stop, [this] { fabric_.wake(); });
  const std::uint64_t deadline_ns = fabric_.now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  for (std::uint32_t turn = 1;; ++turn) {
    const std::size_t done = poll_parts();
    if (condition()) return true;
    if (options_.stop.stop_requested()) return false;
    if (done == 0 && wait(condition, deadline_ns)) return true;
    if (turn % kPollsPerYield == 0) check_parts();
    // Also if something fires in every poll, or every other: there must be an end to it.
    const bool look = turn % kPollsPerClock == 0 || (done == 0 && fruitless_ % kPollsPerClock == 0);
    if (look && fabric_.now_ns() >= deadline_ns) return condition();
  }
}

std::size_t Loop::poll_parts() {
  std::size_t done = 0;
  for (const Part& part : parts_) done += part.poll(part.object);
  if (done > 0) fruitless_ = 0;
  return done;
}

void Loop::check_parts() {
  for (const Part& part : parts_) part.check(part.object);
}

bool Loop::wait(const std::function<bool()>& condition, std::uint64_t deadline_ns) {
  if (++fruitless_ == 1) check_parts();
  if (options_.wait == Wait::block || (options_.wait == Wait::adaptive && spun_enough()))
    return sleep(condition, deadline_ns);
  if (crowded_ || fruitless_ % kPollsPerYield == 0) {
    sched_yield();
  } else {
    threads::pause();
  }
  return false;
}

bool Loop::spun_enough() {
  return threads::spun_enough(fabric_, fruitless_, crowded_, options_.spin_us, fruitless_since_ns_);
}

/// What came with the last poll before the sleep can make the condition true although no part has
/// anything to do about it.
bool Loop::sleep(const std::function<bool()>& condition, std::uint64_t deadline_ns) {
  const std::uint64_t now_ns = deadline_ns == UINT64_MAX ? 0 : fabric_.now_ns();
  bool holds = false;
  const auto poll = [&] {
    const std::size_t done = poll_parts();
    holds = condition();
    return holds || done > 0 || options_.stop.stop_requested();
  };
  const auto collect = [this] {
    Waits waits{.fabrics = {&fabric_}};
    for (const Part& part : parts_) part.wait(part.object, waits);
    return waits;
  };
  const bool awake = sleep_unless(poll, collect, deadline_ns - std::min(now_ns, deadline_ns));
  // A thread that slept reads the clock again, and need not spin as if something had just happened.
  if (!awake) fruitless_ = (fruitless_ / kPollsPerClock + 1) * kPollsPerClock;
  return holds;
}

RunnerThread::RunnerThread(ThreadOptions options, std::function<void(std::stop_token)> body)
    : thread_([this, core = options.core, run_body = std::move(body)](std::stop_token stop) {
        try {
          if (core != ThreadOptions::kAnyCore) threads::pin_to(core);
          run_body(std::move(stop));
        } catch (...) {
          failure_ = std::current_exception();
        }
      }) {}

RunnerThread::~RunnerThread() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void RunnerThread::join() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace dunlin
