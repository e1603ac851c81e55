#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "fabric/hash.hpp"
#include "store/own_chain.hpp"
#include "store/state.hpp"

/// Where keys are: what this process does with the slot map (docs/store-placement.md).
namespace dunlin::store {

using remote::Status;

/// Members that all stop when one of them dies never move a key: the map is the same at all,
/// without a decision.
void State::open_map() {
  const bool evicts = options.eviction != Eviction::none;
  if (moves_keys()) {
    placement = std::make_unique<SlotPlacement>(
        progress, PlacementOptions{.name = order_name(),
                                   .slots = options.slots,
                                   .copies = options.copies,
                                   .renews_lost = evicts,
                                   .first_holders = members,
                                   .weight = is_home ? usual_weight() : 0});
    return;
  }
  std::vector<Rank> ranks(members);
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  fixed_map.members_are(ranks);
  for (const Rank rank : ranks)
    fixed_map.apply({.kind = Decision::Kind::enter,
                     .flag = 1,
                     .member = static_cast<std::uint16_t>(rank),
                     .value = 1});
  fixed_map.apply({.kind = Decision::Kind::create,
                   .other = static_cast<std::uint16_t>(options.copies),
                   .value = options.slots});
  routes.take_over(fixed_map, fixed_map.take_changed());
}

/// Members of other options have a map of their own, which they never make.
std::string State::order_name() const {
  constexpr std::size_t kMostOfName = 17;
  return "store." + options.name.substr(0, kMostOfName) + "." + hex(layout_hash);
}

std::size_t State::take_over_map() {
  if (placement == nullptr) return 0;
  // A member that is gone may go on until it has been fenced (REM-13).
  if (progress.members().generation() != progress.generation()) return 0;
  const std::size_t done = placement->poll();
  if (!placement->why_stopped().empty()) routes.close();
  if (!placement->ready() || map().version() + 1 == map_taken_over) return done;
  map_taken_over = map().version() + 1;
  routes.take_over(map(), placement->take_changed());
  memory::store(word_at(index.memory().data() + kMapAt), map_taken_over);
  if (mover != nullptr) mover->look_at_map();
  return done + 1;
}

/// Its megabytes.
std::uint32_t State::usual_weight() const noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(options.memory_bytes >> 20, 1, std::size_t{kMaxWeight}));
}

bool State::is_gone(Rank rank) const noexcept {
  return progress.is_gone(rank) || (rank < places && homes[rank].withdrawn);
}

std::uint32_t State::slots_with_part_of(Rank rank) const noexcept {
  std::uint32_t slots = 0;
  for (std::uint32_t number = 0; number < map().slots(); ++number)
    slots += map().slot(number).has_part(rank) ? 1 : 0;
  return slots;
}

bool State::has_all_copies() const noexcept {
  for (const Holder& one : map().members())
    if (is_gone(one.rank)) return false;  // as the map will say
  for (std::uint32_t number = 0; number < map().slots(); ++number) {
    const PlacedSlot& slot = map().slot(number);
    if (slot.owner == fabric.rank() && (!slot.settled || slot.full_copies() < map().copies()))
      return false;
  }
  return map().created();
}

bool State::is_settled() const {
  if (!map().created()) return false;
  const Holder* const own = map().member(fabric.rank());
  if (placement != nullptr && own == nullptr) return false;
  const bool is_refused =
      placement != nullptr && placement->weight() == 0 && !map().may_drain(fabric.rank());
  if (placement != nullptr && own->weight != placement->weight() && !is_refused) return false;
  const MapSummary now = summarize(map());
  return now.moving == 0 && now.opening == 0 && now.emptying == 0 && plan(map(), {}).empty();
}

bool State::some_are_full() const noexcept {
  return std::ranges::any_of(map().members(),
                             [](const Holder& one) { return one.weight > 0 && !one.takes; });
}

// --- entries that go -----------------------------------------------------------------------------

/// The entries come first, so that a reader with a cached location sees that they are not there.
State::Dropped State::drop_entries(std::byte* main,
                                   const std::function<bool(std::uint64_t hash)>& goes) {
  Dropped dropped;
  std::vector<std::byte*> slots;
  std::vector<Location> places_freed;
  for (std::byte* const bucket : OwnChain(*this, main))
    for (std::size_t i = 0; i < kSlots; ++i) {
      std::byte* const slot = bucket + i * kSlotBytes;
      const std::uint64_t word = memory::load(word_at(slot + kWordBytes));
      if (slot_word::type_of(word) != SlotType::entry || !goes(memory::load(word_at(slot))))
        continue;
      const Location location = slot_word::location_of(word);
      std::byte* const entry = own_entry(location);
      if (entry == nullptr) continue;
      const std::uint64_t guard = memory::load(word_at(entry));
      memory::store(word_at(entry), guard_of(incarnation_of(guard), EntryState::moved));
      const std::uint64_t lengths = memory::load(word_at(entry + offsetof(EntryHead, value_bytes)));
      ++dropped.keys;
      dropped.bytes += lengths & UINT32_MAX;
      slots.push_back(slot);
      places_freed.push_back(location);
    }
  for (std::byte* const slot : slots) {
    memory::store(word_at(slot + kWordBytes), 0);
    memory::store(word_at(slot), 0);
  }
  for (const Location& location : places_freed) free_later(location);
  return dropped;
}

void State::lose_counts(const Dropped& dropped) noexcept {
  uncounted.keys += dropped.keys;
  uncounted.bytes += dropped.bytes;
}

std::size_t State::correct_counts() noexcept {
  std::size_t done = 0;
  for (auto& [at, gone] :
       {std::pair{kKeysAt, &uncounted.keys}, {kValueBytesAt, &uncounted.bytes}}) {
    if (*gone == 0 ||
        !fabric
             .post(fetch_add(fabric.rank(), index.id(), at, 0 - *gone, nullptr).notify(counts_done))
             .all())
      continue;
    *gone = 0;
    ++done;
  }
  if (uncounted.keys != 0 || uncounted.bytes != 0) look_again_soon();
  return done;
}

}  // namespace dunlin::store
