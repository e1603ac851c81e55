#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "remote/slab_pool_state.hpp"

/// Allocating in slabs, and taking them.
namespace dunlin::remote {
namespace {

/// Slabs that are searched for freed blocks before a new one is taken, if there may be one.
constexpr std::uint32_t kSlabsSearched = 4;

}  // namespace

SlabPool::State::State(Progress& its_progress, SlabPoolOptions its_options)
    : progress(its_progress),
      fabric(its_progress.fabric()),
      options(std::move(its_options)),
      homes(progress.size()) {
  options.homes = std::max(options.homes, progress.size());
  const std::vector<std::size_t>& sizes = options.block_bytes;
  bool sound = !sizes.empty() && sizes.size() <= kBitsPerWord && options.slab_bytes > 0 &&
               options.slab_bytes % kCacheLineBytes == 0 &&
               std::is_sorted(sizes.begin(), sizes.end()) && sizes.back() <= options.slab_bytes;
  for (const std::size_t bytes : sizes) sound = sound && bytes > 0 && bytes % kCacheLineBytes == 0;
  if (!sound)
    throw Error(
        "slab pool '" + options.name +
        "': give 1 to 64 block sizes that ascend, are whole cache lines, and fit in a slab");
  words = (options.slab_bytes / sizes.front() + kBitsPerWord - 1) / kBitsPerWord;
  const std::size_t marks = words * kBitsPerWord, wants = kWantWords * kWordBytes;
  header_bytes = round_up((1 + 2 * words) * kWordBytes + (options.makes_room ? marks : wants),
                          kCacheLineBytes);
  own_slabs = static_cast<std::uint32_t>(options.own_bytes / stride());
  was_empty.resize(own_slabs);
  std::uint64_t layout = options.slab_bytes + (options.makes_room ? 1 : 2);
  for (const std::size_t bytes : sizes) layout = layout * 0x9e3779b97f4a7c15ULL + bytes;
  region = fabric.allocate({.name = "slabs:" + options.name,
                            .bytes = std::max(own_slabs * stride(), header_bytes),
                            .layout_hash = layout});
  // No member may take a line without a slab behind it.
  if (own_slabs == 0)
    memory::store(*reinterpret_cast<std::uint64_t*>(region.memory().data()),
                  holder_word(fabric.rank(), 0));
  withhold_now();
  for (Home& home : homes) open(home);
  while (own_slabs > 0 && homes.size() <= fabric.rank()) open(homes.emplace_back());
  fabric.announce(region);
}

void SlabPool::State::open(Home& home) const {
  const std::size_t sizes = options.block_bytes.size();
  home.hints.resize(sizes);
  home.with_free.resize(sizes);
  home.of_class.resize(sizes);
  home.turn.resize(sizes);
  home.words.resize(2 * words);
  home.bits.resize(words);
}

SlabPool::SlabPool(Progress& progress, SlabPoolOptions options)
    : state_(std::make_unique<State>(progress, std::move(options))) {
  progress.add(*this);
}

SlabPool::~SlabPool() {
  state_->progress.remove(*this);
  for (State::Home& home : state_->homes) state_->fabric.abandon(home.done);
  state_->fabric.abandon(state_->returning.done);
}

// --- allocating in slabs that this process holds -------------------------------------------------

std::optional<SlabBlock> SlabPool::State::from(Rank rank, Home& home,
                                               std::uint32_t size_class) noexcept {
  std::vector<std::uint32_t>& places = home.with_free[size_class];
  if (places.empty()) return std::nullopt;
  Slab& slab = home.slabs[places.back()];
  std::size_t word = 0;
  while (slab.free[word] == 0) ++word;
  const std::size_t number =
      word * kBitsPerWord + static_cast<std::size_t>(std::countr_zero(slab.free[word]));
  slab.free[word] &= slab.free[word] - 1;
  if (--slab.free_blocks == 0) places.pop_back();
  return SlabBlock{rank, size_class,
                   slab.index * stride() + header_bytes + number * options.block_bytes[size_class]};
}

std::optional<SlabBlock> SlabPool::allocate(Rank rank, std::size_t bytes) noexcept {
  const auto size_class = class_of(bytes);
  return size_class ? allocate_class(rank, *size_class) : std::nullopt;
}

std::optional<SlabBlock> SlabPool::allocate_class(Rank rank, std::uint32_t size_class) noexcept {
  State& state = *state_;
  if (rank >= state.options.homes) return std::nullopt;
  while (state.homes.size() <= rank) state.open(state.homes.emplace_back());
  State::Home& home = state.homes[rank];
  if (auto block = state.from(rank, home, size_class)) return block;
  const std::uint64_t bit = std::uint64_t{1} << size_class;
  if (home.is_exhausted && home.hints[size_class].empty()) {
    home.full |= bit;
    return std::nullopt;
  }
  home.full &= ~bit;
  if (home.wanted != kNoClass) return std::nullopt;  // under way
  home.wanted = size_class;
  home.searched = 0;
  home.no_slabs = false;
  state.fabric.wake_at(state.fabric.now_ns());
  return std::nullopt;
}

std::optional<SlabBlock> SlabPool::allocate_held(Rank rank, std::size_t bytes) noexcept {
  State& state = *state_;
  const auto size_class = class_of(bytes);
  if (rank >= state.homes.size() || !size_class) return std::nullopt;
  for (std::uint32_t i = *size_class; i < state.options.block_bytes.size(); ++i)
    if (auto block = state.from(rank, state.homes[rank], i)) return block;
  return std::nullopt;
}

bool SlabPool::full(Rank home, std::size_t bytes) const noexcept {
  const auto size_class = class_of(bytes);
  return !size_class || full_class(home, *size_class);
}
bool SlabPool::full_class(Rank home, std::uint32_t size_class) const noexcept {
  return home < state_->homes.size() && (state_->homes[home].full >> size_class & 1) != 0;
}

void SlabPool::State::give(Home& home, std::uint32_t place, std::size_t word, std::uint64_t bits) {
  Slab& slab = home.slabs[place];
  if (bits == 0) return;
  if (slab.free_blocks == 0 && !slab.is_withdrawn) home.with_free[slab.size_class].push_back(place);
  slab.free[word] |= bits;
  slab.free_blocks += static_cast<std::uint32_t>(std::popcount(bits));
}

void SlabPool::cancel(SlabBlock block) noexcept {
  State::Home& home = state_->homes.at(block.home);
  const std::size_t number = state_->number_of(block);
  for (const std::uint32_t place : home.of_class[block.size_class])
    if (home.slabs[place].index == block.offset / state_->stride())
      return state_->give(home, place, number / kBitsPerWord,
                          std::uint64_t{1} << number % kBitsPerWord);
}

Operation SlabPool::link(SlabBlock block) const noexcept { return state_->add(block, false); }
Operation SlabPool::free(SlabBlock block) const noexcept { return state_->add(block, true); }
RegionId SlabPool::region() const noexcept { return state_->region.id(); }
std::span<std::byte> SlabPool::own_memory() const noexcept { return state_->region.memory(); }
std::size_t SlabPool::bytes_of(std::uint32_t size_class) const noexcept {
  return state_->options.block_bytes.at(size_class);
}

std::optional<std::uint32_t> SlabPool::class_of(std::size_t bytes) const noexcept {
  const std::vector<std::size_t>& sizes = state_->options.block_bytes;
  const auto found = std::lower_bound(sizes.begin(), sizes.end(), bytes);
  if (found == sizes.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - sizes.begin());
}

bool SlabPool::is_block(std::uint64_t offset, std::uint32_t size_class) const noexcept {
  const State& state = *state_;
  if (size_class >= state.options.block_bytes.size()) return false;
  const std::uint64_t within = offset % state.stride();
  return offset / state.stride() < state.own_slabs && within >= state.header_bytes &&
         (within - state.header_bytes) % state.options.block_bytes[size_class] == 0 &&
         within + state.options.block_bytes[size_class] <= state.stride();
}

PoolUse SlabPool::use() const noexcept {
  const State& state = *state_;
  PoolUse use;
  for (std::uint32_t i = 0; i < state.own_slabs; ++i) {
    const std::uint64_t holder = state.own_word(i, 0);
    const std::uint64_t size_class = (holder >> 16) - 1;
    if (holder == withheld_word(state.fabric.rank())) continue;
    use.bytes += state.options.slab_bytes;
    if (size_class >= state.options.block_bytes.size()) {
      use.largest_free = state.options.slab_bytes;
      continue;
    }
    use.held += state.options.slab_bytes;
    std::size_t blocks = 0;
    for (std::size_t word = 0; word < state.words; ++word)
      blocks += static_cast<std::size_t>(
          std::popcount(state.own_word(i, 1 + word) & ~state.own_word(i, 1 + state.words + word)));
    use.blocks += blocks;
    use.used += blocks * state.options.block_bytes[size_class];
    if (blocks < state.blocks(static_cast<std::uint32_t>(size_class)))
      use.largest_free = std::max(use.largest_free, state.options.block_bytes[size_class]);
  }
  return use;
}

// --- getting slabs -------------------------------------------------------------------------------

/// In each home's memory one step is under way.
std::size_t SlabPool::poll_part() {
  std::size_t done = state_->answer_request();
  for (Rank rank = 0; rank < state_->homes.size(); ++rank) {
    State::Home& home = state_->homes[rank];
    while (home.done.finished()) {
      if (std::exchange(home.posted_step, false)) state_->end_step(home);
      if (!state_->begin_step(rank, home)) break;
      ++done;
    }
  }
  return done + state_->answer_wants();
}

Refusal SlabPool::State::post(Home& home, const Operation& operation) noexcept {
  home.done.reset();
  const Refusal refusal = fabric.post(operation.notify(home.done, Notify::remotely)).refusal;
  home.posted_step = refusal == Refusal::none;
  return refusal;
}

void SlabPool::State::satisfied(Home& home) noexcept {
  home.wanted = kNoClass;
  home.ticket = home.asked_at_ns = 0;
  home.has_nothing = false;
}

/// Returns whether it posted anything.
bool SlabPool::State::begin_step(Rank rank, Home& home) noexcept {
  using Doing = Home::Doing;
  if (home.doing == Doing::clear) return begin_clear(rank, home);
  if (home.doing == Doing::try_take) {
    const Refusal refusal =
        post(home, compare_swap(rank, region.id(), home.taking * stride(), 0,
                                holder_word(fabric.rank(), home.wanted), &home.before));
    if (refusal == Refusal::out_of_bounds) {  // a hint to what is no slab
      home.doing = Doing::nothing;
      home.taking = 0;
      return begin_step(rank, home);
    }
    if (refusal != Refusal::none) return false;
    home.doing = Doing::take;
    return true;
  }
  if (home.doing == Doing::try_release) return begin_release(rank, home);
  if (rank == fabric.rank() && !orphans.empty()) {
    const Orphan& orphan = orphans.back();
    const std::uint64_t mine = (orphan.holder & ~std::uint64_t{0xffff}) | (rank + 1);
    if (post(home, compare_swap(rank, region.id(), orphan.slab * stride(), orphan.holder, mine,
                                &home.before)) != Refusal::none)
      return false;
    home.doing = Doing::adopt;
    return true;
  }
  if (!home.to_drain.empty()) return begin_drain(rank, home);
  if (rank == fabric.rank() && looks_for_withheld && begin_withholding(home)) return true;
  if (home.wanted == kNoClass) return false;
  if (!home.hints[home.wanted].empty()) return begin_hint(rank, home);
  if (home.is_exhausted) {
    home.full |= std::uint64_t{1} << home.wanted;
    satisfied(home);
    return false;
  }
  if (home.ticket != 0) return begin_await(rank, home);
  const std::vector<std::uint32_t>& held = home.of_class[home.wanted];
  const std::size_t most =
      home.no_slabs ? held.size() : std::min<std::size_t>(held.size(), kSlabsSearched);
  if (home.searched < most) {
    home.place = held[home.turn[home.wanted] % held.size()];
    return begin_look(rank, home);
  }
  if (!home.no_slabs) return begin_scan(rank, home);
  if (may_ask(home)) return begin_ask(rank, home);
  home.full |= std::uint64_t{1} << home.wanted;
  satisfied(home);
  return false;
}

bool SlabPool::State::begin_look(Rank rank, Home& home) noexcept {
  const std::uint64_t at = home.slabs[home.place].index * stride() + kWordBytes;
  if (post(home, read(rank, region.id(), at, home.words.data(), 2 * words * kWordBytes)) !=
      Refusal::none)
    return false;
  home.doing = Home::Doing::look;
  return true;
}

/// `linked` first: a block that is not linked is not freed.
bool SlabPool::State::begin_clear(Rank rank, Home& home) noexcept {
  const std::uint64_t header = home.slabs[home.place].index * stride();
  const auto bits = [&] {
    return home.bits[home.posted < words ? home.posted : home.posted - words];
  };
  while (home.posted < 2 * words && bits() == 0) ++home.posted;
  if (home.posted == 2 * words) {  // what was left has no bits
    home.doing = Home::Doing::nothing;
    for (std::size_t word = 0; word < words; ++word) give(home, home.place, word, home.bits[word]);
    if (!home.is_draining) {
      satisfied(home);
      return false;
    }
    drained(home);
    return begin_step(rank, home);
  }
  return post(home, fetch_add(rank, region.id(), header + (1 + home.posted) * kWordBytes,
                              0 - bits(), nullptr)) == Refusal::none;
}

/// The holders of the next slabs; then the first slab without a holder is tried.
bool SlabPool::State::begin_scan(Rank rank, Home& home) noexcept {
  home.done.reset();
  home.reading = 0;
  Refusal refusal = Refusal::none;
  while (home.reading < kHoldersRead) {
    const Operation look = read(rank, region.id(), (home.taking + home.reading) * stride(),
                                &home.holders[home.reading], kWordBytes)
                               .notify(home.done);
    refusal = fabric.post(look).refusal;
    if (refusal != Refusal::none) break;
    ++home.reading;
  }
  if (home.reading == 0) {
    if (refusal == Refusal::out_of_bounds) {
      no_more_slabs(home);
      return begin_step(rank, home);
    }
    return false;
  }
  home.doing = Home::Doing::scan;
  home.posted_step = true;
  return true;
}

void SlabPool::State::no_more_slabs(Home& home) noexcept {
  home.no_slabs = true;
  home.is_exhausted = options.makes_room;
  home.searched = 0;
  home.taking = 0;
}

void SlabPool::State::all_free(Slab& slab) const {
  const std::size_t count = blocks(slab.size_class);
  slab.free.assign(words, 0);
  slab.free_blocks = static_cast<std::uint32_t>(count);
  for (std::size_t number = 0; number < count; ++number)
    slab.free[number / kBitsPerWord] |= std::uint64_t{1} << number % kBitsPerWord;
}

/// Holds it without free blocks; its place.
std::uint32_t SlabPool::State::hold(Home& home, std::uint32_t index, std::uint32_t size_class) {
  if (home.vacant.empty()) {
    home.vacant.push_back(static_cast<std::uint32_t>(home.slabs.size()));
    home.slabs.emplace_back();
  }
  const std::uint32_t place = home.vacant.back();
  home.vacant.pop_back();
  home.slabs[place] = {.index = index, .size_class = size_class, .free = {}};
  home.slabs[place].free.resize(words);
  home.of_class[size_class].push_back(place);
  return place;
}

void SlabPool::State::end_step(Home& home) {
  using Doing = Home::Doing;
  const Doing doing = std::exchange(home.doing, Doing::nothing);
  if (home.done.failed()) {
    home.done.reset();
    if (std::exchange(home.is_draining, false) && !options.makes_room) keep(home, home.place);
    if (home.wanted != kNoClass) home.full |= std::uint64_t{1} << home.wanted;
    return satisfied(home);
  }
  switch (doing) {
    case Doing::look: {
      std::uint64_t any = 0;
      for (std::size_t word = 0; word < words; ++word)
        any |= home.bits[word] = home.words[word] & home.words[words + word];
      home.posted = 0;
      if (any != 0) home.doing = Doing::clear;
      if (home.is_draining) return any != 0 ? void() : drained(home);
      ++home.turn[home.wanted];
      ++home.searched;
      return;
    }
    case Doing::clear:
      ++home.posted;
      home.doing = Doing::clear;
      return;
    case Doing::scan:
      for (std::size_t i = 0; i < home.reading; ++i)
        if (home.holders[i] == 0) {
          home.taking += static_cast<std::uint32_t>(i);
          home.doing = Doing::try_take;
          return;
        }
      home.taking += static_cast<std::uint32_t>(home.reading);
      return;
    case Doing::take:
      if (home.before == 0) {
        const std::uint32_t place = hold(home, home.taking, home.wanted);
        all_free(home.slabs[place]);
        home.with_free[home.wanted].push_back(place);
        satisfied(home);
      }
      ++home.taking;
      return;
    case Doing::adopt:
      return adopt(home);
    case Doing::release:
      return released(home);
    case Doing::withhold:
      return withheld_one(home);
    case Doing::ask:
      home.ticket = home.before + 1;
      return;
    case Doing::await:
      return answered(home);
    case Doing::try_release:
    case Doing::try_take:
    case Doing::nothing:
      return;
  }
}

void SlabPool::State::adopt(Home& home) {
  const Orphan orphan = orphans.back();
  orphans.pop_back();
  const std::uint64_t size_class = (orphan.holder >> 16) - 1;
  if (home.before != orphan.holder || size_class >= options.block_bytes.size()) return;
  home.place = hold(home, orphan.slab, static_cast<std::uint32_t>(size_class));
  Slab whole = home.slabs[home.place];
  all_free(whole);
  for (std::size_t word = 0; word < words; ++word) {
    const std::uint64_t linked = own_word(orphan.slab, 1 + word);
    // Its holder may have died between taking away the one bit and the other.
    home.bits[word] = own_word(orphan.slab, 1 + words + word) & ~linked;
    give(home, home.place, word, whole.free[word] & ~linked & ~home.bits[word]);
  }
  home.posted = words;
  home.doing = Home::Doing::clear;
}

/// REM-15. A holder that is gone links nothing any more (REM-13), so blocks that it has not linked
/// by now are free.
void SlabPool::members_changed() {
  State& state = *state_;
  State::Return& returning = state.returning;
  if (returning.doing != State::Return::Doing::nothing &&
      !state.progress.contains(returning.rank())) {
    state.fabric.abandon(returning.done);
    returning.done.reset();
    returning.doing = State::Return::Doing::nothing;
    state.is_uncertain = true;  // the slab becomes this member's
  }
  for (Rank rank = 0; rank < state.homes.size(); ++rank) {
    if (!state.progress.is_gone(rank)) continue;
    State::Home& home = state.homes[rank];
    state.fabric.abandon(home.done);
    home.doing = State::Home::Doing::nothing;
    home.posted_step = false;
    state.satisfied(home);
    home.full = UINT64_MAX;
    home.is_draining = false;
    home.slabs.clear();
    home.vacant.clear();
    home.to_drain.clear();
    for (auto& hints : home.hints) hints.clear();
    for (auto& places : home.with_free) places.clear();
    for (auto& places : home.of_class) places.clear();
  }
  for (std::uint32_t i = 0; i < state.own_slabs; ++i) {
    const State::Orphan orphan{i, state.own_word(i, 0)};
    if (orphan.holder == 0 ||
        !state.progress.is_gone(static_cast<Rank>((orphan.holder & 0xffff) - 1)))
      continue;
    if (std::find(state.orphans.begin(), state.orphans.end(), orphan) == state.orphans.end())
      state.orphans.insert(state.orphans.begin(), orphan);
  }
}

}  // namespace dunlin::remote
