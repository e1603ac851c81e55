#include "store/slot_map.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "assert.hpp"
#include "fabric/bytes.hpp"

namespace dunlin::store {
namespace {

constexpr std::uint32_t kMapFormat = 2;

template <std::size_t Most>
void erase(std::array<Rank, Most>& ranks, Rank rank) noexcept {
  const auto end = std::remove(ranks.begin(), ranks.end(), rank);
  std::fill(end, ranks.end(), kNobody);
}

template <std::size_t Most>
void append(std::array<Rank, Most>& ranks, Rank rank) noexcept {
  const auto free = std::ranges::find(ranks, kNobody);
  DUNLIN_ASSERT_ALWAYS(free != ranks.end(),
                       "STO-P4, STO-P13: a move begins only if there is a place for who leaves");
  *free = rank;
}

[[nodiscard]] bool is_present(std::span<const Holder> members, Rank rank) noexcept {
  return std::ranges::binary_search(members, rank, {}, &Holder::rank);
}

void write(Writer& writer, const PlacedSlot& slot) {
  writer.u32(slot.epoch);
  for (const Rank rank : {slot.owner, slot.backups[0], slot.backups[1], slot.incoming, slot.leaving,
                          slot.former, slot.emptying[0], slot.emptying[1]})
    writer.u16(static_cast<std::uint16_t>(rank));
  writer.u32(slot.settled ? 1 : 0);
}

[[nodiscard]] PlacedSlot read_slot(Reader& reader) {
  PlacedSlot slot{.epoch = reader.u32()};
  for (Rank* const rank : {&slot.owner, &slot.backups[0], &slot.backups[1], &slot.incoming,
                           &slot.leaving, &slot.former, &slot.emptying[0], &slot.emptying[1]})
    *rank = reader.u16();
  slot.settled = reader.u32() != 0;
  return slot;
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b;  // the finalizer of SplitMix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::span<const std::byte> encode(std::span<const Decision> decisions) noexcept {
  DUNLIN_ASSERT_ALWAYS(decisions.size() <= kMostDecisions, "a proposal has room for so many");
  return std::as_bytes(decisions);
}

// --- a slot --------------------------------------------------------------------------------------

std::uint32_t PlacedSlot::full_copies() const noexcept {
  const auto others = std::ranges::find(backups, kNobody) - backups.begin();
  return static_cast<std::uint32_t>(others) + (lost() ? 0 : 1);
}
bool PlacedSlot::is_backup(Rank member) const noexcept {
  return member != kNobody && std::ranges::find(backups, member) != backups.end();
}
bool PlacedSlot::has_full_copy(Rank member) const noexcept {
  return member != kNobody && (member == owner || is_backup(member));
}
bool PlacedSlot::is_emptying(Rank member) const noexcept {
  return member != kNobody && std::ranges::find(emptying, member) != emptying.end();
}

// --- what the order changes ----------------------------------------------------------------------

void SlotMap::members_are(std::span<const Rank> members) noexcept {
  ++version_;
  std::vector<Holder> now;
  for (const Rank rank : members) {
    const Holder* const known = member(rank);
    now.push_back(known != nullptr ? *known : Holder{.rank = rank});
  }
  members_ = std::move(now);
  for (std::uint32_t number = 0; number < slots(); ++number)
    if (drop_absent(slots_[number])) has_changed(number);
}

/// A proposal that is none was made by another release: it changes nothing, at all members alike.
void SlotMap::decided(std::span<const std::byte> proposal) noexcept {
  ++version_;
  if (proposal.size() % sizeof(Decision) != 0) return;
  for (; !proposal.empty(); proposal = proposal.subspan(sizeof(Decision))) {
    Decision decision{};
    std::memcpy(&decision, proposal.data(), sizeof decision);
    apply(decision);
  }
}

bool SlotMap::apply(const Decision& decision) {
  if (decision.kind == Kind::create)
    return create(decision.value, decision.other, decision.flag != 0);
  if (decision.kind == Kind::enter || decision.kind == Kind::heard) return enter(decision);
  if (decision.slot >= slots()) return false;
  PlacedSlot& slot = slots_[decision.slot];
  const Rank incoming = slot.incoming;
  if (decision.epoch != slot.epoch || !change(slot, decision)) return false;
  if (decision.kind == Kind::stop && decision.flag != 0) takes_no_more(incoming);
  has_changed(decision.slot);
  return true;
}

bool SlotMap::create(std::uint32_t slots, std::uint32_t copies, bool renews_lost) {
  const bool some_hold =
      std::ranges::any_of(members_, [](const Holder& one) { return one.weight > 0; });
  if (created() || !some_hold || slots < 2 || slots > kMaxSlots || !std::has_single_bit(slots) ||
      copies == 0 || copies > kMaxCopies)
    return false;
  copies_ = copies;
  renews_lost_ = renews_lost;
  slot_bits_ = static_cast<unsigned>(std::countr_zero(slots));
  slots_.resize(slots);
  changed_.resize(slots);
  std::vector<std::uint64_t> owned(members_.size()), held(members_.size());
  for (std::uint32_t number = 0; number < slots; ++number) assign(number, owned, held);
  return true;
}

/// Each copy goes to the member that has the least for its weight. Of equals, each slot has an
/// order of its own, so that the copies of one member's slots are spread over all others.
void SlotMap::assign(std::uint32_t number, std::vector<std::uint64_t>& owned,
                     std::vector<std::uint64_t>& held) {
  PlacedSlot& slot = slots_[number];
  for (std::uint32_t copy = 0; copy < copies_; ++copy) {
    const std::vector<std::uint64_t>& counts = copy == 0 ? owned : held;
    std::size_t best = members_.size();
    const auto is_better = [&](std::size_t i) {
      const Holder& one = members_[i];
      if (one.weight == 0 || slot.has_full_copy(one.rank)) return false;
      if (best == members_.size()) return true;
      const std::uint64_t mine = (counts[i] + 1) * members_[best].weight;
      const std::uint64_t its = (counts[best] + 1) * one.weight;
      if (mine != its) return mine < its;
      return mix(number, one.rank) < mix(number, members_[best].rank);
    };
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (is_better(i)) best = i;
    if (best == members_.size()) break;  // fewer members than copies
    ++held[best];
    if (copy == 0) {
      ++owned[best];
      slot.owner = members_[best].rank;
    } else {
      append(slot.backups, members_[best].rank);
    }
  }
  has_changed(number);
}

bool SlotMap::enter(const Decision& decision) {
  const auto found = std::ranges::lower_bound(members_, Rank{decision.member}, {}, &Holder::rank);
  if (found == members_.end() || found->rank != decision.member ||
      (decision.kind == Kind::enter && decision.value > kMaxWeight))
    return false;
  if (decision.kind == Kind::heard)
    return std::exchange(found->heard, decision.value) != decision.value;
  const Holder now{found->rank, decision.value, decision.flag != 0, found->heard};
  if (*found == now || (now.weight == 0 && found->weight > 0 && !may_drain(now.rank))) return false;
  *found = now;
  return true;
}

bool SlotMap::change(PlacedSlot& slot, const Decision& decision) const {
  const Rank member = decision.member;
  switch (decision.kind) {
    case Kind::add:
      return add(slot, member, decision.other);
    case Kind::full:
      return slot.incoming == member && member != kNobody && slot.settled && complete(slot);
    case Kind::own:
      if (!slot.is_backup(member) || !slot.settled || slot.incoming != kNobody) return false;
      std::ranges::replace(slot.backups, member, slot.owner);
      slot.former = std::exchange(slot.owner, member);
      slot.settled = false;
      return true;
    case Kind::opened:
      if (slot.lost() || slot.settled) return false;
      settle(slot);
      return true;
    case Kind::stop:
      if (slot.incoming == kNobody) return false;
      append(slot.emptying, slot.incoming);
      slot.incoming = slot.leaving = kNobody;
      return true;
    case Kind::renew:
      if (!slot.lost() || !holds_keys(member) || slot.is_emptying(member)) return false;
      slot.owner = member;
      slot.settled = false;
      return true;
    case Kind::emptied:
      if (!slot.is_emptying(member)) return false;
      erase(slot.emptying, member);
      return true;
    case Kind::create:
    case Kind::enter:
    case Kind::heard:
      break;
  }
  return false;
}

bool SlotMap::add(PlacedSlot& slot, Rank member, Rank leaving) const {
  const bool replaces = leaving != kNobody;
  if (slot.lost() || !slot.settled || slot.incoming != kNobody || !holds_keys(member) ||
      slot.has_part(member) || slot.emptying.back() != kNobody)
    return false;
  if (replaces ? !slot.has_full_copy(leaving) : slot.full_copies() >= copies_) return false;
  slot.incoming = member;
  slot.leaving = leaving;
  return true;
}

/// STO-P4: what leaves, stays if the slot has lost another copy meanwhile.
bool SlotMap::complete(PlacedSlot& slot) const {
  const Rank member = std::exchange(slot.incoming, kNobody);
  const Rank leaving = std::exchange(slot.leaving, kNobody);
  const bool leaves = leaving != kNobody && slot.full_copies() + 1 > copies_;
  if (leaves && leaving == slot.owner) {
    slot.owner = member;
    slot.former = leaving;
    slot.settled = false;
    return true;
  }
  if (leaves) {
    erase(slot.backups, leaving);
    append(slot.emptying, leaving);
  }
  append(slot.backups, member);
  return true;
}

/// The former owner is a backup, or has left.
void SlotMap::settle(PlacedSlot& slot) {
  if (slot.former != kNobody && !slot.is_backup(slot.former)) append(slot.emptying, slot.former);
  slot.former = kNobody;
  slot.settled = true;
}

/// Whether the slot had a member that is not there any more.
bool SlotMap::drop_absent(PlacedSlot& slot) const {
  const PlacedSlot before = slot;
  const auto is_absent = [this](Rank rank) {
    return rank != kNobody && !is_present(members_, rank);
  };
  if (is_absent(slot.incoming)) slot.incoming = kNobody;
  if (is_absent(slot.former)) slot.former = kNobody;
  for (const Rank backup : before.backups)
    if (is_absent(backup)) erase(slot.backups, backup);
  for (const Rank one : before.emptying)
    if (is_absent(one)) erase(slot.emptying, one);
  if (is_absent(slot.owner)) replace_owner(slot);
  if (slot.incoming == kNobody || is_absent(slot.leaving)) slot.leaving = kNobody;
  return slot != before;
}

/// By the former owner, if nobody has changed anything since; else by the first backup.
void SlotMap::replace_owner(PlacedSlot& slot) {
  slot.owner = slot.former != kNobody ? slot.former : slot.backups.front();
  slot.former = kNobody;
  erase(slot.backups, slot.owner);
  slot.settled = slot.lost();
  // The copy that it was getting has what the owner had begun to change.
  if (slot.incoming != kNobody) append(slot.emptying, slot.incoming);
  slot.incoming = kNobody;
}

void SlotMap::takes_no_more(Rank rank) noexcept {
  const auto found = std::ranges::lower_bound(members_, rank, {}, &Holder::rank);
  if (found != members_.end() && found->rank == rank) found->takes = false;
}

bool SlotMap::may_drain(Rank rank) const noexcept {
  const auto others = std::ranges::count_if(
      members_, [rank](const Holder& one) { return one.weight > 0 && one.rank != rank; });
  return !created() || static_cast<std::uint32_t>(others) >= copies_;
}

bool SlotMap::holds_keys(Rank rank) const noexcept {
  const Holder* const one = member(rank);
  return one != nullptr && one->weight > 0;
}

const Holder* SlotMap::member(Rank rank) const noexcept {
  const auto found = std::ranges::lower_bound(members_, rank, {}, &Holder::rank);
  return found != members_.end() && found->rank == rank ? &*found : nullptr;
}

void SlotMap::has_changed(std::uint32_t number) {
  ++slots_[number].epoch;
  changed_[number] = true;
  DUNLIN_ASSERT_ALWAYS(is_sound(slots_[number]),
                       "STO-P2: members that are present hold a slot, each in one role");
}

/// STO-P2.
bool SlotMap::is_sound(const PlacedSlot& slot) const {
  std::array<Rank, kMaxCopies + 1> holders = {slot.owner, slot.backups[0], slot.backups[1],
                                              slot.incoming};
  std::ranges::sort(holders);
  for (std::size_t i = 0; i < holders.size() && holders[i] != kNobody; ++i)
    if (!is_present(members_, holders[i]) || (i > 0 && holders[i - 1] == holders[i])) return false;
  const auto first_free = std::ranges::find(slot.backups, kNobody);
  const bool fits =
      std::all_of(first_free, slot.backups.end(), [](Rank rank) { return rank == kNobody; }) &&
      slot.full_copies() <= copies_;
  const bool leaves_well =
      slot.leaving == kNobody || (slot.incoming != kNobody && slot.has_full_copy(slot.leaving));
  const bool was_well = slot.former == kNobody || (is_present(members_, slot.former) &&
                                                   slot.former != slot.owner && !slot.settled);
  const bool empties_well = std::ranges::all_of(slot.emptying, [&](Rank rank) {
    return rank == kNobody || (is_present(members_, rank) && !slot.has_full_copy(rank) &&
                               rank != slot.incoming && rank != slot.former);
  });
  return fits && leaves_well && was_well && empties_well &&
         (!slot.lost() || (slot.full_copies() == 0 && slot.incoming == kNobody && slot.settled));
}

std::vector<std::uint32_t> SlotMap::take_changed() {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 0; number < slots(); ++number)
    if (changed_[number]) numbers.push_back(number);
  changed_.assign(changed_.size(), false);
  return numbers;
}

// --- a member that comes later -------------------------------------------------------------------

std::vector<std::byte> SlotMap::save() const {
  std::vector<std::byte> bytes;
  Writer writer(bytes);
  writer.u32(kMapFormat);
  writer.u32(static_cast<std::uint32_t>(members_.size()));
  writer.u32(slots());
  writer.u16(static_cast<std::uint16_t>(copies_));
  writer.u16(renews_lost_ ? 1 : 0);
  writer.u64(version_);
  for (const Holder& one : members_) {
    writer.u16(static_cast<std::uint16_t>(one.rank));
    writer.u16(one.takes ? 1 : 0);
    writer.u32(one.weight);
    writer.u32(one.heard);
  }
  for (const PlacedSlot& slot : slots_) write(writer, slot);
  return bytes;
}

/// A state that another release made, or that no map can have, is refused as a whole.
bool SlotMap::load(std::span<const std::byte> state) noexcept {
  Reader reader(state);
  SlotMap map;
  const std::uint32_t format = reader.u32();
  const std::uint32_t members = reader.u32();
  const std::uint32_t slots = reader.u32();
  map.copies_ = reader.u16();
  map.renews_lost_ = reader.u16() != 0;
  map.version_ = reader.u64();
  if (format != kMapFormat || members > kMaxMembers || slots > kMaxSlots ||
      (slots != 0 && (slots < 2 || !std::has_single_bit(slots))) || map.copies_ == 0 ||
      map.copies_ > kMaxCopies)
    return false;
  for (std::uint32_t i = 0; i < members; ++i) {
    Holder one{.rank = reader.u16()};
    one.takes = reader.u16() != 0;
    one.weight = reader.u32();
    one.heard = reader.u32();
    if (one.weight > kMaxWeight || (i > 0 && one.rank <= map.members_.back().rank)) return false;
    map.members_.push_back(one);
  }
  for (std::uint32_t i = 0; i < slots; ++i) map.slots_.push_back(read_slot(reader));
  const bool is_whole =
      reader.good() && reader.rest().empty() &&
      std::ranges::all_of(map.slots_, [&](const PlacedSlot& slot) { return map.is_sound(slot); });
  if (!is_whole) return false;
  map.slot_bits_ = slots == 0 ? 0 : static_cast<unsigned>(std::countr_zero(slots));
  map.changed_.assign(slots, true);
  *this = std::move(map);
  return true;
}

}  // namespace dunlin::store
