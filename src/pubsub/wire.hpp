#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/limits.hpp>
#include <dunlin/pubsub/core.hpp>

#include "fabric/bytes.hpp"

/// The messages of a topic (docs/formats/pubsub.md). A member checks each message: a message that
/// it cannot read counts as malformed, and is skipped.
namespace dunlin::pubsub {

enum class Kind : std::uint8_t {
  sample = 1,
  dispose = 2,
  unregister = 3,
  alive = 4,  // asserts the liveliness of a writer
  announce_writer = 16,
  announce_reader = 17,
  withdraw_writer = 18,
  withdraw_reader = 19,
  declare_topic = 20  // declares a topic of an order
};
[[nodiscard]] constexpr bool is_data(Kind kind) noexcept {
  return kind >= Kind::sample && kind <= Kind::unregister;
}

inline constexpr std::uint8_t kXcdrFlag = 1;    // the payload is XCDR instead of plain
inline constexpr std::uint8_t kClientFlag = 2;  // samples: a ClientStamp stands before the payload

struct MessageHeader {
  Kind kind = Kind::sample;
  std::uint8_t flags = 0;
  std::uint16_t endpoint = 0;   // the endpoint's number at the sending member
  std::uint32_t topic = 0;      // the topic's number in the order; 0: it has no order
  std::uint64_t sequence = 0;   // the writer's number of the sample, from 1 on
  std::uint64_t source_ns = 0;  // the time by the writer's clock
  std::uint64_t key_hash = 0;   // for keyed topics: equal for equal keys
};
static_assert(sizeof(MessageHeader) == 32);
static_assert(offsetof(MessageHeader, endpoint) == 2);
static_assert(offsetof(MessageHeader, topic) == 4);
static_assert(offsetof(MessageHeader, sequence) == 8);
static_assert(offsetof(MessageHeader, source_ns) == 16);
static_assert(offsetof(MessageHeader, key_hash) == 24);
inline constexpr std::size_t kHeaderBytes = sizeof(MessageHeader);

inline constexpr std::size_t kStampBytes = sizeof(ClientStamp);
static_assert(kStampBytes == 24 && offsetof(ClientStamp, number) == 16);
static_assert(kStampBytes % kWordBytes == 0, "a payload behind it is aligned, too");
/// Reads the stamp; none if the payload is too short, or the number is 0.
[[nodiscard]] std::optional<ClientStamp> read_stamp(std::span<const std::byte> payload) noexcept;

/// Reads the header; none if these bytes are no message of this release.
[[nodiscard]] std::optional<MessageHeader> read_header(std::span<const std::byte> message) noexcept;

/// An endpoint's announcement of itself.
struct Announcement {
  bool writes = false;
  std::string type_text = {};
  DataWriterQos writer_qos = {};
  DataReaderQos reader_qos = {};  // what the reader requests of writers
};
void write(Writer& writer, const Announcement& announcement);
[[nodiscard]] Announcement read_announcement(Reader& reader, bool writes);
[[nodiscard]] std::vector<std::byte> make_message(const MessageHeader& header,
                                                  const Announcement* announcement);

}  // namespace dunlin::pubsub
