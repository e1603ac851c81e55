#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>
#include <dunlin/limits.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "assert.hpp"
#include "remote/slab_pool_state.hpp"

/// Allocating in slabs, and taking them.
namespace dunlin::remote {
namespace {

/// Slabs that are searched for freed blocks before a new one is taken, if there may be one.
constexpr std::size_t kSlabsSearched = 4;
constexpr std::uint32_t kHoldersRead = 16;

/// Tells how many operations of a batch the fabric has taken.
struct CountingGate : AnyTime {
  std::uint32_t* count;
  void accepted(std::size_t operations) const noexcept {
    *count = static_cast<std::uint32_t>(operations);
  }
};

}  // namespace

SlabPool::State::State(Progress& its_progress, SlabPoolOptions its_options)
    : progress(its_progress),
      fabric(its_progress.fabric()),
      options(std::move(its_options)),
      silent(its_progress.capacity()),
      protocols(its_progress) {
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
  if (own_slabs == 0) memory::store(own_word_at(0), holder_word(fabric.rank(), 0));
  withhold_now();
  const Rank last = std::max(progress.size() - 1, own_slabs > 0 ? fabric.rank() : 0);
  bool begun =
      open(last) != nullptr && protocols.start(adopt_orphans()) && protocols.start(keep_to_limit());
  if (!options.makes_room)
    begun = begun && protocols.start(give_back_requested()) && protocols.start(answer_wants());
  if (!begun) throw std::bad_alloc();
  fabric.announce(region);
}

SlabPool::State::Home::Home(State& pool, Rank home)
    : rank(home),
      classes(pool.options.block_bytes.size()),
      words(2 * pool.words),
      protocols(pool.progress) {
  if (!protocols.start(pool.find_room(*this), searcher) ||
      (pool.options.makes_room && !protocols.start(pool.give_back_withdrawn(*this))))
    throw std::bad_alloc();
}

SlabPool::State::Home* SlabPool::State::open(Rank rank) noexcept {
  if (rank >= options.homes) return nullptr;
  try {
    while (homes.size() <= rank)
      homes.push_back(std::make_unique<Home>(*this, static_cast<Rank>(homes.size())));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return homes[rank].get();
}

SlabPool::SlabPool(Progress& progress, SlabPoolOptions options)
    : state_(std::make_unique<State>(progress, std::move(options))) {
  progress.add(*this);
}

SlabPool::~SlabPool() { state_->progress.remove(*this); }

std::size_t SlabPool::poll_part() {
  std::size_t done = state_->protocols.advance();
  for (const auto& home : state_->homes) done += home->protocols.advance();
  return done;
}

// --- allocating in slabs that this process holds -------------------------------------------------

std::optional<SlabBlock> SlabPool::State::from(Home& home, std::uint32_t size_class) noexcept {
  DUNLIN_ASSERT(size_class < home.classes.size(), "REM-14: a block is of one of the pool's sizes");
  ClassSlabs& of = home.classes[size_class];
  if (of.with_free.empty()) return std::nullopt;
  const SlabAt slab = of.with_free.begin();
  DUNLIN_ASSERT(!slab->is_withdrawn, "REM-16: nothing is allocated in a slab that is withdrawn");
  DUNLIN_ASSERT(slab->free_blocks > 0, "REM-14: a slab among those with free blocks has one");
  std::size_t word = 0;
  while (slab->free[word] == 0) ++word;
  const std::size_t number =
      word * kBitsPerWord + static_cast<std::size_t>(std::countr_zero(slab->free[word]));
  DUNLIN_ASSERT(number < blocks(size_class), "REM-14: a block that is allocated is in its slab");
  slab->free[word] &= slab->free[word] - 1;
  if (--slab->free_blocks == 0) of.others.splice(of.others.end(), of.with_free, slab);
  return SlabBlock{
      home.rank, size_class,
      slab->index * stride() + header_bytes + number * options.block_bytes[size_class]};
}

std::optional<SlabBlock> SlabPool::allocate(Rank rank, std::size_t bytes) noexcept {
  const auto size_class = class_of(bytes);
  return size_class ? allocate_class(rank, *size_class) : std::nullopt;
}

std::optional<SlabBlock> SlabPool::allocate_class(Rank rank, std::uint32_t size_class) noexcept {
  State& state = *state_;
  State::Home* home = state.home_of(rank);
  if (home == nullptr) home = state.open(rank);
  if (home == nullptr) return std::nullopt;
  if (auto block = state.from(*home, size_class)) return block;
  const std::uint64_t bit = std::uint64_t{1} << size_class;
  if (home->is_exhausted && home->classes[size_class].hints.empty()) {
    home->full |= bit;
    return std::nullopt;
  }
  home->full &= ~bit;
  if (home->wanted != kNoClass) return std::nullopt;  // find_room() is busy
  // find_room() begins to search here. Where the home's memory is mapped, it ends here, too.
  home->wanted = size_class;
  home->protocols.advance(*home->searcher);
  if (home->wanted != kNoClass) {
    state.fabric.wake_at(state.fabric.now_ns());
    return std::nullopt;
  }
  return state.from(*home, size_class);
}

std::optional<SlabBlock> SlabPool::allocate_held(Rank rank, std::size_t bytes) noexcept {
  State& state = *state_;
  State::Home* const home = state.home_of(rank);
  const auto size_class = class_of(bytes);
  if (home == nullptr || !size_class) return std::nullopt;
  for (std::uint32_t i = *size_class; i < state.options.block_bytes.size(); ++i)
    if (auto block = state.from(*home, i)) return block;
  return std::nullopt;
}

bool SlabPool::full(Rank home, std::size_t bytes) const noexcept {
  const auto size_class = class_of(bytes);
  return !size_class || full_class(home, *size_class);
}
bool SlabPool::full_class(Rank rank, std::uint32_t size_class) const noexcept {
  const State::Home* const home = state_->home_of(rank);
  return home != nullptr && (home->full >> size_class & 1) != 0;
}

std::optional<SlabPool::State::SlabAt> SlabPool::State::find(Home& home,
                                                             std::uint32_t slab) const noexcept {
  for (ClassSlabs& of : home.classes)
    for (SlabList* const list : {&of.with_free, &of.others}) {
      const SlabAt found = std::find_if(list->begin(), list->end(),
                                        [&](const Slab& one) { return one.index == slab; });
      if (found != list->end()) return found;
    }
  return std::nullopt;
}

/// Makes blocks free, unless they are.
void SlabPool::State::give(Home& home, SlabAt slab, std::size_t word, std::uint64_t bits) noexcept {
  bits &= ~slab->free[word];
  if (bits == 0) return;
  ClassSlabs& of = home.classes[slab->size_class];
  if (slab->free_blocks == 0 && !slab->is_withdrawn)
    of.with_free.splice(of.with_free.begin(), of.others, slab);
  slab->free[word] |= bits;
  slab->free_blocks += static_cast<std::uint32_t>(std::popcount(bits));
  DUNLIN_ASSERT(slab->size_class < options.block_bytes.size(),
                "REM-14: a slab has blocks of one size");
}

void SlabPool::cancel(SlabBlock block) noexcept {
  State& state = *state_;
  State::Home& home = *state.homes.at(block.home);
  const auto slab = state.find(home, slab_of(block.offset));
  if (!slab) return;
  const std::size_t number = state.number_of(block), word = number / kBitsPerWord;
  const std::uint64_t bit = std::uint64_t{1} << number % kBitsPerWord;
  DUNLIN_ASSERT(((*slab)->free[word] & bit) == 0, "REM-14: a block is allocated by one, once");
  state.give(home, *slab, word, bit);
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
  return is_block(offset, size_class, state_->options.own_bytes);
}

bool SlabPool::is_block(std::uint64_t offset, std::uint32_t size_class,
                        std::size_t own_bytes) const noexcept {
  const State& state = *state_;
  if (size_class >= state.options.block_bytes.size()) return false;
  const std::uint64_t within = offset % state.stride();
  return offset / state.stride() < own_bytes / state.stride() && within >= state.header_bytes &&
         (within - state.header_bytes) % state.options.block_bytes[size_class] == 0 &&
         within + state.options.block_bytes[size_class] <= state.stride();
}

PoolUse SlabPool::use() const noexcept {
  const State& state = *state_;
  const SlabPoolOptions& options = state.options;
  PoolUse use;
  for (std::uint32_t slab = 0; slab < state.own_slabs; ++slab) {
    const SlabHolder by = holder(slab);
    if (by.is_withheld) continue;
    use.bytes += options.slab_bytes;
    if (by.is_held) use.held += options.slab_bytes;
    std::size_t blocks = 0;
    for (std::size_t word = 0; by.is_held && word < state.words; ++word)
      blocks += static_cast<std::size_t>(std::popcount(state.live(slab, word)));
    use.blocks += blocks;
    use.used += blocks * options.block_bytes[by.size_class];
    if (!by.is_held || blocks < state.blocks(by.size_class))
      use.largest_free = std::max(
          use.largest_free, by.is_held ? options.block_bytes[by.size_class] : options.slab_bytes);
  }
  return use;
}

// --- getting slabs -------------------------------------------------------------------------------

/// Runs as long as the pool.
Protocol<Status> SlabPool::State::find_room(Home& home) {
  for (;;) {
    co_await Until([&home] { return home.wanted != kNoClass; });
    DUNLIN_ASSERT(home.wanted < home.classes.size(), "REM-17: a size of the pool is looked for");
    const Status found = co_await search(home, home.wanted);
    if (found != Status::ok) home.full |= std::uint64_t{1} << home.wanted;
    home.wanted = kNoClass;
    home.asks_until_ns = 0;
  }
}

/// Looks for a block where allocate() finds it then; `no_room` if there is none. What the home has
/// found when it was asked others may have taken: then it is asked again.
Protocol<Status> SlabPool::State::search(Home& home, std::uint32_t size_class) {
  ClassSlabs& of = home.classes[size_class];
  Status asked = Status::ok;
  while (asked == Status::ok || asked == Status::no_room) {
    Status found = Status::no_room;
    while (found == Status::no_room && !of.hints.empty())
      found = co_await follow_hint(home, size_class);
    if (found != Status::no_room || home.is_exhausted) co_return found;
    found = co_await collect_some(home, of, kSlabsSearched);
    if (found == Status::no_room) found = co_await take_any(home, size_class);
    if (found == Status::no_room && home.is_exhausted) continue;  // perhaps there are hints now
    if (found == Status::no_room) found = co_await collect_some(home, of, SIZE_MAX);
    if (found != Status::no_room || asked == Status::no_room) co_return found;
    asked = co_await ask(home);
  }
  co_return asked;
}

/// Collects in the slabs that were not searched for longest, until there is a free block.
Protocol<Status> SlabPool::State::collect_some(Home& home, ClassSlabs& of, std::size_t most) {
  co_await may_collect(home);
  const CollectLock turn(home);
  for (std::size_t i = std::min(most, of.others.size()); i > 0 && !of.others.empty(); --i) {
    const SlabAt slab = of.others.begin();
    of.others.splice(of.others.end(), of.others, slab);
    if (slab->is_withdrawn) continue;
    const Status collected = co_await collect(home, slab);
    if (collected != Status::ok || slab->free_blocks > 0) co_return collected;
  }
  co_return Status::no_room;
}

/// Makes the blocks free that were freed in a slab: takes their bits away, those of `linked` first,
/// because a block that is not linked is not freed.
Protocol<Status> SlabPool::State::collect(Home& home, SlabAt slab) {
  DUNLIN_ASSERT(home.is_collecting, "REM-14: each freed block is collected once");
  const std::uint64_t maps = slab->index * stride() + kWordBytes;
  Status status = co_await post(
      fabric, read(home.rank, region.id(), maps, home.words.data(), 2 * words * kWordBytes));
  const auto bits = [&](std::size_t word) { return home.words[word] & home.words[words + word]; };
  for (std::size_t i = 0; i < 2 * words && status == Status::ok; ++i)
    if (const std::uint64_t taken = bits(i % words); taken != 0)
      status = co_await post(
          fabric, fetch_add(home.rank, region.id(), maps + i * kWordBytes, 0 - taken, nullptr));
  for (std::size_t word = 0; word < words && status == Status::ok; ++word)
    give(home, slab, word, bits(word));
  co_return status;
}

/// Takes the next slab without a holder. If there is none, the search begins at the first slab when
/// it begins again.
Protocol<Status> SlabPool::State::take_any(Home& home, std::uint32_t size_class) {
  while (home.next < home.end) {
    const std::uint32_t first = home.next, count = std::min(kHoldersRead, home.end - first);
    std::array<std::uint64_t, kHoldersRead> holders{};
    std::uint32_t accepted = 0;
    Batch<kHoldersRead, CountingGate> reads(fabric, CountingGate{{}, &accepted});
    for (std::uint32_t i = 0; i < count; ++i)
      reads.add(read(home.rank, region.id(), (first + i) * stride(), &holders[i], kWordBytes));
    home.next = first + count;
    Status status = co_await reads;
    const auto free = static_cast<std::uint32_t>(
        std::find(holders.begin(), holders.begin() + count, 0) - holders.begin());
    if (status == Status::out_of_range) {
      home.end = first + accepted;  // for ever: a region keeps its size
      home.next = std::min(home.next, first);
    } else if (status == Status::ok && free < count) {
      home.next = std::min(home.next, first + free + 1);
      status = co_await take(home, size_class, first + free);
      if (status != Status::no_room) co_return status;
    } else if (status != Status::ok) {
      co_return status;
    }
  }
  home.next = 0;
  home.is_exhausted = home.is_exhausted || options.makes_room;
  co_return Status::no_room;
}

/// Takes the slab if it has no holder. A hint may lead to what is no slab.
Protocol<Status> SlabPool::State::take(Home& home, std::uint32_t size_class, std::uint32_t slab) {
  SlabList taken = whole_slab(slab, size_class);  // so that it needs no memory once it is held
  std::uint64_t before = 0;
  const Status swapped =
      co_await swap_holder(home.rank, slab, 0, holder_word(fabric.rank(), size_class), before);
  if (swapped == Status::out_of_range || before != 0) co_return Status::no_room;
  if (swapped != Status::ok || progress.is_gone(home.rank)) co_return Status::lost;
  SlabList& with_free = home.classes[size_class].with_free;
  with_free.splice(with_free.begin(), taken);
  co_return Status::ok;
}

SlabPool::State::SlabList SlabPool::State::whole_slab(std::uint32_t index,
                                                      std::uint32_t size_class) const {
  SlabList whole(1);
  Slab& slab = whole.front();
  slab.index = index;
  slab.size_class = size_class;
  DUNLIN_ASSERT(blocks(size_class) <= words * kBitsPerWord, "REM-14: each block has a bit");
  slab.free_blocks = static_cast<std::uint32_t>(blocks(size_class));
  slab.free.resize(words);
  for (std::size_t number = 0; number < slab.free_blocks; ++number)
    slab.free[number / kBitsPerWord] |= std::uint64_t{1} << number % kBitsPerWord;
  return whole;
}

// --- members that are gone (REM-15) --------------------------------------------------------------

/// Nothing is allocated any more at a home that is gone, and what a protocol does there is `lost`.
void SlabPool::members_changed() {
  State& state = *state_;
  state.has_orphans = state.own_slabs > 0;
  for (const auto& home : state.homes) {
    if (!state.progress.is_gone(home->rank)) continue;
    home->full = UINT64_MAX;
    home->is_exhausted = true;
    for (State::ClassSlabs& of : home->classes) {
      of.hints.clear();
      of.others.splice(of.others.end(), of.with_free);
      for (State::Slab& slab : of.others) slab.is_withdrawn = true;
    }
  }
}

/// Runs as long as the pool.
Protocol<Status> SlabPool::State::adopt_orphans() {
  for (;;) {
    co_await Until([this] { return has_orphans; });
    has_orphans = false;
    for (std::uint32_t slab = 0; slab < own_slabs; ++slab) {
      if (own_word(slab, 0) == 0 || !progress.is_gone(rank_in(own_word(slab, 0)))) continue;
      const Status adopted = co_await adopt(slab);
      if (adopted == Status::no_memory) has_orphans = true;
    }
    if (has_orphans) co_await UntilTime(fabric, fabric.now_ns() + kLongestPauseNs);
  }
}

/// Takes over a slab of a holder that is gone. It links nothing any more (REM-13), so blocks that
/// it has not linked by now are free.
Protocol<Status> SlabPool::State::adopt(std::uint32_t index) {
  DUNLIN_ASSERT(index < own_slabs, "REM-15: a home takes slabs of its own memory over");
  const std::uint64_t holder = own_word(index, 0), size_class = (holder >> 16) - 1;
  DUNLIN_ASSERT(progress.is_gone(rank_in(holder)), "REM-15: its holder is gone");
  if (size_class >= options.block_bytes.size()) co_return Status::out_of_range;
  SlabList adopted = whole_slab(index, static_cast<std::uint32_t>(size_class));
  Slab& slab = adopted.front();
  std::uint64_t before = 0;
  Status status = co_await swap_holder(fabric.rank(), index, holder,
                                       holder_word(fabric.rank(), slab.size_class), before);
  if (status != Status::ok || before != holder) co_return Status::lost;
  slab.free_blocks = 0;
  for (std::size_t word = 0; word < words; ++word) {
    slab.free[word] &= ~linked(index, word);
    slab.free_blocks += static_cast<std::uint32_t>(std::popcount(slab.free[word]));
    // Its holder may have died between taking away the one bit and the other.
    const std::uint64_t left = freed(index, word) & ~linked(index, word);
    const std::uint64_t at = index * stride() + (1 + words + word) * kWordBytes;
    if (left != 0)
      status = co_await post(fabric, fetch_add(fabric.rank(), region.id(), at, 0 - left, nullptr));
  }
  ClassSlabs& of = homes[fabric.rank()]->classes[slab.size_class];
  SlabList& list = slab.free_blocks > 0 ? of.with_free : of.others;
  list.splice(list.end(), adopted);
  co_return status;
}

}  // namespace dunlin::remote
