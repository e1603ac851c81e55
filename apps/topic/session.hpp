#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dunlin/pubsub.hpp>

#include "signals.hpp"

namespace dunlin::app::topic {

/// The member that the command is: it polls until something holds or a signal comes, and leaves.
class Session {
 public:
  Session(Group& group, SignalGuard& signals, const pubsub::ParticipantOptions& logs = {})
      : group_(group), signals_(signals), participant_(group, logs) {}

  /// Runs until the condition holds, a signal comes, or the time is up.
  bool until(const std::function<bool()>& condition, std::uint64_t limit_ms = UINT64_MAX);
  /// Runs until this member takes part in the topic, or a signal comes; says for whom it waits.
  /// Throws Error if it never will.
  bool joined(const pubsub::AnyTopic& topic);
  /// Comes into these orders, whose topics are known then. False if a signal comes. Throws Error.
  bool join_orders(const std::vector<std::string>& names);
  /// Entities must have gone before, so that what was written arrives; then the member.
  void leave();
  /// The group's topic of that name now, valid until the next call; null: there is none.
  [[nodiscard]] const pubsub::TopicInfo* find(const std::string& name);

  [[nodiscard]] pubsub::DomainParticipant& participant() noexcept { return participant_; }
  /// The name of the first signal that has come; null: none has.
  [[nodiscard]] const char* signal() noexcept {
    if (signal_ == nullptr) signal_ = signals_.caught();
    return signal_;
  }
  [[nodiscard]] std::uint64_t now_ns() const { return participant_.fabric().now_ns(); }

 private:
  Group& group_;
  SignalGuard& signals_;
  const char* signal_ = nullptr;
  pubsub::DomainParticipant participant_;
  std::vector<pubsub::TopicInfo> infos_;
  std::vector<pubsub::TopicOrder> orders_;
};

}  // namespace dunlin::app::topic
