#include "topic/recorded_topic.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <dunlin/pubsub/limits.hpp>
#include <dunlin/pubsub/status.hpp>

#include "command.hpp"
#include "text.hpp"
#include "topic/type_tree.hpp"

namespace dunlin::app::topic {
namespace {

using Json = nlohmann::json;

// Keys of a channel's metadata.
constexpr const char* kTopicQosKey = "dunlin.topic_qos";
constexpr const char* kWriterQosKey = "dunlin.writer_qos";
constexpr const char* kWriterKey = "dunlin.writer";
constexpr const char* kKindKey = "dunlin.kind";
constexpr const char* kDispose = "dispose";

constexpr std::array<std::string_view, 4> kLevels{"unordered", "atomic", "volatile_storage",
                                                  "logged"};
constexpr std::array<std::string_view, 2> kHistories{"keep_last", "keep_all"};
constexpr std::array<std::string_view, 2> kReliabilities{"best_effort", "reliable"};
constexpr std::array<std::string_view, 3> kLivelinesses{"automatic", "manual_by_participant",
                                                        "manual_by_topic"};
constexpr std::array<std::string_view, 2> kOwnerships{"shared", "exclusive"};

template <class Enum, std::size_t N>
std::string word_of(const std::array<std::string_view, N>& words, Enum value) {
  return std::string(words.at(static_cast<std::size_t>(value)));
}

/// Leaves the value as it is where the object lacks the key; false: it has something else there.
template <class Enum, std::size_t N>
bool read_word(const Json& from, const char* key, const std::array<std::string_view, N>& words,
               Enum& value) {
  if (!from.contains(key)) return true;
  if (!from[key].is_string()) return false;
  const auto word = from[key].get<std::string>();
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] != word) continue;
    value = static_cast<Enum>(i);
    return true;
  }
  return false;
}

template <class T>
bool read_number(const Json& from, const char* key, T& value) {
  if (!from.contains(key)) return true;
  if (!from[key].is_number_unsigned()) return false;
  const auto number = from[key].get<std::uint64_t>();
  value = static_cast<T>(number);
  return value == number;
}

std::string text_of(const pubsub::TopicQos& qos) {
  Json json{{"level", word_of(kLevels, qos.level)},
            {"history", word_of(kHistories, qos.history.kind)},
            {"depth", qos.history.depth},
            {"max_samples", qos.max_samples},
            {"ring_bytes", qos.ring_bytes}};
  if (qos.max_bytes != 0) json["max_bytes"] = qos.max_bytes;
  if (qos.max_age_ns != pubsub::kInfiniteNs) json["max_age_ns"] = qos.max_age_ns;
  if (qos.log_trim_bytes != 0) json["log_trim_bytes"] = qos.log_trim_bytes;
  if (!qos.order.empty()) json["order"] = qos.order.view();
  return json.dump();
}

bool read(const std::string& text, pubsub::TopicQos& qos) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("order")) {
    if (!json["order"].is_string()) return false;
    qos.order = json["order"].get<std::string>();
  }
  return json.is_object() && read_word(json, "level", kLevels, qos.level) &&
         read_word(json, "history", kHistories, qos.history.kind) &&
         read_number(json, "depth", qos.history.depth) &&
         read_number(json, "max_samples", qos.max_samples) &&
         read_number(json, "ring_bytes", qos.ring_bytes) &&
         read_number(json, "max_bytes", qos.max_bytes) &&
         read_number(json, "max_age_ns", qos.max_age_ns) &&
         read_number(json, "log_trim_bytes", qos.log_trim_bytes);
}

std::string text_of(const pubsub::DataWriterQos& qos) {
  return Json{{"reliability", word_of(kReliabilities, qos.reliability.kind)},
              {"deadline_ns", qos.deadline.period_ns},
              {"liveliness", word_of(kLivelinesses, qos.liveliness.kind)},
              {"lease_ns", qos.liveliness.lease_ns},
              {"lifespan_ns", qos.lifespan.duration_ns},
              {"ownership", word_of(kOwnerships, qos.ownership.kind)},
              {"strength", qos.ownership.strength}}
      .dump();
}

bool read(const std::string& text, pubsub::DataWriterQos& qos) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() && read_word(json, "reliability", kReliabilities, qos.reliability.kind) &&
         read_number(json, "deadline_ns", qos.deadline.period_ns) &&
         read_word(json, "liveliness", kLivelinesses, qos.liveliness.kind) &&
         read_number(json, "lease_ns", qos.liveliness.lease_ns) &&
         read_number(json, "lifespan_ns", qos.lifespan.duration_ns) &&
         read_word(json, "ownership", kOwnerships, qos.ownership.kind) &&
         read_number(json, "strength", qos.ownership.strength);
}

}  // namespace

std::string type_name_of(const std::string& type_text) {
  return type_text.substr(0, type_text.find(' '));
}

mcap::Schema schema_of(const RecordedTopic& recorded) {
  return {.name = type_name_of(recorded.type_text),
          .encoding = kSchemaEncoding,
          .data = recorded.type_text};
}

mcap::Channel channel_of(const RecordedTopic& recorded, std::uint16_t schema) {
  mcap::Channel channel{.schema = schema,
                        .topic = recorded.topic,
                        .encoding = recorded.plain ? kPlainEncoding : kCdrEncoding};
  if (recorded.disposes) channel.metadata[kKindKey] = kDispose;
  if (recorded.qos) channel.metadata[kTopicQosKey] = text_of(*recorded.qos);
  if (recorded.writer_qos) channel.metadata[kWriterQosKey] = text_of(*recorded.writer_qos);
  if (!recorded.writer.empty()) channel.metadata[kWriterKey] = recorded.writer;
  return channel;
}

RecordedTopic recorded_topic_of(const mcap::FileReader& file, const mcap::Channel& channel) {
  const auto refuse = [&](const std::string& why) {
    throw BadInput(fmt::format("{}: topic {} (channel {}): {}", in_quotes(file.path()),
                               in_quotes(channel.topic), channel.id, why));
  };
  const auto schema = file.schemas().find(channel.schema);
  if (schema == file.schemas().end() || schema->second.encoding != kSchemaEncoding)
    refuse(fmt::format(
        "its schema is of the encoding {}; only {} says of what type a topic's samples are",
        in_quotes(schema == file.schemas().end() ? "" : schema->second.encoding), kSchemaEncoding));
  RecordedTopic recorded{.topic = channel.topic, .type_text = schema->second.data};
  recorded.plain = channel.encoding == kPlainEncoding;
  if (!recorded.plain && channel.encoding != kCdrEncoding)
    refuse(fmt::format("its messages are of the encoding {}; {} and {} are known",
                       in_quotes(channel.encoding), kPlainEncoding, kCdrEncoding));
  if (recorded.type_text.size() > pubsub::kMaxTypeTextBytes)
    refuse(fmt::format("its type has {} bytes; {} can be published (kMaxTypeTextBytes)",
                       recorded.type_text.size(), pubsub::kMaxTypeTextBytes));
  try {
    if (parse_type(recorded.type_text).plain != recorded.plain)
      refuse("its schema and the encoding of its messages do not fit");
  } catch (const BadInput&) {
    throw;
  } catch (const Error& error) {
    refuse(error.what());
  }
  const auto value = [&](const char* key) -> const std::string* {
    const auto found = channel.metadata.find(key);
    return found == channel.metadata.end() ? nullptr : &found->second;
  };
  if (const auto* const kind = value(kKindKey)) recorded.disposes = *kind == kDispose;
  if (const auto* const writer = value(kWriterKey)) recorded.writer = *writer;
  if (const auto* const text = value(kTopicQosKey);
      text != nullptr && !read(*text, recorded.qos.emplace()))
    refuse(fmt::format("{} cannot be read: {}", kTopicQosKey, printable(*text)));
  if (const auto* const text = value(kWriterQosKey);
      text != nullptr && !read(*text, recorded.writer_qos.emplace()))
    refuse(fmt::format("{} cannot be read: {}", kWriterQosKey, printable(*text)));
  return recorded;
}

}  // namespace dunlin::app::topic
