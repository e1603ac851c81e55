#include "kmers/chunk.hpp"

#include <filesystem>

namespace dunlin::kmers {
namespace {

constexpr double kSampledLetters = 1 << 18;

}  // namespace

std::size_t pack(std::string_view letters, std::size_t from, std::uint32_t k,
                 Chunk& chunk) noexcept {
  const auto base_at = [&](std::size_t i) {
    return kBases[static_cast<unsigned char>(letters[i])];
  };
  while (letters.size() - from >= k) {
    // A run may go on behind what a chunk has room for: the next chunk looks there.
    const std::size_t last = std::min(letters.size(), from + kChunkKmers);
    std::size_t end = from;
    while (end < last && base_at(end) <= 3) ++end;
    if (end - from >= k) {
      const std::size_t left = kChunkBytes - chunk.bytes;
      const std::size_t room = left > 2 ? (left - 2) * 4 : 0;
      const std::size_t bases = std::min(end - from, room);
      if (bases < k) return from;
      std::uint8_t* const to = chunk.runs.data() + chunk.bytes;
      to[0] = static_cast<std::uint8_t>(bases);
      to[1] = static_cast<std::uint8_t>(bases >> 8);
      for (std::size_t i = 0; i < bases; i += 4) {
        unsigned four = 0;
        for (std::size_t j = 0; j < std::min<std::size_t>(4, bases - i); ++j)
          four |= static_cast<unsigned>(base_at(from + i + j)) << (2 * j);
        to[2 + i / 4] = static_cast<std::uint8_t>(four);
      }
      chunk.bytes += static_cast<std::uint32_t>(2 + (bases + 3) / 4);
      if (from + bases < end) return from + bases - (k - 1);
    }
    from = std::min(end + 1, letters.size());
  }
  return letters.size();
}

bool ChunkReader::next_piece() {
  for (;;) {
    if (file_ && file_->next(piece_)) return true;
    if (file_) bytes_before_ += file_->bytes_taken();
    file_.reset();
    if (next_file_ == files_.size()) return false;
    file_.emplace(files_[next_file_++], k_);
  }
}

bool ChunkReader::next(Chunk& chunk) {
  chunk.bytes = 0;
  for (;;) {
    at_ = pack(piece_, at_, k_, chunk);
    if (at_ < piece_.size()) return true;
    at_ = 0;
    piece_.clear();
    if (!next_piece()) return chunk.bytes > 0;
  }
}

double letters_of(const Input& file) {
  std::error_code error;  // the file may have gone: its reader says so
  const auto bytes = std::filesystem::file_size(file.path, error);
  ReadFile reads(file, 1);
  std::string piece;
  double letters = 0;
  while (letters < kSampledLetters && reads.next(piece))
    letters += static_cast<double>(piece.size());
  if (error || reads.bytes_taken() == 0) return letters;
  return letters * static_cast<double>(bytes) / static_cast<double>(reads.bytes_taken());
}

}  // namespace dunlin::kmers
