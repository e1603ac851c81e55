#include <algorithm>
#include <array>
#include <bit>

#include <dunlin/remote/slab_pool.hpp>

#include "fault_injection.hpp"
#include "remote/slab_pool_state.hpp"

/// Slabs that change their holder and their size; marks of what is used, for pools whose homes make
/// room; and slabs that a home keeps empty.
namespace dunlin::remote {

// --- a holder: gives an empty slab back (REM-16) -------------------------------------------------

std::optional<std::uint32_t> SlabPool::State::place_of(const Home& home,
                                                       std::uint32_t slab) const noexcept {
  const auto found = std::find_if(home.slabs.begin(), home.slabs.end(),
                                  [&](const Slab& one) { return one.index == slab; });
  if (found == home.slabs.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - home.slabs.begin());
}

void SlabPool::State::stop_offering(Home& home, std::uint32_t place) noexcept {
  Slab& slab = home.slabs[place];
  slab.is_withdrawn = true;
  std::erase(home.with_free[slab.size_class], place);
}

void SlabPool::withdraw(Rank rank, std::uint32_t slab) noexcept {
  State& state = *state_;
  if (rank >= state.homes.size() || slab == State::kNoSlab) return;
  State::Home& home = state.homes[rank];
  const auto place = state.place_of(home, slab);
  if (!place) return;
  state.stop_offering(home, *place);
  if (std::find(home.to_drain.begin(), home.to_drain.end(), slab) == home.to_drain.end())
    home.to_drain.push_back(slab);
  state.fabric.wake_at(state.fabric.now_ns());
}

void SlabPool::keep(Rank rank, std::uint32_t slab) noexcept {
  using Doing = State::Home::Doing;
  State& state = *state_;
  if (rank >= state.homes.size() || slab == State::kNoSlab) return;
  State::Home& home = state.homes[rank];
  const auto place = state.place_of(home, slab);
  if (!place || !home.slabs[*place].is_withdrawn) return;
  const bool goes = home.doing == Doing::try_release || home.doing == Doing::release;
  if (goes && home.place == *place) return;
  state.keep(home, *place);
}

void SlabPool::State::keep(Home& home, std::uint32_t place) noexcept {
  Slab& slab = home.slabs[place];
  slab.is_withdrawn = false;
  if (slab.free_blocks > 0) home.with_free[slab.size_class].push_back(place);
}

bool SlabPool::State::begin_drain(Rank rank, Home& home) noexcept {
  const std::uint32_t slab = home.to_drain.front();
  home.to_drain.pop_front();
  const auto place = place_of(home, slab);
  if (!place) return begin_step(rank, home);
  home.place = *place;
  home.is_draining = true;
  if (begin_look(rank, home)) return true;
  home.is_draining = false;
  home.to_drain.push_front(slab);
  return false;
}

/// What was freed there has come back: is that all there is? A block that is allocated and not
/// linked yet is not.
void SlabPool::State::drained(Home& home) noexcept {
  home.is_draining = false;
  home.doing = Home::Doing::nothing;
  const Slab& slab = home.slabs[home.place];
  bool is_whole = slab.free_blocks == blocks(slab.size_class);
  if (is_injected(FaultInjection::slab_is_given_back_too_early)) {
    is_whole = true;
    for (std::size_t word = 0; word < words; ++word)
      is_whole = is_whole && (home.words[word] & ~home.words[words + word]) == 0;
  }
  if (slab.is_withdrawn && is_whole) home.doing = Home::Doing::try_release;
  if (!is_whole && !options.makes_room) keep(home, home.place);
}

bool SlabPool::State::begin_release(Rank rank, Home& home) noexcept {
  const Slab& slab = home.slabs[home.place];
  if (post(home, compare_swap(rank, region.id(), slab.index * stride(),
                              holder_word(fabric.rank(), slab.size_class), 0, &home.before)) !=
      Refusal::none)
    return false;
  home.doing = Home::Doing::release;
  return true;
}

void SlabPool::State::released(Home& home) noexcept {
  Slab& slab = home.slabs[home.place];
  home.taking = std::min(home.taking, slab.index);
  std::erase(home.of_class[slab.size_class], home.place);
  slab = {.free = {}};
  home.vacant.push_back(home.place);
}

// --- a holder: looks where its home has made room ------------------------------------------------

void SlabPool::hint(Rank rank, std::uint32_t size_class, std::uint32_t slab) noexcept {
  State& state = *state_;
  if (rank >= state.homes.size() || size_class >= state.options.block_bytes.size() ||
      slab == State::kNoSlab)
    return;
  std::deque<std::uint32_t>& hints = state.homes[rank].hints[size_class];
  if (std::find(hints.begin(), hints.end(), slab) != hints.end()) return;
  hints.push_back(slab);
  state.homes[rank].full &= ~(std::uint64_t{1} << size_class);
}

bool SlabPool::State::begin_hint(Rank rank, Home& home) noexcept {
  std::deque<std::uint32_t>& hints = home.hints[home.wanted];
  const std::uint32_t slab = hints.front();
  hints.pop_front();
  const auto place = place_of(home, slab);
  if (!place) {
    home.taking = slab;
    home.doing = Home::Doing::try_take;
    return begin_step(rank, home);
  }
  const Slab& held = home.slabs[*place];
  if (held.size_class != home.wanted || held.is_withdrawn) return begin_step(rank, home);
  home.place = *place;
  if (begin_look(rank, home)) return true;
  hints.push_front(slab);
  return false;
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
  holder.rank = static_cast<Rank>((word & 0xffff) - 1);
  holder.size_class = static_cast<std::uint32_t>(size_class);
  return holder;
}

std::uint64_t SlabPool::live_bits(std::uint32_t slab, std::size_t word) const noexcept {
  return state_->own_word(slab, 1 + word) & ~state_->own_word(slab, 1 + state_->words + word);
}
std::uint64_t SlabPool::freed_bits(std::uint32_t slab, std::size_t word) const noexcept {
  return state_->own_word(slab, 1 + word) & state_->own_word(slab, 1 + state_->words + word);
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

/// Before any other member can see the region.
void SlabPool::State::withhold_now() noexcept {
  if (options.limit_bytes == SIZE_MAX) return;
  const std::uint32_t most = static_cast<std::uint32_t>(
      std::min<std::size_t>(options.limit_bytes / options.slab_bytes, own_slabs));
  for (std::uint32_t slab = most; slab < own_slabs; ++slab) {
    memory::store(*reinterpret_cast<std::uint64_t*>(region.memory().data() + slab * stride()),
                  withheld_word(fabric.rank()));
    ++withheld;
  }
  to_withhold = withheld;
}

void SlabPool::limit(std::size_t bytes) noexcept {
  State& state = *state_;
  if (state.own_slabs == 0) return;
  const auto most = static_cast<std::uint32_t>(
      std::min<std::size_t>(bytes / state.options.slab_bytes, state.own_slabs));
  state.to_withhold = state.own_slabs - most;
  settle_limit();
}

void SlabPool::settle_limit() noexcept {
  if (state_->withheld == state_->to_withhold) return;
  state_->looks_for_withheld = true;
  state_->fabric.wake_at(state_->fabric.now_ns());
}

std::uint32_t SlabPool::slabs_over_limit() const noexcept {
  return state_->to_withhold > state_->withheld ? state_->to_withhold - state_->withheld : 0;
}

bool SlabPool::State::begin_withholding(Home& home) noexcept {
  const std::uint64_t kept = withheld_word(fabric.rank());
  const std::uint64_t from = withheld < to_withhold ? 0 : kept;
  std::uint32_t slab = 0;
  while (slab < own_slabs && own_word(slab, 0) != from) ++slab;
  if (withheld == to_withhold || slab == own_slabs) {
    looks_for_withheld = false;
    return false;
  }
  if (post(home, compare_swap(fabric.rank(), region.id(), slab * stride(), from,
                              from == 0 ? kept : 0, &home.before)) != Refusal::none)
    return false;
  home.doing = Home::Doing::withhold;
  return true;
}

void SlabPool::State::withheld_one(const Home& home) noexcept {
  if (home.before == 0) ++withheld;
  if (home.before == withheld_word(fabric.rank())) --withheld;
}

}  // namespace dunlin::remote
