#pragma once

#include <string>

#include "mcap/records.hpp"

/// The compressions of chunks: "" (none), "zstd" and "lz4".
namespace dunlin::app::mcap {

/// By zstd, at a level that costs less than the disk.
[[nodiscard]] Buffer compress_by_zstd(Bytes from);

/// Puts the bytes into `to`. Returns why it cannot: a sentence; empty: it has. `bytes` is how many
/// there must be, at most kMaxChunkBytes.
[[nodiscard]] std::string decompress(const std::string& compression, Bytes from,
                                     std::uint64_t bytes, Buffer& to);

}  // namespace dunlin::app::mcap
