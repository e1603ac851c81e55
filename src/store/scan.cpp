#include "store/scan.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "store/state.hpp"

/// Scans. A step passes over any number of empty chains, and looks at many of them at once.
namespace dunlin {

using remote::Protocol;
using remote::Status;

StoreScan::StoreScan(Store& store, ScanOptions options)
    : Call(store.progress(), Status::ok),
      scan_(std::make_unique<store::Scan>(*store.state_, options)) {}
StoreScan::~StoreScan() { abandon(); }

void StoreScan::step(StoreCursor from) {
  abandon();
  static_cast<Call&>(*this) = Call(progress(), scan_->step(from));
}

StoreCursor StoreScan::cursor() const noexcept { return scan_->next(); }
std::size_t StoreScan::size() const noexcept { return scan_->size(); }
StoreEntry StoreScan::operator[](std::size_t i) const { return scan_->entry(i); }

namespace store {

using remote::NextPoll;

namespace {

/// Set in a cursor: its owner has been told that keys are lost.
constexpr StoreCursor kKnowsOfLost = StoreCursor{1} << 32;

/// Chains, and runs of empty ones, before others poll.
constexpr std::uint32_t kChainsAtOnce = 512;
constexpr std::uint32_t kChainsForRun = 32;

[[nodiscard]] bool is_empty(const Bucket& bucket) noexcept {
  return std::ranges::all_of(bucket.slots, [](const Slot& slot) { return slot.word == 0; });
}

}  // namespace

remote::Progress& Scan::its_progress() const noexcept { return state_.progress; }

StoreEntry Scan::entry(std::size_t i) const {
  const Found& found = found_.at(i);
  const std::span bytes(bytes_);
  return {.key = bytes.subspan(found.at, found.key_bytes),
          .value = bytes.subspan(found.at + found.key_bytes, found.value_bytes),
          .version = found.version,
          .ttl_ns = found.ttl_ns};
}

void Scan::begin(StoreCursor from) {
  next_ = from;
  position_ = from & UINT32_MAX;
  knows_of_lost_ = (from & kKnowsOfLost) != 0;
  left_ = std::max(options_.buckets, 1U);
  was_empty_ = false;
  tries_ = 0;
  rest_ = {};
  found_.clear();
  bytes_.clear();
}

Protocol<Status> Scan::step(StoreCursor from) {
  begin(from);
  if (from >= 2 * kKnowsOfLost) co_return Status::out_of_range;
  std::uint32_t at_once = 0;
  while (position_ < kAllPositions && left_ > 0) {
    found_before_ = found_.size();
    at_once += was_empty_ ? kChainsForRun : 1;
    const Status status = co_await see_range();
    if (status != Status::ok) found_.resize(found_before_);
    if (status == Status::lost) {
      next_ = position_ | kKnowsOfLost;
      co_return status;
    }
    if (status == Status::busy) co_await rest_.next(state_.fabric);
    if (status != Status::ok && status != Status::busy) co_return status;
    if (at_once < kChainsAtOnce) continue;
    at_once = 0;
    state_.look_again_soon();
    co_await NextPoll();
  }
  next_ = position_ < kAllPositions ? position_ | (from & kKnowsOfLost) : 0;
  co_return Status::ok;
}

// --- a range of positions ------------------------------------------------------------------------

Protocol<Status> Scan::see_member(Rank rank, std::uint64_t from, std::uint64_t below) {
  begin(from);
  at_ = rank;
  sees_owned_ = false;
  while (position_ < below) {
    const Status status = co_await see_chains(false);
    if (status != Status::ok && status != Status::changed) co_return status;
    if (status == Status::ok) position_ = end_;
  }
  co_return Status::ok;
}

/// The chains of all members that begin at the position. The shortest of them is the range: what
/// the others have behind it is seen later. `busy`: a slot has moved meanwhile, or is not open.
Protocol<Status> Scan::see_range() {
  if (const Status status = look_at_owners(); status != Status::ok) co_return status;
  const std::uint64_t changes = state_.routes.changes();
  const bool may_run = was_empty_;
  std::uint64_t below = kAllPositions;
  std::uint32_t used = 0;
  bool all_empty = true;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    at_ = owners_[i];
    Status status = Status::changed;
    while (status == Status::changed) status = co_await see_chains(may_run);
    if (status == Status::lost && knows_of_lost_ && state_.placement == nullptr) continue;
    if (status == Status::lost && state_.placement != nullptr) co_return Status::busy;
    if (status != Status::ok) co_return status;
    below = std::min(below, end_);
    all_empty = all_empty && is_empty_ && more_are_empty_;
    used += is_empty_ ? 0 : 1;
  }
  if (state_.routes.changes() != changes) co_return Status::busy;
  const auto found = found_.begin() + static_cast<std::ptrdiff_t>(found_before_);
  const auto is_behind = [&](const Found& one) { return position_of(one) >= below; };
  found_.erase(std::remove_if(found, found_.end(), is_behind), found_.end());
  was_empty_ = all_empty;
  left_ -= std::min(left_, used);
  position_ = below;
  co_return Status::ok;
}

/// `lost`: nobody has the keys of some slots, and the one who scans has not been told.
Status Scan::look_at_owners() {
  const Routes& routes = state_.routes;
  if (!routes.all_open()) return state_.why_closed(0);
  if (routes.some_lost() && !knows_of_lost_) return Status::lost;
  if (owners_in_ == routes.changes()) return Status::ok;
  owners_in_ = routes.changes();
  owners_.clear();
  for (const std::uint64_t word : routes.words())
    if (!route::is_lost(word)) owners_.push_back(route::owner(word));
  std::ranges::sort(owners_);
  owners_.erase(std::unique(owners_.begin(), owners_.end()), owners_.end());
  return Status::ok;
}

/// Goes over chains of one member. `changed`: the position has another chain.
Protocol<Status> Scan::see_chains(bool may_run) {
  found_of_member_ = found_.size();
  Status status = co_await state_.find_index(at_);
  if (status != Status::ok) co_return status;
  number_ = state_.homes[at_].shape.number_of(position_);
  main_ = state_.main_header(at_, number_);
  end_ = position_;
  more_are_empty_ = true;
  if (may_run) status = co_await pass_over_empty_chains();
  if (status == Status::ok && end_ == position_) status = co_await see_chain();
  if (status != Status::ok) found_.resize(found_of_member_);
  co_return status;
}

std::uint64_t Scan::hash_of_found(const Found& found) const noexcept {
  return hash_of(std::span(bytes_).subspan(found.at, found.key_bytes));
}
std::uint64_t Scan::position_of(const Found& found) const noexcept {
  return IndexShape::position_of(hash_of_found(found));
}

// --- a chain -------------------------------------------------------------------------------------

/// The range of the chain is read later than all of its slots (STO-10).
Protocol<Status> Scan::see_chain() {
  is_empty_ = true;
  Place bucket = main_;
  for (std::uint32_t seen = 0; seen < kMostBuckets; ++seen) {
    const Status status = co_await see_bucket(bucket);
    if (status != Status::ok) co_return status;
    const std::uint64_t link = bucket_.link;
    if (slot_word::type_of(link) != SlotType::header) break;
    bucket = {.in_slabs = true, .offset = slot_word::location_of(link).offset};
  }
  const Place at = main_.at(kDepthAt);
  auto reading = remote::post(
      state_.fabric, read(at_, state_.region_of(at), at.offset, &depth_, kWordBytes), gate());
  const Status status = co_await reading;
  co_return status == Status::ok ? take_depth() : status;
}

/// Takes the entries that are whole; looks at the others again, from their slots on.
Protocol<Status> Scan::see_bucket(Place bucket) {
  pending_ = (1U << kSlots) - 1;
  read_bytes_.fill(0);
  for (;;) {
    auto reading = remote::post(
        state_.fabric, read(at_, state_.region_of(bucket), bucket.offset, &bucket_, sizeof(Bucket)),
        gate());
    Status status = co_await reading;
    if (status != Status::ok) co_return status;
    note_slots();
    remote::Batch<kSlots, HomeGate> entries(state_.fabric, gate());
    for (std::size_t i = 0; i < kSlots; ++i) {
      if ((pending_ >> i & 1) == 0) continue;
      const Location location = slot_word::location_of(bucket_.slots[i].word);
      entries.add(read(at_, state_.pool_of(location).region(), location.offset, entries_[i].data(),
                       read_bytes_[i]));
    }
    status = co_await entries;
    if (status != Status::ok) co_return status;
    take_entries();
    if (pending_ == 0) co_return Status::ok;
    ++state_.counters.read_again;
    if (++tries_ >= kTriesAtOnce) co_await rest_.next(state_.fabric);
  }
}

void Scan::note_slots() {
  is_empty_ = is_empty_ && is_empty(bucket_);
  for (std::size_t i = 0; i < kSlots; ++i) {
    const std::uint64_t word = bucket_.slots[i].word;
    const std::size_t block = block_bytes(slot_word::location_of(word));
    if (slot_word::type_of(word) != SlotType::entry || block == 0) {
      pending_ &= ~(1U << i);
      continue;
    }
    read_bytes_[i] =
        std::min(block, std::max({read_bytes_[i], slot_word::bytes_of(word), kCacheLineBytes}));
    if ((pending_ >> i & 1) != 0) entries_[i].reserve(read_bytes_[i]);
  }
}

void Scan::take_entries() {
  for (std::size_t i = 0; i < kSlots; ++i) {
    if ((pending_ >> i & 1) == 0) continue;
    const std::uint64_t word = bucket_.slots[i].word;
    const Location location = slot_word::location_of(word);
    const std::byte* const entry = entries_[i].data();
    const EntryHead head = head_of(entry);
    const bool same = slot_word::lossy(incarnation_of(head.guard)) == slot_word::lossy_of(word);
    if (same && state_of(head.guard) == EntryState::dead) pending_ &= ~(1U << i);
    if (!same || state_of(head.guard) != EntryState::live || !is_sound(head)) continue;
    if (entry_bytes(head) > read_bytes_[i]) {
      read_bytes_[i] = entry_bytes(head);
      continue;
    }
    if (checksum_of(entry, head, location) != head.checksum) continue;
    pending_ &= ~(1U << i);
    const std::uint64_t ttl = state_.ttl_of(at_, head.expiry_ns);
    if (ttl == 0) continue;
    const std::size_t value_bytes = options_.values ? head.value_bytes : 0;
    found_.push_back({bytes_.size(), head.key_bytes, value_bytes, head.version, ttl});
    bytes_.insert(bytes_.end(), entry + kEntryHeadBytes,
                  entry + kEntryHeadBytes + head.key_bytes + value_bytes);
  }
}

/// Keys that another chain has by now are seen there, and those of other members' slots at these.
Status Scan::take_depth() {
  const IndexShape& shape = state_.homes[at_].shape;
  if (!shape.is_depth(depth_)) return Status::out_of_range;
  const auto depth = static_cast<std::uint32_t>(depth_);
  const auto has_left = [&](std::uint64_t position) {
    return shape.number_at(position, depth) != number_;
  };
  if (has_left(position_)) {  // and this chain has been seen: not all main headers were known
    state_.learn_split(at_, position_, number_, depth);
    return Status::changed;
  }
  end_ = shape.end_of(position_, depth);
  const auto seen_elsewhere = [&](const Found& found) {
    const std::uint64_t position = position_of(found);
    return has_left(position) || position < position_ ||
           (sees_owned_ && route::owner(state_.routes.of(hash_of_found(found))) != at_);
  };
  const auto found = found_.begin() + static_cast<std::ptrdiff_t>(found_of_member_);
  found_.erase(std::remove_if(found, found_.end(), seen_elsewhere), found_.end());
  return Status::ok;
}

// --- empty chains --------------------------------------------------------------------------------

/// Some chains that are empty, up to `end_`. Else the first one is to be seen by itself.
Protocol<Status> Scan::pass_over_empty_chains() {
  plan_run();
  auto& reading = reading_run_.emplace(state_.fabric, gate());
  for (Chain& chain : run_)
    reading.add(
        read(at_, state_.region_of(chain.main), chain.main.offset, &chain.bucket, sizeof(Bucket)));
  Status status = co_await reading;
  if (status != Status::ok) co_return status;
  const auto found = std::ranges::find_if_not(
      run_, [](const Chain& chain) { return is_empty(chain.bucket) && chain.bucket.link == 0; });
  const auto empty = static_cast<std::size_t>(found - run_.begin());
  for (Chain& chain : std::span(run_).first(empty)) {
    const Place at = chain.main.at(kDepthAt);
    reading.add(read(at_, state_.region_of(at), at.offset, &chain.depth, kWordBytes));
  }
  status = co_await reading;
  if (status != Status::ok) co_return status;
  end_ = end_of_empty_chains(empty);
  is_empty_ = true;
  co_return Status::ok;
}

/// The next chains in the order of their positions, as far as this process knows the index.
void Scan::plan_run() {
  const IndexShape& shape = state_.homes[at_].shape;
  run_.clear();
  std::uint64_t position = position_;
  while (run_.size() < kRun && position < kAllPositions) {
    const std::uint64_t number = shape.number_of(position);
    Chain& chain = run_.emplace_back();
    chain.position = position;
    chain.number = number;
    chain.main = state_.main_header(at_, number);
    position = shape.end_of(position, shape.depth_of(position));
  }
}

/// STO-10, as take_depth(). A chain that says anything but its depth is looked at by itself.
std::uint64_t Scan::end_of_empty_chains(std::size_t empty) noexcept {
  const IndexShape& shape = state_.homes[at_].shape;
  std::uint64_t end = position_;
  more_are_empty_ = empty == run_.size();
  for (std::size_t i = 0; i < empty && end == run_[i].position; ++i) {
    const Chain& chain = run_[i];
    const auto depth = static_cast<std::uint32_t>(chain.depth);
    if (!shape.is_depth(chain.depth) || shape.number_at(end, depth) != chain.number) {
      more_are_empty_ = false;
      break;
    }
    end = shape.end_of(end, depth);
  }
  return end;
}

}  // namespace store
}  // namespace dunlin
