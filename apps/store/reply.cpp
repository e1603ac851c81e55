#include "store/reply.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace dunlin::app::resp {
namespace {

// A double can hold every integer up to this one.
constexpr double kMostExact = 9007199254740992;

/// Writes as Redis does from 7.2 on: an integer without a point, else the shortest digits that give
/// the double again.
std::string_view as_text(double number, std::array<char, 32>& digits) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  if (std::isnan(number)) return "nan";
  const bool is_integer = std::abs(number) < kMostExact && std::trunc(number) == number;
  const bool is_negative_zero = number == 0 && std::signbit(number);
  char* const past = digits.data() + digits.size();
  const auto [end, failure] =
      is_integer && !is_negative_zero
          ? std::to_chars(digits.data(), past, static_cast<std::int64_t>(number))
          : std::to_chars(digits.data(), past, number);
  static_cast<void>(failure);  // 24 characters are enough for any double
  return {digits.data(), static_cast<std::size_t>(end - digits.data())};
}

}  // namespace

Replied Reply::number_line(char type, std::int64_t number) {
  std::array<char, 24> line;
  line[0] = type;
  const auto [end, failure] = std::to_chars(line.data() + 1, line.data() + 22, number);
  static_cast<void>(failure);  // 20 characters are enough for any number
  end[0] = '\r';
  end[1] = '\n';
  return append({line.data(), static_cast<std::size_t>(end - line.data()) + 2});
}

Replied Reply::simple(std::string_view text) {
  out_ += '+';
  out_ += text;
  return append("\r\n");
}

Replied Reply::error(std::string_view text) {
  out_ += '-';
  for (const char c : text) out_ += c == '\r' || c == '\n' ? ' ' : c;
  return append("\r\n");
}

Replied Reply::bulk(std::string_view bytes) {
  number_line('$', static_cast<std::int64_t>(bytes.size()));
  out_ += bytes;
  return append("\r\n");
}

Replied Reply::null() { return append(protocol_ == Protocol::resp3 ? "_\r\n" : "$-1\r\n"); }

Replied Reply::null_array() { return append(protocol_ == Protocol::resp3 ? "_\r\n" : "*-1\r\n"); }

Replied Reply::real(double number) {
  std::array<char, 32> digits;
  const std::string_view text = as_text(number, digits);
  if (protocol_ == Protocol::resp2) return bulk(text);
  out_ += ',';
  out_ += text;
  return append("\r\n");
}

Replied Reply::verbatim(std::string_view text) {
  if (protocol_ == Protocol::resp2) return bulk(text);
  number_line('=', static_cast<std::int64_t>(text.size()) + 4);
  out_ += "txt:";
  out_ += text;
  return append("\r\n");
}

Replied Reply::map(std::size_t pairs) {
  if (protocol_ == Protocol::resp2) return array(pairs * 2);
  return number_line('%', static_cast<std::int64_t>(pairs));
}

}  // namespace dunlin::app::resp
