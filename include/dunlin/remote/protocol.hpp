#pragma once

#include <array>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/status.hpp>

/// A Protocol is a function of several steps at remote memory, written from top to bottom: a
/// coroutine that awaits operations of the fabric, conditions, pauses, and other protocols
/// (docs/remote.md shows how one is written).
///
///     remote::Protocol<Status> Counter::add(std::uint64_t more) {
///       std::uint64_t before = 0;
///       const Status added =
///           co_await remote::post(fabric, fetch_add(home, region, 0, more, &before));
///       co_return added;
///     }
///
/// Its first parameter, for a member function the object, has a member `progress`, or a function
/// `its_progress()`: the Progress that advances the protocol, and whose free lists have its frame.
/// What the protocol holds is an object in its frame, whose destructor gives it back: a protocol is
/// given up by destroying it.
namespace dunlin::remote {

/// Whether the fabric may accept later what it has refused so.
[[nodiscard]] constexpr bool is_for_now(Refusal refusal) noexcept {
  return refusal == Refusal::queue_full || refusal == Refusal::not_connected;
}

class AwaitingCall;
class CallBase;
class Progress;
class Runs;
template <class T>
class BasicCall;
template <class T>
class Call;
template <class T>
class Protocol;

/// The timeout of a call without a deadline.
inline constexpr std::uint64_t kForever = UINT64_MAX;

inline void set_status(Status& result, Status status) noexcept { result = status; }
template <class T>
void set_status(T& result, Status status) noexcept {
  result.status = status;
}
/// The result of a protocol that ends before it has one of its own.
template <class T>
[[nodiscard]] T ended_with(Status status) noexcept {
  T result{};
  set_status(result, status);
  return result;
}
[[nodiscard]] constexpr Status status_of(Status result) noexcept { return result; }
template <class T>
[[nodiscard]] Status status_of(const T& result) noexcept {
  return result.status;
}

/// The memory of frames: free lists by size, from which they are taken again. Frames begin on cache
/// lines.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool();
  /// Null if memory has ended.
  [[nodiscard]] void* take(std::size_t bytes) noexcept;
  static void give_back(void* frame, std::size_t bytes) noexcept;

 private:
  static constexpr std::size_t kSizes = 64;  // in cache lines; larger ones are not kept
  struct Free {
    Free* next;
  };
  std::array<Free*, kSizes> free_{};
};

/// What a suspended protocol waits for: the base of what a protocol can await. A derived class has
/// a function `result()`, too, whose result is that of `co_await`.
class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  /// Whether it has come. Asked in each poll.
  [[nodiscard]] virtual bool ready() noexcept = 0;

 protected:
  ~Waiter() = default;
};

template <class Kind>
class AwaitingWaiter;

/// The progress of a protocol's first parameter.
template <class Layer>
[[nodiscard]] Progress& progress_of(Layer& layer) noexcept {
  if constexpr (requires { layer.its_progress(); })
    return layer.its_progress();
  else
    return layer.progress;
}

/// The state of a protocol that is under way, whatever its result.
class ProtocolState {
 public:
  ProtocolState(const ProtocolState&) = delete;
  ProtocolState& operator=(const ProtocolState&) = delete;

  template <class Layer, class... Arguments>
  static void* operator new(std::size_t bytes, Layer& layer, Arguments&&...) noexcept {
    return frames_of(progress_of(layer)).take(bytes);
  }
  static void operator delete(void* frame, std::size_t bytes) noexcept {
    FramePool::give_back(frame, bytes);
  }

  [[nodiscard]] std::suspend_always initial_suspend() noexcept { return {}; }
  struct Final {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> protocol) noexcept {
      ProtocolState& state = protocol.promise();
      state.finished_ = true;
      if (state.awaited_by_) return state.awaited_by_;
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  [[nodiscard]] Final final_suspend() noexcept { return {}; }

  template <class Kind>
  requires std::derived_from<std::remove_reference_t<Kind>, Waiter>
  [[nodiscard]] auto await_transform(Kind&& waiter) noexcept {
    return AwaitingWaiter<std::remove_reference_t<Kind>>(waiter);
  }
  template <class T>
  [[nodiscard]] auto await_transform(Protocol<T>&& protocol) noexcept;
  template <class T>
  [[nodiscard]] auto await_transform(Call<T>& call) noexcept;

  /// Notes where the outermost protocol goes on.
  void suspend(std::coroutine_handle<> at, Waiter& waiter) noexcept {
    outermost_->goes_on_ = at;
    outermost_->waiter_ = &waiter;
  }

 protected:
  using Settle = void (*)(ProtocolState& state, Status status) noexcept;
  explicit ProtocolState(Settle settle) noexcept : settle_(settle) {}
  ~ProtocolState() = default;

  bool finished_ = false;
  CallBase* call_ = nullptr;  // null for a protocol that nobody waits for

 private:
  friend class AwaitingCall;
  friend class CallBase;
  friend class Runs;
  template <class T>
  friend class BasicCall;
  template <class T>
  friend class Nested;
  static FramePool& frames_of(Progress& progress) noexcept;

  ProtocolState* outermost_ = this;  // of those that await one another
  std::coroutine_handle<> awaited_by_;
  /// Gives the call its result, or the given status instead of one; and destroys the frame.
  Settle settle_;
  // The rest is for the outermost one, once it is suspended: these two say where,
  std::coroutine_handle<> goes_on_;
  Waiter* waiter_;
  // and these are set when it comes into a list.
  Runs* in_;
  ProtocolState* before_;
  ProtocolState* after_;
  std::uint64_t deadline_ns_;
  AwaitingCall* awaiting_;
  std::function<void()>* callback_;
};

/// Awaits a waiter, which lives as long as the expression.
template <class Kind>
class AwaitingWaiter {
 public:
  explicit AwaitingWaiter(Kind& waiter) noexcept : waiter_(waiter) {}
  [[nodiscard]] bool await_ready() noexcept { return waiter_.Kind::ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> protocol) noexcept {
    protocol.promise().suspend(protocol, waiter_);
  }
  auto await_resume() noexcept { return waiter_.result(); }

 private:
  Kind& waiter_;
};

template <class T>
class [[nodiscard]] Protocol {
 public:
  struct Promise;
  using promise_type = Promise;  // the name that the language requires
  using Handle = std::coroutine_handle<Promise>;

  Protocol(Protocol&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Protocol& operator=(Protocol&&) = delete;
  ~Protocol() {
    if (handle_) handle_.destroy();
  }

 private:
  template <class U>
  friend class BasicCall;
  friend class Runs;
  template <class U>
  friend class Nested;
  Protocol() = default;  // there was no memory for it
  explicit Protocol(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

template <class T>
struct Protocol<T>::Promise final : ProtocolState {
  Promise() noexcept : ProtocolState(settle) {}
  Protocol get_return_object() noexcept { return Protocol(Handle::from_promise(*this)); }
  static Protocol get_return_object_on_allocation_failure() noexcept { return Protocol(); }
  void return_value(const T& value) noexcept { result = value; }
  void return_value(T&& value) noexcept { result = std::move(value); }
  void unhandled_exception() noexcept;

  static void settle(ProtocolState& state, Status status) noexcept;
  T result{};
};

/// A protocol that another one awaits; it begins at once.
template <class T>
class Nested {
 public:
  Nested(Protocol<T>& protocol, ProtocolState& outermost) noexcept
      : protocol_(protocol), outermost_(outermost) {}
  [[nodiscard]] bool await_ready() noexcept {
    if (!protocol_.handle_) return true;
    protocol_.handle_.promise().outermost_ = &outermost_;
    protocol_.handle_.resume();
    return protocol_.handle_.done();
  }
  void await_suspend(std::coroutine_handle<> awaits) noexcept {
    protocol_.handle_.promise().awaited_by_ = awaits;
  }
  [[nodiscard]] T await_resume() noexcept {
    if (!protocol_.handle_) return ended_with<T>(Status::no_memory);
    return std::move(protocol_.handle_.promise().result);
  }

 private:
  Protocol<T>& protocol_;
  ProtocolState& outermost_;
};

template <class T>
auto ProtocolState::await_transform(Protocol<T>&& protocol) noexcept {
  return Nested<T>(protocol, *outermost_);
}

/// Protocols that are under way.
class Runs {
 public:
  explicit Runs(Progress& progress) noexcept : progress_(progress) {}
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  /// Gives up all of them.
  ~Runs() { end_all(Status::abandoned); }

  /// Begins a protocol that nobody waits for; `state` is null if it has ended already. Returns
  /// false if there is no memory for it.
  bool start(Protocol<Status> protocol, ProtocolState*& state) noexcept;
  bool start(Protocol<Status> protocol) noexcept {
    ProtocolState* unused = nullptr;
    return start(std::move(protocol), unused);
  }
  /// Advances what can go on; `stopped`: all end so instead. Returns how much was done.
  std::size_t advance(bool stopped = false);
  /// Advances that one now if it can go on.
  void advance(ProtocolState& state);
  void end_all(Status status) noexcept;
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  friend class CallBase;
  void link(ProtocolState& state) noexcept;
  void unlink(ProtocolState& state) noexcept;
  void complete(ProtocolState& state, Status status);
  void drop(ProtocolState& state, Status status) noexcept;

  Progress& progress_;
  ProtocolState* first_ = nullptr;
  ProtocolState* last_ = nullptr;
  ProtocolState* next_ = nullptr;  // that advance() visits next
  std::size_t size_ = 0;
};

// --- what a protocol awaits ----------------------------------------------------------------------

/// Until the condition, which has no effect but on what it captures, holds.
template <std::predicate Condition>
class [[nodiscard]] Until final : public Waiter {
 public:
  explicit Until(Condition condition) noexcept : condition_(std::move(condition)) {}
  [[nodiscard]] bool ready() noexcept override { return condition_(); }
  void result() const noexcept {}

 private:
  Condition condition_;
};

/// Until the next poll.
class [[nodiscard]] NextPoll final : public Waiter {
 public:
  [[nodiscard]] bool ready() noexcept override { return std::exchange(asked_, true); }
  void result() const noexcept {}

 private:
  bool asked_ = false;
};

/// Until that moment, by the fabric's clock.
class [[nodiscard]] UntilTime final : public Waiter {
 public:
  UntilTime(Fabric& fabric, std::uint64_t at_ns) noexcept : fabric_(fabric), at_ns_(at_ns) {}
  [[nodiscard]] bool ready() noexcept override {
    if (fabric_.now_ns() >= at_ns_) return true;
    fabric_.wake_at(at_ns_);
    return false;
  }
  void result() const noexcept {}

 private:
  Fabric& fabric_;
  std::uint64_t at_ns_;
};

/// Says when a batch may be posted: this one, always. Layers have their own.
struct AnyTime {
  /// `ok`: it may be posted now; `under_way`: later; else the status that ends the attempt.
  [[nodiscard]] Status now() const noexcept { return Status::ok; }
  /// Asked when the fabric takes no operation now: `ok`: try later; else as above.
  [[nodiscard]] Status refused() const noexcept { return Status::ok; }
  /// Called once something was posted, and when the result is taken.
  void posted() const noexcept {}
  void taken() const noexcept {}
  // A gate may have `accepted(n)`, too: the fabric has the first n operations of the batch.
};

/// Posts operations and awaits their completion: writes are placed then. The result is `ok`; or
/// `lost` if an operation has failed; or what the gate says; or `out_of_range` if the fabric
/// refuses for ever. It can be used again.
template <std::size_t Most, class Gate>
class [[nodiscard]] Batch final : public Waiter {
 public:
  Batch(Fabric& fabric, Gate gate) noexcept : fabric_(fabric), gate_(std::move(gate)) {}
  Batch(Fabric& fabric, std::span<const Operation> operations, Gate gate) noexcept
      : Batch(fabric, std::move(gate)) {
    for (const Operation& operation : operations) add(operation);
  }
  ~Batch() {
    if (!completion_.finished()) fabric_.abandon(completion_);
  }
  void add(const Operation& operation) noexcept {
    Operation& own = operations_[count_++];
    own = operation;
    own.completion = &completion_;
    own.when = Notify::remotely;
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  [[nodiscard]] bool ready() noexcept override {
    while (posted_ < count_) {
      if (status_ = gate_.now(); status_ != Status::ok) return status_ != Status::under_way;
      const Posted posted = fabric_.post(std::span(operations_).subspan(posted_, count_ - posted_));
      if (posted_ == 0 && posted.accepted > 0) gate_.posted();
      posted_ += posted.accepted;
      if constexpr (requires { gate_.accepted(posted_); }) gate_.accepted(posted_);
      if (!posted.all()) return (status_ = fault_of(posted.refusal)) != Status::ok;
    }
    return completion_.finished();
  }
  [[nodiscard]] Status result() noexcept {
    gate_.taken();
    if (!completion_.finished()) fabric_.abandon(completion_);
    const Status status = status_ == Status::ok && completion_.failed() ? Status::lost : status_;
    completion_.reset();
    status_ = Status::ok;
    count_ = posted_ = 0;
    return status;
  }

 private:
  [[nodiscard]] Status fault_of(Refusal refusal) const noexcept {
    return is_for_now(refusal) ? gate_.refused() : Status::out_of_range;
  }

  Fabric& fabric_;
  Gate gate_;
  Completion completion_;
  std::size_t count_ = 0;
  std::size_t posted_ = 0;
  Status status_ = Status::ok;
  std::array<Operation, Most> operations_;
};

/// Posts one operation, as a Batch does.
template <class Gate = AnyTime>
[[nodiscard]] Batch<1, Gate> post(Fabric& fabric, const Operation& operation,
                                  Gate gate = {}) noexcept {
  return Batch<1, Gate>(fabric, std::span(&operation, 1), std::move(gate));
}

}  // namespace dunlin::remote
