#include "store/request_parser.hpp"

#include <algorithm>
#include <charconv>
#include <climits>

namespace dunlin::app::resp {
namespace {

constexpr std::size_t kKeptPieces = 1024;  // room that is kept from one request to the next

bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f' || c == '\0';
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char unescaped(char c) noexcept {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

/// Appends what is between the quotes that `at` is behind, and moves `at` behind the second one.
/// Returns false if there is no second one, or if no blank follows it.
bool take_quoted(std::string_view line, std::size_t& at, char quote, std::string& into) {
  while (at < line.size() && line[at] != quote) {
    if (line[at] != '\\' || at + 1 == line.size()) {
      into += line[at++];
    } else if (quote == '\'') {
      if (line[at + 1] == '\'') ++at;
      into += line[at++];
    } else if (line[at + 1] == 'x' && at + 3 < line.size() && hex_digit(line[at + 2]) >= 0 &&
               hex_digit(line[at + 3]) >= 0) {
      into += static_cast<char>(hex_digit(line[at + 2]) * 16 + hex_digit(line[at + 3]));
      at += 4;
    } else {
      into += unescaped(line[at + 1]);
      at += 2;
    }
  }
  if (at == line.size()) return false;
  ++at;
  return at == line.size() || is_blank(line[at]);
}

/// A number of a few digits and its line end, as almost all clients send it; returns how long both
/// are, or 0 if there is anything else.
std::size_t read_short_number(std::string_view text, long long& number) noexcept {
  constexpr std::size_t kMostDigits = 7;  // the digits of kMaxArgumentBytes
  long long value = 0;
  std::size_t digits = 0;
  for (; digits < kMostDigits && digits < text.size(); ++digits) {
    const auto digit = static_cast<unsigned char>(text[digits] - '0');
    if (digit > 9) break;
    value = value * 10 + digit;
  }
  if (digits == 0 || text.size() < digits + 2) return 0;
  if (text[digits] != '\r' || text[digits + 1] != '\n') return 0;
  number = value;
  return digits + 2;
}

}  // namespace

void RequestParser::next() noexcept {
  at_ = searched_ = 0;
  needed_ = 1;
  left_ = length_ = kUnknown;
  refuses_ = false;
  pieces_.clear();
  arguments_.clear();
  if (pieces_.capacity() > kKeptPieces) {
    pieces_.shrink_to_fit();
    arguments_.shrink_to_fit();
  }
}

RequestParser::Parsed RequestParser::parse(std::string_view bytes) {
  if (bytes.empty()) return Parsed::part;
  if (refuses_) return skip(bytes);
  return bytes.front() == '*' ? parse_array(bytes) : parse_line(bytes);
}

/// Finds the end of a request that is over a limit. All bytes before that can be dropped.
RequestParser::Parsed RequestParser::skip(std::string_view bytes) {
  at_ = 0;
  for (; left_ > 0; --left_) {
    if (length_ == kUnknown) {
      const Header header = read_length(bytes);
      if (header == Header::mistake) return Parsed::mistake;
      if (header == Header::part) break;
      length_ += 2;  // the line end, of which nobody looks whether it is one
    }
    const std::size_t there = std::min(length_, bytes.size() - at_);
    at_ += there;
    length_ -= there;
    if (length_ > 0) break;
    length_ = kUnknown;
  }
  needed_ = bytes.size() - at_ + 1;
  if (left_ == 0) return Parsed::refused;
  return at_ > 0 ? Parsed::skipped : Parsed::part;
}

void RequestParser::refuse(std::string text) {
  if (!refuses_) mistake_ = "ERR " + std::move(text);
  refuses_ = true;
}

RequestParser::Parsed RequestParser::parse_array(std::string_view bytes) {
  if (left_ == kUnknown) {
    const Header header = read_count(bytes);
    if (header != Header::number) return header == Header::part ? Parsed::part : Parsed::mistake;
    if (refuses_) return Parsed::skipped;
  }
  while (left_ > 0) {
    if (length_ == kUnknown) {
      const Header header = read_length(bytes);
      if (header != Header::number) return header == Header::part ? Parsed::part : Parsed::mistake;
      if (refuses_) {
        length_ += 2;
        return Parsed::skipped;
      }
    }
    needed_ = at_ + length_ + 2;
    if (bytes.size() < needed_) return Parsed::part;
    if (bytes[at_ + length_] != '\r' || bytes[at_ + length_ + 1] != '\n')
      return fail("no line end behind an argument");
    pieces_.push_back({at_, length_});
    at_ = needed_;
    length_ = kUnknown;
    --left_;
  }
  for (const Piece& piece : pieces_) arguments_.push_back(bytes.substr(piece.at, piece.bytes));
  return finish();
}

/// The number in the line at at_, behind its first character.
RequestParser::Header RequestParser::read_header(std::string_view bytes, const char* too_long,
                                                 long long& number) {
  if (const std::size_t length = read_short_number(bytes.substr(at_ + 1), number); length > 0) {
    at_ += 1 + length;
    return Header::number;
  }
  const std::string_view rest = bytes.substr(at_, kMaxHeaderBytes);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    needed_ = bytes.size() + 1;
    return rest.size() < kMaxHeaderBytes ? Header::part : fail_header(too_long);
  }
  const char* const begin = rest.data() + 1;
  const char* past = rest.data() + end;
  if (end >= 2 && past[-1] == '\r') --past;
  const auto [stop, failure] = std::from_chars(begin, past, number);
  if (begin == past || failure != std::errc{} || stop != past) number = LLONG_MAX;
  at_ += end + 1;
  return Header::number;
}

static_assert(kMaxArguments == 65536 && kMaxArgumentBytes == 1048576 && kMaxRequestBytes == 8388608,
              "as the errors say");

RequestParser::Header RequestParser::read_count(std::string_view bytes) {
  long long count = 0;
  const Header header = read_header(bytes, "too big mbulk count string", count);
  if (header != Header::number) return header;
  if (count > static_cast<long long>(kMaxRefusedArguments))
    return fail_header("invalid multibulk length");
  if (stranger_ && count > static_cast<long long>(kMaxStrangerArguments))
    return fail_header("unauthenticated multibulk length");
  if (count > static_cast<long long>(kMaxArguments))
    refuse("the request has over 65536 arguments, which is the limit");
  left_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  return Header::number;
}

RequestParser::Header RequestParser::read_length(std::string_view bytes) {
  if (at_ == bytes.size()) {
    needed_ = at_ + 1;
    return Header::part;
  }
  if (bytes[at_] != '$') {
    const char found = bytes[at_];
    return fail_header(std::string("expected '$', got '") +
                       (found >= ' ' && found <= '~' ? found : '?') + "'");
  }
  long long length = 0;
  const Header header = read_header(bytes, "too big bulk count string", length);
  if (header != Header::number) return header;
  if (length < 0 || length > static_cast<long long>(kMaxRefusedBytes))
    return fail_header("invalid bulk length");
  if (stranger_ && length > static_cast<long long>(kMaxStrangerArgumentBytes))
    return fail_header("unauthenticated bulk length");
  length_ = static_cast<std::size_t>(length);
  if (length_ > kMaxArgumentBytes) {
    refuse("a value or key has over 1048576 bytes, which is the limit");
  } else if (!refuses_ && at_ + length_ > kMaxRequestBytes) {
    refuse("the request has over 8388608 bytes, which is the limit");
  }
  return Header::number;
}

RequestParser::Parsed RequestParser::parse_line(std::string_view bytes) {
  const std::string_view whole = bytes.substr(0, kMaxInlineBytes);
  const std::size_t end = whole.find('\n', searched_);
  if (end == std::string_view::npos) {
    searched_ = whole.size();
    needed_ = bytes.size() + 1;
    return whole.size() < kMaxInlineBytes ? Parsed::part : fail("too big inline request");
  }
  at_ = end + 1;
  const bool carriage = end > 0 && whole[end - 1] == '\r';
  if (!split_line(whole.substr(0, carriage ? end - 1 : end)))
    return fail("unbalanced quotes in request");
  if (stranger_ && arguments_.size() > kMaxStrangerArguments)
    return fail("unauthenticated multibulk length");
  return finish();
}

/// Words may be quoted in whole or in part: set name "two words".
bool RequestParser::split_line(std::string_view line) {
  words_.clear();
  words_.reserve(line.size());  // so that the views into it stay
  for (std::size_t at = 0;;) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size()) return true;
    const std::size_t begin = words_.size();
    while (at < line.size() && !is_blank(line[at])) {
      const char c = line[at++];
      if (c != '"' && c != '\'') {
        words_ += c;
      } else if (!take_quoted(line, at, c, words_)) {
        return false;
      }
    }
    arguments_.push_back(std::string_view(words_).substr(begin));
  }
}

RequestParser::Parsed RequestParser::finish() {
  needed_ = at_;
  return Parsed::request;
}

RequestParser::Parsed RequestParser::fail(std::string text) {
  mistake_ = "ERR Protocol error: " + std::move(text);
  return Parsed::mistake;
}

RequestParser::Header RequestParser::fail_header(std::string text) {
  fail(std::move(text));
  return Header::mistake;
}

}  // namespace dunlin::app::resp
