#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <dunlin/pubsub/qos.hpp>

#include "mcap/file_reader.hpp"
#include "mcap/records.hpp"

/// How topics lie in MCAP files (docs/formats/mcap.md): a channel for each writer of a topic, and
/// one more for the instances that it disposes.
namespace dunlin::app::topic {

inline constexpr const char* kSchemaEncoding = "x-dunlin";       // the text of a type
inline constexpr const char* kPlainEncoding = "x-dunlin-plain";  // the bytes of a plain struct
inline constexpr const char* kCdrEncoding = "cdr";               // XCDR2 with its header

struct RecordedTopic {
  std::string topic = {};
  std::string type_text = {};
  bool plain = false;
  bool disposes = false;  // its messages dispose instances, and only their key members count
  /// Nothing: a relay does not tell them.
  std::optional<pubsub::TopicQos> qos = {};
  std::optional<pubsub::DataWriterQos> writer_qos = {};
  std::string writer = {};  // "a/0": writer 0 of member a; empty: a relay does not tell
};

/// The name of a type, from its text.
[[nodiscard]] std::string type_name_of(const std::string& type_text);
[[nodiscard]] mcap::Schema schema_of(const RecordedTopic& recorded);
[[nodiscard]] mcap::Channel channel_of(const RecordedTopic& recorded, std::uint16_t schema);
/// Throws BadInput that says which channel has what this release cannot publish.
[[nodiscard]] RecordedTopic recorded_topic_of(const mcap::FileReader& file,
                                              const mcap::Channel& channel);

}  // namespace dunlin::app::topic
