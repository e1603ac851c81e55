#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>
#include <dunlin/pubsub/core.hpp>

/// What the relays of a group tell each other about the topics of their clients, in a subgroup of
/// their own (docs/formats/relay.md).
///
///  RLY-10  A relay is in each topic that clients of another relay use, and has a reader there once
///          it has the topic's state. A relay lets no endpoint of a client begin, and acknowledges
///          nothing, while no other relay has such a reader; unless it is the only relay, or no
///          other one can be in the topic.
namespace dunlin::relay {

/// A topic, as relays name it to each other.
struct SharedTopic {
  std::string name = {};
  std::string type_name = {};
  pubsub::TopicQos qos = {};
  friend bool operator==(const SharedTopic&, const SharedTopic&) = default;
};
/// The name and the order of a topic, which tell it from all others.
[[nodiscard]] std::string topic_key(const std::string& name, const pubsub::OrderName& order);

/// What one relay says about one topic.
struct TopicShare {
  bool uses = false;    // it uses the topic for its own clients
  bool cannot = false;  // this relay cannot be in the topic
  friend bool operator==(const TopicShare&, const TopicShare&) = default;
};

class RelayPeers {
 public:
  /// Asks to be among the group's relays. Throws Error.
  explicit RelayPeers(Group& group);

  /// Tells the others what this member says about the topic from now on; a default value takes it
  /// back.
  void tell(const SharedTopic& topic, const TopicShare& share);
  /// Takes what the others have told, and sends what they are to be told. Returns how many things
  /// were done. Throws Error if this member cannot be among the relays.
  std::size_t poll();
  /// A number that grows when what others have told has changed, or the relays have.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

  /// The topics that others use for their clients.
  [[nodiscard]] std::vector<SharedTopic> used_by_others() const;
  /// The names of the group's other relays, except those that cannot be in that topic.
  [[nodiscard]] std::vector<std::string> able_others(const std::string& key) const;
  [[nodiscard]] std::size_t count() const noexcept { return others_.size() + 1; }
  [[nodiscard]] bool joined() const noexcept { return multicast_->joined(); }

 private:
  struct Told {
    SharedTopic topic = {};
    TopicShare share = {};
    bool is_sent = false;
  };
  void meet_members();
  void receive(Rank from, std::span<const std::byte> message);
  std::size_t send();

  Group& group_;
  /// Names of the other relays by rank: a relay that has started anew has its old name, and another
  /// rank.
  std::map<Rank, std::string> others_;
  std::uint64_t generation_ = 0;  // the subgroup's, to which others_ belongs
  std::uint64_t changes_ = 0;
  bool is_all_told_ = true;
  std::map<std::string, Told> mine_;                  // by topic_key()
  std::map<std::string, std::map<Rank, Told>> told_;  // by topic_key(), then by relay
  std::unique_ptr<Multicast> multicast_;
};

}  // namespace dunlin::relay
