#include "relay/frame.hpp"

#include <algorithm>
#include <cstring>

#include "fabric/bytes.hpp"

namespace dunlin::relay {
namespace {

constexpr std::size_t kMaxOpenBytes =
    4 * 3 + pubsub::kMaxTopicNameBytes + 2 * pubsub::kMaxTypeTextBytes + 24 + 44;

/// The rule for valid frames of one kind.
struct Rule {
  FrameKind kind;
  Side from;
  std::uint8_t flags;
  std::size_t min_bytes;
  std::size_t max_bytes;
};
constexpr Rule kRules[] = {
    {FrameKind::hello, Side::client, 0, 32, 32},
    {FrameKind::open_writer, Side::client, kHasQos, 12, kMaxOpenBytes},
    {FrameKind::open_reader, Side::client, kHasQos, 36, kMaxOpenBytes},
    {FrameKind::close, Side::client, 0, 0, 0},
    {FrameKind::sample, Side::client, kXcdr | kDisposes, kSampleHeaderBytes,
     kSampleHeaderBytes + kMaxSampleBytes},
    {FrameKind::ping, Side::client, 0, 0, 0},
    {FrameKind::welcome, Side::relay, 0, 12, 12 + 256},
    {FrameKind::opened, Side::relay, 0, 32, 32 + pubsub::kMaxTypeTextBytes},
    {FrameKind::refused, Side::relay, 0, 4, 4 + kMaxSentenceBytes},
    {FrameKind::acknowledged, Side::relay, 0, 8, 8},
    {FrameKind::delivered, Side::relay, kXcdr | kDisposes, kDeliveredHeaderBytes,
     kDeliveredHeaderBytes + kMaxSampleBytes},
    {FrameKind::pong, Side::relay, 0, 0, 0},
    {FrameKind::goodbye, Side::relay, 0, 4, 4 + kMaxSentenceBytes},
};

const Rule* find_rule(FrameKind kind, Side from) noexcept {
  const auto* const found = std::ranges::find_if(
      kRules, [&](const Rule& rule) { return rule.kind == kind && rule.from == from; });
  return found == std::end(kRules) ? nullptr : found;
}

/// A frame that is being written; its length is filled in at the end.
class Begun {
 public:
  Begun(Buffer& to, FrameKind kind, std::uint16_t endpoint, std::uint8_t flags = 0)
      : to_(to), begin_(to.size()) {
    const FrameHeader header{.kind = kind, .flags = flags, .endpoint = endpoint};
    Writer(to_).bytes(std::as_bytes(std::span(&header, 1)));
  }
  ~Begun() {
    const auto bytes = static_cast<std::uint32_t>(to_.size() - begin_ - kFrameHeaderBytes);
    std::memcpy(to_.data() + begin_, &bytes, sizeof bytes);
  }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

 private:
  Buffer& to_;
  std::size_t begin_;
};

template <class Enum>
bool take_enum(Reader& from, Enum& to, Enum most) {
  const std::uint32_t value = from.u32();
  to = static_cast<Enum>(value);
  return value <= static_cast<std::uint32_t>(most);
}

bool at_end(Reader& from) { return from.good() && from.rest().empty(); }

pubsub::TopicQos take_qos(Reader& from, bool& good) {
  pubsub::TopicQos qos;
  good &= take_enum(from, qos.level, pubsub::Level::logged);
  const std::uint32_t depth = from.u32();
  qos.history = depth == 0 ? pubsub::History::keep_all() : pubsub::History::keep_last(depth);
  qos.max_samples = from.u32();
  qos.ring_bytes = from.u64();
  qos.max_bytes = from.u64();
  qos.max_age_ns = from.u64();
  qos.log_trim_bytes = from.u64();
  qos.order = from.text();
  return qos;
}

}  // namespace

std::optional<Frame> FrameParser::parse(Bytes bytes) {
  if (!mistake_.empty() || bytes.size() < kFrameHeaderBytes) return std::nullopt;
  Frame frame;
  std::memcpy(&frame.header, bytes.data(), kFrameHeaderBytes);
  const FrameHeader& header = frame.header;
  const auto number = std::to_string(static_cast<unsigned>(header.kind));
  const Rule* const rule = find_rule(header.kind, from_);
  if (rule == nullptr)
    mistake_ = "a frame of kind " + number + ", which this side does not send";
  else if ((header.flags & ~unsigned{rule->flags}) != 0)
    mistake_ = "a frame of kind " + number + " with the flags " + std::to_string(header.flags);
  else if (header.bytes < rule->min_bytes || header.bytes > rule->max_bytes)
    mistake_ = "a frame of kind " + number + " with a body of " + std::to_string(header.bytes) +
               " bytes; it has " + std::to_string(rule->min_bytes) + " to " +
               std::to_string(rule->max_bytes);
  else if (header.endpoint >= kMaxEndpoints)
    mistake_ = "a frame of endpoint " + std::to_string(header.endpoint) + "; there are " +
               std::to_string(kMaxEndpoints) + " (kMaxEndpoints)";
  if (!mistake_.empty() || bytes.size() - kFrameHeaderBytes < header.bytes) return std::nullopt;
  frame.body = bytes.subspan(kFrameHeaderBytes, header.bytes);
  return frame;
}

// --- read ----------------------------------------------------------------------------------------

std::optional<Hello> read_hello(const Frame& frame) {
  Reader from(frame.body);
  const auto magic = from.bytes(kMagic.size());
  const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
  Hello hello;
  hello.version = from.u16();
  const bool zero = from.u16() == 0 && from.u32() == 0;
  hello.id = from.array<sizeof(ClientId)>();
  if (text != kMagic || !zero || !at_end(from)) return std::nullopt;
  return hello;
}

std::optional<Open> read_open(const Frame& frame) {
  Reader from(frame.body);
  Open open{.writes = frame.header.kind == FrameKind::open_writer};
  open.topic = from.text();
  open.type_text = from.text();
  open.type_name = from.text();
  bool good = open.topic.size() <= pubsub::kMaxTopicNameBytes &&
              open.type_text.size() <= pubsub::kMaxTypeTextBytes &&
              open.type_name.size() <= kMaxSubgroupTextBytes;
  if (!open.writes) {
    good &= take_enum(from, open.reliability.kind, pubsub::Reliability::Kind::reliable);
    good &= take_enum(from, open.durability.kind, pubsub::Durability::Kind::persistent);
    open.after_beginning = from.u64();
    open.after_position = from.u64();
  }
  if ((frame.header.flags & kHasQos) != 0) open.qos = take_qos(from, good);
  if (!good || !at_end(from)) return std::nullopt;
  return open;
}

std::optional<ClientSample> read_sample(const Frame& frame) {
  Reader from(frame.body);
  const std::uint64_t number = from.u64();
  const std::uint64_t key_hash = from.u64();
  if (number == 0 || !from.good()) return std::nullopt;
  return ClientSample{.number = number, .key_hash = key_hash, .payload = from.rest()};
}

std::optional<Welcome> read_welcome(const Frame& frame) {
  Reader from(frame.body);
  Welcome welcome;
  welcome.version = from.u16();
  const bool zero = from.u16() == 0;
  welcome.max_sample_bytes = from.u32();
  welcome.name = from.text();
  if (!zero || !at_end(from)) return std::nullopt;
  return welcome;
}

std::optional<Opened> read_opened(const Frame& frame) {
  Reader from(frame.body);
  Opened opened;
  opened.number = from.u64();
  opened.beginning = from.u64();
  opened.position = from.u64();
  const bool good = take_enum(from, opened.level, pubsub::Level::logged);
  opened.type_text = from.text();
  if (!good || !at_end(from)) return std::nullopt;
  return opened;
}

std::optional<std::uint64_t> read_acknowledged(const Frame& frame) {
  Reader from(frame.body);
  const std::uint64_t number = from.u64();
  if (!at_end(from)) return std::nullopt;
  return number;
}

std::optional<Delivered> read_delivered(const Frame& frame) {
  Reader from(frame.body);
  Delivered sample;
  sample.position = from.u64();
  sample.sequence = from.u64();
  sample.source_ns = from.u64();
  sample.key_hash = from.u64();
  sample.skipped = from.u32();
  sample.passed = from.u32();
  if (!from.good()) return std::nullopt;
  sample.payload = from.rest();
  return sample;
}

std::optional<std::string> read_sentence(const Frame& frame) {
  Reader from(frame.body);
  std::string sentence = from.text();
  if (!at_end(from)) return std::nullopt;
  return sentence;
}

// --- write ---------------------------------------------------------------------------------------

void add_hello(Buffer& to, const Hello& hello) {
  const Begun frame(to, FrameKind::hello, 0);
  Writer writer(to);
  writer.text(kMagic, kMagic.size());
  writer.u16(hello.version);
  writer.u16(0);
  writer.u32(0);
  writer.bytes(hello.id);
}

void add_open(Buffer& to, std::uint16_t endpoint, const Open& open) {
  const Begun frame(to, open.writes ? FrameKind::open_writer : FrameKind::open_reader, endpoint,
                    open.qos ? kHasQos : std::uint8_t{0});
  Writer writer(to);
  writer.text(open.topic);
  writer.text(open.type_text);
  writer.text(open.type_name);
  if (!open.writes) {
    writer.u32(static_cast<std::uint32_t>(open.reliability.kind));
    writer.u32(static_cast<std::uint32_t>(open.durability.kind));
    writer.u64(open.after_beginning);
    writer.u64(open.after_position);
  }
  if (!open.qos) return;
  const bool keeps_all = open.qos->history.kind == pubsub::History::Kind::keep_all;
  writer.u32(static_cast<std::uint32_t>(open.qos->level));
  writer.u32(keeps_all ? 0 : open.qos->history.depth);
  writer.u32(open.qos->max_samples);
  writer.u64(open.qos->ring_bytes);
  writer.u64(open.qos->max_bytes);
  writer.u64(open.qos->max_age_ns);
  writer.u64(open.qos->log_trim_bytes);
  writer.text(open.qos->order.view());
}

void add_sample(Buffer& to, std::uint16_t endpoint, std::uint8_t flags,
                const ClientSample& sample) {
  const Begun frame(to, FrameKind::sample, endpoint, flags);
  Writer writer(to);
  writer.u64(sample.number);
  writer.u64(sample.key_hash);
  writer.bytes(sample.payload);
}

void add_welcome(Buffer& to, const Welcome& welcome) {
  const Begun frame(to, FrameKind::welcome, 0);
  Writer writer(to);
  writer.u16(welcome.version);
  writer.u16(0);
  writer.u32(welcome.max_sample_bytes);
  writer.text(welcome.name);
}

void add_opened(Buffer& to, std::uint16_t endpoint, const Opened& opened) {
  const Begun frame(to, FrameKind::opened, endpoint);
  Writer writer(to);
  writer.u64(opened.number);
  writer.u64(opened.beginning);
  writer.u64(opened.position);
  writer.u32(static_cast<std::uint32_t>(opened.level));
  writer.text(opened.type_text);
}

void add_acknowledged(Buffer& to, std::uint16_t endpoint, std::uint64_t number) {
  const Begun frame(to, FrameKind::acknowledged, endpoint);
  Writer(to).u64(number);
}

void add_delivered(Buffer& to, std::uint16_t endpoint, std::uint8_t flags,
                   const Delivered& sample) {
  const Begun frame(to, FrameKind::delivered, endpoint, flags);
  Writer writer(to);
  writer.u64(sample.position);
  writer.u64(sample.sequence);
  writer.u64(sample.source_ns);
  writer.u64(sample.key_hash);
  writer.u32(sample.skipped);
  writer.u32(sample.passed);
  writer.bytes(sample.payload);
}

void add_sentence(Buffer& to, FrameKind kind, std::uint16_t endpoint, std::string_view sentence) {
  const Begun frame(to, kind, endpoint);
  Writer(to).text(sentence.substr(0, kMaxSentenceBytes));
}

void add_empty(Buffer& to, FrameKind kind, std::uint16_t endpoint) {
  const Begun frame(to, kind, endpoint);
}

}  // namespace dunlin::relay
