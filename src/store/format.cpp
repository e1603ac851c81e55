#include "store/format.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dunlin::store {

std::uint64_t checksum_of(const std::byte* entry, const EntryHead& head,
                          const Location& location) noexcept {
  EntryHead salted = head;
  salted.guard = incarnation_of(head.guard) << 4 | (location.large ? 1U : 0U);
  salted.checksum = location.offset;
  const std::uint64_t seed = XXH3_64bits(&salted, sizeof salted);
  return XXH3_64bits_withSeed(entry + kEntryHeadBytes, head.key_bytes + head.value_bytes, seed);
}

std::uint64_t hash_of(std::span<const std::byte> key) noexcept {
  return XXH3_64bits(key.data(), key.size());
}

std::uint64_t checksum_of(const RedoHead& head, const std::byte* image) noexcept {
  return XXH3_64bits_withSeed(image, head.bytes, head.word ^ head.bytes * 0x9e3779b97f4a7c15ULL);
}

std::uint64_t checksum_of(const TransactionHead& head, const std::byte* record) noexcept {
  constexpr std::size_t kBegin = offsetof(TransactionHead, lock);
  return XXH3_64bits(record + kBegin, sizeof head + head.items * sizeof(TransactionItem) - kBegin);
}

}  // namespace dunlin::store
