#include "relay/topics.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <dunlin/error.hpp>

namespace dunlin::relay {
namespace {

/// So that clients that come back, as to a relay of which the other one died, find the topic.
constexpr std::uint64_t kLingerNs = 5'000'000'000;
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

}  // namespace

bool SampleShape::fits(bool xcdr, std::size_t size) const noexcept {
  constexpr std::size_t kXcdrHeaderBytes = 4;
  return plain ? !xcdr && size == bytes : xcdr && size >= kXcdrHeaderBytes;
}

/// "NAME final", "NAME appendable", and of a plain type " plain BYTES" behind that; then a line for
/// each member.
std::optional<SampleShape> shape_of(const std::string& type_text) {
  const std::size_t end = type_text.find('\n');
  if (end == std::string::npos || end + 1 == type_text.size() || !type_text.ends_with('\n'))
    return std::nullopt;
  std::string_view line = std::string_view(type_text).substr(0, end);
  SampleShape shape;
  if (const std::size_t at = line.rfind(kPlain); at != std::string_view::npos) {
    const char* const digits = line.data() + at + kPlain.size();
    const char* const past = line.data() + line.size();
    const auto [last, failure] = std::from_chars(digits, past, shape.bytes);
    if (failure != std::errc{} || last != past || shape.bytes == 0 || shape.bytes > kMaxSampleBytes)
      return std::nullopt;
    shape.plain = true;
    line = line.substr(0, at);
  }
  for (const std::string_view kind : {" final", " appendable"})
    if (line.ends_with(kind) && line.size() > kind.size()) return shape;
  return std::nullopt;
}

// --- a topic -------------------------------------------------------------------------------------

std::size_t RelayTopic::Hash::operator()(const ClientId& id) const noexcept {
  std::size_t value = 0;
  std::memcpy(&value, id.data(), sizeof value);
  return value;
}

RelayTopic::RelayTopic(const pubsub::DomainParticipant& participant, const Open& open,
                       const pubsub::TopicQos& qos)
    : topic_(participant, open.topic, pubsub::raw_type_support({}, open.type_name), qos) {
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
  if (!topic_.joined()) return Ready::not_yet;
  const Ready typed = prepare_type(open, why);
  if (typed != Ready::yes) return typed;
  return open.writes ? prepare_writer(open.type_text, open.type_name, why) : prepare_reader(why);
}

/// A topic without a type takes that of the client. The relay's writer announces it.
RelayTopic::Ready RelayTopic::prepare_type(const Open& open, std::string& why) {
  const std::string& has = topic_.type_text();
  if (has.empty()) {
    if (open.type_text.empty()) return open.writes ? Ready::not_yet : Ready::yes;
    if (!shape_of(open.type_text)) {
      why = "topic '" + topic_.name() + "': the text of this client's type is none: \"" +
            open.type_text.substr(0, kShownTypeBytes) + "\"";
      return Ready::refused;
    }
    return prepare_writer(open.type_text, open.type_name, why) == Ready::refused ? Ready::refused
                                                                                 : Ready::not_yet;
  }
  if (shape_text_ != has) {
    shape_text_ = has;
    shape_ = shape_of(has);
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
  writer_ = {};  // another member was faster, with another type
  return Ready::refused;
}

/// One reader serves all subscriptions that have what is stored already, or do not want it.
RelayTopic::Ready RelayTopic::prepare_reader(std::string& why) {
  if (!live_) {
    live_ = make_reader({});
    live_.on_sample([this](const void* sample, const pubsub::SampleInfo& info) {
      for (ClientEndpoint* const reader : readers_)
        reader->on_sample(*static_cast<const pubsub::RawSample*>(sample), info);
    });
  }
  why = live_.why_refused();
  if (!why.empty()) return Ready::refused;
  return live_.ready() ? Ready::yes : Ready::not_yet;
}

pubsub::WriteResult RelayTopic::publish(const ClientId& client, std::uint8_t flags,
                                        const ClientSample& sample) {
  sample_.plain = (flags & kXcdr) == 0;
  sample_.key_hash = sample.key_hash;
  sample_.payload.assign(sample.payload.begin(), sample.payload.end());
  const pubsub::ClientStamp stamp{.client = client, .number = sample.number};
  return (flags & kDisposes) != 0 ? writer_.dispose(&sample_, stamp)
                                  : writer_.write(&sample_, stamp);
}

void RelayTopic::remove(const ClientId& client, ClientEndpoint& endpoint) {
  std::erase(readers_, &endpoint);
  const auto found = writers_.find(client);
  if (found != writers_.end() && found->second == &endpoint) writers_.erase(found);
}

// --- all of them ---------------------------------------------------------------------------------

/// A client that gives no policies means the topic without an order, if there is one.
std::shared_ptr<RelayTopic> RelayTopics::find(const Open& open, std::string& why) {
  const auto infos = participant_.topics();
  const auto find_in = [&](const auto& is_meant) {
    return std::ranges::find_if(infos, [&](const pubsub::TopicInfo& one) {
      return one.name == open.topic && is_meant(one.qos.order);
    });
  };
  const pubsub::OrderName given = open.qos ? open.qos->order : pubsub::OrderName();
  auto info = find_in([&](const pubsub::OrderName& order) { return order == given; });
  if (info == infos.end() && !open.qos) info = find_in([](const auto&) { return true; });
  const pubsub::OrderName order = info != infos.end() ? info->qos.order : given;
  const std::string key = open.topic + " " + std::string(order.view());
  if (const auto found = topics_.find(key); found != topics_.end()) {
    if (found->second->why_over().empty()) {
      if (!open.qos || *open.qos == found->second->topic().qos()) return found->second;
      why = "topic '" + open.topic + "' has " + describe_qos(found->second->topic().qos()) +
            "; this client gives " + describe_qos(*open.qos);
      return nullptr;
    }
    topics_.erase(found);
  }
  if (info == infos.end() && !open.qos) return nullptr;
  if (info == infos.end() && open.qos->ring_bytes > kMaxClientRingBytes) {
    why = "topic '" + open.topic + "': a client asks for rings of " +
          std::to_string(open.qos->ring_bytes) + " bytes; it can have " +
          std::to_string(kMaxClientRingBytes) + " (kMaxClientRingBytes)";
    return nullptr;
  }
  if (info != infos.end() && open.qos && !(*open.qos == info->qos)) {
    why = "topic '" + open.topic + "' has " + describe_qos(info->qos) + "; this client gives " +
          describe_qos(*open.qos);
    return nullptr;
  }
  try {
    auto topic = std::make_shared<RelayTopic>(participant_, open,
                                              info == infos.end() ? *open.qos : info->qos);
    topics_[key] = topic;
    return topic;
  } catch (const Error& error) {
    why = error.what();
    return nullptr;
  }
}

std::uint64_t RelayTopics::let_go(std::uint64_t now_ns) {
  std::uint64_t due_ns = UINT64_MAX;
  for (auto it = topics_.begin(); it != topics_.end();) {
    RelayTopic& topic = *it->second;
    if (it->second.use_count() > 1) {
      topic.unused_since_ns = 0;
    } else if (topic.unused_since_ns == 0) {
      topic.unused_since_ns = std::max<std::uint64_t>(now_ns, 1);
    }
    const bool over = topic.unused_since_ns != 0 && now_ns - topic.unused_since_ns >= kLingerNs;
    if (topic.unused_since_ns != 0 && !over)
      due_ns = std::min(due_ns, topic.unused_since_ns + kLingerNs);
    it = over ? topics_.erase(it) : std::next(it);
  }
  return due_ns;
}

}  // namespace dunlin::relay
