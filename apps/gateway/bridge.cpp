#include "gateway/bridge.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <dunlin/pubsub/limits.hpp>

#include "command.hpp"
#include "topic/recorded_topic.hpp"
#include "topic/type_tree.hpp"

namespace dunlin::app::gateway {
namespace {

constexpr std::uint64_t kLookNs = 20'000'000;  // for a topic that the group lacks
constexpr std::size_t kAtATime = 128;

using pubsub::RawSample;
using pubsub::WriteResult;

/// The type of a reader that takes the topic's bytes and tells instances apart: each key_hash is
/// one.
std::shared_ptr<const pubsub::TypeSupport> keyed_type(const std::string& text) {
  pubsub::TypeSupport type =
      *pubsub::raw_type_support(text, text.empty() ? std::string() : topic::type_name_of(text));
  type.keyed = true;
  type.append_key = [](const void* object, std::vector<std::byte>& to) {
    const auto bytes =
        std::as_bytes(std::span(&static_cast<const RawSample*>(object)->key_hash, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  };
  return std::make_shared<const pubsub::TypeSupport>(std::move(type));
}

}  // namespace

Bridge::Bridge(pubsub::DomainParticipant& participant, Domain& domain, Rule rule, std::string name,
               std::string network, Notify notify)
    : participant_(participant),
      domain_(domain),
      rule_(std::move(rule)),
      name_(std::move(name)),
      network_(std::move(network)),
      notify_(std::move(notify)) {}

std::size_t Bridge::poll(bool dds_woken) {
  switch (state_) {
    case State::unknown:
      look_for_topic();
      return 0;
    case State::joining:
      if (!topic_.why_refused().empty()) throw BadInput(topic_.why_refused());
      if (!topic_.joined() || (rule_.type.empty() && topic_.type_text().empty())) return 0;
      begin();
      return 1;
    case State::carrying:
      break;
  }
  for (const std::string& why : {topic_.why_refused(), reader_ ? reader_.why_refused() : "",
                                 writer_ ? writer_.why_refused() : ""})
    if (!why.empty()) throw BadInput(why);
  tell_mismatches();
  more_ |= dds_woken;
  if (dds_woken)
    if (const std::string why = dds_->new_mismatch(); !why.empty())
      notify_(fmt::format("topic '{}': {}\n", rule_.topic, why));
  return carry_to_dds() + carry_from_dds();
}

/// Tells which writers and readers of the group ask for another quality of service than the bridge.
void Bridge::tell_mismatches() {
  if (reader_ && has(reader_.status_changes(), pubsub::Status::requested_incompatible_qos))
    notify_(fmt::format("{}; what it writes is not carried\n",
                        reader_.requested_incompatible_qos_status().last));
  if (writer_ && has(writer_.status_changes(), pubsub::Status::offered_incompatible_qos))
    notify_(fmt::format("{}; it gets nothing from the domain\n",
                        writer_.offered_incompatible_qos_status().last));
}

/// The group has it, or the rule says what it is.
void Bridge::look_for_topic() {
  const std::uint64_t now_ns = participant_.fabric().now_ns();
  if (look_ns_ != 0 && now_ns - look_ns_ < kLookNs) {
    participant_.fabric().wake_at(look_ns_ + kLookNs);
    return;
  }
  const bool first = std::exchange(look_ns_, now_ns) == 0;
  const auto topics = participant_.topics();
  const auto found = std::ranges::find(topics, rule_.topic, &pubsub::TopicInfo::name);
  if (found == topics.end() && rule_.type.empty()) {
    if (first)
      notify_(fmt::format("waits for topic '{}', as no member of the group has it\n", rule_.topic));
    return;
  }
  const pubsub::TopicQos qos = found != topics.end() ? found->qos : topic_qos_of(rule_);
  static_cast<void>(is_transient_local(rule_, qos));
  topic_ = pubsub::AnyTopic(participant_, rule_.topic, keyed_type(rule_.type), qos);
  state_ = State::joining;
}

void Bridge::begin() {
  const std::string text = rule_.type.empty() ? topic_.type_text() : rule_.type;
  const std::string name = topic::type_name_of(text);
  try {
    type_ = std::make_unique<DdsType>(topic::parse_type(text),
                                      rule_.dds_type.empty() ? name : rule_.dds_type);
  } catch (const Error& error) {
    throw BadInput(fmt::format("topic '{}': {}", rule_.topic, error.what()));
  }
  sample_ = std::make_unique<DdsSample>(*type_);
  const bool stored = is_transient_local(rule_, topic_.qos());
  // The announcement of the writer must lie before the reader's first sample: GWY-1 goes by names.
  if (rule_.from_dds)
    writer_ = pubsub::AnyWriter(topic_, writer_qos_of(rule_), pubsub::raw_type_support(text, name));
  dds_ = std::make_unique<DdsEndpoints>(domain_, *type_, rule_, stored);
  if (rule_.to_dds) reader_ = pubsub::AnyReader(topic_, reader_qos_of(rule_, stored));
  state_ = State::carrying;
  for (const auto& [handle, endpoint] : domain_.endpoints()) on_endpoint(endpoint);
  notify_(fmt::format(
      "carries topic '{}' [{}] {} DDS topic '{}' [{}] of domain {}, {}, {}\n", rule_.topic, name,
      rule_.to_dds && rule_.from_dds ? "to and from"
      : rule_.to_dds                 ? "to"
                                     : "from",
      rule_.dds_name(), type_->name(), domain_.id(),
      rule_.reliability.kind == pubsub::Reliability::Kind::reliable ? "reliable" : "best_effort",
      stored ? "transient_local" : "volatile"));
}

void Bridge::refuse(const std::string& why) {
  if (counters_.refused++ == 0)
    notify_(fmt::format("topic '{}': a sample is not carried (others are counted): {}\n",
                        rule_.topic, why));
}

void Bridge::on_endpoint(const RemoteEndpoint& endpoint) {
  if (state_ != State::carrying || endpoint.of_gateway || endpoint.gone ||
      endpoint.topic != rule_.dds_name())
    return;
  const char* const what = endpoint.writes ? "writer" : "reader";
  if (endpoint.type != type_->name())
    notify_(
        fmt::format("topic '{}': a DDS {} has type '{}', and not '{}', and is not matched "
                    "(\"dds_type\" says which type DDS has)\n",
                    rule_.topic, what, endpoint.type, type_->name()));
  else if (endpoint.keyed != type_->keyed())
    notify_(fmt::format(
        "topic '{}': the type '{}' of a DDS {} has {} key, and the topic's type has {}, "
        "and they are not matched\n",
        rule_.topic, endpoint.type, what, endpoint.keyed ? "a" : "no",
        type_->keyed() ? "one" : "none"));
  else if (!endpoint.policy.empty())
    notify_(
        fmt::format("topic '{}': a DDS {} is not heard: {}\n", rule_.topic, what, endpoint.policy));
}

bool Bridge::acknowledged() const {
  if (!dds_ || !rule_.to_dds || rule_.reliability.kind != pubsub::Reliability::Kind::reliable)
    return true;
  return dds_wait_for_acks(dds_->writer(), 0) != DDS_RETCODE_TIMEOUT;
}

// --- from the group to the domain ----------------------------------------------------------------

/// GWY-1: "net" and "net-..." are gateways of network "net".
bool Bridge::is_gateway(std::string_view member) const {
  return member.starts_with(network_) &&
         (member.size() == network_.size() || member[network_.size()] == '-');
}

/// Whether this gateway carries the topic: it is the oldest member of the topic that is a gateway
/// to the domain.
bool Bridge::is_first() const {
  const auto topics = participant_.topics();
  const auto found = std::ranges::find(topics, rule_.topic, &pubsub::TopicInfo::name);
  if (found == topics.end()) return true;
  const auto first = std::ranges::find_if(
      found->members, [this](const std::string& member) { return is_gateway(member); });
  return first == found->members.end() || *first == name_;
}

std::size_t Bridge::carry_to_dds() {
  if (!reader_) return 0;
  if (!awaits_dds()) {
    if (!reader_.available()) return 0;
    loan_ = reader_.take({.max_samples = kAtATime});
    next_ = 0;
    if (!is_first()) next_ = loan_.size();
  }
  const std::size_t begin = next_;
  while (next_ < loan_.size()) {
    const pubsub::SampleInfo& info = loan_.info(next_);
    if (!is_gateway(info.publication.member) &&
        !write_to_dds(*static_cast<const RawSample*>(loan_.data(next_)), info))
      break;
    ++next_;
  }
  const std::size_t done = next_ - begin;
  if (!awaits_dds()) loan_ = {};
  return done;
}

/// False if there is no room now.
bool Bridge::write_to_dds(const RawSample& sample, const pubsub::SampleInfo& info) {
  try {
    sample_->load(sample.payload);
  } catch (const Error& error) {
    refuse(error.what());
    return true;
  }
  const dds_entity_t writer = dds_->writer();
  const dds_return_t result = info.valid() ? dds_write(writer, sample_->data())
                              : info.instance_state == pubsub::InstanceState::disposed
                                  ? dds_dispose(writer, sample_->data())
                                  : dds_unregister_instance(writer, sample_->data());
  if (result == DDS_RETCODE_TIMEOUT) return false;
  // An instance that this gateway has not written cannot be unregistered.
  if (result == DDS_RETCODE_PRECONDITION_NOT_MET && !info.valid()) return true;
  check_dds(result, fmt::format("topic '{}', writing to DDS", rule_.topic));
  ++counters_.to_dds;
  return true;
}

// --- from the domain to the group ----------------------------------------------------------------

std::size_t Bridge::carry_from_dds() {
  if (!writer_) return 0;
  std::size_t done = (arrived_.empty() || !first_) && more_ ? take_from_dds() : 0;
  if (arrived_.empty()) return done;
  first_ = is_first();
  while (!first_ && arrived_.size() > rule_.max_samples) arrived_.pop_front();
  while (first_ && !arrived_.empty()) {
    const Arrived& next = arrived_.front();
    const WriteResult result =
        next.change == Change::sample    ? writer_.write(&next.sample, next.stamp)
        : next.change == Change::dispose ? writer_.dispose(&next.sample, next.stamp)
                                         : writer_.unregister(&next.sample);
    if (result == WriteResult::ended) throw Error(participant_.group().why_ended());
    if (result != WriteResult::written) break;
    arrived_.pop_front();
    ++counters_.from_dds;
    ++done;
  }
  return done;
}

std::size_t Bridge::take_from_dds() {
  std::array<void*, kAtATime> samples{};
  std::array<dds_sample_info_t, kAtATime> infos{};
  const dds_return_t result =
      dds_take(dds_->reader(), samples.data(), infos.data(), samples.size(), samples.size());
  check_dds(result, fmt::format("topic '{}', reading from DDS", rule_.topic));
  const auto count = static_cast<std::size_t>(result);
  more_ = count == samples.size();
  if (count == 0) return 0;
  for (std::size_t i = 0; i < count; ++i)
    arrive(samples[i], infos[i],
           i + 1 == count || infos[i + 1].instance_handle != infos[i].instance_handle);
  dds_return_loan(dds_->reader(), samples.data(), result);
  return count;
}

/// DDS tells the state of an instance with its last sample, and what was between two samples by
/// counting.
void Bridge::arrive(const void* memory, const dds_sample_info_t& info, bool last_of_instance) {
  const RemoteEndpoint* const writer = domain_.find(info.publication_handle);
  if (writer == nullptr || writer->of_gateway || !writer->policy.empty()) {
    if (writer == nullptr || !writer->of_gateway) ++counters_.refused;
    return;
  }
  const Arrived next{.sample = raw_sample_of(*type_, memory)};
  const auto enqueue_as = [&](Change change, dds_time_t source_time) {
    enqueue(change, next, *writer, info.publication_handle, source_time);
  };
  const std::uint32_t count = info.disposed_generation_count;
  const std::uint32_t count_before =
      std::exchange(generations_.try_emplace(info.instance_handle, count).first->second, count);
  if (info.valid_data) {
    if (count != count_before) enqueue_as(Change::dispose, info.source_timestamp - 1);
    enqueue_as(Change::sample, info.source_timestamp);
  }
  if (!last_of_instance || info.instance_state == DDS_ALIVE_INSTANCE_STATE) return;
  enqueue_as(info.instance_state == DDS_NOT_ALIVE_DISPOSED_INSTANCE_STATE ? Change::dispose
                                                                          : Change::unregister,
             info.source_timestamp);
  generations_.erase(info.instance_handle);
}

/// GWY-2: all gateways number alike, as a writer's source times ascend in each instance. Where they
/// do not, the numbers do.
void Bridge::enqueue(Change change, Arrived arrived, const RemoteEndpoint& writer,
                     dds_instance_handle_t publication, dds_time_t source_time) {
  const std::uint64_t key_hash = arrived.sample.key_hash;
  auto& numbers = numbers_[publication];
  if (numbers.size() >= pubsub::kMaxTopicClients) numbers.clear();  // the topic forgets them, too
  std::uint64_t& last = numbers[key_hash];
  last = std::max(static_cast<std::uint64_t>(std::max<dds_time_t>(source_time, 0)), last + 1);
  std::array<std::byte, sizeof writer.guid + sizeof key_hash> whole{};
  std::memcpy(whole.data(), writer.guid.data(), writer.guid.size());
  std::memcpy(whole.data() + writer.guid.size(), &key_hash, sizeof key_hash);
  const std::array<std::uint64_t, 2> id{
      pubsub::hash_key(std::span(whole).first(writer.guid.size())), pubsub::hash_key(whole)};
  arrived.change = change;
  arrived.stamp.number = last;
  std::memcpy(arrived.stamp.client.data(), id.data(), sizeof id);
  arrived_.push_back(std::move(arrived));
}

}  // namespace dunlin::app::gateway
