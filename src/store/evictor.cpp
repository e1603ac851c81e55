#include "store/evictor.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "store/room.hpp"
#include "store/state.hpp"

namespace dunlin::store {

namespace {

constexpr std::size_t kBitsPerWord = 64;
// Of one poll.
constexpr std::size_t kMostLooks = 512;
constexpr std::size_t kMostEvictions = 64;
/// The hand stops when so large a part of the pool has been freed; and while a member that wants
/// room gets nothing of it, when so much is free. Then slabs move.
constexpr std::size_t kRefillPart = 32;
constexpr std::size_t kMostFreePart = 4;
/// A slab that has moved is spared while this part of the slabs moves.
constexpr std::size_t kSparedPart = 4;
constexpr std::uint64_t kAskAgainNs = 20'000;
/// A member that still waits asks again within 20 ms.
constexpr std::uint64_t kWantNs = 100'000'000;
/// A slab of which nothing goes for so long stays.
constexpr std::uint64_t kVictimPatienceNs = 20'000'000;

}  // namespace

Evictor::Evictor(State& state, remote::SlabPool& pool, bool is_large)
    : state_(state), pool_(pool), is_large_(is_large), spared_until_(pool.slabs()) {
  head_.reserve(kEntryHeadBytes + kMaxStoreKeyBytes);
}

void Evictor::want(Rank rank, std::uint32_t size_class) {
  const std::uint64_t now = state_.fabric.now_ns();
  for (Want& known : wants_)
    if (known.rank == rank && known.size_class == size_class) {
      known.asked_at_ns = now;
      return;
    }
  wants_.push_back({rank, size_class, now});
}

std::size_t Evictor::poll() {
  std::size_t done = collect();
  if (state_.store == nullptr || state_.progress.stopped() || pool_.slabs() == 0) return done;
  if (victim_) done += empty_victim();
  if (pool_.slabs_over_limit() > 0) done += shrink();
  if (!wants_.empty()) done += serve();
  if (is_refilling_) done += move_hand();
  const bool goes_on =
      victim_ || !wants_.empty() || is_refilling_ || under_way_ > 0 || pool_.slabs_over_limit() > 0;
  if (goes_on) state_.look_again_soon();
  return done;
}

// --- requests for room ---------------------------------------------------------------------------

/// Indirect headers are never freed.
bool Evictor::is_pinned(const remote::SlabHolder& holder) const noexcept {
  return !is_large_ && (holder.size_class == kIndirectClass || holder.size_class == kExtentClass);
}

std::size_t Evictor::live_blocks(std::uint32_t slab) const noexcept {
  std::size_t live = 0;
  for (std::size_t word = 0; word < pool_.bit_words(); ++word)
    live += static_cast<std::size_t>(std::popcount(pool_.live_bits(slab, word)));
  return live;
}

std::size_t Evictor::marked_blocks(std::uint32_t slab) const noexcept {
  std::size_t marked = 0;
  for (std::size_t word = 0; word < pool_.bit_words(); ++word)
    for (std::uint64_t live = pool_.live_bits(slab, word); live != 0; live &= live - 1)
      if (pool_.is_marked(slab,
                          word * kBitsPerWord + static_cast<std::size_t>(std::countr_zero(live))))
        ++marked;
  return marked;
}

Evictor::Survey Evictor::survey(const Want& want) {
  Survey found;
  std::vector<Freed> freed;
  const bool gives = pool_.slabs_over_limit() == 0;
  for (std::uint32_t slab = 0; slab < pool_.slabs(); ++slab) {
    const remote::SlabHolder holder = pool_.holder(slab);
    if (holder.is_free && gives) freed.push_back({slab, 0});
    if (!holder.is_held) continue;
    if (is_pinned(holder)) continue;
    ++found.held;
    const std::size_t live = live_blocks(slab) * pool_.bytes_of(holder.size_class);
    found.free_bytes += pool_.slab_bytes() - std::min(live, pool_.slab_bytes());
    const bool is_victim = victim_ && victim_->slab == slab;
    if (holder.rank == want.rank && holder.size_class == want.size_class) {
      ++found.held_by_it;
      std::size_t blocks = 0;
      for (std::size_t word = 0; word < pool_.bit_words(); ++word)
        blocks += static_cast<std::size_t>(std::popcount(pool_.freed_bits(slab, word)));
      if (blocks > 0 && !is_victim) freed.push_back({slab, blocks});
    } else if (spared_until_[slab] <= moves_) {
      found.may_move = true;
    }
  }
  const std::size_t most = std::min(freed.size(), kMostHints);
  std::partial_sort(freed.begin(), freed.begin() + static_cast<std::ptrdiff_t>(most), freed.end(),
                    [](const Freed& a, const Freed& b) { return a.blocks > b.blocks; });
  for (std::size_t i = 0; i < most; ++i) found.hints.push_back(freed[i].slab);
  return found;
}

/// Answers a member that waits, or does what makes room for it.
std::size_t Evictor::serve() {
  const Want want = wants_.front();
  wants_.pop_front();
  const bool is_over = state_.fabric.now_ns() - want.asked_at_ns > kWantNs;
  if (is_over || state_.progress.is_gone(want.rank)) return 1;
  const Survey now = survey(want);
  const std::size_t bytes = now.held * pool_.slab_bytes();
  if (now.free_bytes < bytes / kRefillPart / 2 || now.hints.empty()) {
    if (!is_refilling_) refilled_bytes_ = 0;
    refill_bytes_ = bytes / kRefillPart;
    is_refilling_ = now.free_bytes < bytes / kMostFreePart || !now.may_move;
  }
  if (!now.hints.empty()) {
    answer(want, now.hints);
    return 1;
  }
  wants_.push_back(want);
  const bool is_starved = now.held_by_it == 0 && now.free_bytes >= bytes / kRefillPart;
  const bool is_swept = !is_refilling_ || fruitless_slabs_ > 2 * std::size_t{pool_.slabs()};
  if (!victim_ && (is_starved || is_swept)) choose(want);
  return 0;
}

void Evictor::answer(const Want& want, const std::vector<std::uint32_t>& hints) {
  RoomMessage message{.request = RoomRequest::look,
                      .is_large = is_large_,
                      .count = static_cast<std::uint16_t>(hints.size()),
                      .size_class = want.size_class};
  std::copy(hints.begin(), hints.end(), message.slabs.begin());
  state_.room->channel.send(want.rank, message);
}

/// The limit has become lower.
std::size_t Evictor::shrink() {
  pool_.settle_limit();
  if (victim_) return 0;
  for (std::uint32_t slab = 0; slab < pool_.slabs(); ++slab)
    if (pool_.holder(slab).is_free) return 0;
  choose(std::nullopt);
  return 1;
}

// --- slabs that move -----------------------------------------------------------------------------

/// The slab with the fewest bytes that are used, and of those the one with the fewest bytes at all.
void Evictor::choose(const std::optional<Want>& want) {
  std::optional<std::uint32_t> chosen;
  std::pair<std::size_t, std::size_t> least;
  for (std::uint32_t slab = 0; slab < pool_.slabs(); ++slab) {
    const remote::SlabHolder holder = pool_.holder(slab);
    const bool is_wanted =
        want && holder.rank == want->rank && holder.size_class == want->size_class;
    if (!holder.is_held || is_pinned(holder) || is_wanted || spared_until_[slab] > moves_) continue;
    const std::size_t bytes = pool_.bytes_of(holder.size_class);
    const std::pair held{marked_blocks(slab) * bytes, live_blocks(slab) * bytes};
    if (chosen && held >= least) continue;
    chosen = slab;
    least = held;
  }
  if (!chosen) {
    ++moves_;  // those that are spared come nearer
    return;
  }
  const std::uint64_t now = state_.fabric.now_ns();
  victim_ = {.slab = *chosen, .holder = pool_.holder(*chosen), .since_ns = now, .ask_at_ns = now};
}

/// First its holder allocates nothing there any more; then all that is there goes; then the holder
/// gives it back, if nothing is there. Both are one message, until the slab has another holder.
std::size_t Evictor::empty_victim() {
  Victim& victim = *victim_;
  const std::uint64_t now = state_.fabric.now_ns();
  const bool is_given_back = pool_.holder(victim.slab).word != victim.holder.word;
  if (is_given_back || now - victim.since_ns > kVictimPatienceNs) {
    RoomMessage message{.request = RoomRequest::keep, .is_large = is_large_, .count = 1};
    message.slabs[0] = victim.slab;
    if (!is_given_back) state_.room->channel.send(victim.holder.rank, message);
    spared_until_[victim.slab] = ++moves_ + pool_.slabs() / kSparedPart;
    victim_.reset();
    pool_.settle_limit();
    return 1;
  }
  if (now >= victim.ask_at_ns) {
    RoomMessage message{.request = RoomRequest::withdraw, .is_large = is_large_, .count = 1};
    message.slabs[0] = victim.slab;
    state_.room->channel.send(victim.holder.rank, message);
    victim.ask_at_ns = now + kAskAgainNs;
  }
  const std::size_t blocks = pool_.bit_words() * kBitsPerWord;
  std::size_t done = 0;
  while (victim.next < blocks && idle() != nullptr && done < kMostEvictions) {
    const std::uint64_t live =
        pool_.live_bits(victim.slab, victim.next / kBitsPerWord) >> victim.next % kBitsPerWord;
    if (live == 0) {
      victim.next = (victim.next / kBitsPerWord + 1) * kBitsPerWord;
      continue;
    }
    victim.next += static_cast<std::size_t>(std::countr_zero(live));
    if (evict(victim.slab, victim.holder.size_class, victim.next)) ++done;
    ++victim.next;
  }
  if (victim.next >= blocks && under_way_ == 0) victim.next = 0;  // what is new there
  return done;
}

// --- the hand ------------------------------------------------------------------------------------

void Evictor::next_slab() noexcept {
  block_ = 0;
  if (under_way_ == 0) ++fruitless_slabs_;
  if (++slab_ >= pool_.slabs()) {
    slab_ = 0;
    ++sweep_;
  }
  memory::store(word_at(state_.index.memory().data() + kHandsAt + (is_large_ ? kWordBytes : 0)),
                hand());
}

/// An entry that was used since the hand passed it last stays; another one goes.
std::size_t Evictor::move_hand() {
  const std::size_t blocks = pool_.bit_words() * kBitsPerWord;
  std::size_t looks = 0, done = 0;
  while (looks < kMostLooks && done < kMostEvictions && idle() != nullptr) {
    const remote::SlabHolder holder = pool_.holder(slab_);
    if (block_ >= blocks || !holder.is_held || is_pinned(holder)) {
      ++looks;
      next_slab();
      continue;
    }
    const std::uint64_t live =
        pool_.live_bits(slab_, block_ / kBitsPerWord) >> block_ % kBitsPerWord;
    if (live == 0) {
      block_ = (block_ / kBitsPerWord + 1) * kBitsPerWord;
      continue;
    }
    block_ += static_cast<std::size_t>(std::countr_zero(live));
    ++looks;
    if (!pool_.take_mark(slab_, block_) && evict(slab_, holder.size_class, block_)) ++done;
    ++block_;
  }
  if (refilled_bytes_ >= refill_bytes_ || fruitless_slabs_ > 3 * std::size_t{pool_.slabs()})
    is_refilling_ = false;
  return done;
}

// --- one entry -----------------------------------------------------------------------------------

Evictor::Eviction* Evictor::idle() noexcept {
  const auto found = std::find_if(evictions_.begin(), evictions_.end(),
                                  [](const Eviction& one) { return !one.under_way; });
  return found == evictions_.end() ? nullptr : &*found;
}

/// Begins to erase what is there, as any member would, under the lock of its chain. Only the key is
/// taken from the entry here: under the lock it counts whether that key has this block.
bool Evictor::evict(std::uint32_t slab, std::uint32_t size_class, std::size_t number) {
  const remote::SlabBlock block = pool_.block(slab, size_class, number);
  if (!pool_.is_block(block.offset, size_class)) return false;
  const std::byte* const entry = pool_.own_memory().data() + block.offset;
  memory::fetch(head_.data(), entry, kEntryHeadBytes);
  const EntryHead head = head_of(head_.data());
  const std::size_t bytes = kEntryHeadBytes + head.key_bytes;
  if (state_of(head.guard) != EntryState::live || !is_sound(head) ||
      entry_bytes(head) > pool_.bytes_of(size_class))
    return false;
  memory::fetch(head_.data(), entry, bytes);
  // What it does not own, it gets, or is about to empty.
  if (!state_.is_owner(hash_of({head_.data() + kEntryHeadBytes, head.key_bytes}))) return false;
  Eviction& eviction = *idle();
  eviction.slab = slab;
  eviction.block_bytes = pool_.bytes_of(size_class);
  eviction.under_way = true;
  ++under_way_;
  eviction.operation = state_.begin_change(
      {.kind = Kind::evict, .victim = {is_large_, size_class, block.offset}},
      std::span<const std::byte>(head_.data() + kEntryHeadBytes, head.key_bytes), {});
  if (eviction.operation.finished()) count(eviction);
  return true;
}

void Evictor::count(Eviction& eviction) noexcept {
  eviction.under_way = false;
  --under_way_;
  if (eviction.operation.status() != remote::Status::ok || !eviction.operation.changed()) return;
  ++evicted_;
  refilled_bytes_ += eviction.block_bytes;
  fruitless_slabs_ = 0;
  if (victim_ && victim_->slab == eviction.slab) victim_->since_ns = state_.fabric.now_ns();
}

std::size_t Evictor::collect() noexcept {
  if (under_way_ == 0) return 0;
  std::size_t done = 0;
  for (Eviction& eviction : evictions_) {
    if (!eviction.under_way || !eviction.operation.finished()) continue;
    count(eviction);
    ++done;
  }
  return done;
}

}  // namespace dunlin::store
