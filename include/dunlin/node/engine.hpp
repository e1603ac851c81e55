#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dunlin/node/engine_lock.hpp>
#include <dunlin/node/future.hpp>
#include <dunlin/node/record_ring.hpp>
#include <dunlin/run.hpp>

/// The engine of a Node: the thread that polls, and how other threads reach what it polls. For the
/// handles; a program uses Node (node.hpp).
///
///  NODE-1  One thread at a time works on the fabric and the objects of a node: the one that holds
///      the lock. This is the polling thread, or one that finds the lock free.
///  NODE-2  Calls that one thread makes by one handle begin in that order: a call is done at once
///      only if no earlier one waits in the queue. One that waits for another member may end after
///      a later one.
///  NODE-3  A call that was accepted is done, or its future says why not. A message that was
///      accepted is sent before this member leaves. A call that the queue has no room for is
///      refused, with `overloaded`. Once the node begins to leave, it accepts nothing.
///  NODE-4  A future ends once; at the latest when its node ends.
///  NODE-5  Callbacks run on the executor, which gets them in order. Once the node has ended, they
///      run in the thread that gives them. What they throw goes to NodeOptions::on_exception, and
///      the node goes on.
///  NODE-6  The polling thread sleeps only if it has looked at the queue after it had said so. A
///      thread that puts a call into the queue looks after that whether it sleeps; one of those
///      that see it asleep wakes it.
///  NODE-7  A node without calls, traffic and timers sleeps.
namespace dunlin {

class Containers;
class Fabric;
class Group;
struct NodeOptions;
struct View;

namespace remote {
class Progress;
}
namespace pubsub {
class DomainParticipant;
}

namespace node {

using Executor = std::function<void(std::function<void()> work)>;

/// Something that the polling thread polls under the lock, and that ends with the node.
class NodeObject {
 public:
  NodeObject() = default;
  NodeObject(const NodeObject&) = delete;
  NodeObject& operator=(const NodeObject&) = delete;
  virtual ~NodeObject() = default;
  /// Returns how much was done.
  virtual std::size_t poll() { return 0; }
  /// A new view has begun.
  virtual void view_changed() {}
  /// The node begins to leave: nothing more is taken from other threads.
  virtual void close() noexcept {}
  /// Whether what was taken has been passed on.
  [[nodiscard]] virtual bool handed_over() { return true; }
  /// The node ends: what needs the group and the fabric is destroyed.
  virtual void end() noexcept = 0;
};

/// What a function of the program threw inside a poll, and on_exception was told. The core knows
/// how to go on.
class ToldException final : public std::exception {};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// Joins, and starts the thread. Throws Error.
  [[nodiscard]] static std::shared_ptr<Engine> start(const NodeOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- any thread --------------------------------------------------------------------------------
  /// Calls `work` under the lock, once it is free: for what makes or changes objects. Throws Error
  /// if the node has ended, and what `work` throws.
  template <class Work>
  decltype(auto) with_lock(Work&& work) {
    struct Wake {
      ~Wake() { engine.wake_if_asleep(); }
      Engine& engine;
    } const wake{*this};  // behind the lock, as the polling thread may have something to do now
    return look_with_lock(std::forward<Work>(work));
  }
  /// As with_lock(), for work that gives the polling thread nothing to do.
  template <class Work>
  decltype(auto) look_with_lock(Work&& work) {
    require_running();
    const Held held(*this);
    require_running();
    return std::forward<Work>(work)();
  }
  /// Calls `work` under the lock if that is free and no call waits; else does nothing, and returns
  /// false.
  template <class Work>
  bool run_now(Work&& work) {
    if (has_lock()) {
      if (!is_running() || !queue_.empty()) return false;  // NODE-2
      work();
      return true;
    }
    // A thread that waits for the lock, such as the polling thread, comes before those that find
    // it. Where the polling thread only looks for work, the lock comes sooner than that thread
    // finds the call in the queue, and the call does not keep that thread awake.
    if (lock_.wanted()) return false;
    if (!lock_.try_lock() && (!queue_.empty() || !lock_.try_lock_soon())) return false;
    const Adopted held(*this);
    if (!is_running() || !queue_.empty()) return false;
    work();
    return true;
  }
  /// Puts `work` into the queue: the polling thread calls it, also if the node has ended meanwhile.
  /// Returns why not, or Claim::ok.
  template <class Work>
  [[nodiscard]] RecordRing::Claim enqueue(Work&& work) {
    using Kept = std::remove_cvref_t<Work>;
    if (!is_running()) return RecordRing::Claim::closed;
    if constexpr (sizeof(Job) + sizeof(Kept) > kLongestJob || alignof(Kept) > 16)
      return enqueue([kept = std::make_unique<Kept>(std::forward<Work>(work))] { (*kept)(); });
    else
      return enqueue_in_place<Kept>(std::forward<Work>(work));
  }
  /// Wakes the polling thread if it sleeps (NODE-6). Where the kernel can have all processors of
  /// this process pass a barrier, the thread that goes to sleep pays for it, and no call does.
  void wake_if_asleep() noexcept {
    if (sleeper_has_barrier_)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
    // One of those that see it asleep wakes it: a system call for each message would come before
    // the thread does.
    if (is_asleep() && asleep_.exchange(false, std::memory_order_relaxed)) wake();
  }
  [[nodiscard]] bool is_asleep() const noexcept { return asleep_.load(std::memory_order_relaxed); }
  /// Calls a function that is a part of a poll: what it throws is told, and comes out of the poll
  /// as ToldException.
  template <class Function>
  decltype(auto) call_in_poll(const Function& function) {
    try {
      return function();
    } catch (...) {
      call_back([] { throw; });
      throw ToldException();
    }
  }
  /// Gives work to the executor: without one, to the polling thread, which then does not hold the
  /// lock.
  void execute(std::function<void()> work) noexcept;
  /// Calls a function of the program's where it is: what it throws goes to on_exception (NODE-5).
  template <class Callback>
  void call_back(const Callback& callback) noexcept {
    try {
      callback();
    } catch (...) {
      tell_exception();
    }
  }

  [[nodiscard]] bool on_node_thread() const noexcept;
  /// Whether this thread holds the lock.
  [[nodiscard]] bool has_lock() const noexcept {
    for (const HeldLock* one = innermost; one != nullptr; one = one->outer)
      if (one->engine == this) return true;
    return false;
  }
  /// Throws Error where a wait for a call, or for the node's end, would never end.
  void require_may_wait() const;
  /// Tells node::execute_on() which node it is.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint32_t hand_over_ms() const noexcept;
  /// Tells the program something that it cannot learn otherwise.
  void tell(const std::string& news) noexcept;
  [[nodiscard]] bool has_executor() const noexcept { return has_executor_; }
  [[nodiscard]] bool is_running() const noexcept {
    return !ended_.load(std::memory_order_acquire) && !is_forked();
  }
  [[nodiscard]] bool is_forked() const noexcept;
  /// Why calls end with `stopped` now.
  [[nodiscard]] Failure why_stopped() const;
  /// The failure of a call that the queue did not take.
  [[nodiscard]] Failure refused(RecordRing::Claim why, const char* call) const;
  /// Asks the node to leave the group; may be called in a signal handler.
  void ask_to_leave() noexcept;
  /// Waits until the node has ended, at most so long. Throws Error on the node's thread.
  bool wait_for_end(std::uint64_t timeout_ns);
  /// Leaves, and waits for the end; on the node's thread, which ends then, it does not wait.
  void finish() noexcept;
  /// The view at hand, or the last one.
  [[nodiscard]] View view();

  // --- under the lock ---------------------------------------------------------------------------
  [[nodiscard]] Fabric& fabric() noexcept;
  [[nodiscard]] Group& group() noexcept;
  [[nodiscard]] remote::Progress& progress() noexcept;
  [[nodiscard]] Containers& containers();
  [[nodiscard]] pubsub::DomainParticipant& participant();
  /// The object of this kind and name, or one that `make` makes. Throws Error if the name belongs
  /// to an object of another type.
  template <std::derived_from<NodeObject> P, class Make>
  [[nodiscard]] std::shared_ptr<P> object(const std::string& kind_and_name, const Make& make) {
    if (const std::shared_ptr<NodeObject> known = find(kind_and_name)) {
      if (auto same = std::dynamic_pointer_cast<P>(known)) return same;
      throw Error("node: " + kind_and_name + " has another type in this process already");
    }
    std::shared_ptr<P> made = make();
    add(kind_and_name, made);
    return made;
  }
  void set_view_handler(std::function<void(const View&)> handler);

 private:
  friend class SharedCall;
  struct State;
  struct Job {
    alignas(16) void (*run)(std::byte* kept);
  };
  static constexpr std::size_t kLongestJob = 512;

  template <class Kept, class Work>
  [[nodiscard]] RecordRing::Claim enqueue_in_place(Work&& work) noexcept {
    RecordRing::Claim why;
    std::byte* const record = queue_.claim(sizeof(Job) + sizeof(Kept), why);
    if (record == nullptr) return why;
    new (record + sizeof(Job)) Kept(std::forward<Work>(work));
    new (record) Job{[](std::byte* kept) {
      Kept* const its_work = std::launder(reinterpret_cast<Kept*>(kept));
      (*its_work)();
      its_work->~Kept();
    }};
    queue_.publish(record, sizeof(Job) + sizeof(Kept));
    wake_if_asleep();
    return RecordRing::Claim::ok;
  }

  /// A lock that this thread holds. A thread can hold those of several engines.
  struct HeldLock {
    const Engine* engine;
    const HeldLock* outer;
  };
  /// Takes the lock, unless this thread holds it, and releases it. Throws Error if this thread
  /// holds another engine's lock, and this one does not come: the two may wait for each other.
  class Held {
   public:
    enum class Patience : std::uint8_t { some, endless };
    explicit Held(Engine& engine, Patience patience = Patience::some);
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      if (!is_new_) return;
      innermost = its_.outer;
      engine_.lock_.unlock();
    }

   private:
    Engine& engine_;
    HeldLock its_;
    const bool is_new_;
  };
  /// Releases a lock that was taken.
  class Adopted {
   public:
    explicit Adopted(Engine& engine) noexcept : engine_(engine), its_{&engine, innermost} {
      innermost = &its_;
    }
    Adopted(const Adopted&) = delete;
    Adopted& operator=(const Adopted&) = delete;
    ~Adopted() {
      innermost = its_.outer;
      engine_.lock_.unlock();
    }

   private:
    Engine& engine_;
    HeldLock its_;
  };

  explicit Engine(const NodeOptions& options);
  void require_running() const;
  void wake() noexcept;
  void tell_exception() noexcept;
  void do_callbacks(std::deque<std::function<void()>> work) noexcept;
  void start_pinned() noexcept;
  void tell_view();
  void keep_view();
  [[nodiscard]] std::shared_ptr<NodeObject> find(const std::string& kind_and_name) const;
  void add(const std::string& kind_and_name, std::shared_ptr<NodeObject> object);
  void link(SharedCall& call) noexcept;
  void unlink(SharedCall& call) noexcept;

  // The polling thread:
  void work() noexcept;
  void poll_until_it_ends();
  std::size_t poll_once();
  std::size_t run_queue();
  void run_callbacks() noexcept;
  void idle(std::uint32_t fruitless);
  void sleep();
  void leave_and_end(std::string why) noexcept;

  void take_lock() noexcept;
  void release_lock() noexcept;

  static thread_local constinit const HeldLock* innermost;

  std::uint64_t number_ = 0;
  HeldLock node_thread_{this, nullptr};
  EngineLock lock_;
  RecordRing queue_;
  const bool sleeper_has_barrier_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> ended_{false};
  bool has_executor_ = false;
  std::unique_ptr<State> state_;
};

}  // namespace node
}  // namespace dunlin
