#include "store/wide_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

/// The one file that is compiled for processors with AVX2, where there are any. So it includes
/// nothing that other files share with it but what XXH_INLINE_ALL keeps to itself.
namespace dunlin::store {

std::uint64_t wide_hash(const void* bytes, std::size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}

}  // namespace dunlin::store
