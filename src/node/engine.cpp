#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <utility>

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dunlin/node/engine.hpp>

#include "assert.hpp"
#include "fabric/sleeping.hpp"
#include "fabric/system.hpp"
#include "node/callbacks.hpp"
#include "node/state.hpp"
#include "run/threads.hpp"

namespace dunlin::node {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
// How long a member waits besides for what it sends, until the others have a view without it.
constexpr std::uint64_t kLeaveNs = 5'000 * kNsPerMs;
// A thread that looks for work in vain releases the lock for so many pauses between two looks.
constexpr std::uint32_t kPauses = 16;

}  // namespace

thread_local constinit const Engine::HeldLock* Engine::innermost = nullptr;

namespace {

/// Lets own_barrier() include the threads of this process; false if the kernel has none.
bool register_for_own_barriers() noexcept {
  return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}
void own_barrier() noexcept { syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }

std::size_t checked_queue_bytes(const NodeOptions& options) {
  const std::size_t bytes = options.queue_bytes;
  if (std::has_single_bit(bytes) && bytes >= 1'024) return bytes;
  throw Error("node: group '" + options.group + "': `queue_bytes` is " + std::to_string(bytes) +
              ", and must be a power of two, at least 1,024");
}

}  // namespace

Engine::Held::Held(Engine& engine, Patience patience)
    : engine_(engine), its_{&engine, innermost}, is_new_(!engine.has_lock()) {
  constexpr std::uint64_t kMostNs = 200 * kNsPerMs;
  if (!is_new_) return;
  if (innermost == nullptr || patience == Patience::endless) {
    engine.lock_.lock();
  } else if (!engine.lock_.try_lock_for(kMostNs)) {
    throw Error(engine.state_->who +
                "a callback of another node waits for this node, which may wait for that one; use "
                "then(), or give NodeOptions::executor");
  }
  innermost = &its_;
}

Engine::Engine(const NodeOptions& options)
    : queue_(checked_queue_bytes(options)),
      sleeper_has_barrier_(register_for_own_barriers()),
      has_executor_(static_cast<bool>(options.executor)),
      state_(std::make_unique<State>(options, found_or_join(options))) {}

std::shared_ptr<Engine> Engine::start(const NodeOptions& options) {
  std::shared_ptr<Engine> engine(new Engine(options));
  engine->number_ = register_node(engine);
  State& state = *engine->state_;
  const bool begun =
      Loop(state.fabric())
          .add(state.progress)
          .run_until([&] { return state.group->view().number > 0 || state.group->ended(); },
                     options.network.join_ms());
  if (!begun || state.group->ended())
    throw Error("node: group '" + options.group + "': this process came into no view: " +
                (begun ? state.group->why_ended() : state.group->describe()));
  state.view = state.group->view().number;
  engine->keep_view();
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    state.thread = std::thread([engine] { engine->work(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::unique_lock lock(state.mutex);
  state.started.wait(lock, [&] { return state.has_started; });
  if (state.pin_failure) {
    lock.unlock();
    engine->finish();
    std::rethrow_exception(state.pin_failure);
  }
  return engine;
}

Engine::~Engine() {
  unregister_node(number_);
  if (state_ == nullptr) return;
  if (is_forked())
    static_cast<void>(state_.release());  // the parent has its thread
  else if (state_->thread.joinable())
    state_->thread.detach();  // a callback has ended the node, and this is its thread
}

// --- any thread ----------------------------------------------------------------------------------

bool Engine::is_forked() const noexcept { return state_->forked.load(std::memory_order_relaxed); }

bool Engine::on_node_thread() const noexcept {
  return state_->thread_id.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void Engine::require_running() const {
  if (!is_running()) throw Error(why_stopped().text);
}

Failure Engine::why_stopped() const {
  if (is_forked())
    return {remote::Status::stopped,
            state_->who + "this process is a child of the member's process, and no member"};
  const std::lock_guard lock(state_->mutex);
  return {remote::Status::stopped, state_->who + "the node has ended: " + state_->why_ended};
}

Failure Engine::refused(RecordRing::Claim why, const char* call) const {
  if (why == RecordRing::Claim::closed || !is_running()) return why_stopped();
  if (why == RecordRing::Claim::too_long)
    return {remote::Status::too_long,
            state_->who + call + ": longer than the queue of calls takes"};
  return {remote::Status::overloaded,
          state_->who + call +
              ": too many calls wait for the node's thread; try again later, or give "
              "NodeOptions::queue_bytes a greater value"};
}

void Engine::require_may_wait() const {
  if (on_node_thread())
    throw Error(
        state_->who +
        "a callback on the node's own thread cannot wait for what that thread has to do; use "
        "then() or co_await, or give NodeOptions::executor");
  if (has_lock())
    throw Error(state_->who +
                "a function that is called with the node's lock cannot wait: nobody else can do "
                "anything meanwhile");
}

std::uint32_t Engine::hand_over_ms() const noexcept { return state_->hand_over_ms; }

void Engine::wake() noexcept { state_->bell.ring(); }

void Engine::ask_to_leave() noexcept {
  if (is_forked()) return;
  state_->leaves.store(true, std::memory_order_release);
  wake();
}

bool Engine::wait_for_end(std::uint64_t timeout_ns) {
  if (is_forked()) return true;
  require_may_wait();
  std::unique_lock lock(state_->mutex);
  const auto ended = [this] { return state_->has_ended; };
  if (timeout_ns >= remote::kForever / 2) {
    state_->end_came.wait(lock, ended);
    return true;
  }
  return state_->end_came.wait_for(lock, std::chrono::nanoseconds(timeout_ns), ended);
}

void Engine::finish() noexcept {
  if (is_forked()) return;
  ask_to_leave();
  if (on_node_thread() || has_lock()) return;  // it ends when this thread is out of the way
  static_cast<void>(wait_for_end(remote::kForever));
  if (state_->thread.joinable()) state_->thread.join();
}

View Engine::view() {
  if (is_forked()) return {};
  const std::lock_guard lock(state_->mutex);
  return state_->last_view;
}

void Engine::keep_view() {
  const std::lock_guard lock(state_->mutex);
  state_->last_view = state_->group->view();
}

// --- under the lock -----------------------------------------------------------------------------

Fabric& Engine::fabric() noexcept { return state_->fabric(); }
Group& Engine::group() noexcept { return *state_->group; }
remote::Progress& Engine::progress() noexcept { return state_->progress; }

Containers& Engine::containers() {
  if (!state_->containers) state_->containers.emplace(progress());
  return *state_->containers;
}

pubsub::DomainParticipant& Engine::participant() {
  if (!state_->participant)
    state_->participant.emplace(group(),
                                pubsub::ParticipantOptions{.hand_over_ms = state_->hand_over_ms});
  return *state_->participant;
}

std::shared_ptr<NodeObject> Engine::find(const std::string& kind_and_name) const {
  const auto found = state_->objects_by_name.find(kind_and_name);
  return found == state_->objects_by_name.end() ? nullptr : found->second;
}

void Engine::add(const std::string& kind_and_name, std::shared_ptr<NodeObject> object) {
  state_->objects_by_name.emplace(kind_and_name, object);
  state_->objects.push_back(std::move(object));
  wake_if_asleep();
}

void Engine::set_view_handler(std::function<void(const View&)> handler) {
  state_->on_view = std::move(handler);
  tell_view();
}

void Engine::link(SharedCall& call) noexcept {
  DUNLIN_ASSERT(has_lock(), "NODE-1");
  call.after_ = state_->calls;
  if (call.after_ != nullptr) call.after_->before_ = &call;
  state_->calls = &call;
}

void Engine::unlink(SharedCall& call) noexcept {
  DUNLIN_ASSERT(has_lock(), "NODE-1");
  if (call.before_ != nullptr)
    call.before_->after_ = call.after_;
  else if (state_->calls == &call)
    state_->calls = call.after_;
  if (call.after_ != nullptr) call.after_->before_ = call.before_;
  call.before_ = call.after_ = nullptr;
}

// --- the polling thread --------------------------------------------------------------------------

void Engine::work() noexcept {
  state_->thread_id.store(std::this_thread::get_id(), std::memory_order_relaxed);
  start_pinned();
  std::string why = "it leaves the group, as the program asked";
  take_lock();
  try {
    poll_until_it_ends();
    if (state_->group->ended()) why = state_->group->why_ended();
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
    why = "a function of the program threw something that is no std::exception";
  }
  leave_and_end(std::move(why));
}

void Engine::start_pinned() noexcept {
  std::exception_ptr failure;
  try {
    if (state_->core != ThreadOptions::kAnyCore) threads::pin_to(state_->core);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(state_->mutex);
  state_->pin_failure = failure;
  state_->has_started = true;
  state_->started.notify_all();
}

void Engine::take_lock() noexcept {
  lock_.lock();
  innermost = &node_thread_;
}

void Engine::release_lock() noexcept {
  innermost = nullptr;
  lock_.unlock();
}

void Engine::poll_until_it_ends() {
  std::uint32_t fruitless = 0;
  while (!state_->leaves.load(std::memory_order_relaxed)) {
    const bool busy = poll_once() > 0;
    if (state_->group->ended()) return;
    if (state_->has_callbacks()) run_callbacks();
    if (busy) {
      fruitless = 0;
      if (lock_.wanted()) lock_.share();
    } else {
      idle(++fruitless);
    }
  }
}

std::size_t Engine::poll_once() {
  std::size_t done = run_queue();
  try {
    done += state_->progress.poll();
  } catch (const ToldException&) {
    ++done;
  }
  if (state_->participant) done += state_->participant->poll();
  if (state_->group->view().number != state_->view) {
    state_->view = state_->group->view().number;
    keep_view();
    for (std::size_t i = 0; i < state_->objects.size(); ++i) state_->objects[i]->view_changed();
    tell_view();
  }
  for (std::size_t i = 0; i < state_->objects.size(); ++i) done += state_->objects[i]->poll();
  return done;
}

std::size_t Engine::run_queue() {
  return queue_.read([](std::span<std::byte> record) {
    const Job* const job = std::launder(reinterpret_cast<const Job*>(record.data()));
    job->run(record.data() + sizeof(Job));
    return true;
  });
}

/// Waits for work without the lock: as the options say, and more and more.
void Engine::idle(std::uint32_t fruitless) {
  if (state_->wait == Wait::block ||
      (state_->wait == Wait::adaptive &&
       threads::spun_enough(state_->fabric(), fruitless, state_->crowded, state_->spin_us,
                            state_->fruitless_since_ns)))
    return sleep();
  release_lock();
  if (state_->crowded || fruitless % threads::kPollsPerYield == 0) {
    sched_yield();
  } else {
    for (std::uint32_t pause = 0; pause < kPauses && !queue_.ready(); ++pause) threads::pause();
  }
  take_lock();
}

void Engine::sleep() {
  const auto poll = [this] {
    asleep_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeper_has_barrier_) own_barrier();  // NODE-6
    return poll_once() > 0 || !queue_.empty() || state_->has_callbacks() ||
           state_->group->ended() || state_->leaves.load(std::memory_order_relaxed);
  };
  const auto collect = [this] {
    Waits waits{.fabrics = {&state_->fabric()}};
    waits.add(state_->progress.waits());
    waits.descriptors.push_back(state_->bell.descriptor());
    return waits;
  };
  const auto without_turn = [this](const std::function<void()>& wait) {
    release_lock();
    wait();
    take_lock();
  };
  static_cast<void>(sleep_unless(poll, collect, UINT64_MAX, without_turn));
  asleep_.store(false, std::memory_order_relaxed);
  state_->bell.silence();
}

/// Hands over what was accepted, leaves the group, and ends everything that other threads wait for.
void Engine::leave_and_end(std::string why) noexcept {
  {
    const std::lock_guard lock(state_->mutex);
    state_->why_ended = why;
  }
  ended_.store(true, std::memory_order_release);
  queue_.close();
  for (const auto& object : state_->objects) object->close();
  while (!queue_.empty())
    if (run_queue() == 0) sched_yield();  // a thread is about to publish its call
  const std::uint64_t begun_ns = read_clock_ns(CLOCK_MONOTONIC);
  const auto until = [&](std::uint64_t ns, const auto& condition) {
    while (!state_->group->ended() && !condition() &&
           read_clock_ns(CLOCK_MONOTONIC) < begun_ns + ns) {
      if (poll_once() == 0) sched_yield();
      if (lock_.wanted()) lock_.share();
    }
  };
  try {
    until(state_->hand_over_ms * kNsPerMs, [&] {
      return std::ranges::all_of(state_->objects,
                                 [](const auto& object) { return object->handed_over(); });
    });
  } catch (...) {
    tell_exception();
  }
  try {
    if (!state_->group->ended()) state_->group->leave();
    until(state_->hand_over_ms * kNsPerMs + kLeaveNs, [] { return false; });
  } catch (...) {
    tell_exception();
  }
  while (state_->calls != nullptr) {
    SharedCall& call = *state_->calls;
    call.fail({remote::Status::stopped, state_->who + "the node has ended: " + why});
  }
  state_->end();
  release_lock();
  for (;;) {
    std::deque<std::function<void()>> work;
    {
      const std::lock_guard lock(state_->mutex);
      work.swap(state_->callbacks);
      state_->no_more_callbacks = work.empty();
    }
    if (work.empty()) break;
    do_callbacks(std::move(work));
  }
  const std::lock_guard lock(state_->mutex);
  state_->has_ended = true;
  state_->end_came.notify_all();
}

}  // namespace dunlin::node
