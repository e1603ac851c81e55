#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dunlin::app::resp {

enum class Protocol : std::uint8_t { resp2 = 2, resp3 = 3 };

/// What a command returns that has written its reply.
struct Replied {};

/// Appends replies in the protocol that a client has chosen. A value without a type in RESP2 is
/// encoded as Redis does for such clients: a map is an array of twice as many elements, a double a
/// bulk string.
class Reply {
 public:
  Reply(std::string& out, Protocol protocol) noexcept : out_(out), protocol_(protocol) {}

  Replied ok() { return append("+OK\r\n"); }
  /// `text` is a constant without line ends.
  Replied simple(std::string_view text);
  /// `text` begins with the error's word ("ERR", "WRONGTYPE"); line ends in it become blanks.
  Replied error(std::string_view text);
  Replied integer(std::int64_t number) { return number_line(':', number); }
  Replied bulk(std::string_view bytes);
  Replied null();
  Replied null_array();
  Replied real(double number);
  /// Text for people (INFO).
  Replied verbatim(std::string_view text);
  // The elements, or pairs, must follow.
  Replied array(std::size_t elements) {
    return number_line('*', static_cast<std::int64_t>(elements));
  }
  Replied map(std::size_t pairs);

  /// Replies that were written before.
  Replied raw(std::string_view replies) { return append(replies); }

  void use(Protocol protocol) noexcept { protocol_ = protocol; }
  [[nodiscard]] Protocol protocol() const noexcept { return protocol_; }

 private:
  Replied append(std::string_view bytes) {
    out_ += bytes;
    return {};
  }
  Replied number_line(char type, std::int64_t number);

  std::string& out_;
  Protocol protocol_;
};

}  // namespace dunlin::app::resp
