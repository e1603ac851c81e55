#include "kmers/reads.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "command.hpp"
#include "text.hpp"

namespace dunlin::kmers {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 30;

/// Letters, and what stands for a gap or a stop.
bool may_be_in_a_read(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '*' || c == '.';
}

}  // namespace

struct ReadFile::Handle {
  gzFile file = nullptr;
};

ReadFile::ReadFile(std::string path, std::uint32_t k)
    : path_(std::move(path)),
      overlap_(k - 1),
      file_(std::make_unique<Handle>()),
      buffer_(kBufferBytes) {
  file_->file = gzopen(path_.c_str(), "rb");
  if (file_->file == nullptr)
    throw app::BadInput(
        fmt::format("{}: cannot be opened: {}", app::in_quotes(path_), std::strerror(errno)));
  static_cast<void>(gzbuffer(file_->file, kBufferBytes));
}

ReadFile::~ReadFile() { static_cast<void>(gzclose_r(file_->file)); }

std::uint64_t ReadFile::bytes_taken() const noexcept {
  const auto at = gzoffset(file_->file);
  return at < 0 ? 0 : static_cast<std::uint64_t>(at);
}

void ReadFile::refuse(const std::string& why) const {
  throw app::BadInput(fmt::format("{}: line {}: {}", app::in_quotes(path_), line_number_, why));
}

bool ReadFile::fill() {
  const int got = gzread(file_->file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* const text = gzerror(file_->file, &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    ++line_number_;
    refuse(code == Z_ERRNO ? std::strerror(errno)
                           : fmt::format("the file is damaged or cut off: {}", text));
  }
  begin_ = 0;
  end_ = static_cast<std::size_t>(got);
  return got > 0;
}

/// Without its end, which is LF or CR LF.
bool ReadFile::next_line() {
  if (has_line_) {
    has_line_ = false;
    return true;
  }
  line_.clear();
  bool any = false;
  for (;;) {
    if (begin_ == end_ && !fill()) break;
    any = true;
    const char* const from = buffer_.data() + begin_;
    const auto* const stop = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
    const std::size_t bytes =
        stop == nullptr ? end_ - begin_ : static_cast<std::size_t>(stop - from);
    line_.append(from, bytes);
    begin_ += bytes;
    if (stop != nullptr) {
      ++begin_;
      break;
    }
    if (line_.size() > kMaxLineBytes) {
      ++line_number_;
      refuse(fmt::format("it has more than {} bytes", kMaxLineBytes));
    }
  }
  if (!any) return false;
  ++line_number_;
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

void ReadFile::append_letters(std::string& to) const {
  for (const char c : line_)
    if (!may_be_in_a_read(c))
      refuse(c > ' ' && c < 127
                 ? fmt::format("'{}' is no letter of a read", c)
                 : fmt::format("byte {} is no letter of a read", static_cast<unsigned char>(c)));
  to += line_;
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
  std::size_t before = piece.size();  // of it, in the piece before
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
    if (!next_line()) refuse("the file ends within a read, before its qualities");
    qualities += line_.size();
  } while (qualities < piece.size());
  if (qualities != piece.size())
    refuse(fmt::format("a read of {} letters has {} qualities", piece.size(), qualities));
  return true;
}

}  // namespace dunlin::kmers
