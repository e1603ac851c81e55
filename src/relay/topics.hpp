#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dunlin/pubsub/core.hpp>

#include "relay/frame.hpp"

/// The topics that a relay is in for its clients.
namespace dunlin::relay {

/// An endpoint of a client, as its topic calls it. The topic outlives it.
class ClientEndpoint {
 public:
  ClientEndpoint() = default;
  virtual ~ClientEndpoint() = default;
  ClientEndpoint(const ClientEndpoint&) = delete;
  ClientEndpoint& operator=(const ClientEndpoint&) = delete;
  /// A writer's samples up to this number are delivered.
  virtual void on_delivered(std::uint64_t number) = 0;
  virtual void on_sample(const pubsub::RawSample& sample, const pubsub::SampleInfo& info) = 0;
};

/// The form of a sample of the topic's type.
struct SampleShape {
  bool plain = false;
  std::size_t bytes = 0;  // of a plain one
  [[nodiscard]] bool fits(bool xcdr, std::size_t size) const noexcept;
};
/// Of TypeSupport::text; none if it is empty or cannot be understood.
[[nodiscard]] std::optional<SampleShape> shape_of(const std::string& type_text);

class RelayTopic {
 public:
  RelayTopic(const pubsub::DomainParticipant& participant, const Open& open,
             const pubsub::TopicQos& qos);
  ~RelayTopic();
  RelayTopic(const RelayTopic&) = delete;
  RelayTopic& operator=(const RelayTopic&) = delete;

  enum class Ready : std::uint8_t { yes, not_yet, refused };
  /// Whether an endpoint of this type can begin; `why` if it is refused.
  [[nodiscard]] Ready prepare(const Open& open, std::string& why);

  [[nodiscard]] pubsub::WriteResult publish(const ClientId& client, std::uint8_t flags,
                                            const ClientSample& sample);
  [[nodiscard]] bool fits(std::uint8_t flags, const ClientSample& sample) const noexcept {
    return shape_ && shape_->fits((flags & kXcdr) != 0, sample.payload.size());
  }
  /// A reader of one client, for the stored samples.
  [[nodiscard]] pubsub::AnyReader make_reader(const pubsub::DataReaderQos& qos) const {
    return {topic_, qos};
  }
  void add_writer(const ClientId& client, ClientEndpoint& endpoint) {
    writers_[client] = &endpoint;
  }
  void add_reader(ClientEndpoint& endpoint) { readers_.push_back(&endpoint); }
  /// Also if it was not added.
  void remove(const ClientId& client, ClientEndpoint& endpoint);

  [[nodiscard]] const pubsub::AnyTopic& topic() const noexcept { return topic_; }
  /// It will never work again.
  [[nodiscard]] std::string why_over() const;

  std::uint64_t unused_since_ns = 0;  // the owner's

 private:
  struct Hash {
    std::size_t operator()(const ClientId& id) const noexcept;
  };
  [[nodiscard]] Ready prepare_type(const Open& open, std::string& why);
  [[nodiscard]] Ready prepare_writer(const std::string& type_text, const std::string& type_name,
                                     std::string& why);
  [[nodiscard]] Ready prepare_reader(std::string& why);

  pubsub::AnyTopic topic_;
  pubsub::AnyWriter writer_;
  pubsub::AnyReader live_;
  std::string shape_text_;
  std::optional<SampleShape> shape_;
  pubsub::RawSample sample_;  // of publish()
  std::unordered_map<ClientId, ClientEndpoint*, Hash> writers_;
  std::vector<ClientEndpoint*> readers_;
};

class RelayTopics {
 public:
  explicit RelayTopics(pubsub::DomainParticipant& participant) : participant_(participant) {}

  /// Null: the topic is not there, and the client has not said what it should be. Or it is refused,
  /// and `why` says why.
  [[nodiscard]] std::shared_ptr<RelayTopic> find(const Open& open, std::string& why);
  /// Lets go of topics that no client has used for a while. Returns when to call again.
  std::uint64_t let_go(std::uint64_t now_ns);

  [[nodiscard]] pubsub::DomainParticipant& participant() const noexcept { return participant_; }

 private:
  pubsub::DomainParticipant& participant_;
  std::map<std::string, std::shared_ptr<RelayTopic>> topics_;  // by name and order
};

}  // namespace dunlin::relay
