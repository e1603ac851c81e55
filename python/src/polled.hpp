#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include <dunlin/node/engine.hpp>
#include <dunlin/node/future.hpp>

/// Calls that an object of a node attempts in each poll until they end. They touch no Python object
/// (PY-1). All functions are called under the node's lock, but for begin_polled().
namespace dunlin::python {

class PolledCall {
 public:
  PolledCall() = default;
  PolledCall(const PolledCall&) = delete;
  PolledCall& operator=(const PolledCall&) = delete;
  /// Returns whether the call has ended; then it may be gone.
  virtual bool attempt() noexcept = 0;

 protected:
  ~PolledCall() = default;
};

/// The calls of one kind that are under way at an object.
class PolledCalls {
 public:
  enum class Order : std::uint8_t {
    first,  // the first call ends first, as writes do
    any
  };
  explicit PolledCalls(Order order) noexcept : order_(order) {}
  [[nodiscard]] bool empty() const noexcept { return calls_.empty(); }
  /// Whether a call that begins now may be done before those that are there.
  [[nodiscard]] bool may_overtake() const noexcept { return order_ == Order::any || empty(); }
  void add(PolledCall& call) { calls_.push_back(&call); }
  void remove(PolledCall& call) noexcept { std::erase(calls_, &call); }
  /// Returns how many calls have ended.
  std::size_t poll() noexcept {
    std::size_t ended = 0;
    for (std::size_t i = 0; i < calls_.size();) {
      if (calls_[i]->attempt()) {
        calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(i));
        ++ended;
      } else if (order_ == Order::first) {
        break;
      } else {
        ++i;
      }
    }
    return ended;
  }

 private:
  const Order order_;
  std::deque<PolledCall*> calls_;
};

/// `Attempt` is a function that returns std::optional<Result<T>>: nothing if it has to try again.
template <class T, class Attempt>
class PolledResult final : public node::SharedResult<T>, public PolledCall {
 public:
  PolledResult(node::Engine& engine, PolledCalls& calls, Attempt attempt)
      : node::SharedResult<T>(engine, false), calls_(calls), attempt_(std::move(attempt)) {}
  void begin() {
    this->link();
    calls_.add(*this);
  }
  bool attempt() noexcept override {
    try {
      std::optional<Result<T>> ended = attempt_();
      if (!ended) return false;
      this->result = std::move(*ended);
    } catch (const std::exception& error) {
      this->result = Failure{remote::Status::threw, error.what()};
    }
    this->end();
    return true;
  }
  void fail(Failure failure) noexcept override {
    calls_.remove(*this);
    this->result = std::move(failure);
    this->end();
  }

 private:
  PolledCalls& calls_;
  Attempt attempt_;
};

/// Attempts the call at once, and then in each poll of the object that has `calls`. Any thread,
/// without the GIL.
template <class T, class Attempt>
[[nodiscard]] Future<T> begin_polled(node::Engine& engine, PolledCalls& calls, Attempt attempt) {
  std::optional<Future<T>> begun;
  try {
    engine.with_lock([&] {
      if (calls.may_overtake()) {
        if (std::optional<Result<T>> ended = attempt()) {
          begun.emplace(engine.number(), std::move(*ended));
          return;
        }
      }
      auto* const call = new PolledResult<T, Attempt>(engine, calls, std::move(attempt));
      begun.emplace(call);
      call->begin();
    });
  } catch (const Error&) {
    if (engine.is_running() || begun) throw;
    begun.emplace(engine.number(), Result<T>(engine.why_stopped()));
  }
  return std::move(*begun);
}

}  // namespace dunlin::python
