#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/multicast.hpp>
#include <dunlin/pubsub/core.hpp>

/// The subgroup of a topic and its multicast: the one place that knows how topics are carried.
namespace dunlin::pubsub {

class Channel {
 public:
  struct Handlers {
    Multicast::Save save;
    Multicast::Load load;
    multicast::ReplayUpcall replay;
  };
  /// Throws Error.
  Channel(Group& group, const std::string& topic, const TopicQos& qos,
          const ParticipantOptions& options, const std::string& type_name, Handlers handlers);

  [[nodiscard]] std::optional<multicast::Delivery> next() { return multicast_->next(); }
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept {
    return multicast_->prepare(bytes);
  }
  void commit() noexcept { multicast_->commit(); }
  [[nodiscard]] multicast::SendResult send(std::span<const std::byte> message) {
    return multicast_->send(message);
  }
  [[nodiscard]] std::size_t largest_in_place() const noexcept {
    return multicast_->largest_in_place();
  }
  [[nodiscard]] const Subgroup& subgroup() const noexcept { return multicast_->subgroup(); }
  /// While this is the same, the members are.
  [[nodiscard]] bool members_changed(std::uint64_t& seen) const noexcept;
  void each_table(const std::function<void(const TableCore&)>& look) const {
    multicast_->each_table(look);
  }

 private:
  std::unique_ptr<Multicast> multicast_;
};

/// Its rank, if it has no name.
[[nodiscard]] std::string member_name_of(const Fabric& fabric, Rank rank);
/// The subgroup's name: readable, and different for different topics.
[[nodiscard]] std::string subgroup_of(const std::string& topic);
/// Throws Error that quotes the name and the rule.
void check_topic_name(const std::string& name);

}  // namespace dunlin::pubsub
