#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dunlin::app::resp {

enum class Protocol : std::uint8_t { resp2 = 2, resp3 = 3 };

/// Appends replies in the protocol that a client has chosen. A value without a type in RESP2 is
/// encoded as Redis does for such clients: a map is an array of twice as many elements, a double a
/// bulk string.
class Reply {
 public:
  Reply(std::string& out, Protocol protocol) noexcept : out_(out), protocol_(protocol) {}

  void ok() { out_ += "+OK\r\n"; }
  /// `text` is a constant without line ends.
  void simple(std::string_view text);
  /// `text` begins with the error's word ("ERR", "WRONGTYPE"); line ends in it become blanks.
  void error(std::string_view text);
  void integer(std::int64_t number) { number_line(':', number); }
  void bulk(std::string_view bytes);
  void null();
  void null_array();
  void real(double number);
  /// Text for people (INFO).
  void verbatim(std::string_view text);
  // The elements, or pairs, must follow.
  void array(std::size_t elements) { number_line('*', static_cast<std::int64_t>(elements)); }
  void map(std::size_t pairs);

  /// Replies that were written before.
  void raw(std::string_view replies) { out_ += replies; }

  void use(Protocol protocol) noexcept { protocol_ = protocol; }
  [[nodiscard]] Protocol protocol() const noexcept { return protocol_; }

 private:
  void number_line(char type, std::int64_t number);

  std::string& out_;
  Protocol protocol_;
};

}  // namespace dunlin::app::resp
