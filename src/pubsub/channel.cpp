#include "pubsub/channel.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/limits.hpp>

#include "fabric/hash.hpp"
#include "pubsub/topic_qos.hpp"

namespace dunlin::pubsub {
namespace {

constexpr std::string_view kPrefix = "topic.";
constexpr std::string_view kOrderPrefix = "order.";
constexpr std::string_view kOrderRing = "order, ring ";
constexpr std::size_t kHashDigits = 16;

[[nodiscard]] constexpr bool is_plain_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

[[nodiscard]] multicast::Mode mode_of(Level level) noexcept {
  if (level == Level::unordered) return multicast::Mode::unordered;
  return level == Level::logged ? multicast::Mode::durable : multicast::Mode::ordered;
}

}  // namespace

std::optional<TopicInfo> topic_of(const SubgroupInfo& subgroup) {
  if (!subgroup.name.starts_with(kPrefix)) return std::nullopt;
  const std::size_t space = std::min(subgroup.label.find(' '), subgroup.label.size());
  TopicInfo info{.name = subgroup.label.substr(0, space),
                 .type_name = subgroup.label.substr(std::min(space + 1, subgroup.label.size())),
                 .members = subgroup.members};
  const std::optional<TopicQos> qos = read_topic_qos(subgroup.options);
  if (!qos) return std::nullopt;
  info.qos = *qos;
  return info;
}

void check_topic_name(const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= kMaxTopicNameBytes &&
      std::ranges::all_of(name, [](char c) { return is_plain_character(c) || c == '/'; });
  if (!good)
    throw Error("topic '" + name + "': a name has 1 to " + std::to_string(kMaxTopicNameBytes) +
                " characters of A-Z a-z 0-9 . _ - /");
}

void check_order_name(std::string_view name) {
  const bool good =
      name.size() <= kMaxOrderNameBytes && std::ranges::all_of(name, is_plain_character);
  if (!good)
    throw Error("order '" + std::string(name) + "': a name has 1 to " +
                std::to_string(kMaxOrderNameBytes) + " characters of A-Z a-z 0-9 . _ -");
}

std::optional<OrderInfo> order_of(const SubgroupInfo& subgroup) {
  if (!subgroup.name.starts_with(kOrderPrefix)) return std::nullopt;
  // The ring size stands behind what the multicast says of itself.
  const std::size_t at = subgroup.options.rfind(kOrderRing);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view ring = std::string_view(subgroup.options).substr(at + kOrderRing.size());
  OrderInfo info{.name = subgroup.name.substr(kOrderPrefix.size()), .members = subgroup.members};
  std::from_chars(ring.data(), ring.data() + ring.size(), info.ring_bytes);
  return info;
}

std::string member_name_of(const Fabric& fabric, Rank rank) {
  const std::string& name = fabric.member_name(rank);
  return name.empty() ? std::to_string(rank) : name;
}

std::string subgroup_of(const std::string& topic) {
  const bool fits = std::ranges::all_of(topic, is_plain_character) &&
                    kPrefix.size() + topic.size() <= kMaxSubgroupNameBytes;
  if (fits) return std::string(kPrefix) + topic;
  std::string readable = topic.substr(0, kMaxSubgroupNameBytes - kPrefix.size() - kHashDigits - 1);
  std::ranges::replace(readable, '/', '_');
  return std::string(kPrefix) + readable + "." + hex(fnv1a(topic));
}

Channel::Channel(Group& group, const std::string& topic, const TopicQos& qos,
                 const ParticipantOptions& options, const std::string& type_name,
                 Handlers handlers) {
  const std::string subgroup = subgroup_of(topic);
  MulticastOptions cast{.mode = mode_of(qos.level),
                        .ring_bytes = qos.ring_bytes,
                        .hand_over_ms = options.hand_over_ms};
  if (qos.level == Level::logged) {
    if (options.log_directory.empty())
      throw Error("topic '" + topic +
                  "': its level is logged, and this participant has no directory for logs: give "
                  "ParticipantOptions::log_directory");
    cast.log_directory = options.log_directory + "/" + subgroup;
    cast.log_disk = options.log_disk;
    if (options.log_quorum && options.log_founders.empty())
      throw Error("topic '" + topic +
                  "': log_quorum needs ParticipantOptions::log_founders, the members that may have "
                  "its log");
    cast.log_quorum = options.log_quorum;
    cast.log_given_up = options.log_given_up;
    cast.log_trim.every_bytes = qos.log_trim_bytes;
  }
  multicast_ = Multicast::join(
      group, subgroup, std::move(cast),
      {.options = describe(qos),
       .label = (topic + " " + type_name).substr(0, kMaxSubgroupTextBytes),
       .founders = qos.level == Level::logged ? options.log_founders : std::vector<std::string>()});
  multicast_->on_state(std::move(handlers.save), std::move(handlers.load));
  if (qos.level == Level::logged) {
    multicast_->on_replay(std::move(handlers.replay), std::move(handlers.load_logged));
    if (handlers.keep_from) multicast_->keep_log_from(std::move(handlers.keep_from));
  }
}

Channel::Channel(Group& group, const TopicQos& qos, const ParticipantOptions& options,
                 Handlers handlers)
    : multicast_(
          Multicast::join(group, std::string(kOrderPrefix) + std::string(qos.order.view()),
                          {.mode = mode_of(qos.level),
                           .ring_bytes = qos.ring_bytes,
                           .hand_over_ms = options.hand_over_ms},
                          {.options = std::string(kOrderRing) + std::to_string(qos.ring_bytes),
                           .label = std::string(qos.order.view())})) {
  multicast_->on_state(std::move(handlers.save), std::move(handlers.load));
}

bool Channel::members_changed(std::uint64_t& seen) const noexcept {
  const std::uint64_t now = multicast_->subgroup().generation();
  if (now == seen) return false;
  seen = now;
  return true;
}

}  // namespace dunlin::pubsub
