#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"
#include "container/small_slot.hpp"
#include "fabric/thread_guard.hpp"

/// Calls on a part whose memory is mapped here: the own part, for this process and for those that
/// ask by message; and on shm the parts of others.
namespace dunlin::container {

using remote::Status;

/// One call of so many on others' parts counts for the estimate of the load: a sample is enough.
constexpr std::uint64_t kNotedOf = 8;

/// Whether a call that writes may use the processor's atomics: beside it no other's work here.
bool MapState::writes_directly(Promise promise) const noexcept {
  return coherent || spec.style == Style::message || promise == Promise::local;
}

// --- what a slot means ---------------------------------------------------------------------------

namespace {

[[gnu::always_inline]] inline Sight sight_of(const SlotShape& shape, MapCall call,
                                             std::uint16_t fingerprint, const std::byte* key,
                                             std::uint32_t key_bytes,
                                             const std::byte* slot) noexcept {
  const std::uint64_t seen = word_at(slot);
  const word::State state = word::state_of(seen);
  if (state == word::empty) return Sight::vacant;
  if (state == word::voided || word::fingerprint_of(seen) != fingerprint) return Sight::other;
  if (state == word::reserved) return takes_slot(call) ? Sight::wait : Sight::other;
  // A line that has been written once holds its part of the key for ever (CON-M1).
  if (!is_written(shape, slot)) return Sight::wait;
  if (!begins_with(shape, slot, key, key_bytes)) return Sight::other;
  switch (state) {
    case word::ready:
      return is_whole(shape, slot) ? Sight::present : Sight::wait;
    case word::erased:
      return Sight::erased;
    case word::half:
      return Sight::half;
    default:
      return Sight::wait;
  }
}

}  // namespace

Sight MapState::judge(MapCall call, std::uint16_t fingerprint, const std::byte* key,
                      const std::byte* slot) const noexcept {
  return sight_of(shape, call, fingerprint, key, spec.key_bytes, slot);
}

std::optional<std::uint64_t> MapState::claim_word(MapCall call, Sight sight, Promise promise,
                                                  std::uint64_t seen, std::uint8_t by,
                                                  std::uint16_t fingerprint) const noexcept {
  const bool phasal = promise == Promise::writes || promise == Promise::local;
  const auto next = [&](word::State state) {
    return word::make(word::version_of(seen) + 1, by, self, fingerprint, state);
  };
  const bool there = sight == Sight::present || sight == Sight::half;
  switch (call) {
    case MapCall::find:
      return std::nullopt;
    case MapCall::erase:
    case MapCall::take:
      return there ? std::optional(next(word::erased)) : std::nullopt;
    case MapCall::insert:
      if (sight == Sight::present) return std::nullopt;
      [[fallthrough]];
    case MapCall::assign:
    case MapCall::exchange:
    case MapCall::add:
      if (call == MapCall::add && sight == Sight::half) return std::nullopt;  // of what number?
      if (sight != Sight::vacant) return next(word::changing);
      return next(phasal ? word::ready : word::reserved);
  }
  return std::nullopt;
}

// --- calls ---------------------------------------------------------------------------------------

/// The table's memory at that member; null if it is not mapped here.
std::byte* MapState::mapped(const MapTable& of, Rank home) const noexcept {
  if (home == self) return of.site.memory();
  const std::span<std::byte> there = hub.fabric.reach(home, of.site.region());
  return there.size() >= offset_of(of.slots) ? there.data() : nullptr;
}

void MapState::prefetch(std::uint64_t hash) const noexcept {
  const std::byte* const memory = mapped(first, home_of(hash));
  if (memory != nullptr) __builtin_prefetch(memory + offset_of(first.first_slot(hash)), 1);
}

/// As local(), for the commonest slots and keys.
MapApplied MapState::find_small(Rank home, std::uint64_t hash, std::byte* payload) noexcept {
  const std::byte* const memory = mapped(first, home);
  if (memory == nullptr) return MapApplied::again();
  const std::uint16_t fingerprint = fingerprint_of(hash);
  const std::uint64_t key = word_at(payload);
  std::uint32_t slot = first.first_slot(hash);
  for (std::uint32_t probed = 0; probed < first.window; ++probed) {
    const SmallSlot seen = fetch_small(memory + offset_of(slot));
    if (seen.word == 0) return Status::ok;
    if (word::fingerprint_of(seen.word) == fingerprint) {
      const bool is_it = word::state_of(seen.word) == word::ready && seen.stamp == seen.word &&
                         seen.payload[0] == key;
      if (!is_it) return MapApplied::again();  // what it is, local() tells
      copy_bytes(payload + sizeof key, &seen.payload[1], spec.value_bytes);
      return {Status::ok, true};
    }
    slot = slot + 1 < first.slots ? slot + 1 : 0;
  }
  return MapApplied::again();
}

bool MapState::goes_directly(MapCall call, Style style) const noexcept {
  const Style wanted = style != Style::automatic ? style : spec.style;
  return coherent && wanted != Style::message &&
         (spec.style != Style::message || call == MapCall::find);
}

MapApplied MapState::at_once(std::uint64_t hash, MapCall call, Promise promise, Style style,
                             std::byte* payload) noexcept {
  const Rank home = home_of(hash);
  if (home == self) {
    if (call != MapCall::find && !writes_directly(promise)) return MapApplied::again();
    const MapApplied applied = local(self, hash, call, promise, payload);
    if (applied.is_again()) return applied;
    ++counters.local;
    return applied;
  }
  if (!goes_directly(call, style)) return MapApplied::again();
  const MapApplied applied =
      local(home, hash, call, promise == Promise::local ? Promise::both : promise, payload);
  if (applied.is_again()) return applied;
  if (call != MapCall::find) hub.fabric.ring(home);
  ++counters.one_sided;
  return applied;
}

MapApplied MapState::local(Rank home, std::uint64_t hash, MapCall call, Promise promise,
                           std::byte* payload) noexcept {
  const std::uint16_t fingerprint = fingerprint_of(hash);
  const MapTable* of = &first;
  for (std::uint32_t level = 1;; ++level) {
    std::byte* const memory = mapped(*of, home);
    if (memory == nullptr) return MapApplied::again();
    std::uint32_t slot = of->first_slot(hash);
    for (std::uint32_t probed = 0; probed < of->window; ++probed) {
      // Most slots are others', and one word says so.
      std::byte* const at = memory + offset_of(slot);
      const std::uint64_t seen = memory::load(*reinterpret_cast<const std::uint64_t*>(at));
      const bool others = seen != 0 && (word::fingerprint_of(seen) != fingerprint ||
                                        word::state_of(seen) == word::voided);
      if (!others) {
        Sight sight = Sight::vacant;
        if (seen != 0) {
          memory::fetch(image.data(), at, shape.slot_bytes);
          sight = sight_of(shape, call, fingerprint, payload, spec.key_bytes, image.data());
        } else {
          std::memcpy(image.data(), &seen, sizeof seen);
        }
        if (sight == Sight::wait) return MapApplied::again();
        if (sight != Sight::other) {
          if (home == self || hash % kNotedOf == 0)
            load.note(level - 1, probed > 0, sight != Sight::vacant);
          return local_act(call, promise, sight, at, fingerprint, payload);
        }
      }
      slot = slot + 1 < of->slots ? slot + 1 : 0;
    }
    if (home != self) {  // CON-G2: the count is read after the windows
      const std::byte* const count = mapped(first, home);
      if (count == nullptr) return MapApplied::again();
      if (sizes.size() > 1)
        learn_tables(home, memory::load(*reinterpret_cast<const std::uint64_t*>(count)));
      if (level == known[home] && !takes_slot(call)) return Status::ok;
      if (level == known[home] || level == tables()) return MapApplied::again();
    } else if (level == tables()) {
      return passed_all(call, promise, hash, payload);
    }
    of = &table(level);
  }
}

MapApplied MapState::local_act(MapCall call, Promise promise, Sight sight, std::byte* slot,
                               std::uint16_t fingerprint, std::byte* payload) noexcept {
  const std::uint64_t seen = word_at(image.data());
  if (call == MapCall::find && sight == Sight::present) {
    decode(shape, image.data(), spec.key_bytes, spec.value_bytes, payload + spec.key_bytes);
    return {Status::ok, true};
  }
  const auto claim = claim_word(call, sight, promise == Promise::local ? Promise::both : promise,
                                seen, serial++, fingerprint);
  const bool found = sight == Sight::present;
  if (!claim) {
    if (found)
      decode(shape, image.data(), spec.key_bytes, spec.value_bytes, payload + spec.key_bytes);
    return {sight == Sight::half ? Status::half_written : Status::ok, found};
  }
  auto& word = *reinterpret_cast<std::uint64_t*>(slot);
  if (promise == Promise::local) {
    memory::store(word, *claim);
  } else if (memory::compare_swap(&word, seen, *claim) != seen) {
    return MapApplied::again();
  }
  if (word::state_of(*claim) == word::erased) {
    if (found && call == MapCall::take)
      decode(shape, image.data(), spec.key_bytes, spec.value_bytes, payload + spec.key_bytes);
    return {Status::ok, found};
  }
  if (found && needs_former(call)) {  // what the claim has kept as it was
    if (call == MapCall::exchange) return exchange_local(slot, *claim, payload);
    const std::uint64_t operand = operand_of(payload);
    decode(shape, image.data(), spec.key_bytes, spec.value_bytes, payload + spec.key_bytes);
    add_to(payload, operand);
  }
  publish_local(slot, *claim, payload);
  return {Status::ok, found};
}

/// A slot that was claimed as ready has its word already, and is whole with its last stamp: another
/// call may have claimed it by then.
void MapState::publish_local(std::byte* slot, std::uint64_t claim,
                             const std::byte* payload) noexcept {
  const std::uint64_t ready = word::with_state(claim, word::ready);
  if (shape.slot_bytes == kSmallSlotBytes) {
    place_small_payload(slot, payload, shape.payload_bytes, ready);
  } else {
    encode(shape, payload, ready, image.data());
    memory::place(slot + kStampBytes, image.data() + kStampBytes, shape.slot_bytes - kStampBytes);
  }
  if (claim != ready) memory::store(word_of_slot(slot, 0), ready);
}

/// The former value takes the place of the new one in the payload.
MapApplied MapState::exchange_local(std::byte* slot, std::uint64_t claim,
                                    std::byte* payload) noexcept {
  decode(shape, image.data(), spec.key_bytes, spec.value_bytes, former.data());
  publish_local(slot, claim, payload);
  std::memcpy(payload + spec.key_bytes, former.data(), former.size());
  return {Status::ok, true};
}

MapApplied MapCore::at_once(MapCall call, Promise promise, Style style,
                            std::byte* payload) noexcept {
  return state_->begin(call, promise, style, payload);
}

MapApplied MapState::begin(MapCall call, Promise promise, Style style,
                           std::byte* payload) noexcept {
  DUNLIN_ONE_THREAD(&hub.fabric);
  if (hub.progress.was_stopped()) return Status::stopped;
  if (checker != nullptr) return MapApplied::again();
  const std::uint64_t hash = hash_of(payload, spec.key_bytes);
  if (call == MapCall::find && is_small) {
    const Rank home = home_of(hash);
    if (home == self || goes_directly(call, style))
      if (const MapApplied found = find_small(home, hash, payload); !found.is_again()) {
        ++(home == self ? counters.local : counters.one_sided);
        return found;
      }
  }
  return at_once(hash, call, promise, style, payload);
}

/// CON-A1, CON-A2: a handler works on this memory, sends one reply, and waits for nothing.
void MapState::handle(Rank from, const MessageHead& head, std::span<const std::byte> content) {
  if (head.kind != MessageKind::request) return;
  if (head.operation == kAskRoom) {
    std::uint64_t hash = 0;
    if (content.size() != sizeof hash) return;
    std::memcpy(&hash, content.data(), sizeof hash);
    const Room room = room_behind(head.word, hash);
    const OfferedSlot offered = room.offered.value_or(OfferedSlot());
    const auto bytes = std::as_bytes(std::span(&offered, room.offered ? 1 : 0));
    return hub.send(from,
                    {.container = head.container,
                     .call = head.call,
                     .kind = MessageKind::reply,
                     .status = static_cast<std::uint8_t>(room.status)},
                    bytes);
  }
  const auto call = static_cast<MapCall>(head.operation);
  const bool takes = takes_slot(call);
  const std::size_t wanted = spec.key_bytes + (takes ? spec.value_bytes : 0);
  std::array<std::byte, kMaxMessageBytes> payload{};
  MessageHead reply{.container = head.container, .call = head.call, .kind = MessageKind::reply};
  const bool valid =
      head.operation <= static_cast<std::uint8_t>(MapCall::take) &&
      (call != MapCall::add || adds()) && (!needs_pool(call) || values != nullptr) &&
      head.flag <= static_cast<std::uint8_t>(Promise::local) && content.size() == wanted &&
      spec.key_bytes + spec.value_bytes <= payload.size() && writes_directly(Promise::both);
  if (!valid) {
    reply.status = static_cast<std::uint8_t>(Status::not_allowed);
    return hub.send(from, reply, {});
  }
  ++counters.served;
  std::memcpy(payload.data(), content.data(), content.size());
  const auto promise = static_cast<Promise>(head.flag);
  const MapApplied result =
      local(self, hash_of(payload.data(), spec.key_bytes), call,
            promise == Promise::local ? Promise::both : promise, payload.data());
  const bool again = result.is_again();
  reply.status = static_cast<std::uint8_t>(again ? Status::busy : result.status());
  reply.flag = result.found() ? 1 : 0;
  const bool has_value =
      !again && (result.found() || call == MapCall::add) && call != MapCall::erase;
  hub.send(from, reply,
           std::span(payload).subspan(spec.key_bytes, has_value ? spec.value_bytes : 0));
}

}  // namespace dunlin::container
