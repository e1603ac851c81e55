#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dunlin/pubsub/core.hpp>

#include "pubsub/type_tree.hpp"
#include "relay/frame.hpp"
#include "relay/peers.hpp"

/// The topics that a relay is in: those of its clients, and those of other relays' clients
/// (RLY-10).
namespace dunlin::relay {

/// A client's endpoint, as its topic calls it. The topic outlives it.
class ClientEndpoint {
 public:
  ClientEndpoint() = default;
  virtual ~ClientEndpoint() = default;
  ClientEndpoint(const ClientEndpoint&) = delete;
  ClientEndpoint& operator=(const ClientEndpoint&) = delete;
  /// Called when a writer's samples up to this number are delivered.
  virtual void on_delivered(std::uint64_t number) = 0;
  virtual void on_sample(const pubsub::RawSample& sample, const pubsub::SampleInfo& info) = 0;
  /// Called when what the endpoint waits for may have come: its session must check.
  virtual void wake() = 0;
};

/// How many instances of exclusive writers a relay tells apart in a topic.
inline constexpr std::uint32_t kMostInstances = 1U << 20U;

/// The type that a TypeSupport::text describes; none if the text is empty or describes none.
[[nodiscard]] std::optional<pubsub::TypeTree> type_of(const std::string& type_text);

class RelayTopic {
 public:
  RelayTopic(const pubsub::DomainParticipant& participant, const SharedTopic& topic);
  ~RelayTopic();
  RelayTopic(const RelayTopic&) = delete;
  RelayTopic& operator=(const RelayTopic&) = delete;

  enum class Ready : std::uint8_t { yes, not_yet, refused };
  /// Whether an endpoint of this type can begin; sets `why` if it is refused.
  [[nodiscard]] Ready prepare(const Open& open, std::string& why);

  /// The key hash of a client's sample, computed from its bytes, as the client is not trusted
  /// (RLY-8). None, and `why` says why, if the bytes are no sample of the topic's type.
  [[nodiscard]] std::optional<std::uint64_t> check(std::uint8_t flags, const ClientSample& sample,
                                                   std::string& why) const;
  [[nodiscard]] pubsub::WriteResult publish(const ClientId& client, std::uint8_t flags,
                                            const ClientSample& sample, std::uint64_t key_hash);
  /// Makes a reader of the stored samples for one client.
  [[nodiscard]] pubsub::AnyReader make_reader(const pubsub::DataReaderQos& qos) const {
    return {topic_, qos};
  }
  void add_writer(const ClientId& client, ClientEndpoint& endpoint) {
    writers_[client] = &endpoint;
  }
  void add_reader(ClientEndpoint& endpoint) { readers_.push_back(&endpoint); }
  /// Adds an endpoint that is woken when prepare() may have another result.
  void add_waiting(ClientEndpoint& endpoint);
  /// Removes an endpoint, also one that was not added.
  void remove(const ClientId& client, ClientEndpoint& endpoint);

  /// Wakes endpoints if what they depend on can have changed since the last call. `others`: the
  /// relays of which at least one must have the topic, if these have changed; else null.
  void look(const std::vector<std::string>* others);
  /// Whether samples may be acknowledged (RLY-10).
  [[nodiscard]] bool is_safe() const noexcept { return is_safe_; }

  [[nodiscard]] const pubsub::AnyTopic& topic() const noexcept { return topic_; }
  [[nodiscard]] const SharedTopic& shared() const noexcept { return shared_; }
  /// A sentence that says why the topic will never work again; empty otherwise.
  [[nodiscard]] std::string why_over() const;

  // These belong to RelayTopics.
  // Clients of this relay use it, or did until a short time ago.
  bool is_used = true;
  bool is_used_elsewhere = false;  // clients of another relay use it
  // Since when no client of this relay has used it; 0: some do.
  std::uint64_t no_clients_ns = 0;
  // Since when no other relay has used it; 0: some relay does.
  std::uint64_t not_elsewhere_ns = 0;
  std::uint64_t over_since_ns = 0;  // since when it has been over; 0: it is not

 private:
  struct Hash {
    std::size_t operator()(const ClientId& id) const noexcept;
  };
  [[nodiscard]] Ready prepare_type(const Open& open, std::string& why);
  [[nodiscard]] Ready prepare_writer(const std::string& type_text, const std::string& type_name,
                                     std::string& why);
  [[nodiscard]] Ready prepare_reader(std::string& why);
  /// The facts on which the result of prepare() depends.
  struct Condition {
    bool joined = false;
    bool is_over = false;
    bool is_safe = false;
    bool reads = false;
    bool writes = false;
    bool writer_is_refused = false;
    std::size_t type_bytes = 0;
    friend bool operator==(const Condition&, const Condition&) = default;
  };
  [[nodiscard]] Condition condition() const;

  SharedTopic shared_;
  pubsub::AnyTopic topic_;
  pubsub::AnyWriter writer_;
  pubsub::AnyReader live_;
  std::string type_text_;  // the text of type_
  std::optional<pubsub::TypeTree> type_;
  bool is_safe_ = false;
  std::vector<std::string> others_;     // of which at least one must have the topic
  std::uint64_t endpoint_changes_ = 0;  // the topic's number for which is_safe_ holds
  Condition seen_;
  std::vector<ClientEndpoint*> waiting_;
  pubsub::RawSample sample_;  // for publish()
  std::unordered_map<ClientId, ClientEndpoint*, Hash> writers_;
  std::vector<ClientEndpoint*> readers_;
};

class RelayTopics {
 public:
  /// The participant must outlive it. Throws Error.
  explicit RelayTopics(pubsub::DomainParticipant& participant);

  /// The topic that the client opens. Null: the topic does not exist, and the client has not said
  /// what it should be; or it is refused, and `why` says why.
  [[nodiscard]] std::shared_ptr<RelayTopic> find(const Open& open, std::string& why);
  /// Adds an endpoint that is woken when a topic of that name exists.
  void await(const std::string& name, ClientEndpoint& endpoint);
  /// Removes an endpoint from those that wait, also one that does not wait.
  void stop_waiting(const std::string& name, ClientEndpoint& endpoint);

  /// Wakes endpoints, and joins the topics of other relays' clients. Between changes it costs a few
  /// loads for each topic, however many endpoints wait. Returns how many things were done.
  std::size_t look();
  /// Leaves topics that no client has used for a while. Returns when to call again.
  std::uint64_t let_go(std::uint64_t now_ns);

  [[nodiscard]] pubsub::DomainParticipant& participant() const noexcept { return participant_; }
  [[nodiscard]] const RelayPeers& peers() const noexcept { return peers_; }

 private:
  [[nodiscard]] const pubsub::TopicInfo* info_of(const std::string& name,
                                                 const std::optional<pubsub::TopicQos>& qos);
  void refresh_infos();
  void share_topics();
  void tell(const RelayTopic& topic);
  void look(const std::string& key, RelayTopic& topic) const;

  pubsub::DomainParticipant& participant_;
  std::vector<pubsub::TopicInfo> infos_;
  std::uint64_t infos_as_of_ = UINT64_MAX;
  std::uint64_t woken_as_of_ = UINT64_MAX;                     // endpoints that await topics
  std::map<std::string, std::shared_ptr<RelayTopic>> topics_;  // by topic_key()
  std::multimap<std::string, ClientEndpoint*> awaited_;  // endpoints that await topics, by name
  RelayPeers peers_;
  std::uint64_t peers_as_of_ = UINT64_MAX;
  std::vector<SharedTopic> unable_;  // topics of others that this member cannot be in
};

}  // namespace dunlin::relay
