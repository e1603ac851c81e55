#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dunlin/node/result.hpp>
#include <dunlin/remote/protocol.hpp>

/// A Future is the end of a call on a Node, which comes now or later.
///
///     dunlin::Future<std::uint64_t> put = store.put("k", "v");   // is under way
///     put.get();                                                 // waits; throws Error if it
///     failed store.get("k").then([](auto got) { if (got) use(**got); }); // runs on the node's
///     executor const auto got = co_await store.get("k");                  // a Result
///
/// One thread at a time uses a future. get(), result(), then() and co_await use it up; a second one
/// throws Error. A coroutine that awaits one (Detached, or a type of the program's) is destroyed on
/// the executor, or not before it has gone on. A call whose future is destroyed goes on; a call
/// that has a buffer of the caller's (a get of a segment, say) is given up first, so that nothing
/// writes into the buffer afterwards.
namespace dunlin {

template <class T>
class Future;

/// A coroutine that nobody waits for: it runs in the call that makes it up to the first future that
/// is not ready, and from there on on the node's executor, where it ends by itself.
///
///     dunlin::Detached refresh(dunlin::StoreHandle store) {
///       const auto got = co_await store.get("load");
///       if (got && *got) show((*got)->text());
///     }
struct Detached {
  struct Promise {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    /// What it throws ends the process, as in a thread: there is nobody to tell.
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };
  using promise_type = Promise;  // the name that the language requires
};

namespace node {

class Engine;

/// What a call under way and its future share. Two own it: the call, until it ends, and the future.
class SharedCall {
 public:
  SharedCall(const SharedCall&) = delete;
  SharedCall& operator=(const SharedCall&) = delete;
  virtual ~SharedCall();

  [[nodiscard]] bool ended() const noexcept {
    return phase_.load(std::memory_order_acquire) == kEnded;
  }
  /// Waits until the call has ended, at most so long; returns whether it has. Throws Error on the
  /// node's thread, which would wait for itself.
  bool wait(std::uint64_t timeout_ns);
  /// A child that was forked meanwhile has no thread that ends the call: the sentence that says so;
  /// else empty.
  [[nodiscard]] std::string why_never() const;
  /// Calls `next` on the node's executor once the call has ended.
  void then(std::function<void()> next);
  /// Takes back what then() was given, unless the call has ended.
  void forget() noexcept;
  /// Gives the call up, if it has not ended.
  void cancel();
  void release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  SharedCall(Engine& engine, bool borrows) noexcept;

  // --- under the lock (NODE-1) ------------------------------------------------------------------
  /// Ends the call by this failure, and gives back what it holds.
  virtual void fail(Failure failure) noexcept = 0;
  /// Puts the call into the list of those under way.
  void link() noexcept;
  /// Tells the future; the result is there.
  void end() noexcept;
  /// Says that a job in the queue will begin the call, and calls leave_queue().
  void enter_queue() noexcept { is_queued_ = true; }
  /// Whether the call still has to begin; if not, it was given up in the queue.
  [[nodiscard]] bool leave_queue() noexcept;

  Engine& engine() const noexcept { return *engine_; }

 private:
  friend class Engine;
  template <class T>
  friend class ::dunlin::Future;
  static constexpr std::uint32_t kUnderWay = 0, kBlocked = 1, kContinued = 2, kEnded = 3;

  std::shared_ptr<Engine> engine_;
  std::atomic<std::uint32_t> phase_{kUnderWay};
  std::atomic<std::uint32_t> owners_{2};
  const bool borrows_;      // the call has a buffer of the caller's
  bool is_queued_ = false;  // so the job in the queue owns the call, even if it has ended
  std::function<void()> next_;
  SharedCall* before_ = nullptr;  // in the engine's list of calls under way
  SharedCall* after_ = nullptr;
};

/// Gives work to the executor of the node of that number, or does it here if the node is gone.
void execute_on(std::uint64_t node, std::function<void()> work);
[[noreturn]] void throw_used_up();

template <class T>
class SharedResult : public SharedCall {
 public:
  Result<T> result{Failure{remote::Status::under_way, {}}};

 protected:
  using SharedCall::SharedCall;
};

}  // namespace node

template <class T>
class [[nodiscard]] Future {
 public:
  using value_type = typename Result<T>::value_type;

  /// A call that has ended, of the node of that number (Engine::number()).
  Future(std::uint64_t node, Result<T> result) : node_(node), result_(std::move(result)) {}
  /// A call under way, of which the future becomes an owner.
  explicit Future(node::SharedResult<T>* shared) noexcept : shared_(shared) {}
  Future(Future&& other) noexcept
      : shared_(std::exchange(other.shared_, nullptr)),
        node_(other.node_),
        result_(std::exchange(other.result_, std::nullopt)) {}
  Future& operator=(Future&& other) noexcept {
    if (this == &other) return *this;
    let_go();
    shared_ = std::exchange(other.shared_, nullptr);
    node_ = other.node_;
    result_ = std::exchange(other.result_, std::nullopt);
    return *this;
  }
  ~Future() { let_go(); }

  /// Whether the call has ended.
  [[nodiscard]] bool ready() const noexcept { return shared_ == nullptr || shared_->ended(); }
  /// Waits for the end, and returns the value. Throws Error if the call has failed, and on the
  /// node's own thread. May be called once.
  value_type get() { return result().value(); }
  /// As get(), but waits at most so long: nothing then, and the call goes on.
  std::optional<value_type> get_for(std::uint64_t timeout_ns) {
    if (!wait_for(timeout_ns)) return std::nullopt;
    return result().value();
  }
  /// Waits for the end. Returns the value or the failure; throws only where get() may not wait.
  Result<T> result() {
    if (shared_ == nullptr) {
      if (!result_) node::throw_used_up();
      return *std::exchange(result_, std::nullopt);
    }
    if (std::string why = shared_->why_never(); !why.empty())
      return Failure{remote::Status::stopped, std::move(why)};
    shared_->wait(remote::kForever);
    Result<T> ended = std::move(shared_->result);
    let_go();
    return ended;
  }
  /// Returns whether the call has ended in time.
  bool wait_for(std::uint64_t timeout_ns) {
    return shared_ == nullptr || shared_->wait(timeout_ns);
  }
  /// Calls `next(Result<T>)` on the node's executor once the call has ended; `next` can be copied.
  template <class Next>
  void then(Next next) {
    if (shared_ == nullptr) {
      if (!result_) node::throw_used_up();
      node::execute_on(
          node_, [next = std::move(next), ended = *std::exchange(result_, std::nullopt)]() mutable {
            next(std::move(ended));
          });
      return;
    }
    if (std::string why = shared_->why_never(); !why.empty()) {
      let_go();
      return Future(0, Failure{remote::Status::stopped, std::move(why)}).then(std::move(next));
    }
    // The continuation owns the call in the future's place.
    node::SharedResult<T>* const shared = std::exchange(shared_, nullptr);
    const auto release = [](node::SharedCall* call) { call->release(); };
    shared->then([owner = std::shared_ptr<node::SharedResult<T>>(shared, release),
                  next = std::move(next)]() mutable { next(std::move(owner->result)); });
  }
  /// Gives the call up: it ends with `abandoned`, unless it has ended. A change has then happened
  /// as a whole, or not at all.
  void cancel() {
    if (shared_ != nullptr) shared_->cancel();
  }

  // A coroutine goes on on the node's executor, and gets the Result.
  [[nodiscard]] bool await_ready() const { return ready() || !shared_->why_never().empty(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    is_awaited_ = true;
    shared_->then([waiter] { waiter.resume(); });
  }
  Result<T> await_resume() {
    is_awaited_ = false;
    return result();
  }

 private:
  void let_go() noexcept {
    if (shared_ == nullptr) return;
    if (is_awaited_) shared_->forget();
    if (shared_->borrows_ && !shared_->ended()) shared_->cancel();
    std::exchange(shared_, nullptr)->release();
  }

  node::SharedResult<T>* shared_ = nullptr;
  std::uint64_t node_ = 0;
  bool is_awaited_ = false;
  std::optional<Result<T>> result_ = std::nullopt;  // of a call that had ended when it was begun
};

}  // namespace dunlin
