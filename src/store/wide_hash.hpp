#pragma once

#include <cstddef>
#include <cstdint>

namespace dunlin::store {

/// XXH3 by instructions that not every processor has (AVX2), which take half of the time for long
/// texts.
[[nodiscard]] std::uint64_t wide_hash(const void* bytes, std::size_t size) noexcept;

}  // namespace dunlin::store
