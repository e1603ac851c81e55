#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/remote/pool.hpp>

#include "remote/pool_steps.hpp"

/// A region is a row of chunks, each a line of words and then its blocks. The words are changed
/// through the fabric only, by the home, too.
///
///     0   holder: member + 1; 0: nobody
///     8   linked: a bit for each block
///     16  freed: a bit for each linked block that nobody finds any more; the chunk's holder takes
///         both bits away, and allocates the block again
namespace dunlin::remote {
namespace {

constexpr std::uint64_t kLinkedWord = 8;
constexpr std::uint64_t kFreedWord = 16;
constexpr std::uint32_t kMaxBlocksPerChunk = 64;

}  // namespace

struct ChunkPool::State {
  struct Chunk {
    std::uint32_t index = 0;
    std::uint64_t free = 0;  // a bit for each block that this process may allocate
  };

  /// A member's memory, as this process uses it, and the one step that is under way there.
  struct Home {
    enum class Doing : std::uint8_t { nothing, look, clear, take, adopt };
    Doing doing = Doing::nothing;
    bool posted_step = false;   // what is being done has been posted
    bool wanted = false;        // allocate() found nothing
    bool full = false;          //
    std::vector<Chunk> chunks;  // that this process holds
    std::size_t next = 0;       // of them: look there for freed blocks; then take another
    std::uint32_t taking = 0;   // the chunk that is tried
    std::uint64_t before = 0;
    std::array<std::uint64_t, 2> words{};  // linked, freed
    std::uint64_t bits = 0;
    std::size_t posted = 0;
    Completion done;
  };

  State(Progress& its_progress, ChunkPoolOptions its_options);
  [[nodiscard]] std::uint64_t stride() const noexcept {
    return kCacheLineBytes + std::uint64_t{options.blocks_per_chunk} * options.block_bytes;
  }
  [[nodiscard]] std::uint64_t all() const noexcept {
    return UINT64_MAX >> (kMaxBlocksPerChunk - options.blocks_per_chunk);
  }
  [[nodiscard]] std::uint64_t bit_of(Block block) const noexcept {
    const std::uint64_t within = block.offset % stride() - kCacheLineBytes;
    return std::uint64_t{1} << within / options.block_bytes;
  }
  [[nodiscard]] Operation add(Block block, std::uint64_t word) const noexcept {
    return fetch_add(block.home, region.id(), block.offset / stride() * stride() + word,
                     bit_of(block), nullptr);
  }
  [[nodiscard]] std::uint64_t own_word(std::uint32_t chunk, std::uint64_t which) const noexcept {
    return memory::load(
        *reinterpret_cast<const std::uint64_t*>(region.memory().data() + chunk * stride() + which));
  }
  bool begin_step(Rank rank, Home& home) noexcept;
  Refusal post(Home& home, const Operation& operation) noexcept;
  void end_step(Home& home);

  Progress& progress;
  Fabric& fabric;
  ChunkPoolOptions options;
  std::uint32_t own_chunks = 0;
  Region region;
  std::vector<Home> homes;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> orphans;  // own chunks, with their holder
};

ChunkPool::State::State(Progress& its_progress, ChunkPoolOptions its_options)
    : progress(its_progress),
      fabric(its_progress.fabric()),
      options(std::move(its_options)),
      homes(progress.size()) {
  if (options.block_bytes == 0 || options.blocks_per_chunk == 0 ||
      options.blocks_per_chunk > kMaxBlocksPerChunk)
    throw Error("chunk pool '" + options.name +
                "': blocks need at least 1 byte, and chunks 1 to 64 of them");
  options.block_bytes = round_up(options.block_bytes, kCacheLineBytes);
  own_chunks = static_cast<std::uint32_t>(options.own_bytes / stride());
  region =
      fabric.allocate({.name = "chunks:" + options.name,
                       .bytes = std::max<std::uint64_t>(own_chunks * stride(), kCacheLineBytes),
                       .layout_hash = options.block_bytes * 65 + options.blocks_per_chunk});
  // No member may take a line without a chunk behind it.
  if (own_chunks == 0)
    memory::store(*reinterpret_cast<std::uint64_t*>(region.memory().data()),
                  std::uint64_t{fabric.rank()} + 1);
  fabric.announce(region);
}

ChunkPool::ChunkPool(Progress& progress, ChunkPoolOptions options)
    : state_(std::make_unique<State>(progress, std::move(options))) {
  progress.check_is_founder("chunk pool '" + state_->options.name + "'");
  progress.add(*this);
}

ChunkPool::~ChunkPool() {
  state_->progress.remove(*this);
  for (State::Home& home : state_->homes) state_->fabric.abandon(home.done);
}

std::optional<Block> ChunkPool::allocate(Rank rank) noexcept {
  State& state = *state_;
  if (rank >= state.homes.size()) return std::nullopt;
  State::Home& home = state.homes[rank];
  for (State::Chunk& chunk : home.chunks) {
    if (chunk.free == 0) continue;
    const int which = std::countr_zero(chunk.free);
    chunk.free &= chunk.free - 1;
    return Block{rank, chunk.index * state.stride() + kCacheLineBytes +
                           static_cast<std::uint64_t>(which) * state.options.block_bytes};
  }
  if (home.wanted) return std::nullopt;  // under way
  home.full = false;
  home.wanted = true;
  state.fabric.wake_at(state.fabric.now_ns());
  return std::nullopt;
}

bool ChunkPool::full(Rank home) const noexcept { return state_->homes.at(home).full; }

void ChunkPool::cancel(Block block) noexcept {
  for (State::Chunk& chunk : state_->homes.at(block.home).chunks)
    if (chunk.index == block.offset / state_->stride()) chunk.free |= state_->bit_of(block);
}

Operation ChunkPool::link(Block block) const noexcept { return state_->add(block, kLinkedWord); }
Operation ChunkPool::free(Block block) const noexcept { return state_->add(block, kFreedWord); }
RegionId ChunkPool::region() const noexcept { return state_->region.id(); }
std::span<std::byte> ChunkPool::own_memory() const noexcept { return state_->region.memory(); }

PoolUse ChunkPool::use() const noexcept {
  const State& state = *state_;
  const std::uint64_t chunk_bytes = state.stride() - kCacheLineBytes;
  PoolUse use{.bytes = state.own_chunks * chunk_bytes};
  const auto count = [&](std::uint64_t free_blocks, std::uint64_t largest) {
    use.used += chunk_bytes - free_blocks * state.options.block_bytes;
    use.blocks += state.options.blocks_per_chunk - free_blocks;
    if (free_blocks > 0) use.largest_free = std::max<std::size_t>(use.largest_free, largest);
  };
  for (std::uint32_t i = 0; i < state.own_chunks; ++i) {
    std::uint64_t free = state.own_word(i, 0) == 0 ? state.options.blocks_per_chunk : 0;
    for (const State::Chunk& chunk : state.homes[state.fabric.rank()].chunks)
      if (chunk.index == i) free = static_cast<std::uint64_t>(std::popcount(chunk.free));
    count(free, state.options.block_bytes);
  }
  return use;
}

// --- getting chunks ------------------------------------------------------------------------------

std::size_t ChunkPool::poll_part() { return poll_steps(*state_); }

Refusal ChunkPool::State::post(Home& home, const Operation& operation) noexcept {
  return post_step(fabric, home, operation);
}

/// Returns whether it posted anything.
bool ChunkPool::State::begin_step(Rank rank, Home& home) noexcept {
  using Doing = Home::Doing;
  if (home.doing == Doing::clear) {  // `linked` first: a block that is not linked is not freed
    const std::uint64_t word = home.posted == 0 ? kLinkedWord : kFreedWord;
    return post(home, fetch_add(rank, region.id(), home.chunks[home.next].index * stride() + word,
                                0 - home.bits, nullptr)) == Refusal::none;
  }
  if (rank == fabric.rank() && !orphans.empty()) {
    const auto [chunk, holder] = orphans.back();
    if (post(home, compare_swap(rank, region.id(), chunk * stride(), holder, rank + 1,
                                &home.before)) != Refusal::none)
      return false;
    home.doing = Doing::adopt;
    return true;
  }
  if (!home.wanted) return false;
  if (home.next < home.chunks.size()) {
    const std::uint64_t line = home.chunks[home.next].index * stride();
    if (post(home, read(rank, region.id(), line + kLinkedWord, home.words.data(), 16)) !=
        Refusal::none)
      return false;
    home.doing = Doing::look;
    return true;
  }
  const Refusal refusal = post(home, compare_swap(rank, region.id(), home.taking * stride(), 0,
                                                  std::uint64_t{fabric.rank()} + 1, &home.before));
  if (refusal == Refusal::none) home.doing = Doing::take;
  if (refusal == Refusal::out_of_bounds) {
    home.full = true;
    home.wanted = false;
    home.taking = 0;
    home.next = 0;
  }
  return refusal == Refusal::none;
}

void ChunkPool::State::end_step(Home& home) {
  using Doing = Home::Doing;
  const Doing doing = std::exchange(home.doing, Doing::nothing);
  const auto satisfied = [&] {
    home.wanted = home.full = false;
    home.next = 0;
  };
  if (home.done.failed()) {
    satisfied();
    home.full = true;
    return;
  }
  switch (doing) {
    case Doing::look:
      home.bits = home.words[0] & home.words[1];
      home.posted = 0;
      if (home.bits != 0) {
        home.doing = Doing::clear;
      } else {
        ++home.next;
      }
      return;
    case Doing::clear:
      if (++home.posted < 2) {
        home.doing = Doing::clear;
        return;
      }
      home.chunks[home.next].free |= home.bits;
      return satisfied();
    case Doing::take:
      if (home.before == 0) {
        home.chunks.push_back({home.taking, all()});
        satisfied();
      }
      ++home.taking;
      return;
    case Doing::adopt: {
      const std::uint32_t chunk = orphans.back().first;
      orphans.pop_back();
      const std::uint64_t linked = own_word(chunk, kLinkedWord);
      // Its holder may have died between taking away the one bit and the other.
      home.bits = own_word(chunk, kFreedWord) & ~linked;
      home.chunks.push_back({chunk, all() & ~linked & ~home.bits});
      if (home.bits == 0) return;
      home.next = home.chunks.size() - 1;
      home.posted = 1;
      home.doing = Doing::clear;
      return;
    }
    case Doing::nothing:
      return;
  }
}

/// REM-15. A holder that is gone links nothing any more (REM-13), so blocks that it has not linked
/// by now are free.
void ChunkPool::members_changed() {
  State& state = *state_;
  for (Rank rank = 0; rank < state.homes.size(); ++rank) {
    if (state.progress.contains(rank)) continue;
    State::Home& home = state.homes[rank];
    state.fabric.abandon(home.done);
    home.doing = State::Home::Doing::nothing;
    home.posted_step = false;
    home.wanted = false;
    home.full = true;
    home.chunks.clear();
  }
  for (std::uint32_t i = 0; i < state.own_chunks; ++i) {
    const std::pair orphan(i, state.own_word(i, 0));
    if (orphan.second == 0 || state.progress.contains(static_cast<Rank>(orphan.second - 1)))
      continue;
    const auto found = std::find(state.orphans.begin(), state.orphans.end(), orphan);
    if (found == state.orphans.end()) state.orphans.insert(state.orphans.begin(), orphan);
  }
}

}  // namespace dunlin::remote
