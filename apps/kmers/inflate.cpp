#include "kmers/inflate.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace dunlin::kmers {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr int kGzipOnly = MAX_WBITS + 16;

/// True if the header's extra field has the subfield "BC", which marks a block of BGZF.
bool is_bgzf(std::span<const unsigned char> extra) noexcept {
  while (extra.size() >= 4) {
    if (extra[0] == 'B' && extra[1] == 'C') return true;
    const std::size_t length = std::size_t{extra[2]} + std::size_t{extra[3]} * 256 + 4;
    if (length > extra.size()) return false;
    extra = extra.subspan(length);
  }
  return false;
}

}  // namespace

Inflated::Inflated(const std::string& path)
    : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), packed_(kBufferBytes) {
  if (!file_) throw Error(fmt::format("cannot be opened: {}", error_text(errno)));
  if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw Error("there is no memory to unpack it");
}

Inflated::~Inflated() { static_cast<void>(inflateEnd(&stream_)); }

/// Adds to the bytes that wait to be unpacked. False at the end of the file.
bool Inflated::fill() {
  std::copy_n(stream_.next_in, stream_.avail_in, packed_.data());
  stream_.next_in = packed_.data();
  ssize_t got = -1;
  do {
    got = ::read(file_.get(), packed_.data() + stream_.avail_in, packed_.size() - stream_.avail_in);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw Error(error_text(errno));
  stream_.avail_in += static_cast<unsigned>(got);
  taken_ += static_cast<std::uint64_t>(got);
  return got > 0;
}

void Inflated::begin() {
  while (stream_.avail_in < 2 && fill()) {
  }
  const bool packed =
      stream_.avail_in >= 2 && stream_.next_in[0] == 0x1f && stream_.next_in[1] == 0x8b;
  if (packed) return begin_member();
  state_ = State::plain;
}

void Inflated::begin_member() {
  static_cast<void>(inflateReset(&stream_));
  header_ = {};
  header_.extra = extra_.data();
  header_.extra_max = static_cast<unsigned>(extra_.size());
  static_cast<void>(inflateGetHeader(&stream_, &header_));
  member_begin_ = bytes_taken();
  state_ = State::in_member;
}

/// The last block of BGZF is empty, so that a reader notices when the last blocks are lost.
void Inflated::demand_end_block() const {
  const std::size_t extra_bytes = std::min<std::size_t>(header_.extra_len, extra_.size());
  if (state_ == State::between_members && is_bgzf(std::span(extra_).first(extra_bytes)) &&
      stream_.total_out > 0)
    throw Error("it is BGZF and lacks the empty block at its end");
}

std::string Inflated::fault_of(int code) const {
  if (code == Z_DATA_ERROR && header_.done != 1 && member_begin_ > 0)
    return fmt::format("what follows the gzip member that ends at offset {} is none",
                       member_begin_);
  if (code == Z_MEM_ERROR) return "there is no memory to unpack it";
  return stream_.msg == nullptr ? "it cannot be unpacked" : stream_.msg;
}

std::size_t Inflated::read(std::span<char> to) {
  if (state_ == State::unknown) begin();
  for (;;) {
    const bool any = stream_.avail_in > 0 || fill();
    if (!any && state_ != State::in_member) {
      demand_end_block();
      return 0;
    }
    if (state_ == State::plain) {
      const std::size_t bytes = std::min<std::size_t>(to.size(), stream_.avail_in);
      std::copy_n(stream_.next_in, bytes, to.data());
      stream_.next_in += bytes;
      stream_.avail_in -= static_cast<unsigned>(bytes);
      return bytes;
    }
    if (state_ == State::between_members) begin_member();
    stream_.next_out = reinterpret_cast<unsigned char*>(to.data());
    stream_.avail_out = static_cast<unsigned>(to.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_BUF_ERROR && !any) throw Error("it ends within a gzip member");
    if (code != Z_OK && code != Z_STREAM_END) throw Error(fault_of(code));
    if (code == Z_STREAM_END) state_ = State::between_members;
    if (stream_.avail_out < to.size()) return to.size() - stream_.avail_out;
  }
}

}  // namespace dunlin::kmers
