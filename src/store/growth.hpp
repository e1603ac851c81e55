#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <dunlin/remote.hpp>

#include "store/format.hpp"
#include "store/work.hpp"

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
  std::size_t poll();

 private:
  enum class Stage : std::uint8_t { idle, lock, locked };

  [[nodiscard]] bool is_wanted() const noexcept;
  [[nodiscard]] bool has_room();
  [[nodiscard]] bool add_segment();
  [[nodiscard]] bool lock();
  void split();
  void unlock(std::byte* main, std::uint64_t version) noexcept;

  State& state_;
  Stage stage_ = Stage::idle;
  std::uint64_t lock_word_ = 0;
  std::uint64_t before_ = 0;
  remote::SlabBlock segment_;  // that is to be linked
  bool has_segment_ = false;
  std::vector<std::uint64_t> buckets_;  // offsets of indirect headers, for upper halves
  std::size_t buckets_needed_ = 0;
  std::vector<std::byte*> moving_;  // slots, and what is in them
  std::vector<Slot> slots_;
  Rest rest_;
  std::uint64_t not_before_ns_ = 0;
  Completion done_;
};

}  // namespace dunlin::store
