#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <dunlin/remote.hpp>
#include <dunlin/store/operation.hpp>

#include "store/call.hpp"

namespace dunlin::store {

/// What a call does to a key, once the key's chain is locked.
enum class Kind : std::uint8_t {
  put,
  insert,
  replace,
  erase,
  compare_and_set,
  update,
  expire,
  evict,      // erases the key, if its entry is in a given block
  reap,       // erases the key, if it has expired
  restore,    // makes the copy for the member that gets one, if the key is there
  copy_put,   // the part of a put at a member that has a copy, or gets one
  copy_erase  // the part of an erase there
};

/// How often a call asks for the lock of a chain before it gives way. The pauses in between get
/// longer: 64 attempts take some milliseconds.
struct Patience {
  static constexpr std::uint32_t kForever = UINT32_MAX;
  std::uint32_t attempts = kForever;
  /// At members of lower ranks: others there may wait for a lock that the caller holds. Most of
  /// those that wait in a circle give way so.
  Rank lower_than = 0;
  std::uint32_t attempts_at_lower = kForever;
  [[nodiscard]] std::uint32_t attempts_at(Rank home) const noexcept {
    return home < lower_than ? attempts_at_lower : attempts;
  }
};
inline constexpr std::uint32_t kManyAttempts = 64;

/// A change that is asked for.
struct Change {
  Kind kind = Kind::put;
  std::size_t value_bytes = 0;  // which are in the batch's entry already, but for an update
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t version = 0;  // that is expected; or, of a copy, that the key gets
  StoreUpdater updater = nullptr;
  Location victim = {};    // evict
  Rank first = 0;          // of a copy: the owner whose change it is
  Patience patience = {};  // of a copy

  [[nodiscard]] bool is_copy() const noexcept {
    return kind == Kind::copy_put || kind == Kind::copy_erase;
  }
  /// STO-V4: the holder of a lock may wait for a place in the queue that evictions fill, or for
  /// room.
  [[nodiscard]] bool waits_for_lock() const noexcept {
    return kind != Kind::evict && kind != Kind::reap;
  }
  [[nodiscard]] Patience how_patient() const noexcept {
    return is_copy() ? patience : Patience{.attempts = waits_for_lock() ? Patience::kForever : 1};
  }
  [[nodiscard]] bool needs_value() const noexcept {
    return kind == Kind::insert || kind == Kind::replace || kind == Kind::compare_and_set ||
           kind == Kind::update || kind == Kind::expire || kind == Kind::restore;
  }
};

/// What becomes of a key whose chain is locked.
enum class Deed : std::uint8_t {
  keep,
  put,
  erase,
  copy,  // to the member that gets a copy
  align  // to all members that have a copy, or get one: what they have may differ
};

/// What a change does under the lock of its chain.
struct ChangePlan {
  Deed deed = Deed::keep;
  std::uint64_t version = 0;  // that the key gets
  std::size_t bytes = 0;      // of an entry that needs a block
};

/// A key as another member is to have it.
struct Copy {
  Rank to = 0;
  Rank first = 0;  // the owner whose change it is
  std::span<const std::byte> key;
  std::span<const std::byte> value = {};
  bool erases = false;
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t version = 0;
  Patience patience = {};
};

/// A chain, for a member that copies keys or empties slots.
struct ChainCall {
  Rank to = 0;
  std::uint64_t position = 0;  // of the chain
  std::uint64_t lock_word = 0;
  std::uint64_t version = 0;
};

struct ChainResult {
  remote::Status status = remote::Status::ok;
  std::uint64_t below = 0;  // the first position behind the chain
};

/// A chain that a get of a transaction went through.
struct SeenChain {
  Rank home = 0;
  Place main;
  std::uint64_t version = 0;
  std::uint64_t hash = 0;   // of the key
  std::uint64_t route = 0;  // of its slot
};

}  // namespace dunlin::store
