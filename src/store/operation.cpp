#include <algorithm>
#include <array>
#include <utility>

#include "store/state.hpp"

/// A call on a store, step by step: the part that all kinds share.
namespace dunlin {

using remote::Status;

StoreOperation::StoreOperation(Store& store) noexcept
    : InFlight(store.progress()), store_(*store.state_) {}
StoreOperation::~StoreOperation() {
  abandon();
  store_.give_back(std::move(work_));
}
std::span<const std::byte> StoreOperation::key() const noexcept {
  return work_ == nullptr ? std::span<const std::byte>() : work_->key_span();
}
void StoreOperation::advance() noexcept { store_.advance(*this); }
void StoreOperation::clean_up() noexcept { store_.clean_up(*this); }

namespace store {
void State::begin(StoreOperation& op, Kind kind, StoreKey key, std::span<const std::byte> value,
                  std::uint64_t ttl_ns, std::uint64_t expected_version,
                  StoreUpdater updater) noexcept {
  prepare(op, kind, key, value, ttl_ns, expected_version, std::move(updater));
  op.start();
}

/// Where reads are loads, each get would wait for its own misses of the cache. So those of a batch
/// ask for what they will look at, and go on when the others have done the same.
void State::begin_get_of_batch(StoreOperation& op, StoreKey key) noexcept {
  prepare(op, Kind::get, key, {}, kNoExpiry, 0, nullptr);
  if (!fabric.properties().reads_are_loads) return op.start();
  const Work& work = *op.work_;
  const IndexShape& shape = homes[work.home].shape;
  if (options.cache_bytes > 0) {
    cache.prefetch(work.hash);
  } else if (shape.headers() != 0) {
    const Place main = main_header(work.home, shape.number_of(IndexShape::position_of(work.hash)));
    fabric.prefetch(work.home, region_of(main), main.offset, sizeof(MainHeader));
  }
  op.start_in_next_poll();
}

/// Whether it pauses: what it reads next was asked for, and comes while the others go on.
bool State::pauses(const Work& work) noexcept {
  if (work.kind != Kind::get || !fabric.properties().reads_are_loads || progress.in_flight() < 2)
    return false;
  if (work.stage == Stage::entry) {
    const std::uint64_t word = work.places[work.candidate].word;
    const Location location = slot_word::location_of(word);
    fabric.prefetch(work.home, pool_of(location).region(), location.offset,
                    std::min(slot_word::bytes_of(word), kMostPrefetchedBytes));
  } else if (options.cache_bytes > 0) {
    fabric.prefetch(work.home, region_of(work.main), work.main.offset, sizeof(MainHeader));
  } else {
    return false;  // was asked for when the get began
  }
  fabric.wake_at(0);
  return true;
}

void State::prepare(StoreOperation& op, Kind kind, StoreKey key, std::span<const std::byte> value,
                    std::uint64_t ttl_ns, std::uint64_t expected_version,
                    StoreUpdater updater) noexcept {
  op.abandon();
  if (op.work_ == nullptr) op.work_ = take_work();
  rewind(op);
  op.round_trips_ = op.bucket_reads_ = op.entry_reads_ = 0;
  op.keys_ = 0;

  Work& work = *op.work_;
  const std::span<const std::byte> bytes = key.bytes();
  work.kind = kind;
  work.ttl_ns = ttl_ns;
  work.expected_version = expected_version;
  work.updater = std::move(updater);
  work.key_bytes = std::min(bytes.size(), kMaxStoreKeyBytes);
  if (work.key_bytes > 0) std::memcpy(work.key.data(), bytes.data(), work.key_bytes);
  work.value_bytes = std::min(value.size(), kMaxStoreValueBytes);
  if (kind != Kind::get && kind != Kind::read && kind != Kind::count) {
    work.out.reserve(entry_bytes(work.key_bytes, work.value_bytes));
    std::byte* const to = work.out.data() + kEntryHeadBytes + work.key_bytes;
    if (work.value_bytes > 0) std::memcpy(to, value.data(), work.value_bytes);
  }
  work.hash = hash_of(work.key_span());
  work.home = kind == Kind::count ? 0 : first_home_of(work.hash);
  work.stage = kind == Kind::count ? Stage::count : waits(kind) ? Stage::leave : Stage::attach;
  const bool too_large = bytes.size() > kMaxStoreKeyBytes || value.size() > kMaxStoreValueBytes;
  if (too_large) work.end_status = Status::too_long;
  ++counter_of(kind);
}

void State::rewind(StoreOperation& op) noexcept {
  op.found_ = op.changed_ = false;
  op.version_ = 0;
  op.ttl_ns_ = kNoExpiry;
  op.value_ = nullptr;
  op.value_bytes_ = 0;
  Work& work = *op.work_;
  work.locked = work.is_copied = work.has_lock_word = false;
  work.lock_is_held = work.keeps_lock = false;
  work.has_entry_block = work.has_bucket_block = false;
  work.waits_for_room = work.has_moved = work.gives_way = false;
  work.end_status = Status::ok;
  work.redo_record = Work::kNoRecord;
  work.steps = work.posted = 0;
  work.tries = 0;
  work.rest = {};
  work.asked_for = SIZE_MAX;
  work.room_since_ns = 0;
  work.chain_version = UINT64_MAX;  // none has been seen
  work.stage = Stage::attach;
}

void State::advance(StoreOperation& op) noexcept {
  if (rests(op.work_->rest)) return;
  for (int steps = 0; steps < kStepsAtOnce; ++steps) {
    if (op.completion_.failed() && !end(op, Status::lost)) return;
    if (!step(op)) return;
  }
  look_again_soon();
}

/// A home that fails is no end if its keys have another one.
bool State::end(StoreOperation& op, Status status) noexcept {
  const Work& lost = *op.work_;
  // With one copy, whether a change has happened can no longer be told once it has been posted.
  const bool is_uncertain =
      !has_copies() && op.changed_ &&
      (lost.stage == Stage::committed || (lost.stage == Stage::commit && lost.posted > 0));
  if (status == Status::lost && !is_copy(lost.kind) && !is_hold(lost.kind) && !is_uncertain &&
      lost.kind != Kind::count && !waits(lost.kind) &&
      has_another_home(home_of(lost.hash), IndexShape::position_of(lost.hash), lost.home)) {
    op.work_->stage = Stage::fail_over;
    fabric.abandon(op.completion_);
    op.completion_.reset();
    return true;
  }
  op.end(status);
  return false;
}

bool State::step(StoreOperation& op) noexcept {
  switch (op.work_->stage) {
    case Stage::attach:
      return attach(op);
    case Stage::lock:
      return lock(op);
    case Stage::locked:
      return locked(op);
    case Stage::bucket:
      return read_bucket(op);
    case Stage::bucket_read:
      return bucket_read(op);
    case Stage::check:
      return check_absence(op);
    case Stage::checked:
      return absence_checked(op);
    case Stage::entry:
      return read_entry(op);
    case Stage::entry_read:
      return entry_read(op);
    case Stage::room:
      return find_room(op);
    case Stage::await_room:
      return await_room(op);
    case Stage::copy:
      return begin_copy(op);
    case Stage::copying:
      return copy_ended(op);
    case Stage::fail_over:
      return fail_over(op);
    case Stage::commit:
      return commit(op);
    case Stage::committed:
      return committed(op);
    case Stage::count:
      return count(op);
    case Stage::counted:
      return counted(op);
    case Stage::leave:
      return leaving(op);
    case Stage::done:
      return false;
  }
  return false;
}

/// Posts what is left of a batch; whether the next step can follow at once.
bool State::post(StoreOperation& op, Rank home, std::span<const Operation> batch,
                 Stage next) noexcept {
  Work& work = *op.work_;
  const Posted posted = fabric.post(batch.subspan(work.posted));
  work.posted += posted.accepted;
  if (posted.all()) {
    work.posted = 0;
    work.stage = next;
    ++op.round_trips_;
    return op.completion_.finished();
  }
  const bool for_ever =
      posted.refusal != Refusal::queue_full && posted.refusal != Refusal::not_connected;
  const Status why = fault(home);
  if (!for_ever && why == Status::ok) return false;
  fabric.abandon(op.completion_);
  if (work.from_cache && next == Stage::entry_read && why == Status::ok) {
    // The location is of a former home, which has more memory.
    op.completion_.reset();
    work.posted = 0;
    return look_again(op);
  }
  return end(op, why != Status::ok ? why : Status::out_of_range);
}

bool State::attach(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (work.end_status != Status::ok) return end(op, work.end_status);
  const bool is_at_first = !is_copy(work.kind) && work.kind != Kind::hold_copy;
  if (is_at_first && has_changed_homes) {
    const Status found = find_homes(home_of(work.hash), IndexShape::position_of(work.hash));
    if (found == Status::busy) begin_rest(work.rest);
    if (found == Status::busy || found == Status::under_way) return false;
  }
  if (is_at_first && has_changed_homes && first_home_of(work.hash) != work.home) {
    if (is_hold(work.kind)) return end(op, Status::lost);
    release_record(work);
    cancel_blocks(work);  // of the former home
    rewind(op);
    work.home = first_home_of(work.hash);
  }
  if (const Status why = fault(work.home); why != Status::ok) return end(op, why);
  const Status known =
      is_at_first ? know_home(home_of(work.hash), IndexShape::position_of(work.hash), work.home)
                  : know_index(work.home);
  if (known == Status::busy) begin_rest(work.rest);
  if (known == Status::busy || known == Status::under_way) return false;
  // That home has left, as the header of its index says.
  if (is_at_first && has_changed_homes && first_home_of(work.hash) != work.home) return true;
  if (known != Status::ok) return end(op, known);
  begin_lookup(work);
  return !pauses(work);
}

/// One member after the other; those that are gone have no keys.
bool State::count(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const auto has_none = [&](Rank rank) {
    return fault(rank) == Status::lost || homes[rank].is_client ||
           (rank >= members && !has_got_keys(rank) && !fabric.connected(rank, index.id()));
  };
  while (work.home < places && has_none(work.home)) ++work.home;
  if (work.home >= places) {
    std::uint32_t there = 0;
    for (Rank rank = 0; rank < members; ++rank) there += fault(rank) == Status::lost ? 0 : 1;
    if (has_copies() && there > 1) op.keys_ /= 2;
    return end(op, Status::ok);
  }
  return post(
      op, work.home,
      std::array{read(work.home, index.id(), kKeysAt, work.counters.data(), sizeof work.counters)
                     .notify(op.completion_)},
      Stage::counted);
}

bool State::counted(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  if (static_cast<std::int64_t>(work.counters[0]) > 0) op.keys_ += work.counters[0];
  ++work.home;
  work.stage = Stage::count;
  return true;
}

/// REM-3, STO-4. A change of which something has been posted, or that the second home has, is
/// completed; a lock is given back.
void State::clean_up(StoreOperation& op) noexcept {
  Work& work = *op.work_;
  const Stage stage = std::exchange(work.stage, Stage::done);
  const bool in_commit = stage == Stage::commit || stage == Stage::committed;
  drop_copy(work);
  if (work.waits_for_room || work.has_moved) cancel_blocks(work);
  if (op.status() == Status::ok || (work.posted == 0 && stage == Stage::committed)) {
    release_record(work);
    return;
  }
  if (fault(work.home) == Status::ok && in_commit && (work.posted > 0 || work.is_copied)) {
    for (Operation& operation : std::span(work.batch).first(work.steps))
      operation.completion = &work.done;
    unfinished.push_back(std::move(op.work_));
    op.value_ = nullptr;
    op.value_bytes_ = 0;
    return look_again_soon();
  }
  release_record(work);
  if (!in_commit || work.posted == 0) cancel_blocks(work);
  if (fault(work.home) != Status::ok || !(work.locked || stage == Stage::locked)) return;
  mends.push_back({work.home, work.main.at(kLockAt), work.lock_word});
  look_again_soon();
}

}  // namespace store
}  // namespace dunlin
