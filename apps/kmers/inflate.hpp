#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <zlib.h>

#include "fabric/system.hpp"

namespace dunlin::kmers {

/// The content of a file that is packed by gzip, in one member or several (as BGZF is), or not
/// packed. Every byte of the file is used; if one cannot be, read() throws.
class Inflated {
 public:
  /// Throws Error if the file cannot be opened.
  explicit Inflated(const std::string& path);
  ~Inflated();
  Inflated(const Inflated&) = delete;
  Inflated& operator=(const Inflated&) = delete;

  /// The number of bytes that it put into `to`: 0 at the end only. Throws Error that says what is
  /// wrong with the file.
  [[nodiscard]] std::size_t read(std::span<char> to);
  /// How much of the file, as it lies on the disk, has been taken.
  [[nodiscard]] std::uint64_t bytes_taken() const noexcept { return taken_ - stream_.avail_in; }

 private:
  enum class State : std::uint8_t { unknown, plain, in_member, between_members };

  [[nodiscard]] bool fill();
  void begin();
  void begin_member();
  void demand_end_block() const;
  [[nodiscard]] std::string fault_of(int code) const;

  Descriptor file_;
  std::vector<unsigned char> packed_;
  z_stream stream_{};
  gz_header header_{};
  std::array<unsigned char, 64> extra_{};  // the extra field of the member's header
  State state_ = State::unknown;
  std::uint64_t taken_ = 0;  // bytes of the file that are or were in packed_
  std::uint64_t member_begin_ = 0;
};

}  // namespace dunlin::kmers
