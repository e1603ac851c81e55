#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kmers/inflate.hpp"
#include "kmers/input.hpp"

/// A ReadFile is a FASTA or FASTQ file, compressed by gzip or not, from its first read to its last.
///
///     ReadFile file({.name = "reads.fq.gz", .path = "reads.fq.gz"}, k);
///     std::string piece;
///     while (file.next(piece)) count_kmers_of(piece);
namespace dunlin::kmers {

class ReadFile {
 public:
  /// Throws BadInput if it cannot be opened. Pieces of a read overlap by `k` - 1 letters.
  ReadFile(const Input& input, std::uint32_t k);

  /// The letters of a read, or of a piece of a long one, so that each k-mer is in one piece. False
  /// at the end. Throws BadInput that names the file and the line of a malformed read.
  [[nodiscard]] bool next(std::string& piece);
  /// How much of the file, as it lies on the disk, has been taken.
  [[nodiscard]] std::uint64_t bytes_taken() const noexcept { return file_.bytes_taken(); }

 private:
  static constexpr std::size_t kPieceLetters = 16'384;

  [[nodiscard]] bool next_line();
  [[nodiscard]] bool fill();
  /// Where the byte is in the buffer, from `begin_` on and before `end`; else `end`.
  [[nodiscard]] std::size_t find(char c, std::size_t end) const noexcept;
  [[nodiscard]] bool next_fasta(std::string& piece);
  [[nodiscard]] bool next_fastq(std::string& piece);
  void append_letters(std::string& to) const;
  [[noreturn]] void refuse(const std::string& why) const;

  enum class Format : std::uint8_t { unknown, fasta, fastq };

  std::string name_;
  std::size_t overlap_;
  Inflated file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what is left of the buffer
  std::size_t line_feed_ = 0;        // the first one in what is left, or end_
  Format format_ = Format::unknown;
  std::string line_;
  std::uint64_t line_number_ = 0;
  bool has_line_ = false;  // a line that is looked at again
  bool skips_lf_ = false;  // the line before ended with CR, so an LF belongs to its end
  bool in_read_ = false;   // FASTA: letters of a read may follow
  std::string rest_;       // FASTA: of a read, for the next piece
};

}  // namespace dunlin::kmers
