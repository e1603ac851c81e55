#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include <dunlin/remote/slab_pool.hpp>

#include "assert.hpp"
#include "remote/slab_pool_state.hpp"

/// Slabs that change their holder and their size; marks of what is used, for pools whose homes make
/// room; and slabs that a home keeps empty.
namespace dunlin::remote {

// --- a holder: gives an empty slab back (REM-16) -------------------------------------------------

void SlabPool::State::withdraw(Home& home, SlabAt slab) noexcept {
  DUNLIN_ASSERT(slab->size_class < home.classes.size(), "REM-16: a holder withdraws what it holds");
  ClassSlabs& of = home.classes[slab->size_class];
  if (slab->free_blocks > 0 && !slab->is_withdrawn)
    of.others.splice(of.others.end(), of.with_free, slab);
  slab->is_withdrawn = true;
}

void SlabPool::State::keep(Home& home, SlabAt slab) noexcept {
  if (!slab->is_withdrawn || progress.is_gone(home.rank)) return;
  slab->is_withdrawn = false;
  DUNLIN_ASSERT(slab->free_blocks <= blocks(slab->size_class), "REM-14: a block is free once");
  ClassSlabs& of = home.classes[slab->size_class];
  if (slab->free_blocks > 0) of.with_free.splice(of.with_free.begin(), of.others, slab);
}

void SlabPool::withdraw(Rank rank, std::uint32_t slab) noexcept {
  State& state = *state_;
  State::Home* const home = state.home_of(rank);
  const auto held = home == nullptr ? std::nullopt : state.find(*home, slab);
  if (!held) return;
  state.withdraw(*home, *held);
  if (std::find(home->withdrawn.begin(), home->withdrawn.end(), slab) == home->withdrawn.end())
    try {
      home->withdrawn.push_back(slab);
    } catch (const std::bad_alloc&) {
      return;  // the home asks again
    }
  state.fabric.wake_at(state.fabric.now_ns());
}

void SlabPool::keep(Rank rank, std::uint32_t slab) noexcept {
  State::Home* const home = state_->home_of(rank);
  const auto held = home == nullptr ? std::nullopt : state_->find(*home, slab);
  if (held) state_->keep(*home, *held);
}

/// Runs as long as the pool. If there is no memory for a frame, the home asks again.
Protocol<Status> SlabPool::State::give_back_withdrawn(Home& home) {
  for (;;) {
    co_await Until([&home] { return !home.withdrawn.empty(); });
    const std::uint32_t slab = home.withdrawn.front();
    home.withdrawn.pop_front();
    static_cast<void>(co_await drain(home, slab));
  }
}

/// Gives a slab back that is withdrawn, if all its blocks are free once what was freed there is
/// collected. A block that is allocated and not linked yet is not.
Protocol<Status> SlabPool::State::drain(Home& home, std::uint32_t index) {
  co_await may_collect(home);
  const CollectLock turn(home);
  const auto held = find(home, index);
  if (!held) co_return Status::ok;
  const Slab& slab = **held;
  const std::uint32_t size_class = slab.size_class;
  Status status = co_await collect(home, *held);
  const bool is_whole = slab.free_blocks == blocks(size_class);
  if (status != Status::ok || !slab.is_withdrawn || !is_whole) co_return status;
  SlabList leaving;  // keep() does not find it there
  leaving.splice(leaving.end(), home.classes[size_class].others, *held);
  DUNLIN_ASSERT(!find(home, index), "REM-16: nothing is allocated there any more");
  std::uint64_t before = 0;
  status =
      co_await swap_holder(home.rank, index, holder_word(fabric.rank(), size_class), 0, before);
  home.next = std::min(home.next, index);
  co_return status;
}

// --- a holder: looks where its home has made room ------------------------------------------------

void SlabPool::hint(Rank rank, std::uint32_t size_class, std::uint32_t slab) noexcept {
  State::Home* const home = state_->home_of(rank);
  if (home == nullptr || size_class >= home->classes.size() || slab == kNoSlab) return;
  std::deque<std::uint32_t>& hints = home->classes[size_class].hints;
  if (std::find(hints.begin(), hints.end(), slab) != hints.end()) return;
  try {
    hints.push_back(slab);
  } catch (const std::bad_alloc&) {
    home->is_exhausted = false;  // the next search looks at all slabs
  }
}

/// Collects in the slab, or takes it; `no_room` if it has no room for this member.
Protocol<Status> SlabPool::State::follow_hint(Home& home, std::uint32_t size_class) {
  ClassSlabs& of = home.classes[size_class];
  DUNLIN_ASSERT(!of.hints.empty(), "REM-17: there is a hint to follow");
  const std::uint32_t slab = of.hints.front();
  of.hints.pop_front();
  Status status = Status::no_room;
  if (const auto held = find(home, slab); !held) {
    status = co_await take(home, size_class, slab);
  } else if ((*held)->size_class == size_class && !(*held)->is_withdrawn) {
    if ((*held)->free_blocks > 0) co_return Status::ok;
    of.others.splice(of.others.begin(), of.others, *held);
    status = co_await collect_some(home, of, 1);
  }
  co_return status;
}

// --- a home: what its slabs hold, and how many there are -----------------------------------------

std::uint32_t SlabPool::slabs() const noexcept { return state_->own_slabs; }
std::size_t SlabPool::slab_bytes() const noexcept { return state_->options.slab_bytes; }
std::size_t SlabPool::bit_words() const noexcept { return state_->words; }

SlabHolder SlabPool::holder(std::uint32_t slab) const noexcept {
  const std::uint64_t word = state_->own_word(slab, 0);
  SlabHolder holder{.word = word, .is_free = word == 0};
  holder.is_withheld = word == withheld_word(state_->fabric.rank());
  const std::uint64_t size_class = (word >> 16) - 1;
  holder.is_held = !holder.is_free && size_class < state_->options.block_bytes.size();
  if (!holder.is_held) return holder;
  holder.rank = rank_in(word);
  holder.size_class = static_cast<std::uint32_t>(size_class);
  return holder;
}

std::uint64_t SlabPool::live_bits(std::uint32_t slab, std::size_t word) const noexcept {
  return state_->live(slab, word);
}
std::uint64_t SlabPool::freed_bits(std::uint32_t slab, std::size_t word) const noexcept {
  return state_->linked(slab, word) & state_->freed(slab, word);
}

SlabBlock SlabPool::block(std::uint32_t slab, std::uint32_t size_class,
                          std::size_t number) const noexcept {
  const State& state = *state_;
  return {
      state.fabric.rank(), size_class,
      slab * state.stride() + state.header_bytes + number * state.options.block_bytes[size_class]};
}

std::uint32_t SlabPool::slab_of(std::uint64_t offset) const noexcept {
  return static_cast<std::uint32_t>(offset / state_->stride());
}

Operation SlabPool::mark(SlabBlock block) const noexcept {
  // A source for each place in a word: source and target agree modulo 8.
  alignas(kWordBytes) static constexpr std::array<std::uint8_t, kWordBytes> kMarks{1, 1, 1, 1,
                                                                                   1, 1, 1, 1};
  const std::uint64_t at = block.offset / state_->stride() * state_->stride() +
                           (1 + 2 * state_->words) * kWordBytes + state_->number_of(block);
  return write(block.home, state_->region.id(), at, &kMarks[at % kWordBytes], 1);
}

bool SlabPool::is_marked(std::uint32_t slab, std::size_t number) const noexcept {
  return memory::load(state_->own_mark(slab, number)) != 0;
}
bool SlabPool::take_mark(std::uint32_t slab, std::size_t number) noexcept {
  std::uint8_t& mark = state_->own_mark(slab, number);
  if (memory::load(mark) == 0) return false;
  memory::store(mark, 0);
  return true;
}

// --- a home: how much of its memory is used ------------------------------------------------------

/// Withholds slabs before any other member can see the region.
void SlabPool::State::withhold_now() noexcept {
  const std::uint32_t most = static_cast<std::uint32_t>(
      std::min<std::size_t>(options.limit_bytes / options.slab_bytes, own_slabs));
  for (std::uint32_t slab = most; slab < own_slabs; ++slab)
    memory::store(own_word_at(slab * stride()), withheld_word(fabric.rank()));
  withheld = to_withhold = own_slabs - most;
}

void SlabPool::limit(std::size_t bytes) noexcept {
  State& state = *state_;
  const auto most = static_cast<std::uint32_t>(
      std::min<std::size_t>(bytes / state.options.slab_bytes, state.own_slabs));
  state.to_withhold = state.own_slabs - most;
  DUNLIN_ASSERT(state.to_withhold <= state.own_slabs, "a home withholds slabs of its own");
  state.settle_limit();
}

void SlabPool::settle_limit() noexcept { state_->settle_limit(); }
void SlabPool::State::settle_limit() noexcept {
  if (withheld == to_withhold) return;
  looks_for_withheld = true;
  fabric.wake_at(fabric.now_ns());
}

std::uint32_t SlabPool::slabs_over_limit() const noexcept {
  return state_->to_withhold > state_->withheld ? state_->to_withhold - state_->withheld : 0;
}

/// Runs as long as the pool: becomes the holder of empty slabs, or gives such slabs back.
Protocol<Status> SlabPool::State::keep_to_limit() {
  for (;;) {
    co_await Until([this] { return looks_for_withheld; });
    DUNLIN_ASSERT(withheld <= own_slabs && to_withhold <= own_slabs,
                  "REM-17: a home withholds slabs of its own");
    const std::uint64_t kept = withheld_word(fabric.rank()),
                        from = withheld < to_withhold ? 0 : kept;
    std::uint32_t slab = 0;
    while (slab < own_slabs && own_word(slab, 0) != from) ++slab;
    looks_for_withheld = withheld != to_withhold && slab < own_slabs;
    if (!looks_for_withheld) continue;
    std::uint64_t before = 0;
    const Status swapped = co_await swap_holder(fabric.rank(), slab, from, kept - from, before);
    if (swapped != Status::ok) looks_for_withheld = false;
    if (swapped == Status::ok && before == from) from == 0 ? ++withheld : --withheld;
  }
}

}  // namespace dunlin::remote
