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

/// 16 bits for the member, 48 for the position there.
[[nodiscard]] StoreCursor cursor_of(Rank home, std::uint64_t position) noexcept {
  return std::uint64_t{home} << 48 | position;
}

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
  home_ = static_cast<Rank>(from >> 48);
  position_ = from & 0xffffffffffff;
  left_ = std::max(options_.buckets, 1U);
  was_empty_ = false;
  tries_ = 0;
  rest_ = {};
  found_.clear();
  bytes_.clear();
}

/// A step does not go from one member to the next.
Protocol<Status> Scan::step(StoreCursor from) {
  begin(from);
  const Rank home = home_;
  if (home >= state_.members || position_ > UINT32_MAX) co_return Status::out_of_range;
  std::uint32_t at_once = 0;
  while (home_ == home && left_ > 0) {
    found_before_ = found_.size();
    const bool may_run = was_empty_;
    Status status = co_await find_home();
    if (status == Status::ok && may_run) status = co_await pass_over_empty_chains();
    if (status == Status::busy || (status == Status::ok && !may_run)) status = co_await see_chain();
    if (status != Status::ok) found_.resize(found_before_);
    if (status == Status::lost && state_.has_another_home(home_, position_, at_)) {
      co_await rest_.next(state_.fabric);  // once the members agree
    } else if (status == Status::lost) {
      next_ = behind_what_is_lost();
      co_return status;
    } else if (status != Status::ok && status != Status::changed) {
      co_return status;
    }
    at_once += may_run ? kChainsForRun : 1;
    if (at_once < kChainsAtOnce) continue;
    at_once = 0;
    state_.look_again_soon();
    co_await NextPoll();
  }
  next_ = home_ < state_.members ? cursor_of(home_, position_) : 0;
  co_return Status::ok;
}

StoreCursor Scan::behind_what_is_lost() const noexcept {
  const std::uint64_t moved_below = state_.homes[home_].moved_below;
  const bool has_rest = state_.progress.contains(home_) && state_.has_moved(home_, position_) &&
                        moved_below < kAllPositions;
  if (has_rest) return cursor_of(home_, moved_below);
  return home_ + 1 < state_.members ? cursor_of(home_ + 1, 0) : 0;
}

/// Where the chain of the position is.
Protocol<Status> Scan::find_home() {
  for (;;) {
    Status status = Status::ok;
    if (state_.has_changed_homes) status = state_.find_homes(home_, position_);
    if (status != Status::busy && status != Status::under_way) {
      at_ = state_.homes_of(home_, position_).first;
      status = state_.fault(at_);
      if (status == Status::ok) status = state_.know_home(home_, position_, at_);
    }
    if (status == Status::busy) {
      co_await rest_.next(state_.fabric);
    } else if (status == Status::under_way) {
      co_await NextPoll();
    } else if (status != Status::ok) {
      co_return status;
    } else if (state_.homes_of(home_, position_).first == at_) {  // else it has left
      below_ = scanned_below();  // before the slots are read: more may move meanwhile
      number_ = state_.homes[at_].shape.number_of(position_);
      main_ = state_.main_header(at_, number_);
      co_return Status::ok;
    }
  }
}

/// The chain of a home to which keys have moved may end later than what has moved.
std::uint64_t Scan::scanned_below() const noexcept {
  return at_ == home_ ? kAllPositions : state_.covered_below(home_, position_, kAllPositions);
}

void Scan::go_on(std::uint64_t position) noexcept {
  position_ = position;
  if (position <= UINT32_MAX) return;
  ++home_;
  position_ = 0;
}

// --- a chain -------------------------------------------------------------------------------------

/// `changed`: the position has another chain. The range of the chain is read later than all of its
/// slots (STO-10).
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
    const std::size_t block = State::block_bytes(slot_word::location_of(word));
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

/// Keys that another chain has by now are seen there. Then the next chain, or the next member.
Status Scan::take_depth() {
  const IndexShape& shape = state_.homes[at_].shape;
  if (shed_depth::is(depth_)) depth_ = shed_depth::depth(depth_);
  const std::uint64_t departed = depth_;
  if (departed_depth::is(departed)) depth_ = departed_depth::depth(departed);
  if (!shape.is_depth(depth_)) return Status::out_of_range;
  const auto depth = static_cast<std::uint32_t>(depth_);
  const auto has_left = [&](std::uint64_t position) {
    return shape.number_at(position, depth) != number_;
  };
  if (departed_depth::is(departed) && !has_left(position_))  // its keys are seen where they are now
    return state_.learn_departure(at_, position_, departed) ? Status::changed
                                                            : Status::out_of_range;
  if (has_left(position_)) {  // and this chain has been seen: not all main headers were known
    state_.learn_split(at_, position_, number_, depth);
    return Status::changed;
  }
  const std::uint64_t below = std::min(below_, shape.end_of(position_, depth));
  const auto seen_elsewhere = [&](const Found& found) {
    const std::uint64_t hash = hash_of(std::span(bytes_).subspan(found.at, found.key_bytes));
    const std::uint64_t position = IndexShape::position_of(hash);
    // The chain of a home that has taken over may begin earlier.
    return has_left(position) || position < position_ || position >= below ||
           state_.home_of(hash) != home_;
  };
  const auto found = found_.begin() + static_cast<std::ptrdiff_t>(found_before_);
  found_.erase(std::remove_if(found, found_.end(), seen_elsewhere), found_.end());
  was_empty_ = is_empty_;
  if (!is_empty_) --left_;
  go_on(below);
  return Status::ok;
}

// --- empty chains --------------------------------------------------------------------------------

/// `ok`: the position is behind some chains that are empty. `busy`: the first one is to be seen by
/// itself.
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
  const std::uint64_t end = end_of_empty_chains(empty);
  if (end == position_) co_return Status::busy;
  go_on(end);
  co_return Status::ok;
}

/// The next chains in the order of their positions, as far as this process knows the index.
void Scan::plan_run() {
  const IndexShape& shape = state_.homes[at_].shape;
  run_.clear();
  std::uint64_t position = position_;
  while (run_.size() < kRun && position < below_) {
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
  was_empty_ = empty == run_.size();
  for (std::size_t i = 0; i < empty && end == run_[i].position; ++i) {
    const Chain& chain = run_[i];
    const auto depth = static_cast<std::uint32_t>(chain.depth);
    if (!shape.is_depth(chain.depth) || shape.number_at(end, depth) != chain.number) {
      was_empty_ = false;
      break;
    }
    end = std::min(below_, shape.end_of(end, depth));
  }
  return end;
}

}  // namespace store
}  // namespace dunlin
