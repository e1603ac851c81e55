#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/pubsub/qos.hpp>

namespace dunlin::app::gateway {

/// How to carry one topic: an entry of the file of `dunlin gateway --config`, or the meaning of a
/// name in `--topics`. docs/gateway.md has a table of the keys.
struct Rule {
  enum class Representation : std::uint8_t { of_type, xcdr1, xcdr2 };

  std::string topic = {};
  std::string dds_topic = {};  // empty: as the topic
  std::string dds_type = {};   // empty: as the topic's type
  std::string type = {};       // the text of the type, for a topic that the group may lack
  bool to_dds = true;
  bool from_dds = true;
  pubsub::Reliability reliability = {};
  std::optional<bool> transient_local = {};  // nothing: if the topic stores samples
  std::uint32_t depth = 0;                   // 0: all, up to max_samples
  std::uint32_t max_samples = 4096;
  std::uint64_t deadline_ns = pubsub::kInfiniteNs;
  std::uint64_t lifespan_ns = pubsub::kInfiniteNs;
  std::vector<std::string> partitions = {};
  Representation representation = Representation::of_type;

  [[nodiscard]] const std::string& dds_name() const {
    return dds_topic.empty() ? topic : dds_topic;
  }
};

/// Throws BadInput that names the file, the topic, and the key or value that is wrong, or that no
/// gateway can carry.
[[nodiscard]] std::vector<Rule> read_rules(const std::string& path);

/// The QoS for creating the topic, if the group lacks it.
[[nodiscard]] pubsub::TopicQos topic_qos_of(const Rule& rule);
/// Whether the topic's samples are kept for late readers in the domain, too. Throws BadInput if the
/// rule wants what a topic of this level cannot give.
[[nodiscard]] bool is_transient_local(const Rule& rule, const pubsub::TopicQos& qos);
[[nodiscard]] pubsub::DataWriterQos writer_qos_of(const Rule& rule);
[[nodiscard]] pubsub::DataReaderQos reader_qos_of(const Rule& rule, bool stored);

}  // namespace dunlin::app::gateway
