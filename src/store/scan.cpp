#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

#include "store/state.hpp"

/// Scans: position by position, chain by chain, slot by slot. A key keeps its slot as long as its
/// chain has it, and its position for ever, so it is seen exactly once. A step passes over any
/// number of empty chains, and looks at many of them at once.
namespace dunlin {

using remote::Status;

StoreScan::StoreScan(Store& store, ScanOptions options)
    : InFlight(store.progress()),
      store_(*store.state_),
      options_(options),
      work_(std::make_unique<store::ScanWork>()) {}
StoreScan::~StoreScan() { abandon(); }
void StoreScan::advance() noexcept { store_.advance(*this); }
void StoreScan::clean_up() noexcept { work_->stage = store::ScanStage::done; }
void StoreScan::step(StoreCursor from) noexcept { store_.begin(*this, from); }
std::size_t StoreScan::size() const noexcept { return work_->found.size(); }

StoreEntry StoreScan::operator[](std::size_t i) const {
  const store::ScanWork::Found& found = work_->found.at(i);
  const std::span bytes(work_->bytes);
  return {.key = bytes.subspan(found.at, found.key_bytes),
          .value = bytes.subspan(found.at + found.key_bytes, found.value_bytes),
          .version = found.version,
          .ttl_ns = found.ttl_ns};
}

namespace store {
namespace {

/// 16 bits for the member, 48 for the position there.
[[nodiscard]] StoreCursor cursor_of(Rank home, std::uint64_t position) noexcept {
  return std::uint64_t{home} << 48 | position;
}

/// Runs of empty chains before others poll.
constexpr std::uint32_t kRunsAtOnce = 16;

[[nodiscard]] bool is_empty(const Bucket& bucket) noexcept {
  return std::ranges::all_of(bucket.slots, [](const Slot& slot) { return slot.word == 0; });
}

}  // namespace

void State::begin(StoreScan& scan, StoreCursor from) noexcept {
  scan.abandon();
  ScanWork& work = *scan.work_;
  work.home = static_cast<Rank>(from >> 48);
  work.position = from & 0xffffffffffff;
  work.left = std::max(scan.options_.buckets, 1U);
  work.was_empty = false;
  work.runs = 0;
  work.tries = 0;
  work.rest = {};
  work.posted = 0;
  work.found.clear();
  work.found_before = 0;
  work.bytes.clear();
  work.stage = ScanStage::attach;
  scan.next_ = from;
  scan.start();
}

bool State::end(StoreScan& scan, Status status) noexcept {
  ScanWork& work = *scan.work_;
  if (status == Status::lost && has_another_home(work.home, work.position, work.at)) {
    // Its keys have another home, once the members agree.
    fabric.abandon(scan.completion_);
    scan.completion_.reset();
    work.found.resize(work.found_before);
    work.posted = 0;
    work.stage = ScanStage::attach;
    begin_rest(work.rest);
    return false;
  }
  if (status == Status::lost) {  // goes on behind that member
    const bool has_rest = work.home < members && progress.contains(work.home) &&
                          has_moved(work.home, work.position) &&
                          homes[work.home].moved_below < kAllPositions;
    if (has_rest)
      scan.next_ = cursor_of(work.home, homes[work.home].moved_below);
    else
      scan.next_ = work.home + 1 < members ? cursor_of(work.home + 1, 0) : 0;
  } else if (status == Status::ok) {
    scan.next_ = work.home < members ? cursor_of(work.home, work.position) : 0;
  }
  scan.end(status);
  return false;
}

void State::advance(StoreScan& scan) noexcept {
  if (rests(scan.work_->rest)) return;
  for (int steps = 0; steps < kStepsAtOnce; ++steps) {
    if (scan.completion_.failed() && !end(scan, Status::lost)) return;
    if (!step(scan)) return;
  }
  look_again_soon();
}

bool State::step(StoreScan& scan) noexcept {
  switch (scan.work_->stage) {
    case ScanStage::attach:
      return scan_attach(scan);
    case ScanStage::bucket:
      return scan_bucket(scan);
    case ScanStage::bucket_read:
      return scan_bucket_read(scan);
    case ScanStage::entries:
      return scan_entries(scan);
    case ScanStage::entries_read:
      return scan_entries_read(scan);
    case ScanStage::depth:
      return scan_depth(scan);
    case ScanStage::depth_read:
      return scan_depth_read(scan);
    case ScanStage::run:
      return scan_run(scan);
    case ScanStage::run_read:
      return scan_run_read(scan);
    case ScanStage::run_depths:
      return scan_run_depths(scan);
    case ScanStage::run_depths_read:
      return scan_run_depths_read(scan);
    case ScanStage::done:
      return false;
  }
  return false;
}

bool State::post(StoreScan& scan, std::span<const Operation> batch, ScanStage next) noexcept {
  ScanWork& work = *scan.work_;
  const Posted posted = fabric.post(batch.subspan(work.posted));
  work.posted += posted.accepted;
  if (posted.all()) {
    work.posted = 0;
    work.stage = next;
    return scan.completion_.finished();
  }
  const bool for_ever =
      posted.refusal != Refusal::queue_full && posted.refusal != Refusal::not_connected;
  const Status why = fault(work.at);
  if (!for_ever && why == Status::ok) return false;
  fabric.abandon(scan.completion_);
  return end(scan, why != Status::ok ? why : Status::out_of_range);
}

bool State::scan_attach(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  if (work.home >= members || work.position > UINT32_MAX) return end(scan, Status::out_of_range);
  if (has_changed_homes) {
    const Status found = find_homes(work.home, work.position);
    if (found == Status::busy) begin_rest(work.rest);
    if (found == Status::busy || found == Status::under_way) return false;
  }
  work.at = homes_of(work.home, work.position).first;
  if (const Status why = fault(work.at); why != Status::ok) return end(scan, why);
  const Status known = know_home(work.home, work.position, work.at);
  if (known == Status::busy) begin_rest(work.rest);
  if (known == Status::busy || known == Status::under_way) return false;
  if (homes_of(work.home, work.position).first != work.at) return true;  // it has left
  if (known != Status::ok) return end(scan, known);
  work.below = scanned_below(work);  // before the slots are read: more may move meanwhile
  work.number = homes[work.at].shape.number_of(work.position);
  work.main = work.bucket = main_header(work.at, work.number);
  work.found_before = work.found.size();
  work.pending = (1U << kSlots) - 1;
  work.read_bytes.fill(0);
  work.buckets = 0;
  work.is_empty = true;
  work.stage = ScanStage::bucket;
  if (work.was_empty) plan_run(work);
  return true;
}

bool State::scan_bucket(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  return post(scan,
              std::array{read(work.at, region_of(work.bucket), work.bucket.offset, &work.header,
                              sizeof(Bucket))
                             .notify(scan.completion_)},
              ScanStage::bucket_read);
}

bool State::scan_bucket_read(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  work.is_empty = work.is_empty && is_empty(work.header.bucket);
  for (std::size_t i = 0; i < kSlots; ++i) {
    const std::uint64_t word = work.header.bucket.slots[i].word;
    const std::size_t block = block_bytes(slot_word::location_of(word));
    if (slot_word::type_of(word) != SlotType::entry || block == 0) {
      work.pending &= ~(1U << i);
      continue;
    }
    work.read_bytes[i] =
        std::min(block, std::max({work.read_bytes[i], slot_word::bytes_of(word), kCacheLineBytes}));
    if ((work.pending >> i & 1) != 0) work.entries[i].reserve(work.read_bytes[i]);
  }
  if (work.pending == 0) return scan_next(scan);
  work.stage = ScanStage::entries;
  return true;
}

bool State::scan_entries(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  std::array<Operation, kSlots> batch;
  std::size_t steps = 0;
  for (std::size_t i = 0; i < kSlots; ++i) {
    if ((work.pending >> i & 1) == 0) continue;
    const Location location = slot_word::location_of(work.header.bucket.slots[i].word);
    batch[steps++] = read(work.at, pool_of(location).region(), location.offset,
                          work.entries[i].data(), work.read_bytes[i])
                         .notify(scan.completion_);
  }
  return post(scan, std::span(batch).first(steps), ScanStage::entries_read);
}

/// Takes those that are whole; the others are looked at again, from their slots on.
bool State::scan_entries_read(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  for (std::size_t i = 0; i < kSlots; ++i) {
    if ((work.pending >> i & 1) == 0) continue;
    const std::uint64_t word = work.header.bucket.slots[i].word;
    const Location location = slot_word::location_of(word);
    const std::byte* const entry = work.entries[i].data();
    const EntryHead head = head_of(entry);
    const bool same = slot_word::lossy(incarnation_of(head.guard)) == slot_word::lossy_of(word);
    if (same && state_of(head.guard) == EntryState::dead) work.pending &= ~(1U << i);
    if (!same || state_of(head.guard) != EntryState::live || !is_sound(head)) continue;
    if (entry_bytes(head) > work.read_bytes[i]) {
      work.read_bytes[i] = entry_bytes(head);
      continue;
    }
    if (checksum_of(entry, head, location) != head.checksum) continue;
    work.pending &= ~(1U << i);
    const std::uint64_t ttl = ttl_of(work.at, head.expiry_ns);
    if (ttl == 0) continue;
    const std::size_t value_bytes = scan.options_.values ? head.value_bytes : 0;
    work.found.push_back({work.bytes.size(), head.key_bytes, value_bytes, head.version, ttl});
    work.bytes.insert(work.bytes.end(), entry + kEntryHeadBytes,
                      entry + kEntryHeadBytes + head.key_bytes + value_bytes);
  }
  if (work.pending == 0) return scan_next(scan);
  ++counters.read_again;
  work.stage = ScanStage::bucket;
  if (++work.tries < kTriesAtOnce) return true;
  begin_rest(work.rest);
  return false;
}

/// The next bucket of the chain.
bool State::scan_next(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  const std::uint64_t link = work.header.bucket.link;
  if (slot_word::type_of(link) == SlotType::header && ++work.buckets < kMostBuckets) {
    work.bucket = {.in_slabs = true, .offset = slot_word::location_of(link).offset};
    work.pending = (1U << kSlots) - 1;
    work.read_bytes.fill(0);
    work.stage = ScanStage::bucket;
    return true;
  }
  work.stage = ScanStage::depth;
  return true;
}

/// STO-10. Which positions the chain still has: later than all of its slots were looked at.
bool State::scan_depth(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  const Place at = work.main.at(kDepthAt);
  return post(scan,
              std::array{read(work.at, region_of(at), at.offset, &work.depth, kWordBytes)
                             .notify(scan.completion_)},
              ScanStage::depth_read);
}

/// The chain of a home to which keys have moved may end later than what has moved.
std::uint64_t State::scanned_below(const ScanWork& work) const noexcept {
  return work.at == work.home ? kAllPositions
                              : covered_below(work.home, work.position, kAllPositions);
}

/// Keys that another chain has by now are seen there. Then the next chain, or the next member.
bool State::scan_depth_read(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  const IndexShape& shape = homes[work.at].shape;
  if (shed_depth::is(work.depth)) work.depth = shed_depth::depth(work.depth);
  const std::uint64_t departed = work.depth;
  if (departed_depth::is(departed)) work.depth = departed_depth::depth(departed);
  if (departed_depth::is(departed) && shape.is_depth(work.depth) &&
      shape.number_at(work.position, static_cast<std::uint32_t>(work.depth)) == work.number) {
    // Its keys are seen where they are now.
    if (!learn_departure(work.at, work.position, departed)) return end(scan, Status::out_of_range);
    work.found.resize(work.found_before);
    work.stage = ScanStage::attach;
    return true;
  }
  if (!shape.is_depth(work.depth)) return end(scan, Status::out_of_range);
  const auto depth = static_cast<std::uint32_t>(work.depth);
  const std::uint64_t below = std::min(work.below, shape.end_of(work.position, depth));
  const auto has_left = [&](std::uint64_t position) {
    return shape.number_at(position, depth) != work.number;
  };
  const auto seen_elsewhere = [&](const ScanWork::Found& found) {
    const std::span key = std::span(work.bytes).subspan(found.at, found.key_bytes);
    const std::uint64_t hash = hash_of(key);
    const std::uint64_t position = IndexShape::position_of(hash);
    // The chain of a home that has taken over may begin earlier.
    return has_left(position) || position < work.position || position >= below ||
           home_of(hash) != work.home;
  };
  const auto found = work.found.begin() + static_cast<std::ptrdiff_t>(work.found_before);
  if (has_left(work.position)) {  // and this chain has been seen: not all main headers were known
    work.found.erase(found, work.found.end());
    learn_split(work.at, work.position, work.number, depth);
    work.stage = ScanStage::attach;
    return true;
  }
  work.found.erase(std::remove_if(found, work.found.end(), seen_elsewhere), work.found.end());
  work.was_empty = work.is_empty;
  if (!work.is_empty) --work.left;
  return scan_on(scan, below);
}

/// A step does not go from one member to the next.
bool State::scan_on(StoreScan& scan, std::uint64_t position) noexcept {
  ScanWork& work = *scan.work_;
  work.position = position;
  const bool is_last = position > UINT32_MAX;
  if (is_last) {
    ++work.home;
    work.position = 0;
  }
  if (is_last || work.left == 0) return end(scan, Status::ok);
  work.stage = ScanStage::attach;
  return true;
}

// --- empty chains --------------------------------------------------------------------------------

/// The next chains in the order of their positions, as far as this process knows the index.
void State::plan_run(ScanWork& work) const noexcept {
  const IndexShape& shape = homes[work.at].shape;
  work.run.clear();
  std::uint64_t position = work.position;
  while (work.run.size() < ScanWork::kRun && position < work.below) {
    const std::uint64_t number = shape.number_of(position);
    ScanWork::Chain& chain = work.run.emplace_back();
    chain.position = position;
    chain.number = number;
    chain.main = main_header(work.at, number);
    position = shape.end_of(position, shape.depth_of(position));
  }
  if (!work.run.empty()) work.stage = ScanStage::run;
}

bool State::scan_run(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  std::array<Operation, ScanWork::kRun> batch;
  std::size_t steps = 0;
  for (ScanWork::Chain& chain : work.run)
    batch[steps++] =
        read(work.at, region_of(chain.main), chain.main.offset, &chain.bucket, sizeof(Bucket))
            .notify(scan.completion_);
  return post(scan, std::span(batch).first(steps), ScanStage::run_read);
}

bool State::scan_run_read(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  const auto found = std::ranges::find_if_not(work.run, [](const ScanWork::Chain& chain) {
    return is_empty(chain.bucket) && chain.bucket.link == 0;
  });
  work.run_empty = static_cast<std::size_t>(found - work.run.begin());
  work.stage = work.run_empty == 0 ? ScanStage::bucket : ScanStage::run_depths;
  return true;
}

bool State::scan_run_depths(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  std::array<Operation, ScanWork::kRun> batch;
  for (std::size_t i = 0; i < work.run_empty; ++i) {
    ScanWork::Chain& chain = work.run[i];
    const Place at = chain.main.at(kDepthAt);
    batch[i] =
        read(work.at, region_of(at), at.offset, &chain.depth, kWordBytes).notify(scan.completion_);
  }
  return post(scan, std::span(batch).first(work.run_empty), ScanStage::run_depths_read);
}

/// STO-10, as scan_depth_read(). A chain that says anything but its depth is looked at by itself.
bool State::scan_run_depths_read(StoreScan& scan) noexcept {
  ScanWork& work = *scan.work_;
  const IndexShape& shape = homes[work.at].shape;
  std::uint64_t position = work.position;
  work.was_empty = work.run_empty == work.run.size();
  for (std::size_t i = 0; i < work.run_empty && position == work.run[i].position; ++i) {
    const ScanWork::Chain& chain = work.run[i];
    const auto depth = static_cast<std::uint32_t>(chain.depth);
    if (!shape.is_depth(chain.depth) || shape.number_at(position, depth) != chain.number) {
      work.was_empty = false;
      break;
    }
    position = std::min(work.below, shape.end_of(position, depth));
  }
  if (position == work.position) {
    work.stage = ScanStage::bucket;
    return true;
  }
  if (!scan_on(scan, position)) return false;
  if (++work.runs % kRunsAtOnce != 0) return true;
  look_again_soon();
  return false;
}

}  // namespace store
}  // namespace dunlin
