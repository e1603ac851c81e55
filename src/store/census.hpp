#pragma once

#include <cstdint>

namespace dunlin::remote {
class SlabPool;
}

namespace dunlin::store {

struct State;

/// A Census counts the own part piece by piece, a bounded piece at a time, however large the part
/// is. It reports what it counted in its last complete pass.
class Census {
 public:
  struct Slots {
    std::uint64_t used = 0;
    std::uint64_t locked_chains = 0;
  };
  struct Memory {
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;
    std::uint64_t held = 0;
    std::uint64_t indirect_headers = 0;
    std::uint64_t indirect_headers_free = 0;
  };
  void count_piece(const State& state) noexcept;
  [[nodiscard]] const Slots& slots() const noexcept { return slots_; }
  [[nodiscard]] const Memory& memory() const noexcept { return memory_; }

 private:
  void count_headers(const State& state) noexcept;
  void count_slabs(const State& state) noexcept;
  void count_slab(const remote::SlabPool& pool, std::uint32_t slab, bool is_small) noexcept;

  std::uint64_t next_header_ = 0;
  std::uint32_t next_slab_ = 0;  // of the small ones, and then the large ones
  Slots slots_;
  Slots slots_so_far_;
  Memory memory_;
  Memory memory_so_far_;
};

}  // namespace dunlin::store
