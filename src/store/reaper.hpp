#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <dunlin/remote/slab_pool.hpp>
#include <dunlin/store/operation.hpp>

#include "store/call.hpp"

/// A home's erasing of its own keys whose time to live has ended (docs/store.md, Expiry). It goes
/// through all chains within a second, and faster while it finds that many keys have expired, or
/// while a member finds no room. A chain whose version has not changed is not looked at before the
/// first of its keys expires.
namespace dunlin::store {

struct State;

class Reaper {
 public:
  explicit Reaper(State& state);
  ~Reaper();

  /// To be called every 10 ms: the next part of all chains is to be looked at.
  void look() noexcept;
  /// Looks at some of the chains that are to be looked at; returns how many keys it erases.
  std::size_t poll();
  /// A member finds no room: all chains are looked at, unless they were a moment ago.
  [[nodiscard]] remote::Freed free_blocks() noexcept;

 private:
  static constexpr std::size_t kOperations = 16;
  /// What is known of a chain while it has this version.
  struct Known {
    std::uint64_t version = UINT64_MAX;  // no chain has it
    std::uint64_t expires_at_ns = 0;     // the first of its keys
  };

  [[nodiscard]] StoreOperation* idle();
  void look_at_chain(std::uint64_t number, std::uint64_t now);
  [[nodiscard]] bool reap(const std::byte* entry, std::size_t block_bytes);
  void end_hurry(std::uint64_t now) noexcept;

  State& state_;
  std::vector<Known> known_;  // by main header
  std::array<StoreOperation, kOperations> operations_;
  std::uint64_t at_ = 0;       // the next main header, in rounds
  std::uint64_t to_look_ = 0;  // main headers
  // Entries that were seen, and that had expired, since to_look_ was 0.
  std::uint64_t seen_ = 0;
  std::uint64_t expired_ = 0;
  std::size_t begun_ = 0;     // in this poll
  std::uint64_t erased_ = 0;  // since a member that finds no room was told last
  // While such a member waits, all chains are looked at once: so many are left.
  std::uint64_t hurried_ = 0;
  std::uint64_t hurried_at_ns_ = 0;
  std::uint64_t hurry_ended_at_ns_ = 0;
  std::uint64_t fresh_until_ns_ = 0;
  Image head_;
};

}  // namespace dunlin::store
