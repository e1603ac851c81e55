#include "store/statistics_page.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include <dunlin/fabric/memory.hpp>

#include "store/room.hpp"
#include "store/state.hpp"

namespace dunlin::store {

namespace {

/// A store of 64 MB is counted within a second, in 20 to 30 us of every 10 ms.
constexpr std::uint64_t kHeadersAtOnce = 512;
constexpr std::uint32_t kSlabsAtOnce = 64;

[[nodiscard]] std::uint64_t load_at(const std::byte* at) noexcept {
  return memory::load(*reinterpret_cast<const std::uint64_t*>(at));
}

[[nodiscard]] store_page::Count counted_as(Kind kind) noexcept {
  switch (kind) {
    case Kind::get:
    case Kind::read:
      return store_page::Count::gets;
    case Kind::put:
    case Kind::insert:
    case Kind::replace:
    case Kind::compare_and_set:
    case Kind::update:
      return store_page::Count::puts;
    case Kind::erase:
      return store_page::Count::erases;
    case Kind::expire:
    case Kind::count:
    case Kind::evict:
    case Kind::reap:
    case Kind::hold:
    case Kind::hold_copy:
    case Kind::restore:
    case Kind::copy_put:
    case Kind::copy_erase:
    case Kind::raise_copy:
    case Kind::take_chain:
    case Kind::drop_stray:
    case Kind::leave:
    case Kind::take_keys:
      break;
  }
  return store_page::Count::others;
}

}  // namespace

// --- the own part --------------------------------------------------------------------------------

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

// --- the page ------------------------------------------------------------------------------------

StatisticsPage::StatisticsPage(Fabric& fabric, const std::string& store, bool is_home)
    : region_(fabric.publish(
          {.name = std::string(store_page::kPrefix) + store, .bytes = sizeof(store_page::Page)})),
      page_(reinterpret_cast<store_page::Page*>(region_.memory().data())) {
  page_->version = store_page::kVersion;
  page_->is_home = is_home ? 1 : 0;
  memory::store(page_->magic, store_page::kMagic);
}

void StatisticsPage::look_at_part(const State& state) noexcept {
  census_.count_piece(state);
  const std::byte* const header = state.index.memory().data();
  const Census::Memory& memory = census_.memory();
  const store_page::Part now{
      .keys = load_at(header + kKeysAt),
      .value_bytes = load_at(header + kValueBytesAt),
      .memory_bytes = memory.bytes,
      .used_bytes = memory.used,
      .limit_bytes = state.options.limit_bytes,
      .evictions = state.evictions(),
      .main_slots = state.main_headers() * kSlots,
      .main_slots_used = census_.slots().used,
      .indirect_headers = memory.indirect_headers,
      .indirect_headers_free = memory.indirect_headers_free,
      .locked_chains = census_.slots().locked_chains,
      .held_bytes = memory.held,
  };
  if (now == part_) return;
  part_ = now;
  schedule_.note_change();
}

void StatisticsPage::show(const State& state) noexcept {
  const std::uint64_t calls =
      std::accumulate(state.begun.begin(), state.begun.end(), state.seen.lock_waits);
  const std::uint64_t activity = (calls << 20) + state.progress.in_flight();
  // A store's calls are advanced elsewhere: this poll has done something if they have.
  const std::size_t done = activity == activity_ ? 0 : 1;
  activity_ = activity;
  if (!schedule_.is_due(done, [&] { return activity; })) return;
  const auto show_all = [](auto& to, const auto& from) {
    for (std::size_t i = 0; i < from.size(); ++i) memory::store(to[i], from[i]);
  };
  const StoreStatistics& seen = state.seen;
  std::array<std::uint64_t, store_page::kCounts> begun{};
  for (std::size_t kind = 0; kind < state.begun.size(); ++kind)
    begun[static_cast<std::size_t>(counted_as(static_cast<Kind>(kind)))] += state.begun[kind];
  show_all(page_->begun, begun);
  for (const auto& [to, from] : {std::pair{&page_->part.keys, part_.keys},
                                 {&page_->part.value_bytes, part_.value_bytes},
                                 {&page_->part.memory_bytes, part_.memory_bytes},
                                 {&page_->part.used_bytes, part_.used_bytes},
                                 {&page_->part.limit_bytes, part_.limit_bytes},
                                 {&page_->part.evictions, part_.evictions},
                                 {&page_->part.main_slots, part_.main_slots},
                                 {&page_->part.main_slots_used, part_.main_slots_used},
                                 {&page_->part.indirect_headers, part_.indirect_headers},
                                 {&page_->part.indirect_headers_free, part_.indirect_headers_free},
                                 {&page_->part.locked_chains, part_.locked_chains},
                                 {&page_->part.held_bytes, part_.held_bytes},
                                 {&page_->in_flight, std::uint64_t{state.progress.in_flight()}},
                                 {&page_->lock_waits, seen.lock_waits},
                                 {&page_->waits_for_room, seen.waits_for_room},
                                 {&page_->cache_slots, std::uint64_t{state.cache.slots()}},
                                 {&page_->cache_hits, seen.cache_hits},
                                 {&page_->cache_misses, seen.cache_misses},
                                 {&page_->cache_stale, seen.cache_stale}})
    memory::store(*to, from);
}

}  // namespace dunlin::store
