#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/limits.hpp>

/// The memory that a daemon and one of its clients share (docs/formats/daemon.md): control words,
/// a ring of requests, a ring of replies, and a buffer for each slot. Neither side trusts the other
/// with anything but its own part: the daemon copies an entry before it looks at it.
namespace dunlin::attached {

/// Each word has one writer; two lines lie between them, because processors fetch lines in pairs.
struct Control {
  alignas(128) std::uint64_t daemon_rests;   // by the daemon, 1: the client rings after a request
  alignas(128) std::uint64_t client_sleeps;  // by the client, 1: the daemon rings after a reply
  std::uint64_t beats;                       // by the client: grows while it polls
};
static_assert(offsetof(Control, daemon_rests) == 0);
static_assert(offsetof(Control, client_sleeps) == 128);
static_assert(offsetof(Control, beats) == 136);

enum class Call : std::uint8_t {
  allocate = 1,
  release = 2,
  find = 3,
  get = 4,
  put = 5,
  lock = 6,
  try_lock = 7,
  unlock = 8,
  cancel = 9  // cancels the request with the number `argument`, if that is in the slot
};

inline constexpr std::size_t kRequestInline = 24;
inline constexpr std::size_t kReplyInline = 32;
inline constexpr std::uint8_t kIsInline = 1;    // the bytes are in the entry, not in the buffer
inline constexpr std::uint8_t kUnchanged = 2;   // in a reply
inline constexpr std::uint8_t kRecovered = 4;   // in a reply
inline constexpr std::uint8_t kOneVersion = 8;  // in a request: get_version, put_if_version
inline constexpr std::uint8_t kNoOlder = 16;    // in a request: get_no_older

/// `number` is written last: it is one more than the entry's index in the ring, counted from the
/// beginning.
struct Request {
  std::uint64_t number{};
  std::uint64_t key{};
  std::uint64_t offset{};    // for gets and puts
  std::uint64_t argument{};  // gets, puts: as the flags say; cancel: a request's number
  std::uint32_t bytes{};     // for gets and puts; find: length of the name
  std::uint16_t slot{};
  Call call = Call{};
  std::uint8_t flags{};
  std::array<std::byte, kRequestInline> data{};  // begins at offset modulo 8
};
static_assert(sizeof(Request) == kCacheLineBytes);
static_assert(offsetof(Request, key) == 8);
static_assert(offsetof(Request, offset) == 16);
static_assert(offsetof(Request, argument) == 24);
static_assert(offsetof(Request, bytes) == 32);
static_assert(offsetof(Request, slot) == 36);
static_assert(offsetof(Request, call) == 38);
static_assert(offsetof(Request, flags) == 39);
static_assert(offsetof(Request, data) == 40);

struct Reply {
  std::uint64_t number{};
  std::uint64_t key{};
  std::uint64_t version{};
  std::uint16_t slot{};
  std::uint8_t status{};  // a remote::Status
  std::uint8_t flags{};
  std::uint32_t unused{};
  std::array<std::byte, kReplyInline> data{};  // begins at offset modulo 8
};
static_assert(sizeof(Reply) == kCacheLineBytes);
static_assert(offsetof(Reply, key) == 8);
static_assert(offsetof(Reply, version) == 16);
static_assert(offsetof(Reply, slot) == 24);
static_assert(offsetof(Reply, status) == 26);
static_assert(offsetof(Reply, flags) == 27);
static_assert(offsetof(Reply, data) == 32);

/// The request of an allocation, which lies in its slot's buffer.
struct Wish {
  std::uint64_t bytes{};
  std::uint64_t stale_ns{};
  std::uint32_t coherence{};
  std::uint32_t versions{};
  std::uint32_t copies{};
  std::uint32_t place{};
  std::uint32_t name_bytes{};
  std::uint32_t unused{};
  std::array<char, kMaxSegmentNameBytes> name{};
};
static_assert(offsetof(Wish, stale_ns) == 8);
static_assert(offsetof(Wish, coherence) == 16);
static_assert(offsetof(Wish, versions) == 20);
static_assert(offsetof(Wish, copies) == 24);
static_assert(offsetof(Wish, place) == 28);
static_assert(offsetof(Wish, name_bytes) == 32);
static_assert(offsetof(Wish, name) == 40);
static_assert(sizeof(Wish) == 104);

/// The name for `find` also lies in its slot's buffer.
static_assert(sizeof(Wish) <= kMinAttachedTransferBytes);

/// Where everything in the memory is, which two numbers determine.
struct Layout {
  std::uint32_t slots = 0;           // a power of two
  std::uint64_t transfer_bytes = 0;  // a slot's buffer, in whole cache lines

  /// The entries of a ring. A slot has at most three unread requests: its own, one that cancels it,
  /// and one that cancelled the slot's request before. So neither ring is ever full.
  [[nodiscard]] constexpr std::uint64_t entries() const noexcept { return 4ULL * slots; }
  [[nodiscard]] constexpr std::uint64_t request_at(std::uint64_t place) const noexcept {
    return kRingsAt + place % entries() * sizeof(Request);
  }
  [[nodiscard]] constexpr std::uint64_t reply_at(std::uint64_t place) const noexcept {
    return kRingsAt + (entries() + place % entries()) * sizeof(Reply);
  }
  [[nodiscard]] constexpr std::uint64_t buffer_at(std::uint32_t slot) const noexcept {
    return kRingsAt + 2 * entries() * kCacheLineBytes + slot * transfer_bytes;
  }
  [[nodiscard]] constexpr std::uint64_t bytes() const noexcept { return buffer_at(slots); }
  /// Whether memory with these numbers is possible.
  [[nodiscard]] constexpr bool is_sound() const noexcept {
    return slots > 0 && slots <= kMaxAttachedOperations && (slots & (slots - 1)) == 0 &&
           transfer_bytes >= kMinAttachedTransferBytes &&
           transfer_bytes <= kMaxAttachedTransferBytes && transfer_bytes % kCacheLineBytes == 0;
  }

  static constexpr std::uint64_t kRingsAt = 4096;
};
static_assert(sizeof(Control) <= Layout::kRingsAt);
static_assert(Layout{.slots = 32, .transfer_bytes = 65'536}.buffer_at(1) == 4096 + 16'384 + 65'536,
              "docs/formats/daemon.md");

[[nodiscard]] inline Control& control_of(std::byte* memory) noexcept {
  return *reinterpret_cast<Control*>(memory);
}

/// An entry as the words of its line.
using Words = std::array<std::uint64_t, kCacheLineBytes / kWordBytes>;

/// Appends an entry to a ring: a reader that sees its number sees all of it.
template <class Entry>
void publish(std::byte* at, const Entry& entry) noexcept {
  auto* const there = reinterpret_cast<std::uint64_t*>(at);
  const auto words = std::bit_cast<Words>(entry);
  for (std::size_t i = 1; i < words.size(); ++i) memory::store(there[i], words[i]);
  memory::store(there[0], words[0]);
}

/// Copies the entry of this number if it has come; returns whether it has.
template <class Entry>
[[nodiscard]] bool take(Entry& entry, const std::byte* at, std::uint64_t number) noexcept {
  const auto* const there = reinterpret_cast<const std::uint64_t*>(at);
  Words words;
  words[0] = memory::load(there[0]);
  if (words[0] != number) return false;
  for (std::size_t i = 1; i < words.size(); ++i) words[i] = memory::load(there[i]);
  entry = std::bit_cast<Entry>(words);
  return true;
}

}  // namespace dunlin::attached
