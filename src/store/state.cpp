#include "store/state.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "fabric/hash.hpp"
#include "store/room.hpp"

namespace dunlin::store {

using remote::Status;

namespace {

constexpr std::uint64_t kLookAgainNs = 500;
/// A home tells its clock, and looks for expired entries, at least this often.
constexpr std::uint64_t kDutyNs = 10'000'000;
/// A member that marks what it uses learns where a hand is at least this often.
constexpr std::uint64_t kHandNs = 1'000'000;
/// By how much two clocks drift apart, at most.
constexpr std::int64_t kDrift = 10'000;  // one part in so many
/// An index and pools need so much, or a quarter goes to large entries.
constexpr std::uint64_t kBytesPerKey = 256;
constexpr int kPollsAtEnd = 200;
/// The part of the memory that large entries get, unless told otherwise.
constexpr std::size_t kLargePart = 4;
constexpr std::size_t kMostLargeByDefault = 16 << 20;

void check(const StoreOptions& options) {
  const bool sound =
      !options.name.empty() && options.name.size() <= kMaxStoreNameBytes &&
      options.name.find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == std::string::npos;
  if (!sound)
    throw Error("store: the name '" + options.name + "' is not 1 to " +
                std::to_string(kMaxStoreNameBytes) + " of A-Z a-z 0-9 . _ -");
  if (options.copies < 1 || options.copies > 2)
    throw Error("store '" + options.name + "': copies is " + std::to_string(options.copies) +
                "; a store has 1 or 2 of each key");
  if (options.slots < 2 || options.slots > kMaxSlots || !std::has_single_bit(options.slots))
    throw Error("store '" + options.name + "': slots is " + std::to_string(options.slots) +
                "; a store has a power of two of them, from 2 to " + std::to_string(kMaxSlots));
  if (options.copies > 1 && options.eviction != Eviction::none)
    throw Error("store '" + options.name +
                "': a store with two copies does not evict; set copies to 1, or eviction to none");
  if (options.memory_bytes < kMinStoreBytes || options.memory_bytes > kMaxRegionBytes)
    throw Error("store '" + options.name + "': memory_bytes is " +
                std::to_string(options.memory_bytes) + ", and is at least kMinStoreBytes = " +
                std::to_string(kMinStoreBytes) + " and at most kMaxRegionBytes");
  if (options.large_bytes != kDefaultLargeBytes && options.large_bytes > options.memory_bytes)
    throw Error("store '" + options.name + "': large_bytes is " +
                std::to_string(options.large_bytes) + ", a part of memory_bytes, which is " +
                std::to_string(options.memory_bytes));
}

/// The options that all members give alike.
std::string layout_of(const StoreOptions& options, std::uint32_t members, std::uint32_t most) {
  const bool evicts = options.eviction != Eviction::none;
  return "store 8\nhomes " + std::to_string(members) + "\nmost-members " + std::to_string(most) +
         "\neviction " + (evicts ? "lru" : "none") + "\ncopies " + std::to_string(options.copies) +
         "\nslots " + std::to_string(options.slots) +
         (evicts ? "\nchannel " + std::to_string(options.channel) : "");
}

/// Of each pool: its share, in whole slabs. A limit may leave none for large entries; small ones
/// have at least one slab.
std::pair<std::size_t, std::size_t> limits(std::size_t bytes, std::size_t in_small,
                                           std::size_t in_large) {
  if (bytes == 0 || bytes >= in_small + in_large) return {SIZE_MAX, SIZE_MAX};
  const double part = static_cast<double>(in_large) / static_cast<double>(in_small + in_large);
  const auto share = static_cast<std::size_t>(part * static_cast<double>(bytes));
  const std::size_t of_large = share / kLargeSlabBytes * kLargeSlabBytes;
  return {std::max(bytes - of_large, kSmallSlabBytes), of_large};
}

}  // namespace

State::State(std::unique_ptr<remote::Progress> own, remote::Progress& its_progress,
             StoreOptions its_options)
    : own_progress(std::move(own)),
      progress(its_progress),
      fabric(its_progress.fabric()),
      options(std::move(its_options)),
      members(options.homes == 0 ? its_progress.size()
                                 : std::min(options.homes, its_progress.size())),
      places(moves_keys() ? its_progress.capacity() : members),
      is_home(fabric.rank() < members || (options.contributes && moves_keys())),
      homes(places),
      held_cache(options.shared_cache ? options.shared_cache
                                      : make_location_cache(options.cache_bytes)),
      cache(*held_cache) {
  check(options);
  progress.check_is_only("store '" + options.name + "'", "store:" + options.name);
  counters.cache_slots.set(cache.slots());
  std::uint64_t main_headers = 0;
  std::size_t large_bytes = 0, index_bytes = kIndexHeaderBytes, small_bytes = 0;
  if (is_home) {
    const std::uint64_t keys =
        options.expected_keys != 0 ? options.expected_keys : options.memory_bytes / kBytesPerKey;
    main_headers = keys * 100 / (kSlots * kOccupancyPercent) + 1;
    // A word for each extent that may come: at most one for each slab.
    index_bytes = extent_word_at(main_headers, options.memory_bytes / kSmallSlabBytes);
    large_bytes = options.large_bytes == kDefaultLargeBytes
                      ? std::min(kMostLargeByDefault, options.memory_bytes / kLargePart)
                      : options.large_bytes;
    if (main_headers > UINT32_MAX ||
        index_bytes + large_bytes + 2 * kSmallSlabBytes > options.memory_bytes)
      throw Error("store '" + options.name + "': the index for " + std::to_string(keys) +
                  " keys takes " + std::to_string(index_bytes) + " of " +
                  std::to_string(options.memory_bytes) +
                  " bytes; give more memory, or expect fewer keys");
    small_bytes = options.memory_bytes - index_bytes - large_bytes;
  }
  const auto [of_small, of_large] = limits(options.limit_bytes, small_bytes, large_bytes);
  const auto free_blocks = [this] {
    return reaper == nullptr ? remote::Freed::nothing : reaper->free_blocks();
  };
  small = std::make_unique<remote::SlabPool>(
      progress, remote::SlabPoolOptions{.name = options.name,
                                        .slab_bytes = kSmallSlabBytes,
                                        .block_bytes = {kSmallBlocks.begin(), kSmallBlocks.end()},
                                        .own_bytes = small_bytes,
                                        .homes = places,
                                        .makes_room = options.eviction != Eviction::none,
                                        .limit_bytes = of_small,
                                        .free_blocks = free_blocks});
  large = std::make_unique<remote::SlabPool>(
      progress, remote::SlabPoolOptions{.name = options.name + "+",
                                        .slab_bytes = kLargeSlabBytes,
                                        .block_bytes = {kLargeBlocks.begin(), kLargeBlocks.end()},
                                        .own_bytes = large_bytes,
                                        .homes = places,
                                        .makes_room = options.eviction != Eviction::none,
                                        .limit_bytes = of_large,
                                        .free_blocks = free_blocks});
  redo = fabric.allocate(
      {.name = "store-redo:" + options.name,
       .bytes = is_home ? progress.capacity() * kRecordBytesOfRank : kCacheLineBytes});
  index = fabric.allocate({.name = "store:" + options.name,
                           .bytes = index_bytes,
                           .layout_hash = fnv1a(layout_of(options, members, progress.capacity())),
                           .layout_text = layout_of(options, members, progress.capacity())});
  layout_hash = fnv1a(options.name + "\n" + layout_of(options, members, progress.capacity()));
  std::byte* const header = index.memory().data();
  if (is_home) {
    homes[fabric.rank()].shape = IndexShape(main_headers);
    homes[fabric.rank()].ranks = progress.capacity();
    growth = std::make_unique<Growth>(*this);
    reaper = std::make_unique<Reaper>(*this);
  }
  const std::uint64_t ranks = progress.capacity(), magic = kMagic;
  std::memcpy(header + kBaseAt, &main_headers, sizeof main_headers);
  std::memcpy(header + kMainHeadersAt, &main_headers, sizeof main_headers);
  std::memcpy(header + kRanksAt, &ranks, sizeof ranks);
  const std::uint64_t generation = progress.generation();
  std::memcpy(header + kGenerationAt, &generation, sizeof generation);
  std::memcpy(header, &magic, sizeof magic);
  subscription = fabric.subscribe([this](const Event& event) {
    if (event.region != index.id()) return;
    if (event.kind == Event::Kind::region_refused)
      why_refused = "store '" + options.name + "': " + std::string(event.text);
    if (event.peer >= homes.size()) return;
    Home& home = homes[event.peer];
    home.usable_in = UINT64_MAX;
    if (event.kind == Event::Kind::region_withdrawn) home.withdrawn = true;
    if (event.kind == Event::Kind::region_connected && event.peer != fabric.rank()) forget(home);
    if (event.kind == Event::Kind::region_refused) home.refused = true;
  });
  open_map();
  if (is_home && placement != nullptr) mover = std::make_unique<Mover>(*this);
  open_room();
  fabric.announce(redo);
  fabric.announce(index);
  progress.add(*this);
}

/// What this process knew of a store that a member had before it made this one.
void State::forget(Home& home) noexcept {
  fabric.abandon(home.reading.done);
  home.reading.done.reset();
  home.reading.stage = IndexReading::Stage::none;
  home.shape = {};
  home.extents.clear();
  home.has_grown = home.clock_known = false;
  home.withdrawn = home.is_client = home.refused = false;
}

/// Completes the changes that its operations had begun, as far as possible now.
State::~State() {
  reaper.reset();
  mover.reset();
  if (room != nullptr) {
    room->small = nullptr;
    room->large = nullptr;
  }
  for (int polls = 0; polls < kPollsAtEnd; ++polls) {
    if (transactions.is_idle() && completing.empty() && !leftovers.has_locks()) break;
    transactions.poll();
    completing.advance();
    leftovers.post();
    if (fabric.poll() == 0 && fabric.in_handler()) break;
  }
  transactions.stop();
  completing.end_all(Status::stopped);
  for (int polls = 0; polls < kPollsAtEnd && leftovers.has_locks(); ++polls) {
    leftovers.post();
    if (fabric.poll() == 0 && fabric.in_handler()) break;
  }
  fabric.abandon(counts_done);
  for (Home& home : homes) {
    fabric.abandon(home.reading.done);
  }
  growth.reset();
  progress.remove(*this);
}

/// Why a call that is under way can go on at that home no more; a look at a few words.
Status HomeGate::now() const noexcept {
  const bool is_there = !state->fabric.failed(home) && !state->homes[home].withdrawn;
  return is_there ? Status::ok : state->fault(home);
}
Status HomeGate::refused() const noexcept { return state->fault(home); }

Status State::fault(Rank rank) const noexcept {
  const bool is_out = !progress.members().contains(rank) &&
                      (progress.contains(rank) || progress.is_gone(rank));  // told, or not yet
  if (rank >= homes.size() || fabric.failed(rank) || is_out || homes[rank].withdrawn)
    return Status::lost;
  return homes[rank].refused ? Status::refused : Status::ok;
}

void State::limit_memory(std::size_t bytes) noexcept {
  options.limit_bytes = bytes;
  const auto [of_small, of_large] =
      limits(bytes, small->slabs() * kSmallSlabBytes, large->slabs() * kLargeSlabBytes);
  small->limit(of_small);
  large->limit(of_large);
}

// --- time ----------------------------------------------------------------------------------------

/// The home wrote `clock` before now, so its clock is at least there. Of many samples the greatest
/// difference is the truest, but for the clocks' drift.
void State::sample_clock(Rank rank, std::uint64_t clock) noexcept {
  Home& home = homes[rank];
  const std::uint64_t now = fabric.now_ns();
  auto offset = static_cast<std::int64_t>(clock - now);
  if (rank == fabric.rank()) offset = 0;
  if (home.clock_known) {
    const auto since = static_cast<std::int64_t>(now - home.sampled_at_ns);
    offset = std::max(offset, home.clock_offset_ns - since / kDrift);
  }
  home.clock_known = true;
  home.clock_offset_ns = offset;
  home.sampled_at_ns = now;
}

bool State::wants_clock(Rank rank) const noexcept {
  const Home& home = homes[rank];
  const std::uint64_t period = room != nullptr ? kHandNs : kDutyNs;  // the hands come with it
  return !home.clock_known || fabric.recent_ns() - home.sampled_at_ns > period;
}

std::uint64_t State::home_now_ns(Rank home) const noexcept {
  return fabric.now_ns() + static_cast<std::uint64_t>(homes[home].clock_offset_ns);
}

std::uint64_t State::ttl_of(Rank home, std::uint64_t expiry_ns) const noexcept {
  if (expiry_ns == 0) return kNoExpiry;
  const auto left = static_cast<std::int64_t>(expiry_ns - home_now_ns(home));
  return left > 0 ? static_cast<std::uint64_t>(left) : 0;
}

void State::look_again_soon() noexcept { fabric.wake_at(fabric.now_ns() + kLookAgainNs); }

void State::begin_rest(Rest& rest) noexcept {
  rest.until_ns = fabric.now_ns() + rest.next_ns();
  fabric.wake_at(rest.until_ns);
}

bool State::rests(Rest& rest) noexcept {
  if (rest.until_ns == 0) return false;
  if (fabric.now_ns() >= rest.until_ns) {
    rest.until_ns = 0;
    return false;
  }
  fabric.wake_at(rest.until_ns);
  return true;
}

// --- polls ---------------------------------------------------------------------------------------

void State::release_record(ChainBatch& batch) noexcept {
  if (batch.redo_record == ChainBatch::kNoRecord) return;
  homes[batch.home].records &= ~(1U << batch.redo_record);
  batch.redo_record = ChainBatch::kNoRecord;
}

std::size_t State::poll_part() {
  std::size_t done =
      transactions.poll() + completing.advance(progress.stopped()) + leftovers.post();
  if (room != nullptr) {
    done += room->channel.poll();
    for (Evictor* const evictor : {room->small.get(), room->large.get()})
      if (evictor != nullptr) done += evictor->poll();
  }
  if (leftovers.has_locks()) look_again_soon();
  done += take_over_map();
  if (is_home) done += do_duties();
  counters.in_flight.set(progress.in_flight());
  return done;
}

/// Of a member that holds keys.
std::size_t State::do_duties() {
  const std::size_t done = transaction_repair.poll() + correct_counts() + growth->poll() +
                           (reaper != nullptr ? reaper->poll() : 0) +
                           (mover != nullptr ? mover->poll() : 0);
  const std::uint64_t now = fabric.now_ns();
  memory::store(*reinterpret_cast<std::uint64_t*>(index.memory().data() + kClockAt), now);
  if (now >= next_duty_ns) {
    next_duty_ns = now + kDutyNs;
    if (reaper != nullptr) reaper->look();
    small->take_back_empty();
    large->take_back_empty();
    counters.part->look(*this);
  }
  fabric.wake_at(next_duty_ns);  // each time: an earlier wake has made it forget this one
  return done;
}

}  // namespace dunlin::store
