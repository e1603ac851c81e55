#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kmers/kmer.hpp"
#include "kmers/reads.hpp"

/// A Chunk carries bases from the process that reads them to the one that counts their k-mers.
namespace dunlin::kmers {

inline constexpr std::size_t kChunkBytes = 4092;

/// A chunk has runs of k bases or more, one behind the other. A run is the number of its bases, in
/// two bytes, the lower one first, and the bases, four in a byte, the first in the lowest bits.
struct Chunk {
  std::uint32_t bytes = 0;  // those of `runs` that are used
  std::array<std::uint8_t, kChunkBytes> runs{};

  /// A peer may have sent any number of bytes.
  [[nodiscard]] std::span<const std::uint8_t> used() const noexcept {
    return std::span(runs).first(std::min<std::size_t>(bytes, kChunkBytes));
  }
};
inline constexpr std::size_t kChunkKmers = kChunkBytes * 4;  // the most that a chunk may have

/// Adds the runs of bases in `letters`, from `from` on. Returns where the next chunk goes on, or
/// letters.size(). Each k-mer comes into one chunk.
[[nodiscard]] std::size_t pack(std::string_view letters, std::size_t from, std::uint32_t k,
                               Chunk& chunk) noexcept;

/// Calls `see(kmer)` for each k-mer of the chunk. A peer has sent it, so it may be anything.
template <class See>
void for_each_kmer(const Chunk& chunk, std::uint32_t k, const See& see) {
  const Kmer mask = (Kmer{1} << (2 * k)) - 1;
  const std::uint32_t top = 2 * (k - 1);
  const std::span<const std::uint8_t> used = chunk.used();
  const std::uint8_t* at = used.data();
  const std::uint8_t* const end = at + used.size();
  while (end - at > 2) {
    const auto room = static_cast<std::uint32_t>(end - at - 2) * 4;
    const std::uint32_t bases = std::min(at[0] + 256U * at[1], room);
    at += 2;
    Kmer forward = 0, backward = 0;
    const auto push = [&](std::uint32_t i) {
      const Kmer base = at[i / 4] >> (i % 4 * 2) & 3U;
      forward = (forward << 2 | base) & mask;
      backward = backward >> 2 | (3 - base) << top;
    };
    for (std::uint32_t i = 0; i + 1 < std::min(k, bases + 1); ++i) push(i);
    for (std::uint32_t i = k - 1; i < bases; ++i) {
      push(i);
      see(std::min(forward, backward));
    }
    at += (bases + 3) / 4;
  }
}

/// The chunks of some files, from the first to the last.
class ChunkReader {
 public:
  ChunkReader(std::vector<Input> files, std::uint32_t k) : files_(std::move(files)), k_(k) {}

  /// Fills the chunk; false if there is none any more. Throws BadInput.
  [[nodiscard]] bool next(Chunk& chunk);
  /// How much of the files, as they lie on the disk, has been taken.
  [[nodiscard]] std::uint64_t bytes_taken() const noexcept {
    return bytes_before_ + (file_ ? file_->bytes_taken() : 0);
  }

 private:
  /// The next piece of a read; false behind the last one.
  [[nodiscard]] bool next_piece();

  std::vector<Input> files_;
  std::uint32_t k_;
  std::size_t next_file_ = 0;
  std::optional<ReadFile> file_;
  std::uint64_t bytes_before_ = 0;
  std::string piece_;
  std::size_t at_ = 0;  // what of the piece is packed
};

/// How many letters the file has, by its first ones and its size. Throws BadInput.
[[nodiscard]] double letters_of(const Input& file);

}  // namespace dunlin::kmers
