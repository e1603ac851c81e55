#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/segment.hpp>

#include "assert.hpp"
#include "fabric/hash.hpp"
#include "fabric/names.hpp"
#include "segment/space.hpp"

namespace dunlin {

using remote::Status;

namespace {

std::string key_text(const SegmentPort& port, Key key) {
  return "segment " + std::to_string(key.value) + " (slot " + std::to_string(key.slot()) +
         ", generation " + std::to_string(key.generation()) + ", on " + port.text_of(key.home()) +
         ")";
}

/// The options that all members give alike.
std::string layout_of(const SpaceOptions& options, const remote::Progress& progress) {
  return "segments 1\nfounders " + std::to_string(progress.size()) + "\nranks " +
         std::to_string(progress.capacity()) + "\nchannel " + std::to_string(options.channel) +
         "\nlock_channel " + std::to_string(options.lock_channel);
}

void check(const SpaceOptions& options, const remote::Progress& progress) {
  const auto refuse = [&](const std::string& why) {
    throw Error("segment space '" + options.name + "': " + why);
  };
  if (options.name.empty() || options.name.size() > kMaxSpaceNameBytes ||
      !is_printable(options.name))
    refuse("its name must have 1 to " + std::to_string(kMaxSpaceNameBytes) +
           " characters of printable ASCII (kMaxSpaceNameBytes)");
  if (options.channel == options.lock_channel || options.channel >= kMaxChannels ||
      options.lock_channel >= kMaxChannels)
    refuse("channel and lock_channel must differ and be below " + std::to_string(kMaxChannels) +
           " (kMaxChannels)");
  progress.check_is_only("segment space '" + options.name + "'", "segment:" + options.name);
}

}  // namespace

std::string_view name_of(Coherence coherence) noexcept {
  static constexpr std::array<std::string_view, 7> kNames{"null",    "read",     "write", "strict",
                                                          "version", "temporal", "delta"};
  const auto place = static_cast<std::size_t>(coherence);
  return place < kNames.size() ? kNames[place] : "unknown";
}

Placement Placement::on(const Fabric& fabric, const std::string& member) {
  for (Rank rank = 0; rank < fabric.size(); ++rank)
    if (fabric.member_name(rank) == member) return on(rank);
  throw Error("placement: group '" + fabric.group() + "' has no member '" + member + "'");
}

// --- the space -----------------------------------------------------------------------------------

SegmentState::SegmentState(std::unique_ptr<remote::Progress> own, remote::Progress& its_progress,
                           SpaceOptions its_options)
    : own_progress(std::move(own)),
      progress(its_progress),
      fabric(its_progress.fabric()),
      options((check(its_options, its_progress), std::move(its_options))),
      pool(fabric.allocate({.name = "segment:" + options.name,
                            .bytes = std::max(options.pool_bytes, kCacheLineBytes),
                            .layout_hash = fnv1a(layout_of(options, progress)),
                            .layout_text = layout_of(options, progress)})),
      locks(progress, {.name = options.name,
                       .words = pool.id(),
                       .own_words = pool.memory(),
                       .channel = options.lock_channel}),
      blocks(options.pool_bytes),
      channel(
          progress, options.channel,
          [this](Rank from, std::span<const std::byte> message) { handle(from, message); },
          progress.capacity()),
      withdrawn(progress.capacity()),
      refused(progress.capacity()),
      known_at(progress.capacity()),
      turn(fabric.rank()) {
  DUNLIN_ASSERT_ALWAYS(blocks.use().bytes <= pool.memory().size(), "REM-6: blocks lie in the pool");
  subscription = fabric.subscribe([this](const Event& event) {
    if (event.region != pool.id() || event.peer >= withdrawn.size()) return;
    if (event.kind == Event::Kind::region_withdrawn) withdrawn[event.peer] = must_prune = true;
    if (event.kind != Event::Kind::region_refused) return;
    refused[event.peer] = true;
    refusal = "segment space '" + options.name + "': " + std::string(event.text);
  });
  if (locks.takes_part(fabric.rank())) announce();
  progress.add(*this);
}

void SegmentState::announce() {
  fabric.announce(pool);
  is_announced = true;
}

bool SegmentState::never_comes_in() const noexcept {
  if (is_announced) return false;
  for (Rank rank = 0; rank < progress.size(); ++rank)
    if (progress.contains(rank)) return false;
  return true;
}

SegmentState::~SegmentState() {
  protocols.end_all(Status::abandoned);
  DUNLIN_ASSERT(asked.empty(), "REM-3: no call outlives its space");
  progress.remove(*this);
}

Rank SegmentState::place_of(Placement placement) noexcept {
  if (placement.rank == Placement::kInTurn) return next_in_turn();
  return placement.rank == Placement::kHere ? fabric.rank() : placement.rank;
}

std::string SegmentState::text_of(Rank rank) const {
  if (rank >= fabric.size()) return "member " + std::to_string(rank) + " (there is none)";
  const std::string& name = fabric.member_name(rank);
  return name.empty() ? "member " + std::to_string(rank) : "member '" + name + "'";
}

std::vector<Key> SegmentState::lost() const {
  std::vector<Key> all;
  for (Rank home = 0; home < known_at.size(); ++home) {
    const auto& slots = known_at[home];
    for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot] == nullptr) continue;
      const KnownSegment& segment = *slots[slot];
      if (segment.key.generation() != 0 && is_lost(segment)) all.push_back(segment.key);
    }
  }
  return all;
}

SegmentSpace::SegmentSpace(Fabric& fabric, SpaceOptions options) {
  auto own = std::make_unique<remote::Progress>(fabric);
  remote::Progress& progress = *own;
  port_ = std::make_unique<SegmentState>(std::move(own), progress, std::move(options));
}

SegmentSpace::SegmentSpace(remote::Progress& progress, SpaceOptions options)
    : port_(std::make_unique<SegmentState>(nullptr, progress, std::move(options))) {}

SegmentSpace::SegmentSpace(std::unique_ptr<SegmentPort> port) noexcept : port_(std::move(port)) {}

SegmentSpace::~SegmentSpace() = default;

remote::Progress& SegmentSpace::progress() const noexcept { return port_->its_progress(); }
remote::PoolUse SegmentSpace::use() const noexcept { return port_->use(); }
std::vector<Key> SegmentSpace::lost() const { return port_->lost(); }
const std::string& SegmentSpace::why_refused() const noexcept { return port_->why_refused(); }

/// Its place is looked at apart.
std::string fault_of(const SegmentSpec& spec) {
  if (spec.bytes == 0) return "it would have 0 bytes";
  if (spec.name.size() > kMaxSegmentNameBytes)
    return "its name has more than " + std::to_string(kMaxSegmentNameBytes) +
           " bytes (kMaxSegmentNameBytes)";
  if (!is_printable(spec.name)) return "its name must be printable ASCII";
  if (spec.stale_ns != 0 && spec.coherence != Coherence::temporal)
    return "stale_ns is for Coherence::temporal only";
  const bool is_delta = spec.coherence == Coherence::delta;
  if (is_delta ? spec.versions == 0 || spec.versions > kMaxKeptVersions : spec.versions != 0)
    return "Coherence::delta, and only that, keeps versions: 1 to " +
           std::to_string(kMaxKeptVersions) + " (kMaxKeptVersions)";
  if (spec.copies < 1 || spec.copies > 2) return "there can be 1 copy, or 2";
  if (spec.copies == 2 && (spec.coherence == Coherence::null || spec.coherence == Coherence::read))
    return "two copies stay alike only if puts exclude each other, as under write or strict";
  return {};
}

SegmentOperation SegmentSpace::allocate(const SegmentSpec& spec) {
  const Rank place = port_->place_of(spec.placement);
  std::string fault = fault_of(spec);
  const bool is_named = place == Placement::kInTurn || place == Placement::kHere;
  if (fault.empty() && !is_named && place >= port_->members())
    fault = "the group has no member " + std::to_string(place) + ", only 0 to " +
            std::to_string(port_->members() - 1);
  if (!fault.empty())
    throw Error("segment space '" + port_->space_name() + "': cannot allocate " +
                (spec.name.empty() ? "a segment" : "segment '" + spec.name + "'") + ": " + fault);
  return port_->begin(request_for(spec, place), spec.name, remote::kForever);
}

SegmentOperation SegmentSpace::release(Key key) {
  return port_->begin({.call = SegmentCall::release, .key = key}, {}, remote::kForever);
}

SegmentOperation SegmentSpace::find(const std::string& name) {
  return port_->begin({.call = SegmentCall::find}, name, remote::kForever);
}

namespace {

/// get_many() has so many gets under way on a network.
constexpr std::size_t kGetsAtOnce = 32;

}  // namespace

SegmentOperation SegmentSpace::get(Key key, std::span<std::byte> to, std::uint64_t offset) {
  return port_->begin_get(key, to, offset);
}

SegmentOperation SegmentSpace::get_if_changed(Key key, std::span<std::byte> to, std::uint64_t known,
                                              std::uint64_t offset) {
  return port_->begin_get_if_changed(key, to, known, offset);
}

SegmentOperation SegmentSpace::get_no_older(Key key, std::span<std::byte> to, std::uint64_t age_ns,
                                            std::uint64_t offset) {
  SegmentRequest request = get_of(key, to, offset);
  request.max_age_ns = std::min(age_ns, UINT64_MAX - 1);
  return port_->begin(request, {}, remote::kForever);
}

SegmentOperation SegmentSpace::get_version(Key key, std::span<std::byte> to, std::uint64_t version,
                                           std::uint64_t offset) {
  SegmentRequest request = get_of(key, to, offset);
  request.wanted_version = std::min(version, kLatestVersion);
  return port_->begin(request, {}, remote::kForever);
}

SegmentOperation SegmentSpace::put(Key key, std::span<const std::byte> from, std::uint64_t offset) {
  return port_->begin_put(key, from, offset);
}

SegmentOperation SegmentSpace::put_if_version(Key key, std::span<const std::byte> from,
                                              std::uint64_t expected, std::uint64_t offset) {
  SegmentRequest request = put_of(key, from, offset);
  request.wanted_version = std::min(expected, kLatestVersion);
  return port_->begin(request, {}, remote::kForever);
}

/// More follows as long as the next one has the same home.
void SegmentSpace::get(std::span<const SegmentGet> gets) noexcept {
  for (std::size_t i = 0; i < gets.size(); ++i) {
    const SegmentGet& one = gets[i];
    SegmentRequest request = get_of(one.key, one.to, one.offset);
    request.more = i + 1 < gets.size() && gets[i + 1].key.home() == one.key.home();
    one.operation = port_->begin(request, {}, remote::kForever);
  }
}

void SegmentSpace::put(std::span<const SegmentPut> puts) noexcept {
  for (std::size_t i = 0; i < puts.size(); ++i) {
    const SegmentPut& one = puts[i];
    SegmentRequest request = put_of(one.key, one.from, one.offset);
    request.more = i + 1 < puts.size() && puts[i + 1].key.home() == one.key.home();
    one.operation = port_->begin(request, {}, remote::kForever);
  }
}

remote::Status SegmentSpace::get_many(std::span<SegmentRead> reads) {
  if (!port_->get_many_at_once(reads)) return get_the_rest(reads);
  return remote::Call<Status>(progress(), Status::ok).wait();  // which polls now and then
}

remote::Status SegmentSpace::get_the_rest(std::span<SegmentRead> reads) {
  std::array<SegmentOperation, kGetsAtOnce> operations;
  std::vector<SegmentGet> gets;
  Status first_fault = Status::ok;
  for (std::size_t next = 0; next < reads.size();) {
    gets.clear();
    const std::size_t begin = next;
    for (; next < reads.size() && gets.size() < operations.size(); ++next)
      if (const SegmentRead& one = reads[next]; one.status == Status::under_way)
        gets.push_back({operations[gets.size()], one.key, one.to, one.offset});
    get(gets);
    std::size_t ended = 0;
    for (SegmentRead& one : reads.subspan(begin, next - begin)) {
      if (one.status == Status::under_way) {
        const Outcome& outcome = operations[ended++].outcome();
        one.status = outcome.status;
        one.version = outcome.version;
      }
      if (first_fault == Status::ok) first_fault = one.status;
    }
  }
  return first_fault;
}

SegmentOperation SegmentSpace::lock(Key key, std::uint64_t timeout_ns) {
  return port_->begin_lock(key, timeout_ns);
}

SegmentOperation SegmentSpace::try_lock(Key key) {
  return port_->begin({.call = SegmentCall::lock, .try_only = true, .key = key}, {},
                      remote::kForever);
}

SegmentOperation SegmentSpace::unlock(Key key) { return port_->begin_unlock(key); }

// --- describing, and the guard -------------------------------------------------------------------

std::string Outcome::describe() const {
  static constexpr std::array<std::string_view, 8> kCalls{
      "nothing", "allocation", "release", "search", "get", "put", "lock", "unlock"};
  std::string text(kCalls.at(static_cast<std::size_t>(call)));
  if (space != nullptr && call == SegmentCall::allocate)
    text +=
        " of " + std::to_string(bytes) + " bytes on " + space->text_of(static_cast<Rank>(offset));
  else if (space != nullptr && call != SegmentCall::find)
    text += " of " + key_text(*space, key);
  if (call == SegmentCall::get || call == SegmentCall::put)
    text += ", bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes);
  text += ": " + remote::describe(status, "segment");
  if (space != nullptr && status == Status::refused) text += ": " + space->why_refused();
  if (space != nullptr && status == Status::stopped)
    text += ": " + space->its_progress().why_stopped();
  return text;
}

SegmentLock::SegmentLock(SegmentSpace& space, Key key, std::uint64_t timeout_ns)
    : space_(space), key_(key) {
  auto locking = space.lock(key, timeout_ns);
  const Outcome outcome = locking.outcome();
  if (!outcome.ok()) throw Error(locking.describe());
  recovered_ = outcome.recovered;
}

SegmentLock::~SegmentLock() { static_cast<void>(space_.unlock(key_)); }

}  // namespace dunlin
