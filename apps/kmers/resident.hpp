#pragma once

#include <cstdint>

namespace dunlin::kmers {

/// The resident memory of this process; of pages that n processes share, an n-th. 0 if the system
/// does not say.
[[nodiscard]] std::uint64_t resident_bytes();

}  // namespace dunlin::kmers
