#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
  evict,       // erases the key, if its entry is in a given block
  reap,        // erases the key, if it has expired
  restore,     // makes a second copy, if the key is there
  copy_put,    // the part of a put at the second home
  copy_erase,  // the part of an erase at the second home
  drop_stray   // erases a key that the chain's first home does not have
};

/// How long a call waits for the lock of a chain.
struct Patience {
  bool waits = true;
  /// At homes of lower ranks it waits for a moment only: others there may wait for a lock that the
  /// caller holds.
  Rank gives_way_below = 0;
};

/// A change that is asked for.
struct Change {
  Kind kind = Kind::put;
  std::size_t value_bytes = 0;  // which are in the batch's entry already, but for an update
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t version = 0;  // that is expected; or, of a copy, that the key gets
  StoreUpdater updater = nullptr;
  Location victim = {};         // evict
  Rank first = 0;               // of a copy: the home whose change it is
  std::uint64_t lock_word = 0;  // of a copy: that of the caller, who holds the lock; 0: none

  [[nodiscard]] bool is_copy() const noexcept {
    return kind == Kind::copy_put || kind == Kind::copy_erase || kind == Kind::drop_stray;
  }
  /// STO-V4: the holder of a lock may wait for a place in the queue that evictions fill, or for
  /// room.
  [[nodiscard]] bool waits_for_lock() const noexcept {
    return kind != Kind::evict && kind != Kind::reap;
  }
  [[nodiscard]] Patience patience() const noexcept {
    return {.waits = waits_for_lock(), .gives_way_below = is_copy() ? first : 0};
  }
  [[nodiscard]] bool needs_value() const noexcept {
    return kind == Kind::insert || kind == Kind::replace || kind == Kind::compare_and_set ||
           kind == Kind::update || kind == Kind::expire || kind == Kind::restore;
  }
};

/// What becomes of a key whose chain is locked.
enum class Deed : std::uint8_t { keep, put, erase, copy };

/// A key as another home is to have it.
struct Copy {
  Rank to = 0;
  Rank first = 0;  // the home whose change it is
  std::span<const std::byte> key;
  std::span<const std::byte> value = {};
  bool erases = false;
  std::uint64_t ttl_ns = kNoExpiry;
  std::uint64_t version = 0;
  std::uint64_t lock_word = 0;  // of the caller, who holds the lock of the chain there; 0: none
};

/// A chain at a home that gets keys, for the one who moves them.
struct ChainCall {
  Rank to = 0;
  Rank first = 0;              // the keys' first home
  std::uint64_t position = 0;  // of the chain
  std::uint64_t lock_word = 0;
  bool is_locked = false;  // with that word
  std::uint64_t version = 0;
};

struct ChainResult {
  remote::Status status = remote::Status::ok;
  bool changed = false;
  std::uint64_t below = 0;  // the first position behind the chain
};

/// A chain that a get of a transaction went through.
struct SeenChain {
  Rank home = 0;
  Place main;
  std::uint64_t version = 0;
  std::uint64_t hash = 0;  // of the key
};

}  // namespace dunlin::store
