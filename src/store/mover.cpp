#include "store/mover.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "store/own_chain.hpp"
#include "store/scan.hpp"
#include "store/state.hpp"

namespace dunlin::store {

using remote::Protocol;
using remote::Status;
using remote::Until;

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

}  // namespace

Mover::Mover(State& state) : state_(state), runs_(state.progress) {
  const bool begun =
      runs_.start(copy_slots()) && runs_.start(open_slots()) && runs_.start(empty_slots());
  if (!begun) throw std::bad_alloc();
}
Mover::~Mover() = default;

remote::Progress& Mover::its_progress() const noexcept { return state_.progress; }
std::size_t Mover::poll() { return runs_.advance(state_.progress.stopped()); }

std::string Mover::describe() const {
  return std::to_string(to_copy_.size()) + " to copy, " + std::to_string(to_open_.size()) +
         " to open, " + std::to_string(to_empty_.size()) + " to empty, " +
         std::to_string(aligning_) + " chains to align";
}

// --- what the map asks for -----------------------------------------------------------------------

void Mover::look_at_map() {
  const SlotMap& map = state_.map();
  said_.resize(map.slots());
  for (Jobs* const jobs : {&to_copy_, &to_open_, &to_empty_}) jobs->clear();
  for (std::uint32_t number = 0; number < map.slots(); ++number) {
    const PlacedSlot& slot = map.slot(number);
    const auto duty = duty_of(number, slot, state_.fabric.rank());
    if (!duty || said_[number] == slot.epoch) continue;
    Jobs& jobs = duty->kind == Decision::Kind::opened    ? to_open_
                 : duty->kind == Decision::Kind::emptied ? to_empty_
                                                         : to_copy_;
    jobs.push_back(*duty);
  }
}

void Mover::say(const Jobs& jobs) {
  for (const Decision& job : jobs) {
    if (state_.map().slot(job.slot).epoch != job.epoch) continue;
    said_[job.slot] = job.epoch;
    state_.placement->say(job);
  }
  look_at_map();
  state_.look_again_soon();
}

Protocol<Status> Mover::await_members(std::uint64_t version) {
  std::vector<Rank> ranks;
  for (const Holder& one : state_.map().members()) ranks.push_back(one.rank);
  for (const Rank rank : ranks) static_cast<void>(co_await await_member(rank, version));
  co_return Status::ok;
}

/// Waits for no member that is refused: it uses no memory of this store.
Protocol<Status> Mover::await_member(Rank rank, std::uint64_t version) {
  Rest rest;
  std::uint32_t round_trips = 0;
  while (rank != state_.fabric.rank() && state_.map().member(rank) != nullptr &&
         !state_.homes[rank].refused) {
    std::uint64_t word = 0;
    if (state_.fabric.connected(rank, state_.index.id())) {
      auto reading =
          remote::post(state_.fabric, read(rank, state_.index.id(), kMapAt, &word, kWordBytes),
                       HomeGate{&state_, rank, &round_trips});
      static_cast<void>(co_await reading);
    }
    if (word > version) break;
    co_await rest.next(state_.fabric);
  }
  co_return Status::ok;
}

std::uint64_t Mover::lock_of(std::uint64_t number) const noexcept {
  return memory::load(word_at(state_.own_main(number) + kLockAt));
}

Protocol<Status> Mover::await_locks() {
  std::vector<Locked> locked;
  for (std::uint64_t number = 0; number < state_.main_headers(); ++number)
    if (const std::uint64_t word = lock_of(number); word != 0) locked.push_back({number, word});
  Rest rest;
  for (;;) {
    std::erase_if(locked, [this](const Locked& one) { return is_unlocked(one); });
    if (locked.empty()) co_return Status::ok;
    co_await rest.next(state_.fabric);
  }
}

// --- slots that open -----------------------------------------------------------------------------

/// The former owner does this when its calls have all ended; or the new one, if the former one is
/// gone. STO-C5: that one may have shown what a transaction had prepared, whose locks are here.
Protocol<Status> Mover::open_slots() {
  for (;;) {
    co_await Until([this] { return !to_open_.empty(); });
    const Jobs jobs = to_open_;
    static_cast<void>(co_await await_members(state_.map().version()));
    static_cast<void>(co_await await_locks());
    // A former owner that is gone may have begun a change at a backup that is not here.
    const bool may_differ = std::ranges::any_of(jobs, [this](const Decision& job) {
      const PlacedSlot& slot = state_.map().slot(job.slot);
      return slot.former == kNobody && slot.backups.front() != kNobody;
    });
    for (std::uint64_t number = 0; may_differ && number < state_.main_headers(); ++number) {
      ++aligning_;
      static_cast<void>(co_await align_chain(number));
    }
    co_await Until([this] { return aligning_ == 0; });
    if (state_.map().renews_lost()) static_cast<void>(co_await raise_all_versions());
    say(jobs);
  }
}

/// The versions that a lost slot had are known to nobody any more, and none is given again: what
/// comes now is higher than all that members gave before this version of the map (STO-M3).
Protocol<Status> Mover::raise_all_versions() {
  const Rank own = state_.fabric.rank();
  static_cast<void>(
      co_await raise_versions({.to = own, .version = state_.map().version() << 32}, kAllPositions));
  co_return Status::ok;
}

// --- slots that others get -----------------------------------------------------------------------

Protocol<Status> Mover::copy_slots() {
  Rest rest;
  for (;;) {
    co_await Until([this] { return !to_copy_.empty(); });
    copying_ = to_copy_;
    static_cast<void>(co_await await_members(state_.map().version()));
    moves_.assign(state_.map().slots(), false);
    failed_.assign(state_.map().slots(), false);
    for (const Decision& job : copying_) moves_[job.slot] = true;
    for (std::uint64_t number = 0; number < state_.main_headers(); ++number)
      static_cast<void>(co_await copy_chain(number));
    static_cast<void>(co_await await_lanes());
    const bool some_failed = std::ranges::find(failed_, true) != failed_.end();
    co_await Until([this] { return aligning_ == 0; });
    std::erase_if(copying_, [this](const Decision& job) { return failed_[job.slot]; });
    say(copying_);
    copying_.clear();
    if (some_failed) co_await rest.next(state_.fabric);
    if (!some_failed) rest = {};
  }
}

bool Mover::is_copied(std::uint64_t hash) const noexcept {
  return moves_[state_.map().slot_of(hash)];
}

/// What locks the chain from now on, changes the copy, too (STO-P9).
Protocol<Status> Mover::copy_chain(std::uint64_t number) {
  Rest rest;
  const Locked before{number, lock_of(number)};
  while (before.word != 0 && !is_unlocked(before)) co_await rest.next(state_.fabric);
  std::byte* const main = state_.own_main(number);
  const std::uint64_t version = memory::load(word_at(main + kVersionAt));
  std::vector<std::vector<std::byte>> keys;
  for (const std::byte* const bucket : OwnChain(state_, main))
    state_.see_bucket(main, bucket, [&](const StoreEntry& entry) {
      if (entry.ttl_ns != 0 && is_copied(hash_of(entry.key)))
        keys.emplace_back(entry.key.begin(), entry.key.end());
    });
  for (const std::vector<std::byte>& key : keys) static_cast<void>(co_await copy_key(key));
  if (version == 0) co_return Status::ok;
  const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
  const std::uint64_t from = shape.begin_of(number);
  const std::uint64_t below = shape.end_of(from, shape.depth_of(from));
  std::vector<Rank> done;
  for (std::size_t i = 0; i < copying_.size(); ++i) {
    const Rank to = copying_[i].member;
    if (std::ranges::find(done, to) != done.end()) continue;
    done.push_back(to);
    std::size_t lane = 0;
    static_cast<void>(co_await await_lane(lane));
    lanes_[lane].to = to;
    lanes_[lane].raising = {
        state_.progress, raise_versions({.to = to, .position = from, .version = version}, below)};
  }
  co_return Status::ok;
}

Protocol<Status> Mover::copy_key(std::span<const std::byte> key) {
  const std::uint64_t limit = state_.options.move_bytes_per_second;
  if (limit != 0 && state_.fabric.now_ns() < next_key_ns_)
    co_await remote::UntilTime(state_.fabric, next_key_ns_);
  std::size_t number = 0;
  static_cast<void>(co_await await_lane(number));
  Lane& lane = lanes_[number];
  lane.slot = state_.map().slot_of(hash_of(key));
  lane.copying = state_.begin_change({.kind = Kind::restore}, key, {});
  co_return Status::ok;
}

/// No version of the chain is given again at the other member (STO-M3).
Protocol<ChainResult> Mover::raise_versions(ChainCall call, std::uint64_t below) {
  while (call.position < below) {
    call.lock_word = state_.next_lock_word();
    const ChainResult raised = co_await state_.raise_version(call);
    if (raised.status != Status::ok) co_return raised;
    call.position = raised.below;
  }
  co_return ChainResult{};
}

Protocol<Status> Mover::await_lane(std::size_t& lane) {
  const auto find = [this, &lane] {
    const auto free = std::ranges::find_if(lanes_, &Lane::finished);
    lane = static_cast<std::size_t>(free - lanes_.begin());
    return free != lanes_.end();
  };
  co_await Until(find);
  end(lanes_[lane]);
  co_return Status::ok;
}

Protocol<Status> Mover::await_lanes() {
  co_await Until([this] { return std::ranges::all_of(lanes_, &Lane::finished); });
  for (Lane& lane : lanes_) end(lane);
  co_return Status::ok;
}

void Mover::end(Lane& lane) noexcept {
  if (lane.to != kNobody && lane.raising.status() != Status::ok)
    for (const Decision& job : copying_)
      if (job.member == lane.to) failed_[job.slot] = true;
  if (lane.to == kNobody && lane.copying.status() != Status::ok) failed_[lane.slot] = true;
  if (lane.to == kNobody && lane.copying.found()) {
    const bool moves = state_.map().slot(lane.slot).leaving != kNobody;
    ++(moves ? state_.counters.keys_moved : state_.counters.copies_restored);
    if (const std::uint64_t limit = state_.options.move_bytes_per_second; limit != 0)
      next_key_ns_ = std::max(next_key_ns_, state_.fabric.now_ns()) +
                     lane.copying.value().size() * kSecondNs / limit;
  }
  lane = {};
}

// --- copies that may differ ----------------------------------------------------------------------

void Mover::align(std::uint64_t number) {
  ++aligning_;
  if (!runs_.start(align_chain(number))) throw std::bad_alloc();
}

/// Whether this member owns the slot, or owned it until the new owner is open.
bool Mover::is_owned(std::uint64_t hash) const noexcept {
  const Rank own = state_.fabric.rank();
  const PlacedSlot& slot = state_.slot_of(hash);
  return slot.owner == own || slot.former == own;
}

/// The members that have copies of such slots, or get one.
std::vector<Rank> Mover::copies() const {
  const Rank own = state_.fabric.rank();
  std::vector<Rank> ranks;
  for (std::uint32_t number = 0; number < state_.map().slots(); ++number) {
    const PlacedSlot& slot = state_.map().slot(number);
    if (slot.owner != own && slot.former != own) continue;
    for (const Rank rank : {slot.backups[0], slot.backups[1], slot.owner, slot.incoming})
      if (rank != kNobody && rank != own) ranks.push_back(rank);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// The keys that are here, and those that only a copy has.
Protocol<Status> Mover::align_chain(std::uint64_t number) {
  const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
  const std::uint64_t from = shape.begin_of(number);
  const std::uint64_t below = shape.end_of(from, shape.depth_of(from));
  std::set<std::string> keys;
  const auto add = [&](std::span<const std::byte> key) {
    if (is_owned(hash_of(key))) keys.emplace(reinterpret_cast<const char*>(key.data()), key.size());
  };
  std::byte* const main = state_.own_main(number);
  for (const std::byte* const bucket : OwnChain(state_, main))
    state_.see_bucket(main, bucket, [&](const StoreEntry& entry) { add(entry.key); });
  for (const Rank rank : copies()) {
    Scan scan(state_, {.values = false});
    static_cast<void>(co_await scan.see_member(rank, from, below));  // one that is gone has no copy
    for (std::size_t i = 0; i < scan.size(); ++i) add(scan.entry(i).key);
  }
  for (const std::string& key : keys)
    static_cast<void>(co_await state_.align_key(std::as_bytes(std::span(key))));
  --aligning_;
  co_return Status::ok;
}

// --- slots that are others' ----------------------------------------------------------------------

Protocol<Status> Mover::empty_slots() {
  for (;;) {
    co_await Until([this] { return !to_empty_.empty(); });
    const Jobs jobs = to_empty_;
    static_cast<void>(co_await await_members(state_.map().version()));
    goes_.assign(state_.map().slots(), false);
    for (const Decision& job : jobs) goes_[job.slot] = true;
    for (std::uint64_t number = 0; number < state_.main_headers(); ++number)
      static_cast<void>(co_await empty_chain(number));
    say(jobs);
  }
}

/// What holds the chain's lock may put a key of such a slot into it, and nothing that comes later.
Protocol<Status> Mover::empty_chain(std::uint64_t number) {
  const auto goes = [this](std::uint64_t hash) { return goes_[state_.map().slot_of(hash)]; };
  const auto has_some = [&] {
    for (const std::byte* const bucket : OwnChain(state_, state_.own_main(number)))
      for (std::size_t i = 0; i < kSlots; ++i) {
        const auto* const slot = reinterpret_cast<const std::uint64_t*>(bucket + i * kSlotBytes);
        const std::uint64_t word = memory::load(slot[1]);
        if (slot_word::type_of(word) == SlotType::entry && goes(memory::load(slot[0])) &&
            state_.own_entry(slot_word::location_of(word)) != nullptr)
          return true;
      }
    return false;
  };
  Rest rest;
  const Locked before{number, lock_of(number)};
  while (before.word != 0 && !is_unlocked(before)) co_await rest.next(state_.fabric);
  while (has_some()) {
    const IndexShape& shape = state_.homes[state_.fabric.rank()].shape;
    const Rank own = state_.fabric.rank();
    const ChainResult taken = co_await state_.take_chain(
        {.to = own, .position = shape.begin_of(number), .lock_word = state_.next_lock_word()});
    if (taken.status != Status::ok) co_return taken.status;
    std::byte* const main = state_.own_main(number);
    state_.lose_counts(state_.drop_entries(main, goes));
    memory::store(word_at(main + kVersionAt), memory::load(word_at(main + kVersionAt)) + 1);
    memory::store(word_at(main + kLockAt), 0);
  }
  co_return Status::ok;
}

}  // namespace dunlin::store
