#include "kmers/reads.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "text.hpp"

namespace dunlin::kmers {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 30;

/// Letters, and what stands for a gap or a stop.
constexpr auto kMayBeInARead = [] {
  std::array<bool, 256> may{};
  for (std::size_t c = 'A'; c <= 'Z'; ++c) may[c] = may[c - 'A' + 'a'] = true;
  for (const char c : {'-', '*', '.'}) may[static_cast<unsigned char>(c)] = true;
  return may;
}();
bool may_be_in_a_read(char c) noexcept { return kMayBeInARead[static_cast<unsigned char>(c)]; }

Inflated opened(const Input& input) try {
  return Inflated(input.path);
} catch (const Error& error) {
  throw app::BadInput(fmt::format("{}: {}", app::in_quotes(input.name), error.what()));
}

}  // namespace

ReadFile::ReadFile(const Input& input, std::uint32_t k)
    : name_(input.name), overlap_(k - 1), file_(opened(input)), buffer_(kBufferBytes) {}

void ReadFile::refuse(const std::string& why) const {
  throw app::BadInput(fmt::format("{}: line {}: {}", app::in_quotes(name_), line_number_, why));
}

bool ReadFile::fill() {
  begin_ = 0;
  try {
    end_ = file_.read(buffer_);
  } catch (const Error& error) {
    ++line_number_;
    refuse(fmt::format("the file is damaged or cut off: {}", error.what()));
  }
  line_feed_ = find('\n', end_);
  return end_ > 0;
}

std::size_t ReadFile::find(char c, std::size_t end) const noexcept {
  const void* const at = std::memchr(buffer_.data() + begin_, c, end - begin_);
  return at == nullptr ? end
                       : static_cast<std::size_t>(static_cast<const char*>(at) - buffer_.data());
}

/// Takes a line without its end, which is LF, CR or CR LF, and without blanks before the end.
bool ReadFile::next_line() {
  if (has_line_) {
    has_line_ = false;
    return true;
  }
  line_.clear();
  bool any = false, whole = false;
  while (!whole && (begin_ < end_ || fill())) {
    if (std::exchange(skips_lf_, false) && buffer_[begin_] == '\n') {
      ++begin_;
      continue;
    }
    any = true;
    if (line_feed_ < begin_) line_feed_ = find('\n', end_);
    const std::size_t stop = find('\r', line_feed_);
    line_.append(buffer_.data() + begin_, stop - begin_);
    begin_ = stop;
    whole = stop != end_;
    if (whole) skips_lf_ = buffer_[begin_++] == '\r';
    if (line_.size() > kMaxLineBytes) {
      ++line_number_;
      refuse(fmt::format("it has more than {} bytes", kMaxLineBytes));
    }
  }
  if (!any) return false;
  ++line_number_;
  line_.resize(line_.find_last_not_of(" \t") + 1);  // npos + 1 is 0
  return true;
}

void ReadFile::append_letters(std::string& to) const {
  bool good = true;
  for (const char c : line_) good &= may_be_in_a_read(c);
  if (good) return void(to += line_);
  const char c = *std::ranges::find_if_not(line_, may_be_in_a_read);
  refuse(c > ' ' && c < 127
             ? fmt::format("'{}' is no letter of a read", c)
             : fmt::format("byte {} is no letter of a read", static_cast<unsigned char>(c)));
}

bool ReadFile::next(std::string& piece) {
  if (format_ == Format::unknown) {
    do {
      if (!next_line()) return false;  // an empty file has no reads
    } while (line_.empty());
    if (line_[0] != '>' && line_[0] != '@')
      refuse("a FASTA file begins with '>', a FASTQ file with '@'");
    format_ = line_[0] == '>' ? Format::fasta : Format::fastq;
    has_line_ = true;
  }
  return format_ == Format::fasta ? next_fasta(piece) : next_fastq(piece);
}

bool ReadFile::next_fasta(std::string& piece) {
  piece.swap(rest_);
  rest_.clear();
  std::size_t before = piece.size();  // letters of the piece before
  while (next_line()) {
    if (line_.starts_with('>')) {
      if (in_read_ && piece.size() > before) {
        has_line_ = true;
        in_read_ = false;
        return true;
      }
      in_read_ = true;
      piece.clear();
      before = 0;
      continue;
    }
    append_letters(piece);
    if (piece.size() < kPieceLetters) continue;
    rest_ = piece.substr(piece.size() - overlap_);
    return true;
  }
  const bool any = piece.size() > before;
  in_read_ = false;
  return any;
}

bool ReadFile::next_fastq(std::string& piece) {
  piece.clear();
  do {
    if (!next_line()) return false;
  } while (line_.empty());
  if (line_[0] != '@') refuse("a read begins with '@'");
  bool has_plus = false;
  while (!has_plus && next_line()) {
    has_plus = line_.starts_with('+');
    if (!has_plus) append_letters(piece);
  }
  if (!has_plus) refuse("the file ends within a read, before its '+'");
  std::size_t qualities = 0;
  do {
    if (next_line()) {
      qualities += line_.size();
    } else if (!piece.empty()) {
      refuse("the file ends within a read, before its qualities");
    }
  } while (qualities < piece.size());
  if (qualities != piece.size())
    refuse(fmt::format("a read of {} letters has {} qualities", piece.size(), qualities));
  return true;
}

}  // namespace dunlin::kmers
