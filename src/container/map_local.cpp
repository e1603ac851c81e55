#include <algorithm>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"
#include "container/map.hpp"
#include "container/small_slot.hpp"
#include "fabric/thread_guard.hpp"

/// Calls on a part whose memory is mapped here: the own part, for this process and for those that
/// ask by message; and on shm the parts of others.
namespace dunlin::container {

using remote::Status;

/// One call of so many on others' parts counts for the estimate of the load: a sample is enough.
constexpr std::uint64_t kNotedOf = 8;
/// An update that has lost the race for its slot so often lets its home poll, and is asked for
/// again.
constexpr std::uint32_t kMostChanges = 16;

/// Whether a call that writes may use the processor's atomics: beside it no other's work here.
bool MapState::writes_directly(Promise promise) const noexcept {
  return coherent || spec.style == Style::message || promise == Promise::local;
}

namespace {

/// Under Promise::local no other changes the word.
[[gnu::always_inline]] inline bool replace(std::uint64_t& word, std::uint64_t from,
                                           std::uint64_t to, Promise promise) noexcept {
  if (promise != Promise::local) return memory::compare_swap(&word, from, to) == from;
  memory::store(word, to);
  return true;
}

/// What a claim is made for: on the own part, others that read are there still.
constexpr Promise claimed_for(Promise promise) noexcept {
  return promise == Promise::local ? Promise::both : promise;
}

// --- how slots are read --------------------------------------------------------------------------

/// Slots with keys of 8 bytes, the commonest.
template <class View>
struct InRegisters {
  [[gnu::always_inline]] Sight look(MapState&, MapCall call, std::uint16_t fingerprint,
                                    const std::byte* key, const std::byte* slot) noexcept {
    seen = View::fetch(slot);
    const Sight sight = sight_of(seen, call, fingerprint, key, sizeof(std::uint64_t));
    if (sight != Sight::half) return sight;
    const View again = View::fetch(slot);  // CON-S4
    const bool is_same = again.word == seen.word && again.has_key(key, sizeof(std::uint64_t));
    return is_same ? sight : Sight::wait;
  }
  [[gnu::always_inline]] MapApplied act(MapState& map, MapCall call, Promise promise, Sight sight,
                                        std::byte* slot, std::uint16_t fingerprint,
                                        std::byte* payload) const noexcept {
    return map.act(call, promise, sight, seen, slot, fingerprint, payload);
  }
  /// Whether a lost compare-and-swap is a reason to look at the slot again, and not at all of it:
  /// in a packed map no call changes a slot for longer than that.
  static constexpr bool kLooksAgain = std::is_same_v<View, PackedSlot>;
  void read_value(const MapState& map, std::byte* to) const noexcept {
    put_value(to, seen.value(), map.spec.value_bytes);
  }
  View seen;
};

/// Any slots.
struct AsImages {
  static constexpr bool kLooksAgain = false;
  Sight look(MapState& map, MapCall call, std::uint16_t fingerprint, const std::byte* key,
             const std::byte* slot) noexcept {
    const std::uint64_t seen = memory::load(word_of_slot(slot, 0));
    if (is_others(seen, fingerprint)) return Sight::other;  // as most are
    if (seen == 0) {
      std::memcpy(map.image.data(), &seen, sizeof seen);
      return Sight::vacant;
    }
    memory::fetch(map.image.data(), slot, map.shape.slot_bytes);
    const Sight sight = map.judge(call, fingerprint, key, map.image.data());
    const bool was_other = sight == Sight::half && word_at(map.image.data()) != seen;  // CON-S4
    return was_other ? Sight::wait : sight;
  }
  MapApplied act(MapState& map, MapCall call, Promise promise, Sight sight, std::byte* slot,
                 std::uint16_t fingerprint, std::byte* payload) const noexcept {
    return map.act(call, promise, sight, slot, fingerprint, payload);
  }
  void read_value(const MapState& map, std::byte* to) const noexcept {
    decode(map.shape, map.image.data(), map.spec.key_bytes, map.spec.value_bytes, to);
  }
};

/// Slots that an update changes: an assign, whose value is made of the former one (CON-F5).
template <class Form>
struct Updating : Form {
  static constexpr bool kLooksAgain = true;
  MapApplied act(MapState& map, MapCall call, Promise promise, Sight sight, std::byte* slot,
                 std::uint16_t fingerprint, std::byte* payload) const noexcept {
    if (sight == Sight::half) return Status::half_written;  // of what value?
    const bool found = sight == Sight::present;
    std::byte* const value = payload + map.spec.key_bytes;
    if (found) Form::read_value(map, value);
    const Status changed = map.change_value(found, value);
    if (changed != Status::ok) return {changed, found};
    return Form::act(map, call, promise, sight, slot, fingerprint, payload);
  }
};

}  // namespace

Sight MapState::judge(MapCall call, std::uint16_t fingerprint, const std::byte* key,
                      const std::byte* slot) const noexcept {
  return sight_of(SlotImage{shape, slot}, call, fingerprint, key, spec.key_bytes);
}

// --- calls ---------------------------------------------------------------------------------------

/// The table's memory at that member; null if it is not mapped here.
std::byte* MapState::mapped(const MapTable& of, Rank home) const noexcept {
  DUNLIN_ASSERT(home < members, "CON-M1: a hash leads to a member");
  if (home == self) return of.site.memory();
  return of.site.mapped(home, offset_of(of.slots));
}

void MapState::prefetch(std::uint64_t hash) const noexcept {
  const std::byte* const memory = mapped(first, home_of(hash));
  if (memory != nullptr) __builtin_prefetch(memory + offset_of(first.first_slot(hash)), 1);
}

bool MapState::goes_directly(MapCall call, Style style) const noexcept {
  const Style wanted = style != Style::automatic ? style : spec.style;
  return coherent && wanted != Style::message &&
         (spec.style != Style::message || call == MapCall::find);
}

MapApplied MapState::at_once(std::uint64_t hash, MapCall call, Promise promise, Style style,
                             std::byte* payload) noexcept {
  const Rank home = home_of(hash);
  const bool finds = call == MapCall::find;
  if (home == self) {
    if (!finds && !writes_directly(promise)) return MapApplied::again();
    const MapApplied applied =
        finds ? local_find(self, hash, payload) : local(self, hash, call, promise, payload);
    if (applied.is_again()) return applied;
    ++counters.local;
    return applied;
  }
  if (!goes_directly(call, style)) return MapApplied::again();
  const MapApplied applied =
      finds ? local_find(home, hash, payload)
            : local(home, hash, call, promise == Promise::local ? Promise::both : promise, payload);
  if (applied.is_again()) return applied;
  if (!finds) hub.fabric.ring(home);
  ++counters.one_sided;
  return applied;
}

MapApplied MapState::local(Rank home, std::uint64_t hash, MapCall call, Promise promise,
                           std::byte* payload) noexcept {
  if (is_small) return search<InRegisters<SmallMapSlot>, false>(home, hash, call, promise, payload);
  if (spec.packed)
    return search<InRegisters<PackedSlot>, false>(home, hash, call, promise, payload);
  return search<AsImages, false>(home, hash, call, promise, payload);
}

/// A find in registers is a function of its own: it needs few of them, and leaves the estimate of
/// the load to other calls.
MapApplied MapState::local_find(Rank home, std::uint64_t hash, std::byte* payload) noexcept {
  constexpr MapCall kCall = MapCall::find;
  if (is_small)
    return search<InRegisters<SmallMapSlot>, true>(home, hash, kCall, Promise::both, payload);
  if (spec.packed)
    return search<InRegisters<PackedSlot>, true>(home, hash, kCall, Promise::both, payload);
  return search<AsImages, false>(home, hash, kCall, Promise::both, payload);
}

template <class Form, bool Finds>
MapApplied MapState::search(Rank home, std::uint64_t hash, MapCall its_call, Promise promise,
                            std::byte* payload) noexcept {
  const MapCall call = Finds ? MapCall::find : its_call;
  const std::uint16_t fingerprint = fingerprint_of(hash);
  const MapTable* of = &first;
  std::uint32_t level = 0, slot = first.first_slot(hash), probed = 0, end = first_slots;
  for (std::uint32_t windows = 1;; ++windows) {
    std::byte* const memory = mapped(*of, home);
    if (memory == nullptr) return MapApplied::again();
    while (probed < end) {
      std::byte* const at = memory + offset_of(slot);
      Form form;
      const Sight sight = form.look(*this, call, fingerprint, payload, at);
      if (sight == Sight::wait) return MapApplied::again();
      if (sight == Sight::other) {
        ++probed;
        slot = slot + 1 < of->slots ? slot + 1 : 0;
        continue;
      }
      if (!Finds && (home == self || hash % kNotedOf == 0))
        load.note(level, probed > 0, sight != Sight::vacant);
      const MapApplied applied = form.act(*this, call, promise, sight, at, fingerprint, payload);
      if (!applied.is_again() || !Form::kLooksAgain) return applied;
    }
    MapApplied ended = MapApplied::again();
    if (!goes_on(home, windows, hash, call, promise, payload, ended)) return ended;
    const KeyWindow next = window(windows, hash);
    level = next.level;
    of = &table(level);
    slot = next.first;
    if (windows == level) probed = 0;  // of another table
    end = probed + next.slots;
  }
}

[[gnu::noinline]] bool MapState::goes_on(Rank home, std::uint32_t windows, std::uint64_t hash,
                                         MapCall call, Promise promise, std::byte* payload,
                                         MapApplied& ended) noexcept {
  if (home == self) {
    if (windows < open[self]) return true;
    ended = passed_all(call, promise, hash, payload);
    return false;
  }
  const std::byte* const count = mapped(first, home);  // CON-G2: it is read after the windows
  if (count == nullptr) return false;
  const bool is_news = learn_windows(home, memory::load(word_of_slot(count, 0)));
  if (takes_slot(call)) {
    if (is_news) return false;  // CON-G5: it begins anew
  } else if (windows == open[home]) {
    ended = Status::ok;
  }
  return windows < open[home] && window(windows, hash).level < tables();
}

template <class View>
[[gnu::always_inline]] inline MapApplied MapState::act(MapCall call, Promise promise, Sight sight,
                                                       const View& seen, std::byte* slot,
                                                       std::uint16_t fingerprint,
                                                       std::byte* payload) noexcept {
  std::byte* const value = payload + spec.key_bytes;
  const bool found = sight == Sight::present, adds = call == MapCall::add && found;
  std::uint64_t written = takes_slot(call) ? value_at(value, spec.value_bytes) : 0;
  if (adds) written += seen.value();  // a claim keeps it as it was
  if (spec.value_bytes == sizeof(std::uint32_t)) written &= UINT32_MAX;
  const std::uint64_t claim = View::claim(call, sight, claimed_for(promise), seen.word,
                                          {self, serial, fingerprint}, written);
  DUNLIN_ASSERT(claim == 0 || call != MapCall::find, "CON-M3: a find claims no slot");
  if (claim == 0) {
    if (found) put_value(value, seen.value(), spec.value_bytes);
    return {sight == Sight::half ? Status::half_written : Status::ok, found};
  }
  ++serial;
  if (!replace(View::word_of(slot), seen.word, claim, promise)) return MapApplied::again();
  if (adds) put_value(value, written, spec.value_bytes);
  if (View::is_unpublished(claim)) View::publish(slot, word_at(payload), written, claim);
  return {Status::ok, found};
}

MapApplied MapState::act(MapCall call, Promise promise, Sight sight, std::byte* slot,
                         std::uint16_t fingerprint, std::byte* payload) noexcept {
  const std::uint64_t seen = word_at(image.data());
  const std::uint64_t claim =
      claim_word(call, sight, claimed_for(promise), seen, {self, serial, fingerprint});
  DUNLIN_ASSERT(claim == 0 || call != MapCall::find, "CON-M3: a find claims no slot");
  const bool found = sight == Sight::present;
  const auto read_value = [&] {
    decode(shape, image.data(), spec.key_bytes, spec.value_bytes, payload + spec.key_bytes);
  };
  if (claim == 0) {
    if (found) read_value();
    return {sight == Sight::half ? Status::half_written : Status::ok, found};
  }
  ++serial;
  if (!replace(word_of_slot(slot, 0), seen, claim, promise)) return MapApplied::again();
  if (!is_unpublished(claim)) {
    if (found && call == MapCall::take) read_value();
    return {Status::ok, found};
  }
  if (found && needs_former(call)) {  // what the claim has kept as it was
    if (call == MapCall::exchange) return exchange_local(slot, claim, payload);
    const std::uint64_t operand = operand_of(payload);
    read_value();
    add_to(payload, operand);
  }
  publish_local(slot, claim, payload);
  return {Status::ok, found};
}

MapApplied MapState::act_on_vacant(MapCall call, Promise promise, std::uint64_t seen,
                                   std::byte* slot, std::uint16_t fingerprint,
                                   std::byte* payload) noexcept {
  if (spec.packed)
    return act(call, promise, Sight::vacant, PackedSlot{.key = 0, .word = seen}, slot, fingerprint,
               payload);
  std::memcpy(image.data(), &seen, sizeof seen);
  return act(call, promise, Sight::vacant, slot, fingerprint, payload);
}

/// As SmallMapSlot::publish().
void MapState::publish_local(std::byte* slot, std::uint64_t claim,
                             const std::byte* payload) noexcept {
  DUNLIN_ASSERT(word::owner_plus_1(claim) == self + 1U, "CON-M3: only its owner writes a slot");
  const std::uint64_t ready = word::with_state(claim, word::ready);
  encode(shape, payload, ready, image.data());
  memory::place(slot + kStampBytes, image.data() + kStampBytes, shape.slot_bytes - kStampBytes);
  if (claim != ready) memory::store(word_of_slot(slot, 0), ready);
}

/// The former value takes the place of the new one in the payload.
MapApplied MapState::exchange_local(std::byte* slot, std::uint64_t claim,
                                    std::byte* payload) noexcept {
  DUNLIN_ASSERT(former.size() == spec.value_bytes, "CON-V5: an exchange is of a map with a pool");
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
  if (hub.progress.was_stopped() || checker != nullptr) return MapApplied::again();
  return at_once(hash_of(payload, spec.key_bytes), call, promise, style, payload);
}

Status MapCore::update(std::byte* payload, const Change& change) {
  return state_->update(payload, change);
}

/// The slot's claim succeeds only if it is as it was read, so the value was that all the time.
Status MapState::update(std::byte* payload, const MapCore::Change& change) {
  constexpr MapCall kCall = MapCall::assign;
  DUNLIN_ASSERT(writes_directly(Promise::both) && values == nullptr,
                "CON-F5: a home can change its slots itself");
  if (!has_part()) return Status::not_allowed;  // the peer may have sent anything
  if (checker != nullptr && !checker->allows_here({checked_call(kCall), Promise::both}))
    return Status::broken_promise;
  ++counters.served;
  updating = &change;
  changes = 0;
  const std::uint64_t hash = hash_of(payload, spec.key_bytes);
  const MapApplied applied =
      spec.packed ? search<Updating<InRegisters<PackedSlot>>, false>(self, hash, kCall,
                                                                     Promise::both, payload)
                  : search<Updating<AsImages>, false>(self, hash, kCall, Promise::both, payload);
  updating = nullptr;
  if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
  return applied.is_again() ? Status::busy : applied.status();
}

Status MapState::change_value(bool found, std::byte* value) noexcept {
  if (++changes > kMostChanges) return Status::busy;
  try {
    const Status status = (*updating)(found, value);
    return hub.progress.broke_local_work() ? Status::not_allowed : status;
  } catch (...) {
    thrown = std::current_exception();
    return Status::threw;
  }
}

/// CON-A1, CON-A2: a handler works on this memory, sends one reply, and waits for nothing.
void MapState::handle(Rank from, const MessageHead& head, std::span<const std::byte> content) {
  if (head.kind != MessageKind::request || !has_part()) return;
  if (head.operation == kAskRoom) {
    std::uint64_t hash = 0;
    if (content.size() != sizeof hash) return;
    std::memcpy(&hash, content.data(), sizeof hash);
    const Room room = room_behind(head.word, hash);
    const OfferedSlot offered = room.offered.value_or(OfferedSlot());
    const auto bytes = std::as_bytes(std::span(&offered, room.offered ? 1 : 0));
    return hub.send(from, reply_to(head, room.status), bytes);
  }
  const auto call = static_cast<MapCall>(head.operation);
  const bool takes = takes_slot(call);
  const std::size_t wanted = spec.key_bytes + (takes ? spec.value_bytes : 0);
  std::array<std::byte, kMaxMessageBytes> payload{};
  const bool valid = head.operation <= static_cast<std::uint8_t>(MapCall::take) &&
                     (call != MapCall::add || adds()) && (!needs_pool(call) || values != nullptr) &&
                     head.flag <= static_cast<std::uint8_t>(Promise::local) &&
                     content.size() == wanted &&
                     spec.key_bytes + spec.value_bytes <= payload.size() &&
                     (call == MapCall::find || writes_directly(Promise::both));
  if (!valid) return hub.send(from, reply_to(head, Status::not_allowed), {});
  ++counters.served;
  std::memcpy(payload.data(), content.data(), content.size());
  const auto promise = static_cast<Promise>(head.flag);
  const MapApplied result =
      local(self, hash_of(payload.data(), spec.key_bytes), call,
            promise == Promise::local ? Promise::both : promise, payload.data());
  const bool again = result.is_again();
  MessageHead reply = reply_to(head, again ? Status::busy : result.status());
  reply.flag = result.found() ? 1 : 0;
  const bool has_value =
      !again && (result.found() || call == MapCall::add) && call != MapCall::erase;
  hub.send(from, reply,
           std::span(payload).subspan(spec.key_bytes, has_value ? spec.value_bytes : 0));
}

}  // namespace dunlin::container
