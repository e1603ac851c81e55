#include <algorithm>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "remote/slab_pool_state.hpp"

/// Slabs that are empty come back (REM-17): a member that finds no room asks the home, and the home
/// asks the holders of slabs in which no block is linked. No member takes part but by its poll().
namespace dunlin::remote {
namespace {

/// A home that has not answered for so long does not poll, and is not asked again for as long.
constexpr std::uint64_t kAnswerNs = 1'000'000'000;
/// A holder that has not answered for so long does not poll: the home goes on without it.
constexpr std::uint64_t kHolderNs = 100'000'000;
/// Slabs that a home looks at in one poll.
constexpr std::uint32_t kLooksAtOnce = 256;
constexpr std::uint32_t kTakenBackAtOnce = 64;

}  // namespace

// --- a member that finds no room -----------------------------------------------------------------

bool SlabPool::asks(Rank home) const noexcept {
  return home < state_->homes.size() && state_->homes[home].asked_at_ns != 0;
}

/// Whether the home is to be asked, once more if it has found something that others have taken.
bool SlabPool::State::may_ask(const Home& home) const noexcept {
  const std::uint64_t now = fabric.now_ns();
  const bool is_late = home.asked_at_ns != 0 && now - home.asked_at_ns > kAnswerNs;
  return !options.makes_room && !home.has_nothing && !is_late && now >= home.silent_until_ns;
}

bool SlabPool::State::begin_ask(Rank rank, Home& home) noexcept {
  if (post(home, fetch_add(rank, region.id(), wants_at(), 1, &home.before)) != Refusal::none)
    return false;
  const std::uint64_t now = std::max<std::uint64_t>(fabric.now_ns(), 1);
  if (home.asked_at_ns == 0) home.asked_at_ns = now;
  home.pauses.reset();
  home.look_at_ns = home.pauses.after(now);
  home.doing = Home::Doing::ask;
  return true;
}

bool SlabPool::State::begin_await(Rank rank, Home& home) noexcept {
  const std::uint64_t now = fabric.now_ns();
  if (now - home.asked_at_ns > kAnswerNs) {
    home.silent_until_ns = now + kAnswerNs;
    home.full |= std::uint64_t{1} << home.wanted;
    satisfied(home);
    return false;
  }
  if (now < home.look_at_ns) {
    fabric.wake_at(home.look_at_ns);
    return false;
  }
  if (post(home, read(rank, region.id(), answer_at(), &home.before, kWordBytes)) != Refusal::none)
    return false;
  home.doing = Home::Doing::await;
  return true;
}

/// Searches anew if the home has looked for room since it was asked.
void SlabPool::State::answered(Home& home) noexcept {
  if (home.before >> 1 < home.ticket) {
    home.look_at_ns = home.pauses.after(fabric.now_ns());
    return;
  }
  home.ticket = 0;
  home.has_nothing = (home.before & 1) != 0;
  home.searched = 0;
  home.no_slabs = false;
}

// --- a holder that is asked ----------------------------------------------------------------------

/// The word becomes 0 when the slab is given back, or stays with this member.
std::size_t SlabPool::State::answer_request() noexcept {
  if (options.makes_room) return 0;
  std::uint64_t& at = own_word_at(request_at());
  const std::uint64_t word = memory::load(at);
  if (word == 0) return 0;
  const auto rank = static_cast<Rank>((word & 0xffff) - 1);
  const auto slab = static_cast<std::uint32_t>(word >> 16);
  if (!progress.contains(rank) && !progress.is_gone(rank)) return 0;  // once it is heard of
  const bool may_be = rank < homes.size() && progress.contains(rank) && slab != kNoSlab;
  const auto place = may_be ? place_of(homes[rank], slab) : std::nullopt;
  if (place && request != word) {
    request = word;
    stop_offering(homes[rank], *place);
    homes[rank].to_drain.push_back(slab);
    fabric.wake_at(fabric.now_ns());
    return 1;
  }
  if (place && homes[rank].slabs[*place].is_withdrawn) return 0;
  request = 0;
  memory::store(at, 0);
  return 1;
}

// --- a home that asks a holder -------------------------------------------------------------------

/// A block that its holder has allocated, and not linked yet, does not show here: the holder looks.
bool SlabPool::State::is_empty(std::uint32_t slab) const noexcept {
  if ((own_word(slab, 0) >> 16) - 1 >= options.block_bytes.size()) return false;
  for (std::size_t word = 0; word < words; ++word)
    if ((own_word(slab, 1 + word) & ~own_word(slab, 1 + words + word)) != 0) return false;
  return true;
}

void SlabPool::State::begin_return(std::uint32_t slab) noexcept {
  const std::uint64_t now = fabric.now_ns();
  returning.doing = Return::Doing::try_ask;
  returning.slab = slab;
  returning.holder = own_word(slab, 0);
  returning.since_ns = returning.look_at_ns = now;
  returning.pauses.reset();
  fabric.wake_at(now);
}

/// Returns whether the request has ended.
std::size_t SlabPool::State::step_return() noexcept {
  using Doing = Return::Doing;
  Return& one = returning;
  if (one.doing != Doing::nothing && !one.done.finished()) {
    if (fabric.now_ns() - one.since_ns <= kHolderNs) {
      fabric.wake_at(one.since_ns + kHolderNs + 1);
      return 0;
    }
    fabric.abandon(one.done);
    one.done.reset();
    end_return(false);
    return 1;
  }
  while (one.doing != Doing::nothing && one.done.finished()) {
    const std::uint64_t now = fabric.now_ns();
    const std::uint64_t mine = request_word(fabric.rank(), one.slab);
    const bool is_answered =
        own_word(one.slab, 0) != one.holder || (one.doing == Doing::look && one.seen != mine);
    if (is_answered || one.done.failed() || now - one.since_ns > kHolderNs) {
      is_uncertain = is_uncertain || one.done.failed();  // it may be dead
      one.done.reset();
      end_return(is_answered);
      return 1;
    }
    if (one.doing == Doing::ask || one.doing == Doing::look) {
      // A holder answers one home after the other.
      one.doing = one.doing == Doing::look || one.seen == 0 ? Doing::wait : Doing::try_ask;
      one.look_at_ns = one.pauses.after(now);
    }
    if (now < one.look_at_ns) {
      fabric.wake_at(one.look_at_ns);
      return 0;
    }
    const Operation next =
        one.doing == Doing::try_ask
            ? compare_swap(one.rank(), region.id(), request_at(), 0, mine, &one.seen)
            : read(one.rank(), region.id(), request_at(), &one.seen, kWordBytes);
    const Refusal refusal = fabric.post(next.notify(one.done)).refusal;
    if (refusal == Refusal::queue_full) return 0;
    if (refusal != Refusal::none) {  // its pool has ended
      is_uncertain = is_uncertain || fabric.failed(one.rank());
      end_return(false);
      return 1;
    }
    one.doing = one.doing == Doing::try_ask ? Doing::ask : Doing::look;
  }
  return 0;
}

void SlabPool::State::end_return(bool is_answered) noexcept {
  returning.doing = Return::Doing::nothing;
  if (!is_answered) silent.push_back(returning.rank());
  if (own_word(returning.slab, 0) == returning.holder) return;
  has_got_back = true;
  looks_for_withheld = looks_for_withheld || withheld != to_withhold;
}

// --- a home that others ask ----------------------------------------------------------------------

std::size_t SlabPool::State::answer_wants() noexcept {
  if (options.makes_room) return 0;
  std::size_t done = step_return();
  if (returning.doing != Return::Doing::nothing) return done;
  const std::uint64_t wants = memory::load(own_word_at(wants_at()));
  if (answering == answered_wants) {
    if (wants == answered_wants) return done + take_next_back();
    answering = wants;
    has_freed_nothing = options.free_blocks == nullptr;
    is_uncertain = has_got_back = false;
    looked_at = 0;
    look_not_before_ns = 0;
    silent.clear();
  }
  if (has_got_back) return answer(true);
  if (!has_freed_nothing) {
    const Freed freed = options.free_blocks();
    if (freed == Freed::some) return answer(true);
    fabric.wake_at(fabric.now_ns());
    has_freed_nothing = freed == Freed::nothing;
    return 1;
  }
  return look_for_empty();
}

std::size_t SlabPool::State::answer(bool has_found) noexcept {
  answered_wants = answering;
  memory::store(own_word_at(answer_at()), answering << 1 | (has_found ? 0 : 1));
  return 1;
}

std::size_t SlabPool::State::look_for_empty() noexcept {
  const std::uint64_t now = fabric.now_ns();
  if (now < look_not_before_ns) {
    fabric.wake_at(look_not_before_ns);
    return 0;
  }
  const std::uint32_t end = std::min(looked_at + kLooksAtOnce, own_slabs);
  while (looked_at < end) {
    const std::uint32_t slab = looked_at++;
    if (own_word(slab, 0) == 0) return answer(true);
    if (!is_empty(slab)) continue;
    const auto holder = static_cast<Rank>((own_word(slab, 0) & 0xffff) - 1);
    if (!progress.contains(holder)) {
      // They become this member's, or it is yet to be heard of.
      is_uncertain = is_uncertain || !orphans.empty() || !progress.is_gone(holder);
    } else if (fabric.failed(holder)) {
      is_uncertain = true;
    } else if (std::find(silent.begin(), silent.end(), holder) == silent.end()) {
      begin_return(slab);
      return 1;
    }
  }
  if (looked_at < own_slabs) {
    fabric.wake_at(now);
    return 1;
  }
  if (!is_uncertain) return answer(false);
  is_uncertain = false;
  looked_at = 0;
  look_not_before_ns = now + kLongestPauseNs;
  fabric.wake_at(look_not_before_ns);
  return 0;
}

// --- slabs that no member asks for ---------------------------------------------------------------

/// A slab that was empty only once may be one in which a key comes and goes.
void SlabPool::take_back_empty() noexcept {
  State& state = *state_;
  if (state.options.makes_room || !state.to_take_back.empty()) return;
  const std::uint32_t most = std::min(kTakenBackAtOnce, state.own_slabs);
  for (std::uint32_t i = 0; i < most; ++i) {
    const std::uint32_t slab = state.next_look++ % state.own_slabs;
    const bool is_empty = state.is_empty(slab);
    if (is_empty && state.was_empty[slab]) state.to_take_back.push_back(slab);
    state.was_empty[slab] = is_empty;
  }
  if (!state.to_take_back.empty()) state.fabric.wake_at(state.fabric.now_ns());
}

std::size_t SlabPool::State::take_next_back() noexcept {
  silent.clear();
  while (!to_take_back.empty()) {
    const std::uint32_t slab = to_take_back.front();
    to_take_back.pop_front();
    const auto holder = static_cast<Rank>((own_word(slab, 0) & 0xffff) - 1);
    if (!is_empty(slab) || !progress.contains(holder) || fabric.failed(holder)) continue;
    begin_return(slab);
    return 1;
  }
  return 0;
}

}  // namespace dunlin::remote
