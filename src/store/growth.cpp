#include "store/growth.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/state.hpp"

namespace dunlin::store {

namespace {

constexpr std::size_t kSplitsAtOnce = 32;
/// Keys for each slot of main headers, in percent. As chains are split one after the other, some
/// have twice as many keys as others; with so many in all, a lookup takes about as many reads as in
/// an index that was laid out for kOccupancyPercent.
constexpr std::uint64_t kGrownOccupancyPercent = 60;
/// A home without room tries again.
constexpr std::uint64_t kNoRoomNs = 10'000'000;

}  // namespace

Growth::Growth(State& state) : state_(state), keys_at_(state.index.memory().data() + kKeysAt) {
  set_most_keys();
}
Growth::~Growth() { state_.fabric.abandon(done_); }

std::int64_t Growth::keys() const noexcept {
  return static_cast<std::int64_t>(memory::load(*reinterpret_cast<const std::uint64_t*>(keys_at_)));
}

void Growth::set_most_keys() noexcept {
  const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
  const std::uint64_t at_first = shape.base() * kSlots * kOccupancyPercent;
  const std::uint64_t grown = shape.headers() * kSlots * kGrownOccupancyPercent;
  most_keys_ =
      shape.can_grow() ? static_cast<std::int64_t>(std::max(at_first, grown) / 100) : INT64_MAX;
}

std::size_t Growth::grow() {
  std::size_t splits = 0;
  while (splits < kSplitsAtOnce) {
    if (stage_ == Stage::idle) {
      if (keys() <= most_keys_) return splits;
      if (not_before_ns_ != 0 && state_.fabric.now_ns() < not_before_ns_) break;
      not_before_ns_ = 0;
      if (!has_room()) break;
      stage_ = Stage::lock;
    }
    if (stage_ == Stage::lock && !lock()) break;
    if (!done_.finished()) break;
    stage_ = Stage::idle;
    if (done_.failed()) return splits;  // its own failure
    if (before_ != 0) {
      not_before_ns_ = state_.fabric.now_ns() + rest_.next_ns();
      break;
    }
    rest_ = {};
    split();
    ++splits;
  }
  // There is more to do, now or soon.
  state_.fabric.wake_at(std::max(not_before_ns_, state_.fabric.now_ns()));
  return splits;
}

/// For the next main header, and for the indirect headers that its chain needs.
bool Growth::has_room() {
  const State::Home& home = state_.homes[state_.fabric.rank()];
  const std::uint64_t later = home.shape.headers() - home.shape.base();
  if (later / kExtentHeaders == home.extents.size() && !add_extent()) return false;
  remote::SlabPool& pool = *state_.small;
  while (buckets_.size() < buckets_needed_) {
    const auto block = allocate(kIndirectClass);
    if (!block) return false;
    if (!state_.fabric.post(pool.link(*block)).all()) {
      pool.cancel(*block);
      return false;
    }
    buckets_.push_back(block->offset);
  }
  return true;
}

/// A home that is full is asked again later, not at once: the calls of this process ask it, too,
/// for one size at a time.
std::optional<remote::SlabBlock> Growth::allocate(std::uint32_t size_class) {
  const Rank rank = state_.fabric.rank();
  remote::SlabPool& pool = *state_.small;
  const bool has_asked = std::exchange(asked_for_, std::nullopt) == size_class;
  const bool is_full = has_asked && pool.full_class(rank, size_class);
  const auto block = is_full ? std::nullopt : pool.allocate_class(rank, size_class);
  if (block) return block;
  if (is_full || pool.full_class(rank, size_class))
    not_before_ns_ = state_.fabric.now_ns() + kNoRoomNs;
  else
    asked_for_ = size_class;
  return std::nullopt;
}

bool Growth::add_extent() {
  const Rank rank = state_.fabric.rank();
  State::Home& home = state_.homes[rank];
  remote::SlabPool& pool = *state_.small;
  if (!has_extent_) {
    const auto block = allocate(kExtentClass);
    if (!block) return false;
    extent_ = *block;
    has_extent_ = true;
  }
  if (!state_.fabric.post(pool.link(extent_)).all()) return false;
  has_extent_ = false;
  // Late readers of what was here may still be looking.
  for (std::size_t at = 0; at < kSmallSlabBytes; at += kWordBytes)
    memory::store(word_at(pool.own_memory().data() + extent_.offset + at), 0);
  memory::store(word_at(state_.index.memory().data() +
                        extent_word_at(home.shape.base(), home.extents.size())),
                extent_.offset);
  home.extents.push_back(extent_.offset);
  return true;
}

/// By an operation of the fabric, as all members take it.
bool Growth::lock() {
  const Rank rank = state_.fabric.rank();
  const Place main = state_.main_header(rank, state_.homes[rank].shape.next_to_split());
  lock_word_ = lock_word::make(rank, ++state_.serial);
  before_ = 0;
  done_.reset();
  if (!state_.fabric
           .post(compare_swap(rank, state_.region_of(main), main.offset + kLockAt, 0, lock_word_,
                              &before_)
                     .notify(done_))
           .all())
    return false;
  stage_ = Stage::locked;
  return true;
}

/// The upper half's slots are copied before any member can learn of their main header, and leave
/// the chain after its depth has been raised: a reader finds a key in the one or in the other, or
/// sees that depth.
void Growth::split() {
  const Rank rank = state_.fabric.rank();
  State::Home& home = state_.homes[rank];
  const std::uint64_t number = home.shape.headers();
  const std::uint32_t depth = home.shape.depth_to_split();
  std::byte* const main = state_.own_main(home.shape.next_to_split());
  const std::uint64_t version = memory::load(word_at(main + kVersionAt));

  moving_.clear();
  slots_.clear();
  for (std::byte* const bucket : OwnChain(state_, main))
    for (std::size_t i = 0; i < kSlots; ++i) {
      std::byte* const slot = bucket + i * kSlotBytes;
      const Slot content{memory::load(word_at(slot)), memory::load(word_at(slot + kWordBytes))};
      if (content.word == 0 ||
          home.shape.number_at(IndexShape::position_of(content.hash), depth + 1) != number)
        continue;
      moving_.push_back(slot);
      slots_.push_back(content);
    }
  const std::size_t all = moving_.size();
  buckets_needed_ = all <= kSlots ? 0 : (all - 1) / kSlots;
  if (buckets_needed_ > buckets_.size()) return unlock(main, version);  // once more, with so many

  home.shape.grow_to(number + 1);
  std::byte* const upper = state_.own_main(number);
  std::byte* to = upper;
  for (std::size_t i = 0; i < all; ++i) {
    if (i > 0 && i % kSlots == 0) {
      const std::uint64_t offset = buckets_.back();
      buckets_.pop_back();
      std::byte* const next = state_.small->own_memory().data() + offset;
      for (std::size_t at = 0; at < sizeof(Bucket); at += kWordBytes)
        memory::store(word_at(next + at), 0);
      memory::store(
          word_at(to + kLinkAt),
          slot_word::make(SlotType::header, 0, {false, kIndirectClass, offset}, sizeof(Bucket)));
      to = next;
    }
    std::byte* const slot = to + i % kSlots * kSlotBytes;
    memory::store(word_at(slot), slots_[i].hash);
    memory::store(word_at(slot + kWordBytes), slots_[i].word);
  }
  memory::store(word_at(upper + kDepthAt), depth + 1);
  memory::store(word_at(upper + kVersionAt), version + 1);
  memory::store(word_at(state_.index.memory().data() + kMainHeadersAt), number + 1);
  memory::store(word_at(main + kDepthAt), depth + 1);
  for (std::byte* const slot : moving_) {
    memory::store(word_at(slot + kWordBytes), 0);
    memory::store(word_at(slot), 0);
  }
  unlock(main, version + 1);
  buckets_needed_ = 0;
  set_most_keys();
  ++state_.counters.splits;
}

void Growth::unlock(std::byte* main, std::uint64_t version) noexcept {
  memory::store(word_at(main + kVersionAt), version);
  memory::store(word_at(main + kLockAt), 0);
}

}  // namespace dunlin::store
