#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/status.hpp>

namespace dunlin {

/// A Key names a segment, at every member, as long as it exists; it may be sent to other processes
/// as its 64-bit value. No two segments of a space ever have the same key: a slot that is used
/// again has another generation.
struct Key {
  std::uint64_t value = 0;  // generation 32 bits, slot 20 bits, home 12 bits

  [[nodiscard]] static constexpr Key of(Rank home, std::uint32_t slot,
                                        std::uint32_t generation) noexcept {
    return {std::uint64_t{generation} << 32 | std::uint64_t{slot} << 12 | home};
  }
  /// The member that holds the segment.
  [[nodiscard]] constexpr Rank home() const noexcept { return value & 0xfff; }
  [[nodiscard]] constexpr std::uint32_t slot() const noexcept { return value >> 12 & 0xfffff; }
  [[nodiscard]] constexpr std::uint32_t generation() const noexcept {
    return static_cast<std::uint32_t>(value >> 32);
  }
  friend bool operator==(Key, Key) = default;
};

/// For get_version(): the latest version; `kLatestVersion - n` is the one of n puts before.
inline constexpr std::uint64_t kLatestVersion = UINT64_MAX - 1;

/// The promises of a segment's gets and puts; docs/segment.md has a table to choose from.
enum class Coherence : std::uint8_t {
  null,      // words are not torn
  read,      // gets exclude each other
  write,     // puts exclude each other; a get returns the latest put, whole, without a lock
  strict,    // gets and puts exclude each other: linearizable, and fair
  version,   // as write; a get transfers nothing if the caller has the current version
  temporal,  // as write; a copy of the whole may be used until it is `stale_ns` old
  delta      // as write; the last `versions` are kept, and a get never waits for a writer
};
[[nodiscard]] std::string_view name_of(Coherence coherence) noexcept;

/// The member that has a segment.
struct Placement {
  static constexpr Rank kInTurn = UINT32_MAX;
  static constexpr Rank kHere = UINT32_MAX - 1;
  Rank rank = kInTurn;

  [[nodiscard]] static constexpr Placement in_turn() noexcept { return {kInTurn}; }
  [[nodiscard]] static constexpr Placement here() noexcept { return {kHere}; }
  [[nodiscard]] static constexpr Placement on(Rank rank) noexcept { return {rank}; }
  /// Throws Error if no member of the fabric has this name.
  [[nodiscard]] static Placement on(const Fabric& fabric, const std::string& member);
};

struct SegmentSpec {
  std::size_t bytes = 0;  // zeroed at first
  Coherence coherence = Coherence::strict;
  Placement placement = {};
  std::string name = {};       // unique in the space, for find(); empty: no name
  std::uint64_t stale_ns = 0;  // temporal only: how old a copy may be, unless a get says it
  std::uint32_t versions = 0;  // delta only: how many versions are kept; at least 1
  std::uint32_t copies = 1;    // 2: no put that has ended is lost if one member dies
};

class SegmentPort;

/// The calls of a SegmentSpace.
enum class SegmentCall : std::uint8_t { none, allocate, release, find, get, put, lock, unlock };

/// How a call on a segment ended.
struct Outcome {
  remote::Status status = remote::Status::under_way;
  bool unchanged = false;  // get: the caller's version is current; nothing transferred
  bool recovered = false;  // the last holder of the lock died while it held it
  SegmentCall call = SegmentCall::none;
  std::uint64_t version = 0;  // that was got or put; puts that lock count up from 1
  Key key = {};               // also for allocate and find
  // What else the call was.
  const SegmentPort* space = nullptr;  // which must exist still when describe() is called
  std::uint64_t offset = 0;
  std::size_t bytes = 0;

  [[nodiscard]] bool ok() const noexcept { return status == remote::Status::ok; }
  /// A sentence with call, key, place and reason.
  [[nodiscard]] std::string describe() const;
};

/// The bytes of a value, to get into or to put from.
template <class T>
[[nodiscard]] std::span<std::byte> bytes_of(T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>, "a segment holds plain bytes");
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace dunlin
