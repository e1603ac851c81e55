#include <algorithm>
#include <cstring>

#include <dunlin/fabric/memory.hpp>

#include "container/map.hpp"

/// Slots of erased keys that are used again, in a map that grows no more (CON-M5).
namespace dunlin::container {

using remote::Status;

namespace {

/// Offers that nobody has taken, before those are looked for that are void.
constexpr std::size_t kManyOffers = 64;

}  // namespace

/// An offer is void once the slot has another word. Until then a further call of the same key is
/// offered the same slot, so one of the two claims fails.
Room MapState::offer(std::uint64_t hash) {
  const auto word_of = [&](const OfferedSlot& one) {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(own(table(one.level), one.slot)));
  };
  const auto is_void = [&](const auto& one) { return word_of(one.second) != one.second.word; };
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
      std::byte* const at = own(of, slot);
      const OfferedSlot one{level, slot, memory::load(*reinterpret_cast<const std::uint64_t*>(at))};
      const word::State state = word::state_of(one.word);
      if (state == word::empty) return {.status = Status::name_taken};
      if (state != word::voided && word::fingerprint_of(one.word) == fingerprint) {
        if (state == word::reserved) return {.status = Status::busy};  // perhaps of this key
        memory::fetch(image.data(), at, image.size());
        const bool is_there = word_at(image.data()) == one.word &&
                              is_written(shape, image.data()) &&
                              (state != word::ready || is_whole(shape, image.data()));
        if (!is_there) return {.status = Status::busy};
        decode(shape, image.data(), 0, spec.key_bytes, key.data());
        if (hash_of(key.data(), spec.key_bytes) == hash) return {.status = Status::name_taken};
      }
      const bool is_free = state == word::erased || state == word::voided;
      if (is_free && !found) found = one;
      slot = slot + 1 < of.slots ? slot + 1 : 0;
    }
  }
  if (!found) return {.status = Status::full};
  offers.emplace(hash, *found);
  return {.status = Status::ok, .offered = found};
}

}  // namespace dunlin::container
