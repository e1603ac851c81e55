#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dunlin/pubsub/qos.hpp>

/// The policies of a topic: checked, and as the text by which members compare them. Pure.
namespace dunlin::pubsub {

/// Throws Error that names the topic, the policy, and what is possible.
void check_topic_qos(const std::string& topic, const TopicQos& qos);
/// Whether members store the samples of such a topic for late readers.
[[nodiscard]] constexpr bool stores(Level level) noexcept {
  return level == Level::volatile_storage || level == Level::logged;
}
/// The options that all members of a topic give alike (docs/formats/pubsub.md).
[[nodiscard]] std::string describe(const TopicQos& qos);
/// Those at the end of such a text; none: there are none.
[[nodiscard]] std::optional<TopicQos> read_topic_qos(std::string_view text) noexcept;

}  // namespace dunlin::pubsub
