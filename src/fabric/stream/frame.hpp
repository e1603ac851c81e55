#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/limits.hpp>

#include "fabric/stream/device_operations.hpp"

/// The frames of a stream between two members, a batch of entries each. Pure: bytes in, entries
/// out, and back. docs/formats/stream.md describes every byte.
///
///     FrameReader reader(frame);
///     Entry entry;
///     while (reader.next(entry)) apply(entry);
///     if (reader.garbage()) fail();
///
/// An entry that next() returns keeps to its kind's rules: no flag, field or length that the kind
/// does not have, its payload inside the frame. Facts that only the receiver knows (which regions
/// there are, how long they are, which tickets are open) are not checked here.
namespace dunlin::stream {

enum class EntryKind : std::uint8_t {
  hello = 1,
  put,
  write,
  read,
  bytes,
  fetch_add,
  compare_swap,
  former,
  message,
  heard,
  announce,
  withdraw,
  placed,
  beat,
  leave,
  let_go,
  dozing,
  noted
};

inline constexpr std::uint8_t kAsks = 1;    // asks for `placed`; atomics: for `former`
inline constexpr std::uint8_t kGone = 2;    // the region was withdrawn before
inline constexpr std::uint8_t kBehind = 4;  // a put's bytes are behind the frame

/// The fixed part of an entry, as it travels. A field that a kind does not use is zero.
struct EntryHead {
  EntryKind kind{};
  std::uint8_t flags = 0;
  std::uint16_t channel = 0;
  std::uint32_t bytes = 0;  // length of the payload; read: how many are wanted
  std::uint32_t region = 0;
  std::uint32_t ticket = 0;
  std::uint64_t value = 0;  // an offset, a count, a former value or a size, as the kind has it
};
static_assert(sizeof(EntryHead) == 24);
static_assert(offsetof(EntryHead, bytes) == 4 && offsetof(EntryHead, region) == 8);
static_assert(offsetof(EntryHead, ticket) == 12 && offsetof(EntryHead, value) == 16);
static_assert(std::endian::native == std::endian::little, "frames are little-endian");

struct Entry {
  EntryHead head;
  const std::byte* payload = nullptr;  // head.bytes long; null for a read, and with kBehind
  [[nodiscard]] std::span<const std::byte> content() const noexcept {
    return {payload, payload == nullptr ? 0 : head.bytes};
  }
};

inline constexpr std::size_t kMaxFrameBytes = 65'536;
/// Holds the longest entry that cannot be cut: an announcement.
inline constexpr std::size_t kMinFrameBytes = 32'768;

[[nodiscard]] constexpr std::size_t whole_words(std::size_t bytes) noexcept {
  return round_up(bytes, kWordBytes);
}

/// Where the payload starts in its first word: words keep their alignment, so that they can be
/// copied whole.
[[nodiscard]] constexpr std::size_t lead_of(EntryKind kind, std::uint64_t value) noexcept {
  return kind == EntryKind::write || kind == EntryKind::bytes ? value % kWordBytes : 0;
}

[[nodiscard]] constexpr std::size_t entry_bytes(const EntryHead& head) noexcept {
  if (head.kind == EntryKind::read || (head.flags & kBehind) != 0) return sizeof(EntryHead);
  return sizeof(EntryHead) + whole_words(lead_of(head.kind, head.value) + head.bytes);
}

/// Writes the entry's head, and zeroes around its payload, which the caller fills: returns where.
/// Requires room for entry_bytes(head), and `at` on a whole word.
[[gnu::always_inline]] inline std::byte* begin_entry(std::byte* at,
                                                     const EntryHead& head) noexcept {
  std::memcpy(at, &head, sizeof head);
  const std::size_t bytes = entry_bytes(head);
  const std::uint64_t zero = 0;
  std::byte* payload = at + sizeof head;
  if (bytes > sizeof head) {
    std::memcpy(payload, &zero, sizeof zero);
    std::memcpy(at + bytes - sizeof zero, &zero, sizeof zero);
  }
  return payload + lead_of(head.kind, head.value);
}

/// Goes through a frame, from entry to entry. The frame begins on a whole word.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> frame) noexcept : rest_(frame) {
    garbage_ = frame.empty() || frame.size() > kMaxFrameBytes || frame.size() % kWordBytes != 0;
  }
  /// Reads the next entry. False at the end, and at the first entry that is invalid.
  [[nodiscard]] bool next(Entry& entry) noexcept;
  [[nodiscard]] bool garbage() const noexcept { return garbage_; }

 private:
  std::span<const std::byte> rest_;
  bool garbage_;
};

// --- payloads with a form of their own -----------------------------------------------------------

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kProofBytes = 32;
using Proof = std::array<std::byte, kProofBytes>;
/// Compares in a time that does not depend on where the two differ.
[[nodiscard]] bool same_proof(const Proof& one, const Proof& other) noexcept;

/// The payload of `hello`.
struct Hello {
  std::array<char, 8> magic{'D', 'N', 'L', 'N', 'S', 'T', 'R', 'M'};
  std::uint32_t version = kProtocolVersion;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t silence_timeout_ms = 0;
  Proof proof{};
};
static_assert(sizeof(Hello) == 56);

/// The payload of `announce`; the region's number and size are in the head.
struct Announcement {
  std::uint64_t generation = 0;
  std::uint64_t layout_hash = 0;
  Key key = {};  // for the peers' devices
  std::string_view name = {};
  std::string_view layout_text = {};

  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Requires room for bytes().
  void encode(std::byte* to) const noexcept;
};

/// Decodes a payload; none if the lengths do not fit, or a name is empty, too long or not
/// printable.
[[nodiscard]] std::optional<Announcement> decode_announcement(
    std::span<const std::byte> payload) noexcept;

}  // namespace dunlin::stream
