#pragma once

#include <optional>
#include <string>
#include <utility>

#include <dunlin/node/engine.hpp>
#include <dunlin/remote.hpp>

/// From a call of the core, a remote::Call, to a Future. For the handles.
namespace dunlin::node {

/// A call of the core that is under way, or waits in the queue, for a future.
template <class T, class CoreCall, class Convert>
class PendingCall final : public SharedResult<T> {
 public:
  PendingCall(Engine& engine, bool borrows, Convert convert)
      : SharedResult<T>(engine, borrows), convert_(std::move(convert)) {}
  using SharedCall::enter_queue;

  /// Under the lock: goes on with a call that has begun.
  void go_on(CoreCall call) {
    this->link();
    call_ = std::move(call);
    call_.then([this] { take(); });
  }
  /// Under the lock: begins the call, for which the caller has waited in the queue.
  template <class Begin>
  void begin(Begin& begin_it) noexcept {
    if (!this->leave_queue()) return;
    if (!this->engine().is_running()) return this->fail(this->engine().why_stopped());
    try {
      go_on(begin_it());
    } catch (const std::exception& error) {
      this->fail({remote::Status::not_allowed, error.what()});
    } catch (...) {
      this->fail({remote::Status::not_allowed, "what begins the call threw no std::exception"});
    }
  }
  void fail(Failure failure) noexcept override {
    call_.abandon();
    this->result = std::move(failure);
    this->end();
  }

 private:
  void take() noexcept {
    try {
      this->result = convert_(call_.result());
    } catch (const std::exception& error) {
      this->result = Failure{remote::Status::no_memory, error.what()};
    }
    call_ = CoreCall();  // it ends here, as the thread that drops the future does not hold the lock
    this->end();
  }
  CoreCall call_;
  Convert convert_;
};

/// Begins a call of the core: here, if the lock is free, else in the queue.
///   now()           begins the call
///   later()         makes a function that owns what the call needs, and begins the call
///   convert(result) makes the Result<T> of the core's result
template <class T, class Now, class Later, class Convert>
[[nodiscard]] Future<T> begin_call(Engine& engine, const char* name, bool borrows, Now&& now,
                                   Later&& later, const Convert& convert) {
  using CoreCall = std::invoke_result_t<Now&>;
  using Pending = PendingCall<T, CoreCall, Convert>;
  std::optional<Future<T>> begun;
  const bool has_run = engine.run_now([&] {
    CoreCall call = now();
    if (call.finished()) {
      begun.emplace(engine.number(), convert(call.result()));
      return;
    }
    auto* const pending = new Pending(engine, borrows, convert);
    begun.emplace(pending);
    pending->go_on(std::move(call));
  });
  if (has_run) {
    if (!begun->ready()) engine.wake_if_asleep();
    return std::move(*begun);
  }
  auto* const pending = new Pending(engine, borrows, convert);
  pending->enter_queue();
  const auto claim = engine.enqueue(
      [pending, begin_it = later()]() mutable noexcept { pending->begin(begin_it); });
  if (claim == RecordRing::Claim::ok) return Future<T>(pending);
  pending->release();  // as the call, which is none
  pending->release();  // as the future, which is none
  return Future<T>(engine.number(), engine.refused(claim, name));
}

[[nodiscard]] inline Failure failure_of(const std::string& who, const char* call,
                                        remote::Status status, const char* what) {
  return {status, who + ": " + call + ": " + remote::describe(status, what)};
}

}  // namespace dunlin::node
