#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dunlin/pubsub/qos.hpp>

/// The policies of a topic: checks them, and makes the text by which members compare them. Pure.
namespace dunlin::pubsub {

/// Throws Error that names the topic, the policy, and the possible values.
void check_topic_qos(const std::string& topic, const TopicQos& qos);
/// Whether members store the samples of such a topic for late readers.
[[nodiscard]] constexpr bool stores(Level level) noexcept {
  return level == Level::volatile_storage || level == Level::logged;
}
/// The text of the options in which all members of a topic must agree (docs/formats/pubsub.md).
[[nodiscard]] std::string describe(const TopicQos& qos);
/// Reads the policies at the end of such a text; none: the text has none.
[[nodiscard]] std::optional<TopicQos> read_topic_qos(std::string_view text) noexcept;

}  // namespace dunlin::pubsub
