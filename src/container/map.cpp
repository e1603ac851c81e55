#include "container/map.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "fault_injection.hpp"

/// A map's part, and what searches in it mean.
namespace dunlin::container {

namespace {

/// A slot that is being written all the time is left out.
constexpr int kLocalAttempts = 1000;

MapSpec checked(MapSpec spec) {
  check_name("map", spec.name);
  const auto refuse = [&](const std::string& why) {
    throw Error("map '" + spec.name + "': " + why);
  };
  if (spec.key_bytes == 0) refuse("its keys have 0 bytes");
  if (spec.key_bytes + spec.value_bytes > kMaxElementBytes)
    refuse("key and value have more than " + std::to_string(kMaxElementBytes) +
           " bytes (kMaxElementBytes)");
  if (spec.slots == 0 || spec.slots > kMaxSlots)
    refuse("a part has 1 to " + std::to_string(kMaxSlots) + " slots (kMaxSlots)");
  // What no message holds goes one-sided, at every member.
  if (kMessageHeader + spec.key_bytes + spec.value_bytes > kMaxMessageBytes)
    spec.style = Style::one_sided;
  return spec;
}

std::string layout_of(const MapSpec& spec) {
  return "map\nkey " + std::to_string(spec.key_bytes) + "\nvalue " +
         std::to_string(spec.value_bytes) + "\nslots " + std::to_string(spec.slots) +
         "\nmessages only " + (spec.style == Style::message ? "1" : "0") +
         (spec.checked ? "\nchecked" : "");
}

constexpr CheckedCalls kMapCalls{
    .kind = "map",
    .names = {"insert", "assign", "find", "erase", "add", "scan"},
    .writes = {true, true, false, true, true, false},
};

}  // namespace

MapState::MapState(Containers& its_containers, MapSpec its_spec)
    : containers(its_containers),
      hub(its_containers.hub()),
      spec(checked(std::move(its_spec))),
      shape(shape_of(spec.key_bytes + spec.value_bytes)),
      coherent(hub.fabric.properties().atomics_coherent_with_cpu),
      site(hub, "container", spec.name, offset_of(spec.slots), layout_of(spec)),
      checker(spec.checked ? std::make_unique<Checker>(hub, kMapCalls, spec.name, site) : nullptr),
      image(shape.slot_bytes) {
  hub.add(site.id(), *this);
  site.announce();
}

MapState::~MapState() { hub.remove(site.id()); }

MapCore::MapCore(Containers& containers, const MapSpec& spec)
    : state_(std::make_unique<MapState>(containers, spec)) {}
MapCore::~MapCore() = default;
Containers& MapCore::containers() const noexcept { return state_->containers; }

const MapSpec& MapCore::spec() const noexcept { return state_->spec; }

void check_buffer(const MapCore& map, MapCall call, Promise promise) {
  const std::string& name = map.spec().name;
  if (!takes_slot(call)) throw Error("buffer of map '" + name + "': it can insert, assign or add");
  if (call == MapCall::add && map.spec().value_bytes != 4 && map.spec().value_bytes != 8)
    throw Error("buffer of map '" + name + "': values of 4 or 8 bytes can be added to");
  if (!map.applies(promise))
    throw Error("buffer of map '" + name +
                "': on this fabric, atomics and the processor do not exclude each other; make the "
                "map with Style::message, or promise that only buffers are used (Promise::local)");
}

Rank MapCore::home_of(const void* key) const noexcept {
  const std::uint64_t hash = hash_of(key, state_->spec.key_bytes);
  return scale(static_cast<std::uint32_t>(hash >> 32), state_->hub.progress.size());
}

bool MapCore::applies(Promise promise) const noexcept { return state_->writes_directly(promise); }

MapApplied MapCore::apply(MapCall call, Promise promise, std::byte* payload) noexcept {
  if (state_->checker != nullptr &&
      !state_->checker->allows_here({static_cast<std::uint32_t>(call), promise}))
    return {.status = remote::Status::broken_promise};
  return state_->local(call, promise, payload);
}

MapUse MapCore::local_use() const noexcept {
  MapUse use{.slots = state_->spec.slots};
  for (std::uint32_t slot = 0; slot < state_->spec.slots; ++slot) {
    const auto* at = reinterpret_cast<const std::uint64_t*>(state_->own(slot));
    const auto state = word::state_of(memory::load(*at));
    if (state == word::ready) ++use.ready;
    if (state == word::erased) ++use.erased;
    if (state != word::ready && state != word::erased && state != word::empty) ++use.other;
  }
  return use;
}

void MapCore::for_each_local(
    const std::function<void(const std::byte* key, const std::byte* value)>& see) const {
  const MapState& map = *state_;
  std::vector<std::byte> image(map.shape.slot_bytes), payload(map.shape.payload_bytes + 1);
  for (std::uint32_t slot = 0; slot < map.spec.slots; ++slot) {
    bool whole = false;
    for (int attempts = 0; attempts < kLocalAttempts && !whole; ++attempts) {
      memory::fetch(image.data(), map.own(slot), image.size());
      if (word::state_of(word_at(image.data())) != word::ready) break;
      whole = is_whole(map.shape, image.data());
    }
    if (!whole) continue;
    decode(map.shape, image.data(), 0, map.shape.payload_bytes, payload.data());
    see(payload.data(), payload.data() + map.spec.key_bytes);
  }
}

// --- what a slot means ---------------------------------------------------------------------------

Sight MapState::judge(MapCall call, std::uint16_t fingerprint, const std::byte* key,
                      const std::byte* slot) const noexcept {
  const std::uint64_t seen = word_at(slot);
  const word::State state = word::state_of(seen);
  if (state == word::empty) return Sight::vacant;
  if (state == word::voided || word::fingerprint_of(seen) != fingerprint) return Sight::other;
  if (state == word::reserved) return takes_slot(call) ? Sight::wait : Sight::other;
  // A line that has been written once holds its part of the key for ever (CON-M1).
  if (!is_written(shape, slot)) return Sight::wait;
  if (!begins_with(shape, slot, key, spec.key_bytes)) return Sight::other;
  switch (state) {
    case word::ready:
      return is_whole(shape, slot) || is_injected(FaultInjection::torn_value_is_taken)
                 ? Sight::present
                 : Sight::wait;
    case word::erased:
      return Sight::erased;
    case word::half:
      return Sight::half;
    default:
      return Sight::wait;
  }
}

std::optional<std::uint64_t> MapState::claim_word(MapCall call, Sight sight, Promise promise,
                                                  std::uint64_t seen, std::uint8_t by,
                                                  std::uint16_t fingerprint) const noexcept {
  const bool phasal = promise == Promise::writes || promise == Promise::local;
  const Rank self = hub.fabric.rank();
  const auto next = [&](word::State state) {
    return word::make(word::version_of(seen) + 1, by, self, fingerprint, state);
  };
  const bool there = sight == Sight::present || sight == Sight::half;
  switch (call) {
    case MapCall::find:
      return std::nullopt;
    case MapCall::erase:
      return there ? std::optional(next(word::erased)) : std::nullopt;
    case MapCall::insert:
      if (sight == Sight::present) return std::nullopt;
      [[fallthrough]];
    case MapCall::assign:
    case MapCall::add:
      if (call == MapCall::add && sight == Sight::half) return std::nullopt;  // of what number?
      if (sight != Sight::vacant) return next(word::changing);
      return next(phasal ? word::ready : word::reserved);
  }
  return std::nullopt;
}

std::uint64_t MapState::operand_of(const std::byte* payload) const noexcept {
  std::uint64_t operand = 0;  // little-endian, as all of the format is
  std::memcpy(&operand, payload + spec.key_bytes, std::min<std::size_t>(spec.value_bytes, 8));
  return operand;
}

void MapState::add_to(std::byte* payload, std::uint64_t operand) const noexcept {
  const std::uint64_t sum = operand_of(payload) + operand;
  std::memcpy(payload + spec.key_bytes, &sum, std::min<std::size_t>(spec.value_bytes, 8));
}

// --- after deaths and abandoned calls ------------------------------------------------------------

/// CON-M3: this process has parted from who is gone, so nothing of theirs comes any more.
void MapState::members_changed() {
  const Rank self = hub.fabric.rank();
  for (std::uint32_t slot = 0; slot < spec.slots; ++slot) {
    const auto* at = reinterpret_cast<const std::uint64_t*>(own(slot));
    const std::uint64_t seen = memory::load(*at);
    const std::uint64_t owner = word::owner_plus_1(seen);
    if (owner == 0 || !hub.gone(static_cast<Rank>(owner - 1))) continue;
    if (is_injected(FaultInjection::dead_claim_stays)) continue;
    switch (word::state_of(seen)) {
      case word::reserved:
        mends.push_back({self, slot, seen, word::with_state(seen, word::voided)});
        break;
      case word::changing:
        mends.push_back({self, slot, seen, word::with_state(seen, word::half)});
        break;
      case word::ready:  // taken as ready, and never written
        memory::fetch(image.data(), own(slot), image.size());
        if (!is_whole(shape, image.data()))
          mends.push_back({self, slot, seen, word::with_state(seen, word::voided)});
        break;
      default:
        break;
    }
  }
}

std::size_t MapState::poll_part() {
  std::size_t done = checker != nullptr ? checker->poll() : 0;
  while (!mends.empty()) {
    const Mend& mend = mends.back();
    std::size_t accepted = 0;
    const Operation swap =
        compare_swap(mend.home, site.region(), offset_of(mend.slot), mend.from, mend.to, nullptr);
    if (site.post(mend.home, std::span(&swap, 1), accepted) == Site::Posted::later) break;
    mends.pop_back();
    ++done;
  }
  return done;
}

}  // namespace dunlin::container
