#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"

/// Room for a key whose windows have no empty slot: a slot without an element (CON-M5, CON-K3), or
/// a further window.
namespace dunlin::container {

using remote::Protocol;
using remote::Status;

namespace {

/// Offers, before those are looked for that are void.
constexpr std::size_t kManyOffers = 64;
/// Offers that nobody has taken, before they are made void: a peer may ask for any hashes.
constexpr std::size_t kMostOffers = 4096;

}  // namespace

/// The peer may have sent any number.
Room MapState::room_behind(std::uint64_t windows_seen, std::uint64_t hash) {
  if (windows_seen < open[self]) return {.status = Status::ok};
  if (!opening.empty()) return {.status = Status::busy};
  Room room{.status = Status::busy};
  const bool has_too_many = offers.size() >= kMostOffers;
  try {
    if (!has_too_many) room = offer(hash);
  } catch (const std::bad_alloc&) {
    return {.status = Status::no_memory};
  }
  const bool opens = room.status == Status::full && may_open();
  if (!has_too_many && !opens) return room;
  hub.look_again_soon();
  const bool begins = opening.start(opens ? open_window() : void_offers());
  return {.status = begins ? Status::busy : Status::no_memory};
}

/// An offer that nobody has taken becomes void as that of an insert that is given up, by the
/// atomics that a claim of the slot uses.
Protocol<Status> MapState::void_offers() {
  for (const auto& [hash, offered] : offers) {
    if (own_word(table(offered.level), offered.slot) != offered.word) continue;
    const Claimant by{self, serial++, fingerprint_of(hash)};
    const std::uint64_t claim =
        spec.packed ? packed_claim(MapCall::insert, Sight::vacant, offered.word, by, 0)
                    : claim_word(MapCall::insert, Sight::vacant, Promise::both, offered.word, by);
    const std::uint64_t voided = word::with_state(claim, word::voided);
    MapTable& of = table(offered.level);
    if (writes_directly(Promise::both)) {
      memory::compare_swap(&word_at_own(of, offered.slot), offered.word, voided);
      continue;
    }
    const Status status =
        co_await post(of.site, compare_swap(self, of.site.region(), offset_of_word(offered.slot),
                                            offered.word, voided, nullptr));
    if (status != Status::ok) co_return status;
  }
  offers.clear();
  co_return Status::ok;
}

/// CON-G5: no offer can be taken any more when the window is open.
Protocol<Status> MapState::open_window() {
  const Status status = co_await void_offers();
  if (status != Status::ok) co_return status;
  const std::uint32_t next = open[self];
  if (next < sizes.size()) {
    want_tables(next + 1);
    co_await remote::Until([&] { return next < tables() || !why_not_grown.empty(); });
    if (next >= tables()) co_return Status::no_room;
  }
  ++open[self];
  memory::store(word_of_slot(first.site.memory(), 0), open[self]);
  co_return Status::ok;
}

/// An offer is void once the slot has another word. Until then a further call of the same key is
/// offered the same slot, so one of the two claims fails.
Room MapState::offer(std::uint64_t hash) {
  const auto is_void = [&](const auto& one) {
    return own_word(table(one.second.level), one.second.slot) != one.second.word;
  };
  const bool reuses_erased = !spec.packed;
  if (offers.size() > kManyOffers) std::erase_if(offers, is_void);
  if (const auto given = offers.find(hash); given != offers.end()) {
    if (!is_void(*given)) return {.status = Status::ok, .offered = given->second};
    offers.erase(given);
  }
  const std::uint16_t fingerprint = fingerprint_of(hash);
  std::vector<std::byte> key(spec.key_bytes);
  std::optional<OfferedSlot> found;
  for (std::uint32_t number = 0; number < open[self]; ++number) {
    const KeyWindow in = window(number, hash);
    const MapTable& of = table(in.level);
    std::uint32_t slot = in.first;
    for (std::uint32_t probed = 0; probed < in.slots; ++probed) {
      const OfferedSlot one{in.level, slot, own_word(of, slot)};
      const word::State state = word::state_of(one.word);
      if (state == word::empty) return {.status = Status::name_taken};
      if (state != word::voided && word::fingerprint_of(one.word) == fingerprint) {
        if (state == word::reserved) return {.status = Status::busy};  // perhaps of this key
        memory::fetch(image.data(), own(of, slot), image.size());
        const SlotImage seen{shape, image.data()};
        const bool is_there = seen.its_word() == one.word && seen.is_written() &&
                              (state != word::ready || seen.is_whole());
        if (!is_there) return {.status = Status::busy};
        seen.read_key(spec.key_bytes, key.data());
        if (hash_of(key.data(), spec.key_bytes) == hash) return {.status = Status::name_taken};
      }
      const bool is_free = state == word::voided || (state == word::erased && reuses_erased);
      if (is_free && !found) found = one;
      slot = slot + 1 < of.slots ? slot + 1 : 0;
    }
  }
  if (!found) return {.status = Status::full};
  offers.emplace(hash, *found);
  return {.status = Status::ok, .offered = found};
}

}  // namespace dunlin::container
