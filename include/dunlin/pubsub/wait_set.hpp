#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <dunlin/pubsub/core.hpp>
#include <dunlin/pubsub/entities.hpp>
#include <dunlin/run.hpp>

/// Conditions, and waiting for any of several. wait() is at the edge, as <dunlin/run.hpp> is: it
/// polls the participant, and sleeps. A program with its own loop, and one in the simulator, asks
/// triggered() after each poll() instead.
///
///     ReadCondition samples(reader);
///     WaitSet waits;
///     waits.attach(samples);
///     for (const Condition& condition : waits.wait(participant, 1'000)) condition.dispatch();
namespace dunlin::pubsub {

/// A condition holds or not; a handle, whose copies are the same condition.
class Condition {
 public:
  [[nodiscard]] bool trigger_value() const { return state_->holds(); }
  void handler(std::function<void()> handler) { state_->handler = std::move(handler); }
  /// Calls the handler, if the condition holds.
  void dispatch() const {
    if (state_->handler && trigger_value()) state_->handler();
  }
  friend bool operator==(const Condition& a, const Condition& b) { return a.state_ == b.state_; }

 protected:
  explicit Condition(std::function<bool()> holds)
      : state_(std::make_shared<State>(State{std::move(holds), nullptr})) {}

 private:
  struct State {
    std::function<bool()> holds;
    std::function<void()> handler;
  };
  std::shared_ptr<State> state_;
};

/// A condition that the program sets.
class GuardCondition : public Condition {
 public:
  GuardCondition() : GuardCondition(std::make_shared<bool>(false)) {}
  void trigger_value(bool value) { *value_ = value; }
  using Condition::trigger_value;

 private:
  explicit GuardCondition(const std::shared_ptr<bool>& value)
      : Condition([value] { return *value; }), value_(value) {}
  std::shared_ptr<bool> value_;
};

/// Holds if a reader has samples in these states.
class ReadCondition : public Condition {
 public:
  template <class T>
  explicit ReadCondition(const DataReader<T>& reader, const Selection& selection = {})
      : Condition([reader, selection] { return reader->available(selection); }) {}
};

/// Holds if a reader has a sample in these states for which the query returns true.
class QueryCondition : public Condition {
 public:
  template <class T>
  QueryCondition(const DataReader<T>& reader, std::function<bool(const T&)> query,
                 const Selection& selection = {})
      : Condition([reader, query = std::move(query), selection] {
          return reader->any(selection, [&query](const void* sample) {
            return query(*static_cast<const T*>(sample));
          });
        }) {}
};

/// Holds if a status of an entity has changed since its status_changes() was called.
class StatusCondition : public Condition {
 public:
  template <class T>
  explicit StatusCondition(const DataReader<T>& reader, Status enabled = Status::all)
      : Condition([reader, enabled] { return has(reader->peek_changes(), enabled); }) {}
  template <class T>
  explicit StatusCondition(const DataWriter<T>& writer, Status enabled = Status::all)
      : Condition([writer, enabled] { return has(writer->peek_changes(), enabled); }) {}
};

class WaitSet {
 public:
  void attach(const Condition& condition) { conditions_.push_back(condition); }
  void detach(const Condition& condition) { std::erase(conditions_, condition); }
  /// The conditions that hold now.
  [[nodiscard]] std::vector<Condition> triggered() const {
    std::vector<Condition> holding;
    for (const Condition& condition : conditions_)
      if (condition.trigger_value()) holding.push_back(condition);
    return holding;
  }
  /// Polls the participant until a condition holds, at most so long; returns those that hold, or
  /// none if the time is up. Throws what poll() throws, and Error on a simulated fabric.
  [[nodiscard]] std::vector<Condition> wait(DomainParticipant& participant,
                                            std::uint32_t timeout_ms,
                                            const RunOptions& options = {}) const {
    run_until(
        participant,
        [this] {
          return std::ranges::any_of(conditions_, [](const auto& c) { return c.trigger_value(); });
        },
        timeout_ms, options);
    return triggered();
  }

 private:
  std::vector<Condition> conditions_;
};

}  // namespace dunlin::pubsub
