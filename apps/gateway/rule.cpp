#include "gateway/rule.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "read_file.hpp"
#include "text.hpp"

namespace dunlin::app::gateway {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMsNs = 1'000'000;
constexpr std::uint64_t kMostMs = 86'400'000;

/// Policies of DDS that no topic of Dunlin has, or that lose their meaning on the way.
struct Refused {
  std::string_view key;
  std::string_view carried;  // the one value that needs nothing; empty: there is none
  std::string_view why;
};
constexpr std::array<Refused, 13> kRefused{
    {{"ownership", "shared", "all writers beyond the gateway would be one owner of one strength"},
     {"ownership_strength", "", "all writers beyond the gateway would have one strength"},
     {"liveliness", "automatic",
      "the gateway is alive, whether or not the writers beyond it are; a writer that has gone is "
      "carried as an instance without writers"},
     {"presentation", "", "changes are carried one by one, and each topic by itself"},
     {"destination_order", "by_reception", "the group has one order, that of receipt"},
     {"time_based_filter", "", "give it to the readers"},
     {"latency_budget", "", "the gateway does not wait for a batch"},
     {"transport_priority", "", "the gateway ranks nothing"},
     {"resource_limits", "", "max_samples is the limit of both sides; there is none of instances"},
     {"durability_service", "", "depth and max_samples say it for both sides"},
     {"writer_data_lifecycle", "", "an instance is disposed if its writer disposes it"},
     {"reader_data_lifecycle", "", "the gateway keeps no instances of its own"},
     {"user_data", "", "topics carry none, and the gateway's marks it for other gateways"}}};

/// One entry of the file: its keys are taken one by one, and what is left is refused.
class Entry {
 public:
  Entry(std::string where, const Json& json) : where_(std::move(where)), json_(json) {
    if (!json.is_object()) fail("is no object with a key \"topic\"");
    if (const auto name = text("topic"); !name.empty())
      where_ += fmt::format(", topic {}", in_quotes(name));
    else
      fail("has no \"topic\"");
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw BadInput(fmt::format("{}: {}", where_, why));
  }
  std::string text(const char* key) {
    known_.insert(key);
    if (!json_.contains(key)) return {};
    if (!json_[key].is_string() || json_[key].get<std::string>().empty())
      fail(fmt::format("{} is {}, and not a text", key, json_[key].dump()));
    return json_[key].get<std::string>();
  }
  std::uint64_t number(const char* key, std::uint64_t least, std::uint64_t most,
                       std::uint64_t otherwise) {
    known_.insert(key);
    if (!json_.contains(key)) return otherwise;
    const Json& value = json_[key];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
        value.get<std::uint64_t>() > most)
      fail(fmt::format("{} is {}, and not a number from {} to {}", key, value.dump(), least, most));
    return value.get<std::uint64_t>();
  }
  std::uint64_t duration_ns(const char* key) {
    const std::uint64_t ms = number(key, 1, kMostMs, 0);
    return ms == 0 ? pubsub::kInfiniteNs : ms * kMsNs;
  }
  std::vector<std::string> texts(const char* key) {
    known_.insert(key);
    std::vector<std::string> all;
    if (!json_.contains(key)) return all;
    if (!json_[key].is_array()) fail(fmt::format("{} is no list of texts", key));
    for (const Json& one : json_[key]) {
      if (!one.is_string()) fail(fmt::format("{} has {}, which is no text", key, one.dump()));
      all.push_back(one.get<std::string>());
    }
    return all;
  }
  /// The place of its value among these; 0 if there is none.
  std::size_t choice(const char* key, const std::vector<std::string>& values) {
    const std::string value = text(key);
    if (value.empty()) return 0;
    const auto found = std::ranges::find(values, value);
    if (found == values.end())
      fail(fmt::format("{} {} cannot be carried; one of {} can", key, in_quotes(value),
                       fmt::join(values, ", ")));
    return static_cast<std::size_t>(found - values.begin());
  }
  void refuse_the_rest() {
    for (const Refused& one : kRefused) {
      const std::string key(one.key);
      known_.insert(key);
      if (!json_.contains(key)) continue;
      if (!one.carried.empty() && json_[key] == Json(one.carried)) continue;
      fail(fmt::format("{} {} cannot be carried: {}", key, json_[key].dump(), one.why));
    }
    for (const auto& [key, value] : json_.items())
      if (!known_.contains(key)) fail(fmt::format("{} is no key of a topic", in_quotes(key)));
  }

 private:
  std::string where_;
  const Json& json_;
  std::set<std::string, std::less<>> known_;
};

Rule read_rule(const std::string& where, const Json& json) {
  Entry entry(where, json);
  Rule rule{.topic = entry.text("topic"),
            .dds_topic = entry.text("dds_topic"),
            .dds_type = entry.text("dds_type"),
            .type = entry.text("type")};
  const std::size_t direction = entry.choice("direction", {"both", "to_dds", "from_dds"});
  rule.to_dds = direction != 2;
  rule.from_dds = direction != 1;
  if (entry.choice("reliability", {"reliable", "best_effort"}) == 1)
    rule.reliability = pubsub::Reliability::best_effort();
  if (json.contains("durability"))
    rule.transient_local = entry.choice("durability", {"volatile", "transient_local"}) == 1;
  static_cast<void>(entry.text("durability"));
  rule.depth = static_cast<std::uint32_t>(entry.number("depth", 1, 1U << 20U, 0));
  rule.max_samples = static_cast<std::uint32_t>(entry.number("max_samples", 1, 1U << 24U, 4096));
  rule.deadline_ns = entry.duration_ns("deadline_ms");
  rule.lifespan_ns = entry.duration_ns("lifespan_ms");
  rule.partitions = entry.texts("partition");
  rule.representation = std::array{Rule::Representation::of_type, Rule::Representation::xcdr1,
                                   Rule::Representation::xcdr2}
                            .at(entry.choice("representation", {"of_type", "xcdr1", "xcdr2"}));
  entry.refuse_the_rest();
  return rule;
}

}  // namespace

std::vector<Rule> read_rules(const std::string& path) {
  const std::string content = read_file(path);
  Json json;
  try {
    json = Json::parse(content);
  } catch (const Json::parse_error& error) {
    throw BadInput(fmt::format("--config {}: {}", in_quotes(path), error.what()));
  }
  if (!json.is_object() || json.size() != 1 || !json.contains("topics") ||
      !json["topics"].is_array() || json["topics"].empty())
    throw BadInput(
        fmt::format("--config {}: it is no object whose one key \"topics\" is a list of topics",
                    in_quotes(path)));
  std::vector<Rule> rules;
  for (const Json& one : json["topics"])
    rules.push_back(
        read_rule(fmt::format("--config {}: entry {}", in_quotes(path), rules.size() + 1), one));
  return rules;
}

pubsub::TopicQos topic_qos_of(const Rule& rule) {
  pubsub::TopicQos qos;
  if (!rule.transient_local.value_or(false)) return qos;
  qos.level = pubsub::Level::volatile_storage;
  qos.max_samples = rule.max_samples;
  if (rule.depth > 0) qos.history = pubsub::History::keep_last(rule.depth);
  return qos;
}

bool is_transient_local(const Rule& rule, const pubsub::TopicQos& qos) {
  if (qos.level == pubsub::Level::logged)
    throw BadInput(fmt::format(
        "topic '{}' is logged: a member of it needs a log, and a gateway has none", rule.topic));
  const bool stores = qos.level == pubsub::Level::volatile_storage;
  if (rule.transient_local.value_or(false) && !stores)
    throw BadInput(fmt::format(
        "topic '{}': durability 'transient_local' cannot be carried: the topic is of level {}, "
        "which stores no samples",
        rule.topic, describe(qos.level)));
  return rule.transient_local.value_or(stores);
}

pubsub::DataWriterQos writer_qos_of(const Rule& rule) {
  return {.reliability = rule.reliability,
          .deadline = {.period_ns = rule.deadline_ns},
          .lifespan = {.duration_ns = rule.lifespan_ns}};
}

pubsub::DataReaderQos reader_qos_of(const Rule& rule, bool stored) {
  pubsub::DataReaderQos qos;
  qos.reliability = rule.reliability;
  qos.history = pubsub::History::keep_all();
  qos.limits = {.max_samples = rule.max_samples, .max_instances = 1U << 20U};
  if (stored) qos.durability.kind = pubsub::Durability::Kind::transient_local;
  return qos;
}

}  // namespace dunlin::app::gateway
