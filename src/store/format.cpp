#include "store/format.hpp"

#include "store/wide_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dunlin::store {

namespace {

[[nodiscard]] bool has_wide_hash() noexcept {
#ifdef __x86_64__
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}
const bool kHasWideHash = has_wide_hash();

/// Up to so many bytes, XXH3 uses no vectors.
constexpr std::size_t kMostWithoutVectors = 240;

[[nodiscard]] std::uint64_t hash_of(const std::byte* bytes, std::size_t size) noexcept {
  return size > kMostWithoutVectors && kHasWideHash ? wide_hash(bytes, size)
                                                    : XXH3_64bits(bytes, size);
}

}  // namespace

std::uint64_t checksum_of(const std::byte* entry, const EntryHead& head,
                          const Location& location) noexcept {
  constexpr std::size_t kBegin = offsetof(EntryHead, version);
  const std::uint64_t place = location.offset | (location.large ? 1U : 0U);
  const std::uint64_t salt =
      incarnation_of(head.guard) * 0x9e3779b97f4a7c15 + place * 0xc2b2ae3d27d4eb4f;
  return hash_of(entry + kBegin, entry_bytes(head) - kBegin) ^ salt;
}

std::uint64_t hash_of(std::span<const std::byte> key) noexcept {
  return XXH3_64bits(key.data(), key.size());
}

std::uint64_t checksum_of(const RedoHead& head, const std::byte* image) noexcept {
  return hash_of(image, head.bytes) ^ head.word ^ head.bytes * 0x9e3779b97f4a7c15;
}

std::uint64_t checksum_of(const TransactionHead& head, const std::byte* record) noexcept {
  constexpr std::size_t kBegin = offsetof(TransactionHead, lock);
  return XXH3_64bits(record + kBegin, sizeof head + head.items * sizeof(TransactionItem) - kBegin);
}

}  // namespace dunlin::store
