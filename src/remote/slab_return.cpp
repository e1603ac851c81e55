#include <algorithm>
#include <new>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote/slab_pool.hpp>

#include "assert.hpp"
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

/// A holder that has no such region any more has ended its pool.
struct HolderGate {
  const Fabric* fabric;
  Rank holder;
  RegionId region;
  [[nodiscard]] Status now() const noexcept { return Status::ok; }
  [[nodiscard]] Status refused() const noexcept {
    return fabric->connected(holder, region) ? Status::ok : Status::lost;
  }
  void posted() const noexcept {}
  void taken() const noexcept {}
};

}  // namespace

// --- a member that finds no room -----------------------------------------------------------------

bool SlabPool::asks(Rank rank) const noexcept {
  const State::Home* const home = state_->home_of(rank);
  return home != nullptr && home->asks_until_ns != 0;
}

/// Asks the home to look for room: `ok` if it has found some, `no_room` if not; `timed_out` if it
/// does not answer.
Protocol<Status> SlabPool::State::ask(Home& home) {
  DUNLIN_ASSERT(!options.makes_room, "REM-17: a home that makes room by itself is not asked");
  const std::uint64_t now = fabric.now_ns();
  if (home.asks_until_ns == 0) home.asks_until_ns = now + kAnswerNs;
  if (now < home.silent_until_ns || now > home.asks_until_ns) co_return Status::timed_out;
  std::uint64_t wants = 0, answer = 0;
  Status status = co_await post(fabric, fetch_add(home.rank, region.id(), wants_at(), 1, &wants));
  Backoff pauses(kShortestPauseNs, kLongestPauseNs);
  while (status == Status::ok && answer >> 1 <= wants) {
    co_await UntilTime(fabric, pauses.after(fabric.now_ns()));
    if (fabric.now_ns() > home.asks_until_ns) {
      home.silent_until_ns = fabric.now_ns() + kAnswerNs;
      co_return Status::timed_out;
    }
    status = co_await post(fabric, read(home.rank, region.id(), answer_at(), &answer, kWordBytes));
  }
  co_return status == Status::ok && (answer & 1) != 0 ? Status::no_room : status;
}

// --- a holder that is asked ----------------------------------------------------------------------

/// Runs as long as the pool. The request becomes 0 when the slab is given back, or stays with this
/// member.
Protocol<Status> SlabPool::State::give_back_requested() {
  std::uint64_t& at = own_word_at(request_at());
  for (;;) {
    std::uint64_t request = 0;
    co_await Until([&] {  // it may come before the news that its sender is a member
      request = memory::load(at);
      const Rank from = rank_in(request);
      return request != 0 && (progress.contains(from) || progress.is_gone(from));
    });
    const Rank from = rank_in(request);
    const auto slab = static_cast<std::uint32_t>(request >> 16);
    if (Home* const home = home_of(from); home != nullptr && progress.contains(from)) {
      if (const auto held = find(*home, slab)) withdraw(*home, *held);
      static_cast<void>(co_await drain(*home, slab));
      if (const auto held = find(*home, slab)) keep(*home, *held);
    }
    memory::store(at, 0);
  }
}

// --- a home that others ask ----------------------------------------------------------------------

/// A block that its holder has allocated, and not linked yet, does not show here: the holder looks.
bool SlabPool::State::is_empty(std::uint32_t slab) const noexcept {
  DUNLIN_ASSERT(slab < own_slabs, "REM-17: a home looks at its own slabs");
  if ((own_word(slab, 0) >> 16) - 1 >= options.block_bytes.size()) return false;
  for (std::size_t word = 0; word < words; ++word)
    if (live(slab, word) != 0) return false;
  return true;
}

/// Runs as long as the pool. If no member asks, it asks for slabs back that stay empty.
Protocol<Status> SlabPool::State::answer_wants() {
  const std::uint64_t& wants = own_word_at(wants_at());
  std::uint64_t answered = 0;
  for (;;) {
    co_await Until([&] { return memory::load(wants) != answered || !to_take_back.empty(); });
    const std::uint64_t answering = memory::load(wants);
    if (answering != answered) {
      const Status found = co_await look_for_room();
      if (found == Status::no_memory) {
        co_await UntilTime(fabric, fabric.now_ns() + kLongestPauseNs);
        continue;
      }
      answered = answering;
      memory::store(own_word_at(answer_at()), answered << 1 | (found == Status::ok ? 0 : 1));
      continue;
    }
    const std::uint32_t slab = to_take_back.front();
    to_take_back.pop_front();
    const Rank holder = rank_in(own_word(slab, 0));
    if (!is_empty(slab) || !progress.contains(holder) || fabric.failed(holder)) continue;
    Call<Status> asked(progress, ask_holder(slab), kHolderNs);
    static_cast<void>(co_await asked);
  }
}

/// Frees blocks first, and then asks for empty slabs: `no_room` if neither helps.
Protocol<Status> SlabPool::State::look_for_room() {
  for (Freed freed = Freed::looking; options.free_blocks && freed == Freed::looking;) {
    freed = options.free_blocks();
    if (freed == Freed::some) co_return Status::ok;
    co_await soon();
  }
  std::fill(silent.begin(), silent.end(), false);
  for (;;) {
    bool is_uncertain = false;  // a holder may be dead, and the members have not agreed on it
    for (std::uint32_t slab = 0; slab < own_slabs; ++slab) {
      if (slab % kLooksAtOnce == kLooksAtOnce - 1) co_await soon();
      if (own_word(slab, 0) == 0) co_return Status::ok;
      if (!is_empty(slab)) continue;
      const Rank holder = rank_in(own_word(slab, 0));
      Status asked = Status::busy;
      if (progress.contains(holder) && !fabric.failed(holder) && !silent[holder]) {
        Call<Status> call(progress, ask_holder(slab), kHolderNs);
        asked = co_await call;
        if (asked == Status::ok) co_return asked;
        silent[holder] = asked == Status::timed_out || asked == Status::lost;
      }
      // The slabs of a dead member become this member's, or it is yet to be heard of.
      if (asked == Status::no_memory || !progress.contains(holder) || fabric.failed(holder))
        is_uncertain = true;
    }
    if (!is_uncertain) co_return Status::no_room;
    co_await UntilTime(fabric, fabric.now_ns() + kLongestPauseNs);
  }
}

/// Asks the slab's holder to give it back: `ok` if it has, `busy` if the holder keeps it.
Protocol<Status> SlabPool::State::ask_holder(std::uint32_t slab) {
  const std::uint64_t held = own_word(slab, 0), mine = request_word(fabric.rank(), slab);
  const Rank holder = rank_in(held);
  DUNLIN_ASSERT(slab < own_slabs, "REM-17: a home asks for slabs of its own memory");
  std::uint64_t found = mine;
  bool has_asked = false;
  Backoff pauses(kShortestPauseNs, kLongestPauseNs);
  while (own_word(slab, 0) == held) {
    // A holder answers one home after the other.
    const Operation next = has_asked
                               ? read(holder, region.id(), request_at(), &found, kWordBytes)
                               : compare_swap(holder, region.id(), request_at(), 0, mine, &found);
    const Status status = co_await post(fabric, next, HolderGate{&fabric, holder, region.id()});
    if (status != Status::ok) co_return status;
    if (has_asked && found != mine) break;
    has_asked = has_asked || found == 0;
    const std::uint64_t look_at_ns = pauses.after(fabric.now_ns());
    co_await Until([&] {
      if (own_word(slab, 0) != held || fabric.now_ns() >= look_at_ns) return true;
      fabric.wake_at(look_at_ns);
      return false;
    });
  }
  if (own_word(slab, 0) == held) co_return Status::busy;
  settle_limit();
  co_return Status::ok;
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
    if (is_empty && state.was_empty[slab]) try {
        state.to_take_back.push_back(slab);
      } catch (const std::bad_alloc&) {
        break;  // the next call asks for it
      }
    state.was_empty[slab] = is_empty;
  }
  if (!state.to_take_back.empty()) state.fabric.wake_at(state.fabric.now_ns());
}

}  // namespace dunlin::remote
