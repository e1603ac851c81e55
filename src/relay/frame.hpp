#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/pubsub/qos.hpp>
#include <dunlin/pubsub/type_support.hpp>
#include <dunlin/relay/limits.hpp>

/// The frames between a relay and its clients (docs/formats/relay.md). Pure.
///
///  RLY-8  A frame of the other side is checked before it is used: its kind, its flags, and its
///         length before a byte of its body is awaited; then all of its fields.
namespace dunlin::relay {

using Bytes = std::span<const std::byte>;
using Buffer = std::vector<std::byte>;
using pubsub::ClientId;

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::string_view kMagic = "DUNLINRL";
static_assert(kMagic.size() == 8);

enum class FrameKind : std::uint8_t {
  hello = 1,
  open_writer = 2,
  open_reader = 3,
  close = 4,
  sample = 5,
  ping = 6,
  welcome = 65,
  opened = 66,
  refused = 67,
  acknowledged = 68,
  delivered = 69,
  pong = 70,
  goodbye = 71
};
inline constexpr std::uint8_t kXcdr = 1;      // flag of sample and delivered
inline constexpr std::uint8_t kDisposes = 2;  // flag of sample and delivered
inline constexpr std::uint8_t kHasQos = 1;    // flag of open_writer and open_reader

struct FrameHeader {
  std::uint32_t bytes = 0;  // length of the body
  FrameKind kind = FrameKind::hello;
  std::uint8_t flags = 0;
  std::uint16_t endpoint = 0;
};
static_assert(sizeof(FrameHeader) == 8 && offsetof(FrameHeader, kind) == 4);
static_assert(offsetof(FrameHeader, flags) == 5 && offsetof(FrameHeader, endpoint) == 6);
inline constexpr std::size_t kFrameHeaderBytes = sizeof(FrameHeader);
inline constexpr std::size_t kSampleHeaderBytes = 16;     // before the bytes of a client's sample
inline constexpr std::size_t kDeliveredHeaderBytes = 40;  // before the bytes of a reader's sample
inline constexpr std::size_t kMaxBodyBytes = kMaxSampleBytes + kDeliveredHeaderBytes;

enum class Side : std::uint8_t { client, relay };

struct Frame {
  FrameHeader header;
  Bytes body = {};
};

/// Finds the frames in the bytes that one side has sent.
class FrameParser {
 public:
  explicit FrameParser(Side from) : from_(from) {}
  /// The frame at the beginning of these bytes; none if the frame is not complete, or breaks the
  /// protocol: then mistake() says how, and no further frame is found.
  [[nodiscard]] std::optional<Frame> parse(Bytes bytes);
  [[nodiscard]] const std::string& mistake() const noexcept { return mistake_; }

 private:
  Side from_;
  std::string mistake_;
};

struct Hello {
  std::uint16_t version = kVersion;
  ClientId id = {};
};
/// The opening of a writer or reader; `after_...` and the rest of the second half are for readers.
struct Open {
  bool writes = false;
  std::string topic = {};
  std::string type_text = {};
  std::string type_name = {};
  std::optional<pubsub::TopicQos> qos = {};
  pubsub::Reliability reliability = {};
  pubsub::Durability durability = {};
  std::uint64_t after_beginning = 0;
  std::uint64_t after_position = 0;
};
struct ClientSample {
  std::uint64_t number = 0;
  std::uint64_t key_hash = 0;
  Bytes payload = {};
};
struct Welcome {
  std::uint16_t version = kVersion;
  std::uint32_t max_sample_bytes = kMaxSampleBytes;
  std::string name = {};
};
struct Opened {
  std::uint64_t number = 0;
  std::uint64_t beginning = 0;
  std::uint64_t position = 0;
  pubsub::Level level = pubsub::Level::atomic;
  std::string type_text = {};
};
struct Delivered {
  std::uint64_t position = 0;
  std::uint64_t sequence = 0;
  std::uint64_t source_ns = 0;
  std::uint64_t key_hash = 0;
  std::uint32_t skipped = 0;
  std::uint32_t passed = 0;
  Bytes payload = {};
};

// These return none if the body is invalid.
[[nodiscard]] std::optional<Hello> read_hello(const Frame& frame);
[[nodiscard]] std::optional<Open> read_open(const Frame& frame);
[[nodiscard]] std::optional<ClientSample> read_sample(const Frame& frame);
[[nodiscard]] std::optional<Welcome> read_welcome(const Frame& frame);
[[nodiscard]] std::optional<Opened> read_opened(const Frame& frame);
[[nodiscard]] std::optional<std::uint64_t> read_acknowledged(const Frame& frame);
[[nodiscard]] std::optional<Delivered> read_delivered(const Frame& frame);
// The body of refused and goodbye.
[[nodiscard]] std::optional<std::string> read_sentence(const Frame& frame);

// These append a frame to what is to be sent.
void add_hello(Buffer& to, const Hello& hello);
void add_open(Buffer& to, std::uint16_t endpoint, const Open& open);
void add_sample(Buffer& to, std::uint16_t endpoint, std::uint8_t flags, const ClientSample& sample);
void add_welcome(Buffer& to, const Welcome& welcome);
void add_opened(Buffer& to, std::uint16_t endpoint, const Opened& opened);
void add_acknowledged(Buffer& to, std::uint16_t endpoint, std::uint64_t number);
void add_delivered(Buffer& to, std::uint16_t endpoint, std::uint8_t flags, const Delivered& sample);
/// Appends a `refused` or `goodbye`. A sentence that is too long loses its end.
void add_sentence(Buffer& to, FrameKind kind, std::uint16_t endpoint, std::string_view sentence);
/// Appends a frame of a kind without a body.
void add_empty(Buffer& to, FrameKind kind, std::uint16_t endpoint = 0);

}  // namespace dunlin::relay
