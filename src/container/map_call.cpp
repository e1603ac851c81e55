#include <algorithm>
#include <cstring>
#include <utility>

#include "assert.hpp"
#include "container/map.hpp"

/// The protocols of calls on a map.
namespace dunlin::container {

namespace {

/// A call whose steps end at once, as on shm, takes so many and then lets others poll.
constexpr std::uint32_t kStepsAtOnce = 4096;

/// Notes when all that publishes a slot is posted: no mend is owed any more.
struct PublishGate : SiteGate {
  Claim* claim;
  std::size_t writes;
  void accepted(std::size_t posted) const noexcept {
    if (posted == writes) claim->settle();
  }
};

}  // namespace

// --- the parts of a call -------------------------------------------------------------------------

MapRequest::MapRequest(MapState& map, MapCall its_call, Promise its_promise, Style its_style,
                       const std::byte* its_payload) noexcept
    : call(its_call),
      promise(its_promise),
      style(its_style),
      serial(map.serial++),
      fingerprint(fingerprint_of(hash_of(its_payload, map.spec.key_bytes))),
      key_bytes(map.spec.key_bytes),
      value_bytes(map.spec.value_bytes),
      hash(hash_of(its_payload, key_bytes)),
      home(map.home_of(hash)),
      addend(its_call == MapCall::add ? map.operand_of(its_payload) : 0) {
  const std::size_t payload_bytes = std::size_t{key_bytes} + value_bytes;
  const std::size_t window_bytes = std::max(kProbeBytes, map.shape.slot_bytes);
  memory = CallMemory(map.buffers, window_bytes + payload_bytes + map.former.size());
  if (memory.data() == nullptr) return;
  window = memory.data();
  payload = window + window_bytes;
  former = payload + payload_bytes;
  std::memcpy(payload, its_payload, takes_slot(call) ? payload_bytes : key_bytes);
}

MapResult MapRequest::ended(Status status) noexcept {
  found = found && status == Status::ok;
  const bool has_one = status == Status::ok && has_value(call, found);
  return {.status = status,
          .found = found,
          .round_trips = round_trips,
          .value = std::span(value(), has_one ? value_bytes : 0),
          .memory = std::move(memory)};
}

Probe::Probe(MapState& map, const MapRequest& one) noexcept : open(map.open[one.home]) {
  enter(map, 0, one.hash);
}

void Probe::enter(MapState& map, std::uint32_t number, std::uint64_t hash) noexcept {
  const KeyWindow its = map.window(number, hash);
  if (number == its.level) probed = 0;  // of another table
  table = &map.table(its.level);
  level = its.level;
  window = number;
  slot = its.first;
  window_end = probed + its.slots;
  half = 0;
}

void Probe::pass() noexcept {
  ++probed;
  half = 0;
  slot = slot + 1 < table->slots ? slot + 1 : 0;
}

void Probe::restart(MapState& map, const MapRequest& one) noexcept {
  enter(map, 0, one.hash);
  open = map.open[one.home];
}

Claim::Claim(MapState& map, const Probe& at, Rank home, std::uint64_t word)
    : map_(map), table_(*at.table), home_(home), slot_(at.slot), word_(word) {
  map_.reserve_mends();
  ++map_.claims;
}

Claim::~Claim() {
  DUNLIN_ASSERT(map_.mends.capacity() > map_.mends.size(), "CON-P5: a mend is owed without memory");
  --map_.claims;
  const bool is_owed = map_.is_unpublished(word_);
  if (is_settled_ || !is_owed || map_.first.site.fault(home_) != Status::ok) return;
  const word::State left = word::state_of(word_) == word::changing ? word::half : word::voided;
  map_.mends.push_back({&table_, home_, slot_, word_, word::with_state(word_, left)});
  map_.hub.look_again_soon();
}

void MapState::reserve_mends() {
  const std::size_t wanted = mends.size() + claims + 1;
  if (mends.capacity() < wanted) mends.reserve(2 * wanted);
}

// --- the way of a call ---------------------------------------------------------------------------

Protocol<MapResult> MapCore::run(MapCall call, Promise promise, Style style,
                                 const std::byte* payload) {
  return state_->run(MapRequest(*state_, call, promise, style, payload));
}

/// Directly in mapped memory, by message, or one-sided; of a checked map between the announcement
/// and its retraction (CON-C1).
Protocol<MapResult> MapState::run(MapRequest one) {
  if (one.memory.data() == nullptr) co_return MapResult{Status::no_memory};
  Announcement mine(checker.get(), one.home, {checked_call(one.call), one.promise});
  Status status = Status::ok;
  if (mine.needed()) status = co_await mine.make();
  if (status != Status::ok) co_return MapResult{status};
  const bool is_own =
      one.home == self && (one.call == MapCall::find || writes_directly(one.promise));
  MapApplied applied = at_once(one.hash, one.call, one.promise, one.style, one.payload);
  while (applied.is_again() && is_own) {
    co_await Soon(hub);
    applied = at_once(one.hash, one.call, one.promise, one.style, one.payload);
  }
  if (!applied.is_again()) {
    one.found = applied.found();
    status = applied.status();
  } else if (const Status fault = first.site.fault(one.home); fault != Status::ok) {
    status = fault;
  } else if (one.home != self && style_of(one) == Style::message) {
    ++counters.by_message;
    status = co_await by_message(one);
  } else {
    ++counters.one_sided;
    status = co_await one_sided(one);
  }
  if (mine.needed()) static_cast<void>(co_await mine.retract());
  co_return one.ended(status);
}

Style MapState::style_of(const MapRequest& one) noexcept {
  const bool finds = one.call == MapCall::find;
  if (kMessageHeader + spec.key_bytes + spec.value_bytes > kMaxMessageBytes)
    return Style::one_sided;
  if (spec.style == Style::message && !(finds && one.style == Style::one_sided))
    return Style::message;
  if (!coherent && !finds) return Style::one_sided;
  const Style wanted = one.style != Style::automatic ? one.style : spec.style;
  if (wanted != Style::automatic) return wanted;
  Situation at = situation_of(spec, one.promise, hub.present);
  at.load = load.load();
  at.tables = static_cast<double>(tables_of(one.home));
  return hub.cheaper_style(styles, modelled_call(spec, one.call), at, one.home);
}

/// A home that would have to wait answers `busy`, and is asked again.
Protocol<Status> MapState::by_message(MapRequest& one) {
  const Site& site = first.site;
  DUNLIN_ASSERT(one.home != self, "CON-A1: a member handles its own part itself");
  co_await remote::Until(
      [&] { return site.connected(one.home) || site.fault(one.home) != Status::ok; });
  const MessageHead head{.container = site.id(),
                         .operation = static_cast<std::uint8_t>(one.call),
                         .flag = static_cast<std::uint8_t>(one.promise)};
  const std::size_t bytes = spec.key_bytes + (takes_slot(one.call) ? spec.value_bytes : 0);
  for (;;) {
    ++one.round_trips;
    Asked asked(hub, site, one.home, head, std::span(one.payload, bytes),
                std::span(one.value(), spec.value_bytes));
    const Reply reply = co_await asked;
    one.found = reply.flag;
    if (reply.status != Status::busy) co_return reply.status;
    co_await Soon(hub);
  }
}

// --- one-sided -----------------------------------------------------------------------------------

/// Looks for the key, or the first vacant slot of its sequence, and changes that slot.
Protocol<Status> MapState::one_sided(MapRequest& one) {
  Probe at(*this, one);
  if (one.call == MapCall::insert && tables_of(one.home) == 1)
    at.word = 0;  // most find a vacant slot
  Rests rests(hub);
  std::byte* slot = nullptr;
  for (std::uint32_t steps = 1;; ++steps) {
    if (steps % kStepsAtOnce == 0) co_await Soon(hub);
    Sight sight = Sight::vacant;
    if (!at.word) {
      if (at.has_passed_window()) {
        const Status passed = co_await pass_window(one, at);
        if (passed != Status::under_way) co_return passed;
        continue;
      }
      const std::uint32_t slots = slots_to_read(one, at);
      ++one.round_trips;
      const Status status =
          co_await post(at.table->site, read(one.home, at.table->site.region(), offset_of(at.slot),
                                             one.window, std::size_t{slots} * shape.slot_bytes));
      if (status != Status::ok) co_return status;
      sight = look(one, at, slots, slot);
      if (sight == Sight::wait) co_await rests.pause(kShortRestNs);
      if (sight == Sight::wait || sight == Sight::other) continue;
      const std::uint64_t half = sight == Sight::half ? SlotImage{shape, slot}.its_word() : 0;
      if (half != std::exchange(at.half, half) && half != 0) continue;  // CON-S4
      at.is_keys = spec.packed && sight != Sight::vacant;
    } else if (at.is_keys) {  // the lost compare-and-swap has told what the slot has now
      std::memcpy(slot + word_offset(shape), &*at.word, sizeof *at.word);
      sight = judge(one.call, one.fingerprint, one.payload, slot);
      if (sight != Sight::present && sight != Sight::erased) {  // the peer may have sent anything
        at.word.reset();
        continue;
      }
    }
    const std::uint64_t seen = at.word ? *at.word : SlotImage{shape, slot}.its_word();
    one.found = sight == Sight::present;
    if (needs_former(one.call)) use_former(one, slot);
    const std::uint64_t claimed = claim_of(one, sight, seen);
    if (sight != Sight::vacant || claimed == 0)
      load.note(at.level, at.probed > 0, sight != Sight::vacant);
    if (claimed == 0) {
      if (one.found) SlotImage{shape, slot}.read_value(spec.key_bytes, one.value());
      co_return sight == Sight::half ? Status::half_written : Status::ok;
    }
    const Status status = co_await change(one, at, seen, claimed);
    if (status != Status::busy) co_return status;
    one.found = false;  // the slot may be another key's by now
    if (std::exchange(at.is_offered, false)) at.restart(*this, one);  // another has got the slot
  }
}

/// To the end of the line at first; what is searched longer than that is read in larger pieces.
std::uint32_t MapState::slots_to_read(const MapRequest& one, const Probe& at) const noexcept {
  const std::uint32_t in_line = std::max(std::uint32_t{kCacheLineBytes} / shape.slot_bytes, 1U);
  std::uint32_t slots = in_line - at.slot % in_line;
  const bool is_long = at.probed > 1 || at.level + 1 < tables_of(one.home);
  if (is_long) slots = std::max(kProbeBytes / shape.slot_bytes, 1U);
  return std::min({slots, at.table->slots - at.slot, at.window_end - at.probed});
}

Sight MapState::look(const MapRequest& one, Probe& at, std::uint32_t slots,
                     std::byte*& slot) const noexcept {
  for (std::uint32_t i = 0; i < slots; ++i) {
    slot = one.window + std::size_t{i} * shape.slot_bytes;
    const Sight sight = judge(one.call, one.fingerprint, one.payload, slot);
    if (sight != Sight::other) return sight;
    at.pass();
  }
  return Sight::other;
}

std::uint64_t MapState::claim_of(const MapRequest& one, Sight sight,
                                 std::uint64_t seen) const noexcept {
  const Claimant by{self, one.serial, one.fingerprint};
  if (!spec.packed) return claim_word(one.call, sight, one.promise, seen, by);
  return packed_claim(one.call, sight, seen, by, value_at(one.value(), spec.value_bytes));
}

void MapState::encode_slot(const std::byte* payload, std::uint64_t claim,
                           std::byte* slot) const noexcept {
  if (!spec.packed) return encode(shape, payload, word::with_state(claim, word::ready), slot);
  const std::uint64_t ready =
      word::packed(value_at(payload + spec.key_bytes, spec.value_bytes), claim, word::ready);
  std::memcpy(slot, payload, spec.key_bytes);
  std::memcpy(slot + word_offset(shape), &ready, sizeof ready);
}

/// The former value is for an add, or for the caller of an exchange or a take.
void MapState::use_former(MapRequest& one, const std::byte* slot) const noexcept {
  std::byte* const to = one.call == MapCall::add ? one.value() : one.former;
  if (one.found)
    SlotImage{shape, slot}.read_value(spec.key_bytes, to);
  else
    std::memset(to, 0, spec.value_bytes);
  if (one.call == MapCall::add) add_to(one.payload, one.addend);
}

/// The payload, with its stamps, and the word that publishes it: a reader that sees the second sees
/// the first. A slot that was claimed as ready has its word already.
Protocol<Status> MapState::change(MapRequest& one, Probe& at, std::uint64_t seen,
                                  std::uint64_t claimed) {
  Site& site = at.table->site;
  const std::uint64_t offset = offset_of(at.slot);
  Claim claim(*this, at, one.home, claimed);
  std::uint64_t before = 0;
  ++one.round_trips;
  Status status = co_await post(
      site, compare_swap(one.home, site.region(), offset_of_word(at.slot), seen, claimed, &before));
  if (status != Status::ok) co_return status;
  at.word.reset();
  if (before != seen) {
    claim.settle();
    at.vain_restarts = 0;
    if (at.is_keys) {
      at.word = before;
      co_return Status::busy;
    }
    // The answer gives the slot's fingerprint; only if it equals ours, the key must be read.
    const bool others =
        word::state_of(before) == word::voided || word::fingerprint_of(before) != one.fingerprint;
    if (others && before != 0) at.pass();
    co_return Status::busy;
  }
  if (seen == 0) load.note(at.level, at.probed > 0, false);
  if (is_unpublished(claimed)) {
    DUNLIN_ASSERT(word::owner_plus_1(claimed) == self + 1U, "CON-M3: only its owner writes a slot");
    encode_slot(one.payload, claimed, one.window);
    const bool has_word = word::state_of(claimed) == word::ready;
    std::array writes{write(one.home, site.region(), offset + kStampBytes, one.window + kStampBytes,
                            shape.slot_bytes - kStampBytes),
                      write(one.home, site.region(), offset, one.window, kStampBytes)};
    std::size_t count = has_word ? 1 : 2;
    if (spec.packed) {  // CON-K1: by FAB-F2 the key comes before its word
      writes[0] = write(one.home, site.region(), offset, one.window, shape.slot_bytes);
      count = 1;
    }
    PublishGate gate{site.gate(one.home), &claim, count};
    remote::Batch<2, PublishGate> batch(hub.fabric, std::span(writes).first(count), gate);
    ++one.round_trips;
    status = co_await batch;
  }
  if (needs_pool(one.call) && one.found) std::memcpy(one.value(), one.former, spec.value_bytes);
  co_return status;
}

}  // namespace dunlin::container
