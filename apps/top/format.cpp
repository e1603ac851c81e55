#include "top/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace dunlin::top {
namespace {

constexpr std::string_view kCut = "..";

/// Two digits below 10, whole numbers above.
std::string two_digits(double number) {
  return number < 9.95 ? fmt::format("{:.1f}", number) : fmt::format("{:.0f}", number);
}

struct ToText {
  std::string operator()(std::monostate) const { return "?"; }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(std::int64_t n) const { return std::to_string(n); }
  std::string operator()(std::uint64_t n) const { return std::to_string(n); }
  std::string operator()(double d) const { return fmt::format("{:.9g}", d); }
  std::string operator()(const std::string& text) const {
    return text.empty() ? "\"\"" : printable(text);
  }
  std::string operator()(const Bytes& bytes) const { return hex(bytes); }
};

/// As many values as there is room for, from the first on.
std::string first_values(const ColumnValues& values, std::size_t width) {
  std::string text;
  for (const Value& value : values.entries) {
    if (text.size() > width) break;
    if (!text.empty()) text += ' ';
    text += value_text(value);
  }
  return shortened(std::move(text), width);
}

/// As many values as there is room for, up to the last one.
std::string last_values(const ColumnValues& values, std::size_t width) {
  const std::string range = fmt::format("[{}..{})", values.begin, values.end);
  std::string text;
  bool all = values.end - values.begin == values.entries.size();
  for (auto value = values.entries.rbegin(); value != values.entries.rend(); ++value) {
    const std::string next = ' ' + value_text(*value);
    if (range.size() + text.size() + next.size() + kCut.size() + 1 > width) {
      all = false;
      break;
    }
    text.insert(0, next);
  }
  return range + (all ? "" : " ..") + text;
}

}  // namespace

std::string duration_text(std::uint64_t ns) {
  constexpr double kMinute = 60;
  constexpr double kHour = 60 * kMinute;
  constexpr double kDay = 24 * kHour;
  const double s = static_cast<double>(ns) * 1e-9;
  if (s < 0.9995) return fmt::format("{:.0f} ms", s * 1e3);
  if (s < kMinute) return two_digits(s) + " s";
  if (s < kHour) return fmt::format("{:.0f} min", std::floor(s / kMinute));
  if (s < 2 * kDay) return two_digits(s / kHour) + " h";
  return fmt::format("{:.0f} d", std::floor(s / kDay));
}

std::string latency_text(std::uint64_t ns) {
  constexpr double kLongNs = 999.5e6;
  const auto number = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (number < 999.5e3) return two_digits(number / 1e3) + " us";
  return number < kLongNs ? two_digits(number / 1e6) + " ms" : duration_text(ns);
}

std::string rate_text(std::optional<double> per_s) {
  if (!per_s) return "-";
  if (*per_s == 0) return "0";
  if (*per_s < 0.05) return "<0.1";
  constexpr std::array<std::string_view, 5> kUnits{"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  double number = *per_s;
  while (number >= 999.5 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  return two_digits(number) + std::string(kUnits[unit]);
}

std::string count_text(std::uint64_t count) {
  constexpr std::uint64_t kMostDigits = 10'000'000;
  return count < kMostDigits ? std::to_string(count) : rate_text(static_cast<double>(count));
}

std::string printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

std::string shortened(std::string text, std::size_t width) {
  if (text.size() <= width) return text;
  text.resize(width > kCut.size() ? width - kCut.size() : 0);
  return text + std::string(kCut.substr(0, std::min(width, kCut.size())));
}

std::string value_text(const Value& value) { return std::visit(ToText{}, value); }

std::string values_text(const Column& column, const ColumnValues& values, std::size_t width) {
  return column.kind == ColumnKind::list ? last_values(values, width) : first_values(values, width);
}

std::string hex(const Bytes& bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

}  // namespace dunlin::top
