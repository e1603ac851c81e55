#include "store/census.hpp"

#include <algorithm>
#include <bit>

#include <dunlin/fabric/memory.hpp>

#include "store/state.hpp"

namespace dunlin::store {

namespace {

/// A store of 64 MB is counted within a second, in 20 to 30 us of every 10 ms.
constexpr std::uint64_t kHeadersAtOnce = 512;
constexpr std::uint32_t kSlabsAtOnce = 64;

[[nodiscard]] std::uint64_t load_at(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}

}  // namespace

void Census::count_piece(const State& state) noexcept {
  count_headers(state);
  count_slabs(state);
}

void Census::count_headers(const State& state) noexcept {
  const std::uint64_t end = std::min(next_header_ + kHeadersAtOnce, state.main_headers());
  for (; next_header_ < end; ++next_header_) {
    const std::byte* const main = state.own_main(next_header_);
    for (std::size_t i = 0; i < kSlots; ++i)
      if (load_at(main + i * kSlotBytes + kWordBytes) != 0) ++slots_so_far_.used;
    if (load_at(main + kLockAt) != 0) ++slots_so_far_.locked_chains;
  }
  if (next_header_ < state.main_headers()) return;
  slots_ = slots_so_far_;
  slots_so_far_ = {};
  next_header_ = 0;
}

void Census::count_slabs(const State& state) noexcept {
  const std::uint32_t small = state.small->slabs();
  const std::uint32_t all = small + state.large->slabs();
  const std::uint32_t end = std::min(next_slab_ + kSlabsAtOnce, all);
  for (; next_slab_ < end; ++next_slab_) {
    const bool is_small = next_slab_ < small;
    count_slab(is_small ? *state.small : *state.large, next_slab_ - (is_small ? 0 : small),
               is_small);
  }
  if (next_slab_ < all) return;
  memory_ = memory_so_far_;
  memory_so_far_ = {};
  next_slab_ = 0;
}

void Census::count_slab(const remote::SlabPool& pool, std::uint32_t slab, bool is_small) noexcept {
  const remote::SlabHolder holder = pool.holder(slab);
  if (holder.is_withheld) return;
  memory_so_far_.bytes += pool.slab_bytes();
  if (!holder.is_held) return;
  memory_so_far_.held += pool.slab_bytes();
  std::uint64_t blocks = 0;
  for (std::size_t word = 0; word < pool.bit_words(); ++word)
    blocks += static_cast<std::uint64_t>(std::popcount(pool.live_bits(slab, word)));
  const std::size_t block_bytes = pool.bytes_of(holder.size_class);
  const std::uint64_t most = pool.slab_bytes() / block_bytes;
  blocks = std::min(blocks, most);  // the words are other members' to write
  memory_so_far_.used += blocks * block_bytes;
  if (!is_small || holder.size_class != kIndirectClass) return;
  memory_so_far_.indirect_headers += blocks;
  memory_so_far_.indirect_headers_free += most - blocks;
}

}  // namespace dunlin::store
