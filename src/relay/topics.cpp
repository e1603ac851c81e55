#include "relay/topics.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "pubsub/sample_key.hpp"

namespace dunlin::relay {
namespace {

/// How long a topic without clients stays, so that clients find it that come back, for example
/// because another relay died: by default, a client notices within some 9 s that its relay is
/// silent, and that another one does not answer.
constexpr std::uint64_t kLingerNs = 30'000'000'000;
constexpr std::uint64_t kAgainNs = 1'000'000'000;  // until the relay tries again to be in a topic
constexpr std::string_view kPlain = " plain ";
constexpr std::size_t kShownTypeBytes = 200;

std::string describe_qos(const pubsub::TopicQos& qos) {
  const bool keeps_all = qos.history.kind == pubsub::History::Kind::keep_all;
  std::string text =
      "level " + std::string(pubsub::describe(qos.level)) + ", history " +
      (keeps_all ? "keep_all" : "keep_last(" + std::to_string(qos.history.depth) + ")") +
      ", max_samples " + std::to_string(qos.max_samples) + ", ring_bytes " +
      std::to_string(qos.ring_bytes);
  if (qos.max_bytes != 0) text += ", max_bytes " + std::to_string(qos.max_bytes);
  if (qos.max_age_ns != pubsub::kInfiniteNs)
    text += ", max_age_ns " + std::to_string(qos.max_age_ns);
  if (qos.log_trim_bytes != 0) text += ", log_trim_bytes " + std::to_string(qos.log_trim_bytes);
  if (!qos.order.empty()) text.append(", order ").append(qos.order.view());
  return text;
}

/// Whether the text begins with a head line "NAME final" or "NAME appendable", for a plain type
/// followed by " plain BYTES"; then comes a line for each member.
bool has_good_head(const std::string& type_text) {
  const std::size_t end = type_text.find('\n');
  if (end == std::string::npos || end + 1 == type_text.size() || !type_text.ends_with('\n'))
    return false;
  std::string_view line = std::string_view(type_text).substr(0, end);
  if (const std::size_t at = line.rfind(kPlain); at != std::string_view::npos) {
    std::size_t bytes = 0;
    const char* const digits = line.data() + at + kPlain.size();
    const char* const past = line.data() + line.size();
    const auto [last, failure] = std::from_chars(digits, past, bytes);
    if (failure != std::errc{} || last != past || bytes == 0 || bytes > kMaxSampleBytes)
      return false;
    line = line.substr(0, at);
  }
  for (const std::string_view kind : {" final", " appendable"})
    if (line.ends_with(kind) && line.size() > kind.size()) return true;
  return false;
}

bool orders_samples(const pubsub::TopicQos& qos) { return qos.level != pubsub::Level::unordered; }

}  // namespace

std::optional<pubsub::TypeTree> type_of(const std::string& type_text) {
  if (!has_good_head(type_text)) return std::nullopt;
  try {
    return pubsub::parse_type(type_text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// --- a topic -------------------------------------------------------------------------------------

std::size_t RelayTopic::Hash::operator()(const ClientId& id) const noexcept {
  std::size_t value = 0;
  std::memcpy(&value, id.data(), sizeof value);
  return value;
}

RelayTopic::RelayTopic(const pubsub::DomainParticipant& participant, const SharedTopic& topic)
    : shared_(topic),
      topic_(participant, topic.name, pubsub::raw_type_support({}, topic.type_name), topic.qos) {
  topic_.on_client([this](const pubsub::ClientStamp& stamp) {
    const auto found = writers_.find(stamp.client);
    if (found != writers_.end()) found->second->on_delivered(stamp.number);
  });
}

RelayTopic::~RelayTopic() {
  topic_.on_client(nullptr);
  if (live_) live_.close();
}

std::string RelayTopic::why_over() const { return topic_.why_refused(); }

RelayTopic::Ready RelayTopic::prepare(const Open& open, std::string& why) {
  why = why_over();
  if (!why.empty()) return Ready::refused;
  if (!topic_.joined() || !is_safe_) return Ready::not_yet;
  const Ready typed = prepare_type(open, why);
  if (typed != Ready::yes) return typed;
  return open.writes ? prepare_writer(open.type_text, open.type_name, why) : prepare_reader(why);
}

/// Decides on the type: a topic without a type takes the client's, which the relay's writer
/// announces.
RelayTopic::Ready RelayTopic::prepare_type(const Open& open, std::string& why) {
  const std::string& has = topic_.type_text();
  if (has.empty()) {
    if (open.type_text.empty()) return open.writes ? Ready::not_yet : Ready::yes;
    if (!type_of(open.type_text)) {
      why = "topic '" + topic_.name() + "': the text of this client's type is none: \"" +
            open.type_text.substr(0, kShownTypeBytes) + "\"";
      return Ready::refused;
    }
    return prepare_writer(open.type_text, open.type_name, why) == Ready::refused ? Ready::refused
                                                                                 : Ready::not_yet;
  }
  if (type_text_ != has) {
    type_text_ = has;
    type_ = type_of(has);
  }
  if (open.type_text.empty() || pubsub::types_match(has, open.type_text)) return Ready::yes;
  why = "topic '" + topic_.name() + "': this client is refused, because its type is another one: " +
        pubsub::show_both_types(has, open.type_text);
  return Ready::refused;
}

RelayTopic::Ready RelayTopic::prepare_writer(const std::string& type_text,
                                             const std::string& type_name, std::string& why) {
  if (!writer_) {
    const bool defines = topic_.type_text().empty();
    writer_ = pubsub::AnyWriter(
        topic_, {}, pubsub::raw_type_support(defines ? type_text : std::string(), type_name));
  }
  why = writer_.why_refused();
  if (why.empty()) return writer_.ready() ? Ready::yes : Ready::not_yet;
  writer_ = {};  // another member announced another type first
  return Ready::refused;
}

/// One reader serves all subscriptions that have the stored samples already, or do not want them.
RelayTopic::Ready RelayTopic::prepare_reader(std::string& why) {
  if (!live_) {
    pubsub::DataReaderQos qos;
    qos << pubsub::Ownership{.kind = pubsub::Ownership::Kind::either}
        << pubsub::ResourceLimits{.max_instances = kMostInstances};
    live_ = make_reader(qos);
    live_.on_sample([this](const void* sample, const pubsub::SampleInfo& info) {
      for (ClientEndpoint* const reader : readers_)
        reader->on_sample(*static_cast<const pubsub::RawSample*>(sample), info);
    });
  }
  why = live_.why_refused();
  if (!why.empty()) return Ready::refused;
  return live_.ready() ? Ready::yes : Ready::not_yet;
}

std::optional<std::uint64_t> RelayTopic::check(std::uint8_t flags, const ClientSample& sample,
                                               std::string& why) const {
  if (!type_) {
    why = "the type of the topic cannot be read";
    return std::nullopt;
  }
  if (type_->plain == ((flags & kXcdr) != 0)) {
    why = std::string("the type's samples are ") + (type_->plain ? "plain" : "XCDR2");
    return std::nullopt;
  }
  try {
    return pubsub::key_hash_of(*type_, sample.payload);
  } catch (const Error& error) {
    why = error.what();
    return std::nullopt;
  }
}

pubsub::WriteResult RelayTopic::publish(const ClientId& client, std::uint8_t flags,
                                        const ClientSample& sample, std::uint64_t key_hash) {
  DUNLIN_ASSERT(type_.has_value(), "RLY-8: a sample is checked before it is published");
  sample_.plain = (flags & kXcdr) == 0;
  sample_.key_hash = key_hash;
  sample_.payload.assign(sample.payload.begin(), sample.payload.end());
  const pubsub::ClientStamp stamp{.client = client, .number = sample.number};
  return (flags & kDisposes) != 0 ? writer_.dispose(&sample_, stamp)
                                  : writer_.write(&sample_, stamp);
}

/// Adds a waiting endpoint. A change that earlier endpoints have not been told of yet wakes it,
/// too.
void RelayTopic::add_waiting(ClientEndpoint& endpoint) {
  if (waiting_.empty()) seen_ = condition();
  if (std::ranges::find(waiting_, &endpoint) == waiting_.end()) waiting_.push_back(&endpoint);
}

void RelayTopic::remove(const ClientId& client, ClientEndpoint& endpoint) {
  std::erase(readers_, &endpoint);
  std::erase(waiting_, &endpoint);
  const auto found = writers_.find(client);
  if (found != writers_.end() && found->second == &endpoint) writers_.erase(found);
}

RelayTopic::Condition RelayTopic::condition() const {
  return {.joined = topic_.joined(),
          .is_over = !topic_.why_refused().empty(),
          .is_safe = is_safe_,
          .reads = live_ && (live_.ready() || !live_.why_refused().empty()),
          .writes = writer_ && writer_.ready(),
          .writer_is_refused = writer_ && !writer_.why_refused().empty(),
          .type_bytes = topic_.type_text().size()};
}

void RelayTopic::look(const std::vector<std::string>* others) {
  if (others != nullptr) others_ = *others;
  if (others != nullptr || topic_.endpoint_changes() != endpoint_changes_) {
    endpoint_changes_ = topic_.endpoint_changes();
    const bool was_safe = is_safe_;
    is_safe_ = others_.empty() || std::ranges::any_of(others_, [this](const std::string& relay) {
                 return topic_.has_reader_of(relay);
               });
    if (is_safe_ && !was_safe)
      for (const auto& [client, writer] : writers_) writer->wake();
  }
  // Other relays wait for the reader of this relay.
  std::string why;
  if (!live_ && topic_.joined() && why_over().empty()) static_cast<void>(prepare_reader(why));
  if (waiting_.empty()) return;
  const Condition now = condition();
  if (now == seen_) return;
  seen_ = now;
  for (ClientEndpoint* const endpoint : std::exchange(waiting_, {})) endpoint->wake();
}

// --- all of them ---------------------------------------------------------------------------------

RelayTopics::RelayTopics(pubsub::DomainParticipant& participant)
    : participant_(participant), peers_(participant.group()) {}

void RelayTopics::refresh_infos() {
  const std::uint64_t changes = participant_.topic_changes();
  if (changes == infos_as_of_) return;
  infos_ = participant_.topics();
  infos_as_of_ = changes;
}

/// The topic that a client means; without policies, it means the topic without an order, if there
/// is one.
const pubsub::TopicInfo* RelayTopics::info_of(const std::string& name,
                                              const std::optional<pubsub::TopicQos>& qos) {
  refresh_infos();
  const auto find_in = [&](const auto& is_meant) -> const pubsub::TopicInfo* {
    const auto found = std::ranges::find_if(infos_, [&](const pubsub::TopicInfo& one) {
      return one.name == name && is_meant(one.qos.order);
    });
    return found != infos_.end() ? &*found : nullptr;
  };
  const pubsub::OrderName given = qos ? qos->order : pubsub::OrderName();
  const pubsub::TopicInfo* info =
      find_in([&](const pubsub::OrderName& order) { return order == given; });
  if (info == nullptr && !qos) info = find_in([](const auto&) { return true; });
  return info;
}

std::shared_ptr<RelayTopic> RelayTopics::find(const Open& open, std::string& why) {
  const pubsub::TopicInfo* const info = info_of(open.topic, open.qos);
  const pubsub::OrderName order =
      info != nullptr ? info->qos.order : (open.qos ? open.qos->order : pubsub::OrderName());
  const std::string key = topic_key(open.topic, order);
  if (const auto found = topics_.find(key); found != topics_.end()) {
    RelayTopic& topic = *found->second;
    if (topic.why_over().empty()) {
      if (open.qos && *open.qos != topic.topic().qos()) {
        why = "topic '" + open.topic + "' has " + describe_qos(topic.topic().qos()) +
              "; this client gives " + describe_qos(*open.qos);
        return nullptr;
      }
      topic.is_used = true;
      topic.no_clients_ns = 0;
      tell(topic);
      return found->second;
    }
    topics_.erase(found);
  }
  if (info == nullptr && !open.qos) return nullptr;
  if (info == nullptr && open.qos->ring_bytes > kMaxClientRingBytes) {
    why = "topic '" + open.topic + "': a client asks for rings of " +
          std::to_string(open.qos->ring_bytes) + " bytes; it can have " +
          std::to_string(kMaxClientRingBytes) + " (kMaxClientRingBytes)";
    return nullptr;
  }
  if (info != nullptr && open.qos && *open.qos != info->qos) {
    why = "topic '" + open.topic + "' has " + describe_qos(info->qos) + "; this client gives " +
          describe_qos(*open.qos);
    return nullptr;
  }
  try {
    auto topic = std::make_shared<RelayTopic>(
        participant_, SharedTopic{.name = open.topic,
                                  .type_name = open.type_name,
                                  .qos = info == nullptr ? *open.qos : info->qos});
    topics_[key] = topic;
    if (peers_.joined()) look(key, *topic);
    tell(*topic);
    return topic;
  } catch (const Error& error) {
    why = error.what();
    return nullptr;
  }
}

void RelayTopics::await(const std::string& name, ClientEndpoint& endpoint) {
  stop_waiting(name, endpoint);
  awaited_.emplace(name, &endpoint);
}

void RelayTopics::stop_waiting(const std::string& name, ClientEndpoint& endpoint) {
  const auto [begin, end] = awaited_.equal_range(name);
  for (auto it = begin; it != end; ++it)
    if (it->second == &endpoint) return static_cast<void>(awaited_.erase(it));
}

/// Tells the other relays of the topic. An unordered topic is not shared, because its members have
/// no common position in it.
void RelayTopics::tell(const RelayTopic& topic) {
  if (!orders_samples(topic.shared().qos)) return;
  peers_.tell(topic.shared(), {.uses = topic.is_used, .cannot = !topic.why_over().empty()});
}

void RelayTopics::look(const std::string& key, RelayTopic& topic) const {
  const auto others =
      orders_samples(topic.shared().qos) ? peers_.able_others(key) : std::vector<std::string>();
  topic.look(&others);
}

std::size_t RelayTopics::look() {
  std::size_t done = peers_.poll();
  const bool others_changed = peers_.joined() && peers_.changes() != peers_as_of_;
  if (others_changed) {
    peers_as_of_ = peers_.changes();
    share_topics();
    ++done;
  }
  for (const auto& [key, topic] : topics_) {
    if (others_changed)
      look(key, *topic);
    else
      topic->look(nullptr);
    if (topic->over_since_ns == 0 && !topic->topic().why_refused().empty()) {
      topic->over_since_ns = std::max<std::uint64_t>(participant_.fabric().now_ns(), 1);
      tell(*topic);
      ++done;
    }
  }
  if (!awaited_.empty() && participant_.topic_changes() != woken_as_of_) {
    refresh_infos();
    woken_as_of_ = infos_as_of_;
    for (const pubsub::TopicInfo& info : infos_) {
      const auto [begin, end] = awaited_.equal_range(info.name);
      for (auto it = begin; it != end; ++it) it->second->wake();
      awaited_.erase(begin, end);
    }
  }
  return done;
}

/// RLY-10: joins the topics that other relays' clients use.
void RelayTopics::share_topics() {
  for (const auto& [key, topic] : topics_) topic->is_used_elsewhere = false;
  const std::vector<SharedTopic> unable_before = std::exchange(unable_, {});
  for (const SharedTopic& shared : peers_.used_by_others()) {
    const std::string key = topic_key(shared.name, shared.qos.order);
    std::shared_ptr<RelayTopic>& topic = topics_[key];
    try {
      if (topic && !topic->why_over().empty()) topic.reset();
      if (!topic) {
        topic = std::make_shared<RelayTopic>(participant_, shared);
        topic->is_used = false;
      }
      topic->is_used_elsewhere = true;
    } catch (const Error&) {
      topics_.erase(key);
      unable_.push_back(shared);
      peers_.tell(shared, {.cannot = true});
    }
  }
  // Topics that this member still cannot be in were reported before.
  for (const SharedTopic& shared : unable_before) {
    const std::string key = topic_key(shared.name, shared.qos.order);
    if (const auto found = topics_.find(key); found != topics_.end())
      tell(*found->second);
    else if (std::ranges::none_of(unable_, [&](const SharedTopic& one) {
               return topic_key(one.name, one.qos.order) == key;
             }))
      peers_.tell(shared, {});
  }
}

std::uint64_t RelayTopics::let_go(std::uint64_t now_ns) {
  std::uint64_t due_ns = UINT64_MAX;
  // Whether the condition has lasted for kLingerNs. Sets `since_ns` when it begins, or to 0 if it
  // does not hold.
  const auto lasts = [&](bool is_so, std::uint64_t& since_ns) {
    if (!is_so) return since_ns = 0, false;
    if (since_ns == 0) since_ns = std::max<std::uint64_t>(now_ns, 1);
    if (now_ns - since_ns >= kLingerNs) return true;
    due_ns = std::min(due_ns, since_ns + kLingerNs);
    return false;
  };
  for (auto it = topics_.begin(); it != topics_.end();) {
    RelayTopic& topic = *it->second;
    if (lasts(it->second.use_count() == 1, topic.no_clients_ns)) topic.is_used = false;
    const bool is_needed_elsewhere = !lasts(!topic.is_used_elsewhere, topic.not_elsewhere_ns);
    tell(topic);
    bool goes = !topic.is_used && !is_needed_elsewhere;
    if (topic.over_since_ns != 0) {  // its place is for a new topic
      goes = now_ns - topic.over_since_ns >= kAgainNs;
      if (goes) peers_as_of_ = UINT64_MAX;
      due_ns = std::min(due_ns, topic.over_since_ns + kAgainNs);
    }
    if (goes) peers_.tell(topic.shared(), {});
    it = goes ? topics_.erase(it) : std::next(it);
  }
  return due_ns;
}

}  // namespace dunlin::relay
