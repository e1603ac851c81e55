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
#include "node/state.hpp"
#include "run/threads.hpp"

namespace dunlin::node {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
// How long a member waits besides for what it sends, until the others have a view without it.
constexpr std::uint64_t kLeaveNs = 5'000 * kNsPerMs;
// A thread that looks for work in vain gives the turn away for so many pauses between two looks.
constexpr std::uint32_t kPauses = 16;
constexpr std::uint32_t kPollsPerYield = 1024;

}  // namespace

thread_local constinit const Engine::InTurn* Engine::innermost = nullptr;

namespace {

// The nodes of this process, for futures of calls that had ended when they were begun.
std::mutex all_nodes_mutex;
std::map<std::uint64_t, std::weak_ptr<Engine>>& all_nodes() {
  static auto* const kNodes = new std::map<std::uint64_t, std::weak_ptr<Engine>>;  // outlives them
  return *kNodes;
}
std::atomic<std::uint64_t> last_number{0};

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

/// Does work where it is, one piece behind the other: a callback that makes calls which end at once
/// would else call itself.
void run_here(const std::function<void(const std::function<void()>&)>& call,
              std::function<void()> work) {
  static thread_local std::deque<std::function<void()>>* pending = nullptr;
  if (pending != nullptr) return pending->push_back(std::move(work));
  std::deque<std::function<void()>> own;
  own.push_back(std::move(work));
  pending = &own;
  while (!own.empty()) {
    const std::function<void()> next = std::move(own.front());
    own.pop_front();
    call(next);
  }
  pending = nullptr;
}

}  // namespace

void execute_on(std::uint64_t node, std::function<void()> work) {
  std::shared_ptr<Engine> engine;
  {
    const std::lock_guard lock(all_nodes_mutex);
    const auto found = all_nodes().find(node);
    if (found != all_nodes().end()) engine = found->second.lock();
  }
  if (engine) return engine->execute(std::move(work));
  run_here([](const std::function<void()>& one) { one(); }, std::move(work));
}

void throw_used_up() {
  throw Error("node: this future is used up: get(), result(), then() or co_await took its result");
}

Engine::Held::Held(Engine& engine, Patience patience)
    : engine_(engine), its_{&engine, innermost}, is_new_(!engine.has_turn()) {
  constexpr std::uint64_t kMostNs = 200 * kNsPerMs;
  if (!is_new_) return;
  if (innermost == nullptr || patience == Patience::endless) {
    engine.turn_.take();
  } else if (!engine.turn_.take_within(kMostNs)) {
    throw Error(engine.state_->who +
                "a callback of another node waits for this node, which may wait for that one; use "
                "then(), or give NodeOptions::executor");
  }
  innermost = &its_;
}

Engine::Engine(const NodeOptions& options)
    : number_(++last_number),
      queue_(checked_queue_bytes(options)),
      sleeper_has_barrier_(register_for_own_barriers()),
      has_executor_(static_cast<bool>(options.executor)),
      state_(std::make_unique<State>(options, found_or_join(options))) {}

std::shared_ptr<Engine> Engine::start(const NodeOptions& options) {
  std::shared_ptr<Engine> engine(new Engine(options));
  {
    const std::lock_guard lock(all_nodes_mutex);
    all_nodes().emplace(engine->number_, engine);
  }
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
  {
    const std::lock_guard lock(all_nodes_mutex);
    all_nodes().erase(number_);
  }
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

void Engine::execute(std::function<void()> work) noexcept {
  if (!is_forked()) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->no_more_callbacks) {
      state_->callbacks.push_back(std::exchange(work, nullptr));
      state_->some_callbacks.store(true, std::memory_order_relaxed);
    }
  }
  if (work)
    return run_here([this](const std::function<void()>& one) { call_back(one); }, std::move(work));
  if (!on_node_thread()) wake_if_asleep();
}

/// Without the turn: gives the callbacks to the program's executor, or does them.
void Engine::do_callbacks(std::deque<std::function<void()>> work) noexcept {
  for (auto& one : work) {
    if (has_executor_)
      call_back([&] { state_->executor(std::move(one)); });
    else
      call_back(one);
  }
}

void Engine::require_may_wait() const {
  if (on_node_thread())
    throw Error(
        state_->who +
        "a callback on the node's own thread cannot wait for what that thread has to do; use "
        "then() or co_await, or give NodeOptions::executor");
  if (has_turn())
    throw Error(state_->who +
                "a function that is called with the node's turn cannot wait: nobody else can do "
                "anything meanwhile");
}

std::uint32_t Engine::hand_over_ms() const noexcept { return state_->hand_over_ms; }

void Engine::tell(const std::string& news) noexcept {
  call_back([&] {
    if (state_->on_news) return state_->on_news(state_->who + news);
    std::fprintf(stderr, "%s%s\n", state_->who.c_str(), news.c_str());
  });
}

void Engine::tell_exception() noexcept {
  try {
    if (state_->on_exception) return state_->on_exception(std::current_exception());
  } catch (...) {
    // It is told as the other would be.
  }
  try {
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%sa callback threw: %s\n", state_->who.c_str(), error.what());
  } catch (...) {
    std::fprintf(stderr, "%sa callback threw something that is no std::exception\n",
                 state_->who.c_str());
  }
}

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
  if (on_node_thread() || has_turn()) return;  // it ends when this thread is out of the way
  static_cast<void>(wait_for_end(remote::kForever));
  if (state_->thread.joinable()) state_->thread.join();
}

View Engine::view() {
  if (is_forked()) return {};
  const Held held(*this, Held::Patience::endless);
  return is_running() ? state_->group->view() : state_->last_view;
}

// --- with the turn -------------------------------------------------------------------------------

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

std::shared_ptr<Part> Engine::find(const std::string& kind_and_name) const {
  const auto found = state_->parts_by_name.find(kind_and_name);
  return found == state_->parts_by_name.end() ? nullptr : found->second;
}

void Engine::add(const std::string& kind_and_name, std::shared_ptr<Part> part) {
  state_->parts_by_name.emplace(kind_and_name, part);
  state_->parts.push_back(std::move(part));
  wake_if_asleep();
}

void Engine::set_view_handler(std::function<void(const View&)> handler) {
  state_->on_view = std::move(handler);
  tell_view();
}

void Engine::tell_view() {
  if (state_->on_view)
    execute([handler = state_->on_view, view = state_->group->view()] { handler(view); });
}

void Engine::link(SharedCall& call) noexcept {
  DUNLIN_ASSERT(has_turn(), "NODE-1");
  call.after_ = state_->calls;
  if (call.after_ != nullptr) call.after_->before_ = &call;
  state_->calls = &call;
}

void Engine::unlink(SharedCall& call) noexcept {
  DUNLIN_ASSERT(has_turn(), "NODE-1");
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
  take_turn();
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

void Engine::take_turn() noexcept {
  turn_.take();
  innermost = &node_thread_;
}

void Engine::give_turn() noexcept {
  innermost = nullptr;
  turn_.give();
}

void Engine::poll_until_it_ends() {
  std::uint32_t fruitless = 0;
  while (!state_->leaves.load(std::memory_order_relaxed)) {
    const bool busy = poll_once() > 0;
    if (state_->group->ended()) return;
    if (state_->has_callbacks()) run_callbacks();
    if (busy) {
      fruitless = 0;
      if (turn_.wanted()) turn_.share();
    } else {
      idle(++fruitless);
    }
  }
}

std::size_t Engine::poll_once() {
  std::size_t done = run_queue();
  done += state_->progress.poll();
  if (state_->participant) done += state_->participant->poll();
  if (state_->group->view().number != state_->view) {
    state_->view = state_->group->view().number;
    for (std::size_t i = 0; i < state_->parts.size(); ++i) state_->parts[i]->view_changed();
    tell_view();
  }
  for (std::size_t i = 0; i < state_->parts.size(); ++i) done += state_->parts[i]->poll();
  return done;
}

std::size_t Engine::run_queue() {
  return queue_.read([](std::span<std::byte> record) {
    const Job* const job = std::launder(reinterpret_cast<const Job*>(record.data()));
    job->run(record.data() + sizeof(Job));
    return true;
  });
}

/// Does the work of the executor, if the program has none, without the turn.
void Engine::run_callbacks() noexcept {
  std::deque<std::function<void()>> work;
  {
    const std::lock_guard lock(state_->mutex);
    work.swap(state_->callbacks);
    state_->some_callbacks.store(false, std::memory_order_relaxed);
  }
  give_turn();
  do_callbacks(std::move(work));
  take_turn();
}

/// Waits for work without the turn: as the options say, and more and more.
void Engine::idle(std::uint32_t fruitless) {
  if (state_->wait == Wait::block ||
      (state_->wait == Wait::adaptive && state_->spun_enough(fruitless)))
    return sleep();
  give_turn();
  if (state_->crowded || fruitless % kPollsPerYield == 0) {
    sched_yield();
  } else {
    for (std::uint32_t pause = 0; pause < kPauses && queue_.empty(); ++pause) threads::pause();
  }
  take_turn();
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
    give_turn();
    wait();
    take_turn();
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
  state_->last_view = state_->group->view();
  ended_.store(true, std::memory_order_release);
  queue_.close();
  for (const auto& part : state_->parts) part->close();
  while (!queue_.empty())
    if (run_queue() == 0) sched_yield();  // a thread is about to publish its call
  const std::uint64_t begun_ns = read_clock_ns(CLOCK_MONOTONIC);
  const auto until = [&](std::uint64_t ns, const auto& condition) {
    while (!state_->group->ended() && !condition() &&
           read_clock_ns(CLOCK_MONOTONIC) < begun_ns + ns) {
      if (poll_once() == 0) sched_yield();
      if (turn_.wanted()) turn_.share();
    }
  };
  try {
    until(state_->hand_over_ms * kNsPerMs, [&] {
      return std::ranges::all_of(state_->parts,
                                 [](const auto& part) { return part->handed_over(); });
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
  give_turn();
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
