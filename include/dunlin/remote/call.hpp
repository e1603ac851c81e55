#pragma once

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <new>
#include <utility>

#include <dunlin/remote/protocol.hpp>

/// A Call is a protocol that is under way, and then its result. It may be moved; its destruction
/// gives the protocol up.
///
///     auto first = space.get(a, x), second = space.get(b, y);   // both are under way
///     dunlin::remote::wait_all({&first, &second});              // or: poll until finished()
///     if (first.ok()) use(first.result().version);
///
/// Invariants:
///  REM-1  A call ends exactly once, with `ok` or a named error.
///  REM-2  It never hangs because a member died: it ends `lost` or `stopped`, or goes on without
///         that member.
///  REM-3  A call that is abandoned or destroyed leaves nothing behind: its locks are released, and
///         nothing reads or writes its buffers any more.
///  REM-4  Callbacks and coroutines run inside Progress::poll(), when the call has ended and is in
///         no list any more, so that they may destroy it. If the call has ended before then() or
///         co_await, the callback runs, and the coroutine goes on, in that call.
///  REM-5  A step neither throws nor waits; and it allocates nothing, but for a frame that the
///         Progress has no memory for yet. If there is none, the call ends with `no_memory`.
namespace dunlin::remote {

class CallBase {
 public:
  CallBase(const CallBase&) = delete;
  CallBase& operator=(const CallBase&) = delete;

  [[nodiscard]] bool finished() const noexcept { return state_ == nullptr; }
  /// Whether it is a call at all, and has a progress.
  [[nodiscard]] bool begun() const noexcept { return progress_ != nullptr; }
  [[nodiscard]] Progress& progress() const noexcept { return *progress_; }
  /// Sets the callback for the end of the call; calls it at once if the call has ended. Replaces an
  /// earlier callback.
  void then(std::function<void()> callback);
  /// Gives the call up (REM-3). It ends with `abandoned`, and calls nothing.
  void abandon() noexcept {
    if (!finished()) give_up();
  }

 protected:
  explicit CallBase(Progress* progress) noexcept : progress_(progress) {}
  CallBase(CallBase&& other) noexcept : progress_(other.progress_) { take_over(other); }
  ~CallBase() = default;
  void take_over(CallBase& other) noexcept;
  /// Whether the protocol can begin: this process is a member. Throws Error inside a function that
  /// runs for another member (LocalWork).
  [[nodiscard]] bool may_begin() const;
  /// Puts the protocol, which has begun, into the list.
  void go_on(ProtocolState& state, std::uint64_t timeout_ns) noexcept;
  void give_up() noexcept;
  /// As Call::wait; whether it has ended.
  bool wait_until_finished(std::uint64_t timeout_ns);

  Progress* progress_;
  ProtocolState* state_ = nullptr;  // null once it has ended

 private:
  friend class AwaitingCall;
  friend class Runs;
};

/// Awaits a call for a coroutine, in whose frame this object lives. Either of the two may go before
/// the other.
class AwaitingCall {
 public:
  explicit AwaitingCall(CallBase& call) noexcept : call_(&call) {}
  AwaitingCall(const AwaitingCall&) = delete;
  AwaitingCall& operator=(const AwaitingCall&) = delete;
  ~AwaitingCall() {
    if (waiter_) call_->state_->awaiting_ = nullptr;
  }
  [[nodiscard]] bool await_ready() const noexcept { return call_->finished(); }
  /// Throws Error if another coroutine awaits the call already.
  void await_suspend(std::coroutine_handle<> waiter);

 protected:
  CallBase* call_;  // where it is now, as it may be moved

 private:
  friend class CallBase;
  friend class Runs;
  std::coroutine_handle<> waiter_;  // set while it waits
};

inline void CallBase::take_over(CallBase& other) noexcept {
  state_ = std::exchange(other.state_, nullptr);
  if (state_ == nullptr) return;
  state_->call_ = this;
  if (state_->awaiting_ != nullptr) state_->awaiting_->call_ = this;
}

/// A call with a result; how one waits for that is its subclass's.
template <class T>
class [[nodiscard]] BasicCall : public CallBase {
 public:
  /// No call: as one that has ended, with `ok`.
  BasicCall() noexcept : CallBase(nullptr), result_(ended_with<T>(Status::ok)) {}
  /// A call that has ended so.
  BasicCall(Progress& progress, T result) noexcept
      : CallBase(&progress), result_(std::move(result)) {}
  /// Begins the protocol, which may have ended when this returns. Until then, and if it has no
  /// result of its own, the result is `begun` with another status. The result of the protocol may
  /// be of another type, from which T is made: frames are not made for types of a program.
  template <class U>
  BasicCall(Progress& progress, Protocol<U> protocol, std::uint64_t timeout_ns = kForever,
            T begun = ended_with<T>(Status::under_way));
  BasicCall(BasicCall&& other) noexcept
      : CallBase(std::move(other)), result_(std::move(other.result_)) {}
  BasicCall& operator=(BasicCall&& other) noexcept {
    // The other's members are read before anything that may change memory, so that those of a call
    // that has just ended are in registers still: a processor waits some 12 cycles for a struct
    // that was written field by field and is read as a whole.
    Progress* const progress = other.progress_;
    const bool has_ended = other.finished();
    T result = std::move(other.result_);
    if (!finished() && this != &other) give_up();
    progress_ = progress;
    if (!has_ended) take_over(other);
    result_ = std::move(result);
    return *this;
  }
  ~BasicCall() { abandon(); }

  [[nodiscard]] bool ok() const noexcept { return status() == Status::ok; }
  [[nodiscard]] Status status() const noexcept {
    return finished() ? status_of(result_) : Status::under_way;
  }
  /// How the call ended; `under_way` if it has not.
  [[nodiscard]] const T& result() const noexcept { return result_; }

  /// Polls until the call has ended or the time is up, which the result `under_way` says; the call
  /// goes on then. Throws Error inside a handler, a callback, or a coroutine that poll() has
  /// resumed.
  Status wait(std::uint64_t timeout_ns = kForever) {
    wait_until_finished(timeout_ns);
    return status();
  }

  /// A sentence about the call and its end, if its result has one.
  [[nodiscard]] auto describe() const requires requires(const T& result) { result.describe(); }
  { return result_.describe(); }

 protected:
  T result_;

 private:
  template <class U>
  void take(U&& result) noexcept;
  template <class U>
  static void settle(ProtocolState& state, Status status) noexcept;
};

template <class T>
class [[nodiscard]] Call : public BasicCall<T> {
 public:
  using BasicCall<T>::BasicCall;

  /// Waits for the end, and returns the result.
  const T& outcome(std::uint64_t timeout_ns = kForever) & {
    this->wait_until_finished(timeout_ns);
    return this->result_;
  }
  T outcome(std::uint64_t timeout_ns = kForever) && {
    this->wait_until_finished(timeout_ns);
    return std::move(this->result_);
  }

  template <class Result>
  class Awaiting final : public AwaitingCall {
   public:
    explicit Awaiting(Call& call) noexcept : AwaitingCall(call) {}
    [[nodiscard]] T await_resume() noexcept {
      return static_cast<Result>(static_cast<Call*>(this->call_)->result_);
    }
  };
  /// A call that is made in the expression lives in the coroutine's frame while it is awaited, and
  /// its result moves to the coroutine.
  [[nodiscard]] auto operator co_await() & noexcept { return Awaiting<const T&>(*this); }
  [[nodiscard]] auto operator co_await() && noexcept { return Awaiting<T&&>(*this); }
};

/// Awaits the end of a call for a protocol, which asks for it in each poll. The call lives as long
/// as the expression, and is not moved.
template <class T>
class UntilEnd final : public Waiter {
 public:
  explicit UntilEnd(Call<T>& call) noexcept : call_(call) {}
  [[nodiscard]] bool ready() noexcept override { return call_.finished(); }

  [[nodiscard]] bool await_ready() noexcept { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> protocol) noexcept {
    protocol.promise().suspend(protocol, *this);
  }
  [[nodiscard]] T await_resume() const noexcept { return call_.result(); }

 private:
  Call<T>& call_;
};

template <class T>
auto ProtocolState::await_transform(Call<T>& call) noexcept {
  return UntilEnd<T>(call);
}

template <class T>
template <class U>
BasicCall<T>::BasicCall(Progress& progress, Protocol<U> protocol, std::uint64_t timeout_ns, T begun)
    : CallBase(&progress), result_(std::move(begun)) {
  if (!protocol.handle_ || !may_begin()) {
    set_status(result_, protocol.handle_ ? Status::stopped : Status::no_memory);
    return;
  }
  protocol.handle_.resume();
  if (protocol.handle_.done()) {
    take(std::move(protocol.handle_.promise().result));
  } else {
    state_ = &std::exchange(protocol.handle_, nullptr).promise();
    state_->settle_ = settle<U>;
    go_on(*state_, timeout_ns);
  }
}

template <class T>
template <class U>
void BasicCall<T>::take(U&& result) noexcept {
  try {
    if constexpr (std::derived_from<std::remove_cvref_t<U>, T>)
      result_ = static_cast<T&&>(result);  // what the protocol knows besides goes with its frame
    else
      result_ = T(std::forward<U>(result));
  } catch (const std::bad_alloc&) {
    set_status(result_, Status::no_memory);
  }
}

template <class T>
template <class U>
void BasicCall<T>::settle(ProtocolState& state, Status status) noexcept {
  auto& promise = static_cast<typename Protocol<U>::Promise&>(state);
  auto& call = *static_cast<BasicCall*>(state.call_);
  if (state.finished_)
    call.take(std::move(promise.result));
  else
    set_status(call.result_, status);
  Protocol<U>::Handle::from_promise(promise).destroy();
}

/// A protocol without a call has nobody to tell.
template <class T>
void Protocol<T>::Promise::settle(ProtocolState& state, Status) noexcept {
  Handle::from_promise(static_cast<Promise&>(state)).destroy();
}

template <class T>
void Protocol<T>::Promise::unhandled_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    result = ended_with<T>(Status::no_memory);
  }
}

}  // namespace dunlin::remote
