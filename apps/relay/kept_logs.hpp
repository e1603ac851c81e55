#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <dunlin/pubsub.hpp>

/// Keeps the logs of a group's logged topics: this member is in each of them, from when any member
/// has it on. So a topic of which all members died finds the logs that it needs to begin again.
namespace dunlin::app {

class KeptLogs {
 public:
  using Tell = std::function<void(const std::string&)>;
  KeptLogs(pubsub::DomainParticipant& participant, Tell tell)
      : participant_(participant), tell_(std::move(tell)) {}

  /// Comes into topics that are new; tells for which members a topic waits, and why this member is
  /// out of one. Now and then: it looks at all topics.
  void look();

 private:
  struct Kept {
    pubsub::AnyTopic topic = {};
    std::string told = {};
    std::uint64_t again_at_ns = 0;  // when a member that is out comes in again
  };
  void look_at(Kept& kept, const pubsub::TopicInfo& info);
  void tell(Kept& kept, const std::string& what);

  pubsub::DomainParticipant& participant_;
  Tell tell_;
  std::map<std::string, Kept> kept_;
};

}  // namespace dunlin::app
