#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/multicast.hpp>
#include <dunlin/pubsub/core.hpp>

/// The subgroup of a topic, or of an order of several topics, and its multicast: the one place that
/// knows how topics are carried.
namespace dunlin::pubsub {

class Channel {
 public:
  struct Handlers {
    Multicast::Save save = nullptr;
    Multicast::Load load = nullptr;
    // These three are for topics of level logged.
    multicast::ReplayUpcall replay = nullptr;
    Multicast::Load load_logged = nullptr;
    std::function<std::uint64_t()> keep_from = nullptr;  // null: trims keep no more than they must
  };
  /// Asks to be in the topic's subgroup. Throws Error.
  Channel(Group& group, const std::string& topic, const TopicQos& qos,
          const ParticipantOptions& options, const std::string& type_name, Handlers handlers);
  /// Asks to be in the subgroup of an order (TopicQos::order). Throws Error.
  Channel(Group& group, const TopicQos& qos, const ParticipantOptions& options, Handlers handlers);

  [[nodiscard]] std::optional<multicast::Delivery> next() { return multicast_->next(); }
  // --- for topics of level logged: Multicast has the contracts -----------------------------------
  [[nodiscard]] multicast::LogPosition log_start() const { return multicast_->log_start(); }
  [[nodiscard]] multicast::LogPosition log_end() const { return multicast_->log_end(); }
  [[nodiscard]] std::uint64_t log_record() const { return multicast_->log_record(); }
  [[nodiscard]] std::shared_ptr<multicast::LogCursor> read_log(multicast::LogPosition at) const {
    return multicast_->read_log(std::move(at));
  }

  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept {
    ++prepared_;
    return multicast_->prepare(bytes);
  }
  void commit() noexcept { multicast_->commit(); }
  /// A number that changes when prepared memory is taken back.
  [[nodiscard]] std::uint64_t prepared() const noexcept { return prepared_; }
  [[nodiscard]] multicast::SendResult send(std::span<const std::byte> message) {
    ++prepared_;
    return multicast_->send(message);
  }
  [[nodiscard]] std::size_t largest_in_place() const noexcept {
    return multicast_->largest_in_place();
  }
  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
    return multicast_->has_room(bytes);
  }
  /// Asks that this member becomes a sender, or ceases to be one. Not for one that leaves.
  void set_sends(bool sends) { multicast_->set_sends(sends); }
  [[nodiscard]] const Subgroup& subgroup() const noexcept { return multicast_->subgroup(); }
  /// Whether the members differ from those for which the number `seen` stands; updates `seen`.
  [[nodiscard]] bool members_changed(std::uint64_t& seen) const noexcept;
  [[nodiscard]] bool joined() const noexcept { return multicast_->joined(); }
  [[nodiscard]] const std::string& why_waiting() const noexcept {
    return multicast_->why_waiting();
  }
  [[nodiscard]] bool acknowledged() const { return multicast_->acknowledged(); }
  void hand_over(std::uint32_t timeout_ms) noexcept { multicast_->hand_over(timeout_ms); }
  /// Asks to leave the subgroup.
  void leave() { multicast_->leave(); }
  [[nodiscard]] bool left() const noexcept { return multicast_->left(); }
  [[nodiscard]] const std::string& why_left() const noexcept { return multicast_->why_left(); }

 private:
  std::uint64_t prepared_ = 0;
  std::unique_ptr<Multicast> multicast_;
};

/// The member's name, or its rank if it has no name.
[[nodiscard]] std::string member_name_of(const Fabric& fabric, Rank rank);
/// The description of a topic's subgroup for the members of the group; none for another layer's
/// subgroup.
[[nodiscard]] std::optional<TopicInfo> topic_of(const SubgroupInfo& subgroup);
/// The description of an order's subgroup; none for another subgroup.
[[nodiscard]] std::optional<OrderInfo> order_of(const SubgroupInfo& subgroup);
/// The subgroup's name: readable, and different for different topics.
[[nodiscard]] std::string subgroup_of(const std::string& topic);
/// Throws Error, which quotes the name and the rule, for an invalid name.
void check_topic_name(const std::string& name);
void check_order_name(std::string_view name);

}  // namespace dunlin::pubsub
