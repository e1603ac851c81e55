#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/limits.hpp"

namespace dunlin::app::resp {

/// A RequestParser finds one request after the other in the bytes that a Redis client sends: arrays
/// of bulk strings, and lines of words ("inline"). It looks at no byte twice, however the bytes are
/// cut, and copies none but those of lines with quotes.
///
///     switch (parser.parse(bytes)) {           // from the first byte of the request on
///       case Parsed::request: use(parser.arguments()); bytes = bytes.substr(parser.bytes());
///                             parser.next(); break;
///       case Parsed::part:    // call again with more bytes behind these; they may have moved
///       case Parsed::skipped: // drop parser.bytes() bytes, and call again: it is over a limit
///       case Parsed::refused: // reply with parser.mistake(); bytes() and next() as of a request
///       case Parsed::mistake: // reply with parser.mistake(), and close the connection
///     }
///
///  RSP-P1  For any bytes, parse() reads none outside of them, and the limits bound the bytes that
///          it keeps.
///  RSP-P2  The requests found do not depend on how the bytes were cut.
class RequestParser {
 public:
  enum class Parsed : std::uint8_t { request, part, skipped, refused, mistake };

  /// `bytes` begins with the first byte of the request; what an earlier call has seen of it is
  /// unchanged.
  [[nodiscard]] Parsed parse(std::string_view bytes);

  /// A request's arguments, which point into the bytes of the last call. An empty line has none.
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept { return arguments_; }
  /// How long the request is.
  [[nodiscard]] std::size_t bytes() const noexcept { return at_; }
  /// How many bytes of the request are known to come, those that are there included.
  [[nodiscard]] std::size_t bytes_needed() const noexcept { return needed_; }
  [[nodiscard]] const std::string& mistake() const noexcept { return mistake_; }

  /// Forgets the request.
  void next() noexcept;
  /// A stranger has not given the password yet, and may send little.
  void set_stranger(bool stranger) noexcept { stranger_ = stranger; }

 private:
  enum class Header : std::uint8_t { number, part, mistake };
  struct Piece {
    std::size_t at;
    std::size_t bytes;
  };

  Parsed parse_array(std::string_view bytes);
  Parsed skip(std::string_view bytes);
  void refuse(std::string text);
  Parsed parse_line(std::string_view bytes);
  bool split_line(std::string_view line);
  Header read_header(std::string_view bytes, const char* too_long, long long& number);
  Header read_count(std::string_view bytes);
  Header read_length(std::string_view bytes);
  Parsed fail(std::string text);
  Header fail_header(std::string text);
  Parsed finish();

  static constexpr std::size_t kUnknown = SIZE_MAX;

  std::size_t at_ = 0;        // everything before is parsed
  std::size_t searched_ = 0;  // up to here there is no end of a line
  std::size_t needed_ = 1;
  std::size_t left_ = kUnknown;    // arguments still to come
  std::size_t length_ = kUnknown;  // length of the argument at at_
  bool stranger_ = false;
  bool refuses_ = false;  // the request is over a limit: its bytes are not kept
  std::vector<Piece> pieces_;
  std::vector<std::string_view> arguments_;
  std::string words_;  // a line's words, without quotes and escapes
  std::string mistake_;
};

}  // namespace dunlin::app::resp
