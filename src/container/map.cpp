#include "container/map.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/fabric/memory.hpp>

#include "assert.hpp"

/// A map's part, and what searches in it mean.
namespace dunlin::container {

namespace {

/// A slot that is being written all the time is left out.
constexpr int kLocalAttempts = 1000;
/// Slots of the own part, every 10 ms: 10 to 50 us.
constexpr std::uint32_t kCountedAtOnce = 1024;

MapSpec checked(MapSpec spec, const Hub& hub) {
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
  if (spec.grow_to != 0 && (spec.grow_to < spec.slots || spec.grow_to > kMaxSlots))
    refuse("the option grow_to must be 0, or the option slots or more, and at most " +
           std::to_string(kMaxSlots) + " (kMaxSlots)");
  if (table_sizes(spec).size() > kMaxMapTables)
    refuse("it would take more than " + std::to_string(kMaxMapTables) +
           " tables (kMaxMapTables) to grow to " + std::to_string(spec.grow_to) +
           " slots: begin with more slots");
  if (spec.packed) {
    if (spec.longest_value != 0) refuse("packed slots have no room for references to a pool");
    if (spec.key_bytes != kPackedKeyBytes || spec.value_bytes > kMaxPackedValueBytes)
      refuse("packed slots are for keys of 8 bytes and values of up to 4; its keys have " +
             std::to_string(spec.key_bytes) + ", its values " + std::to_string(spec.value_bytes));
  }
  if (spec.longest_value != 0) ValuePool::check(spec);
  // A call that is too long for a message goes one-sided, at every member.
  if (kMessageHeader + spec.key_bytes + spec.value_bytes > kMaxMessageBytes)
    spec.style = Style::one_sided;
  if (spec.style == Style::automatic)
    spec.style = hub.settled_style(
        {modelled_call(spec, MapCall::insert), modelled_call(spec, MapCall::assign), Call::erase},
        situation_of(spec, Promise::both, hub.progress.size()));
  return spec;
}

std::string layout_of(const MapSpec& spec) {
  return "map\nkey " + std::to_string(spec.key_bytes) + "\nvalue " +
         std::to_string(spec.value_bytes) + "\nslots " + std::to_string(spec.slots) +
         "\nwrites_by_message " + (spec.style == Style::message ? "1" : "0") +
         (spec.checked ? "\nchecked" : "") + (spec.packed ? "\npacked" : "") +
         (spec.grow_to != 0 ? "\ngrows to " + std::to_string(spec.grow_to) : "") +
         (spec.longest_value == 0 ? ""
                                  : "\nlongest value " + std::to_string(spec.longest_value) +
                                        "\npool " + std::to_string(spec.pool_bytes));
}

constexpr CheckedCalls kMapCalls{
    .kind = "map",
    .names = {"insert", "assign", "find", "erase", "add", "scan"},
    .writes = {true, true, false, true, true, false},
};

}  // namespace

std::vector<std::uint32_t> table_sizes(const MapSpec& spec) {
  std::vector<std::uint32_t> sizes{spec.slots};
  for (std::uint32_t all = spec.slots; all != 0 && all < spec.grow_to; all += sizes.back())
    sizes.push_back(std::min(all, spec.grow_to - all));
  return sizes;
}

SlotShape shape_of(const MapSpec& spec) noexcept {
  const std::uint32_t payload_bytes = spec.key_bytes + spec.value_bytes;
  return spec.packed ? packed_shape(payload_bytes) : shape_of(payload_bytes);
}

Call modelled_call(const MapSpec& spec, MapCall call) noexcept {
  static constexpr std::array kModelled{Call::insert, Call::assign, Call::find, Call::erase,
                                        Call::assign, Call::assign, Call::erase};
  const Call modelled = kModelled.at(static_cast<std::size_t>(call));
  return spec.packed && modelled == Call::assign ? Call::erase : modelled;  // CON-K2
}

Situation situation_of(const MapSpec& spec, Promise promise, std::uint32_t members) noexcept {
  return {.promise = spec.packed ? Promise::writes : promise,
          .clients = clients_of_part(members),
          .bytes = static_cast<double>(shape_of(spec).slot_bytes)};
}

MapTable::MapTable(Hub& hub, const MapSpec& spec, const SlotShape& shape, std::uint32_t level,
                   std::uint64_t generation)
    : slots(table_sizes(spec).at(level)),
      site(hub, level == 0 ? "container" : "grown",
           level == 0 ? spec.name : spec.name + "." + std::to_string(level),
           kCacheLineBytes +
               (hub.is_founder(hub.fabric.rank()) ? std::uint64_t{slots} : 0) * shape.slot_bytes,
           layout_of(spec), generation) {}

MapState::MapState(Containers& its_containers, MapSpec its_spec)
    : containers(its_containers),
      hub(its_containers.hub()),
      self(hub.fabric.rank()),
      members(hub.progress.size()),
      spec(checked(std::move(its_spec), hub)),
      shape(shape_of(spec)),
      coherent(hub.fabric.properties().atomics_coherent_with_cpu),
      first(hub, spec, shape, 0, 0),
      sizes(table_sizes(spec)),
      open(std::max(members, self + 1), 1),
      checker(spec.checked ? std::make_unique<Checker>(hub, kMapCalls, spec.name, first.site)
                           : nullptr),
      image(shape.slot_bytes),
      former(spec.longest_value != 0 ? spec.value_bytes : 0),
      values(spec.longest_value != 0 ? std::make_unique<ValuePool>(*this) : nullptr) {
  DUNLIN_ASSERT(!spec.packed || shape.slot_bytes == 2 * kWordBytes,
                "CON-K1: a packed slot has a key and one word");
  later.reserve(sizes.size() - 1);
  hub.add(first.site.id(), *this);
  memory::store(word_of_slot(first.site.memory(), 0), open[self]);
  first.site.announce();
}

MapState::~MapState() { hub.remove(first.site.id()); }

MapCore::MapCore(Containers& containers, const MapSpec& spec)
    : progress_(containers.progress()), state_(std::make_unique<MapState>(containers, spec)) {}
MapCore::~MapCore() = default;
Containers& MapCore::containers() const noexcept { return state_->containers; }

const MapSpec& MapCore::spec() const noexcept { return state_->spec; }
ValuePool* MapCore::values() const noexcept { return state_->values.get(); }

void check_buffer(const MapCore& map, MapCall call, Promise promise) {
  const std::string& name = map.spec().name;
  if (!takes_slot(call) || call == MapCall::exchange)
    throw Error("buffer of map '" + name + "': it can insert, assign or add");
  if (call == MapCall::add && map.spec().value_bytes != 4 && map.spec().value_bytes != 8)
    throw Error("buffer of map '" + name + "': values of 4 or 8 bytes can be added to");
  if (!map.applies(promise))
    throw Error("buffer of map '" + name +
                "': on this fabric, atomics and the processor do not exclude each other; make the "
                "map with Style::message, or promise that only buffers are used (Promise::local)");
}

Rank MapCore::home_of(const void* key) const noexcept {
  const std::uint64_t hash = hash_of(key, state_->spec.key_bytes);
  return scale(static_cast<std::uint32_t>(hash >> 32), state_->members);
}

bool MapCore::applies(Promise promise) const noexcept { return state_->writes_directly(promise); }

void MapCore::prefetch(const void* key) const noexcept {
  state_->prefetch(hash_of(key, state_->spec.key_bytes));
}

MapApplied MapCore::apply(MapCall call, Promise promise, std::byte* payload) noexcept {
  if (state_->hub.fabric.is_forked()) return remote::Status::stopped;
  if (!state_->has_part()) return remote::Status::not_allowed;  // the peer may have sent anything
  ++state_->counters.served;
  if (state_->checker != nullptr && !state_->checker->allows_here({checked_call(call), promise}))
    return remote::Status::broken_promise;
  return state_->local(state_->self, hash_of(payload, state_->spec.key_bytes), call, promise,
                       payload);
}

MapUse MapCore::local_use() const noexcept {
  MapUse use{.tables = state_->own_tables(), .windows = state_->open[state_->self]};
  for (std::uint32_t level = 0; level < use.tables; ++level) {
    const MapTable& table = state_->table(level);
    use.slots += table.slots;
    for (std::uint32_t slot = 0; slot < table.slots; ++slot) {
      const auto state = word::state_of(state_->own_word(table, slot));
      if (state == word::ready) ++use.ready;
      if (state == word::erased) ++use.erased;
      if (state != word::ready && state != word::erased && state != word::empty) ++use.other;
    }
  }
  return use;
}

const std::string& MapCore::why_not_grown() const noexcept { return state_->why_not_grown; }

void MapCore::for_each_local(
    const std::function<void(const std::byte* key, std::span<const std::byte> value)>& see) const {
  const MapState& map = *state_;
  std::vector<std::byte> image(map.shape.slot_bytes), payload(map.shape.payload_bytes + 1);
  const std::span<const std::byte> in_slot(payload.data() + map.spec.key_bytes,
                                           map.spec.value_bytes);
  std::vector<std::byte> block;
  std::span<const std::byte> value;
  for (std::uint32_t level = 0; level < map.own_tables(); ++level)
    for (std::uint32_t slot = 0; slot < map.table(level).slots; ++slot) {
      bool whole = false;
      for (int attempts = 0; attempts < kLocalAttempts && !whole; ++attempts) {
        memory::fetch(image.data(), map.own(map.table(level), slot), image.size());
        const SlotImage seen{map.shape, image.data()};
        if (word::state_of(seen.its_word()) != word::ready) break;
        if (!seen.is_whole()) continue;
        seen.read_key(map.spec.key_bytes, payload.data());
        seen.read_value(map.spec.key_bytes, payload.data() + map.spec.key_bytes);
        value = in_slot;
        whole = map.values == nullptr || map.values->resolve(map.self, block, value);
      }
      if (whole) see(payload.data(), value);
    }
}

std::uint64_t MapState::own_slots() const noexcept {
  std::uint64_t slots = 0;
  for (std::uint32_t level = 0; level < own_tables(); ++level) slots += table(level).slots;
  return slots;
}

std::uint64_t MapState::count_piece() noexcept {
  if (!has_part()) return 0;
  for (std::uint32_t i = 0; i < kCountedAtOnce; ++i) {
    const MapTable& of = table(census.level);
    DUNLIN_ASSERT(census.slot < of.slots, "CON-G3: a part never has fewer slots than before");
    if (word::state_of(own_word(of, census.slot)) == word::ready) ++census.so_far;
    if (++census.slot < of.slots) continue;
    census.slot = 0;
    if (++census.level < tables()) continue;
    census = {.elements = census.so_far};
    break;
  }
  return census.elements;
}

std::uint64_t MapState::operand_of(const std::byte* payload) const noexcept {
  std::uint64_t operand = 0;  // little-endian, as all of the format is
  std::memcpy(&operand, payload + spec.key_bytes, std::min<std::size_t>(spec.value_bytes, 8));
  return operand;
}

void MapState::add_to(std::byte* payload, std::uint64_t operand) const noexcept {
  DUNLIN_ASSERT(adds(), "CON-P1: a sum is a word of 4 or 8 bytes");
  const std::uint64_t sum = operand_of(payload) + operand;
  std::memcpy(payload + spec.key_bytes, &sum, std::min<std::size_t>(spec.value_bytes, 8));
}

// --- after deaths and abandoned calls ------------------------------------------------------------

/// CON-M3: this process has expelled the gone members, so no operation of theirs lands any more.
void MapState::members_changed() {
  const std::uint32_t count = own_tables();
  for (std::uint32_t level = 0; level < count; ++level)
    for (std::uint32_t slot = 0; slot < table(level).slots; ++slot) mend_of_the_dead(level, slot);
}

void MapState::mend_of_the_dead(std::uint32_t level, std::uint32_t slot) {
  DUNLIN_ASSERT(level < tables() && slot < table(level).slots, "CON-M3: a home mends its own part");
  MapTable& of = table(level);
  const std::uint64_t seen = own_word(of, slot);
  const std::uint64_t owner = word::owner_plus_1(seen);
  if (owner == 0 || !hub.has_left(static_cast<Rank>(owner - 1))) return;
  const auto mend = [&](word::State to) {
    reserve_mends();
    mends.push_back({&of, self, slot, seen, word::with_state(seen, to)});
  };
  switch (word::state_of(seen)) {
    case word::reserved:
      return mend(word::voided);
    case word::changing:
      return mend(word::half);
    case word::ready:  // taken as ready, and never written
      memory::fetch(image.data(), own(of, slot), image.size());
      if (!SlotImage{shape, image.data()}.is_whole()) mend(word::voided);
      return;
    default:
      return;
  }
}

std::size_t MapState::poll_part() {
  std::size_t done = checker != nullptr ? checker->poll() : 0;
  for (; tables() < wanted_tables && why_not_grown.empty(); ++done) grow();
  if (!opening.empty()) done += opening.advance(hub.progress.was_stopped());
  while (!mends.empty()) {
    const Mend& mend = mends.back();
    DUNLIN_ASSERT(mend.from != mend.to && mend.slot < mend.table->slots,
                  "CON-P5: a mend changes a slot of its table");
    std::size_t accepted = 0;
    const Operation swap = compare_swap(mend.home, mend.table->site.region(),
                                        offset_of_word(mend.slot), mend.from, mend.to, nullptr);
    if (mend.table->site.post(mend.home, std::span(&swap, 1), accepted) == Site::Posted::later)
      break;
    mends.pop_back();
    ++done;
  }
  return done;
}

}  // namespace dunlin::container
