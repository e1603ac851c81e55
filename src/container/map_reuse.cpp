#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"

/// Slots without an element that are used again, in a map that grows no more (CON-M5, CON-K3).
namespace dunlin::container {

using remote::Status;

namespace {

/// Offers that nobody has taken, before those are looked for that are void.
constexpr std::size_t kManyOffers = 64;

}  // namespace

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
  for (std::uint32_t level = 0; level < tables(); ++level) {
    const MapTable& of = table(level);
    std::uint32_t slot = of.first_slot(hash);
    for (std::uint32_t probed = 0; probed < of.window; ++probed) {
      const OfferedSlot one{level, slot, own_word(of, slot)};
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
