#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/call.hpp"
#include "store/format.hpp"

/// The growth of a home's index while all members use it: one chain after the other is split, under
/// its lock, in own memory (docs/store.md, STO-10). Entries stay where they are.
namespace dunlin::store {

struct State;

class Growth {
 public:
  explicit Growth(State& state);
  ~Growth();
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  /// Splits some chains if the index has too many keys; returns how many.
  std::size_t poll() { return stage_ == Stage::idle && keys() <= most_keys_ ? 0 : grow(); }

 private:
  enum class Stage : std::uint8_t { idle, lock, locked };

  /// A peer may have written anything, and a death may have left it wrong by one.
  [[nodiscard]] std::int64_t keys() const noexcept;
  void set_most_keys() noexcept;
  std::size_t grow();
  [[nodiscard]] bool has_room();
  [[nodiscard]] std::optional<remote::SlabBlock> allocate(std::uint32_t size_class);
  [[nodiscard]] bool add_extent();
  [[nodiscard]] bool lock();
  void split();
  void unlock(std::byte* main, std::uint64_t version) noexcept;

  State& state_;
  Stage stage_ = Stage::idle;
  std::int64_t most_keys_ = 0;  // of the index as it is
  const std::byte* keys_at_;
  std::uint64_t lock_word_ = 0;
  std::uint64_t before_ = 0;
  remote::SlabBlock extent_;  // that is to be linked
  bool has_extent_ = false;
  std::vector<std::uint64_t> buckets_;  // offsets of indirect headers, for upper halves
  std::size_t buckets_needed_ = 0;
  std::vector<std::byte*> moving_;  // slots, and what is in them
  std::vector<Slot> slots_;
  std::optional<std::uint32_t> asked_for_;  // size class
  Rest rest_;
  std::uint64_t not_before_ns_ = 0;
  Completion done_;
};

}  // namespace dunlin::store
