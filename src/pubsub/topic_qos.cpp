#include "pubsub/topic_qos.hpp"

#include <charconv>
#include <cstdint>

#include <dunlin/error.hpp>
#include <dunlin/pubsub/limits.hpp>

#include "pubsub/channel.hpp"
#include "pubsub/log_history.hpp"

namespace dunlin::pubsub {
namespace {

constexpr std::string_view kLevel = "level ";
constexpr std::string_view kOrder = ", order ";

/// The number behind that word in the text; `otherwise` if the word is not there.
[[nodiscard]] std::uint64_t number_after(std::string_view text, std::string_view word,
                                         std::uint64_t otherwise = 0) noexcept {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return otherwise;
  std::uint64_t value = 0;
  text.remove_prefix(at + word.size());
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

void check_topic_qos(const std::string& topic, const TopicQos& qos) {
  const std::string who = "topic '" + topic + "': ";
  const bool are_few = qos.max_samples <= kMaxStoredSamples || is_kept_in_log(qos);
  if (qos.max_samples == 0 || !are_few)
    throw Error(who + "max_samples " + std::to_string(qos.max_samples) + "; 1 to " +
                std::to_string(kMaxStoredSamples) + " are possible (kMaxStoredSamples)");
  if (qos.history.kind == History::Kind::keep_last && qos.history.depth == 0)
    throw Error(who + "a history of depth 0 keeps nothing; give 1 or more");
  if (qos.max_age_ns == 0)
    throw Error(who + "a max_age_ns of 0 keeps nothing; give 1 or more, or kInfiniteNs");
  check_order_name(qos.order.view());
  const std::string level = "its level is " + std::string(describe(qos.level));
  if (!stores(qos.level) && (qos.max_bytes != 0 || qos.max_age_ns != kInfiniteNs))
    throw Error(who + level +
                ", which stores nothing; leave max_bytes and max_age_ns out, or give the level "
                "volatile_storage or logged");
  if (qos.level != Level::logged && qos.log_trim_bytes != 0)
    throw Error(who + level +
                ", which has no log; leave log_trim_bytes out, or give the level "
                "logged");
  const bool can_share = qos.level == Level::atomic || qos.level == Level::volatile_storage;
  if (!qos.order.empty() && !can_share)
    throw Error(who + level + ", and it names the order '" + std::string(qos.order.view()) +
                "'; topics that share an order are atomic or volatile_storage");
  if (qos.log_trim_bytes != 0 && qos.log_trim_bytes < kLeastLogTrimBytes)
    throw Error(who + "log_trim_bytes " + std::to_string(qos.log_trim_bytes) + "; give " +
                std::to_string(kLeastLogTrimBytes) +
                " or more (kLeastLogTrimBytes), or 0 to keep the whole log");
}

std::string describe(const TopicQos& qos) {
  const bool keeps_all = qos.history.kind == History::Kind::keep_all;
  std::string text = std::string(kLevel) + std::string(describe(qos.level)) + ", ring " +
                     std::to_string(qos.ring_bytes) + ", depth " +
                     std::to_string(keeps_all ? 0 : qos.history.depth) + ", samples " +
                     std::to_string(qos.max_samples);
  if (qos.max_bytes != 0) text += ", bytes " + std::to_string(qos.max_bytes);
  if (qos.max_age_ns != kInfiniteNs) text += ", age " + std::to_string(qos.max_age_ns);
  if (qos.log_trim_bytes != 0) text += ", trim " + std::to_string(qos.log_trim_bytes);
  if (!qos.order.empty()) text.append(kOrder).append(qos.order.view());
  return text;
}

std::optional<TopicQos> read_topic_qos(std::string_view text) noexcept {
  const std::size_t begin = text.rfind(kLevel);
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  TopicQos qos;
  qos.ring_bytes = number_after(text, ", ring ");
  qos.max_samples = static_cast<std::uint32_t>(number_after(text, ", samples "));
  const auto depth = static_cast<std::uint32_t>(number_after(text, ", depth "));
  qos.history = depth == 0 ? History::keep_all() : History::keep_last(depth);
  qos.max_bytes = number_after(text, ", bytes ");
  qos.max_age_ns = number_after(text, ", age ", kInfiniteNs);
  qos.log_trim_bytes = number_after(text, ", trim ");
  if (const std::size_t at = text.find(kOrder); at != std::string_view::npos) {
    const std::string_view order = text.substr(at + kOrder.size());
    qos.order = order.substr(0, order.find(','));
  }
  const std::string_view name = text.substr(kLevel.size(), text.find(',') - kLevel.size());
  for (const Level one :
       {Level::unordered, Level::atomic, Level::volatile_storage, Level::logged}) {
    if (name != describe(one)) continue;
    qos.level = one;
    return qos;
  }
  return std::nullopt;
}

}  // namespace dunlin::pubsub
