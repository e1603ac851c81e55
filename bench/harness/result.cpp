#include "bench/harness/result.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace dunlin::bench {
namespace {

struct Scale {
  double factor;
  const char* suffix;
};

std::string scaled(double number, std::span<const Scale> scales) {
  for (const Scale& scale : scales) {
    if (std::abs(number) >= scale.factor) return to_text(number / scale.factor) + scale.suffix;
  }
  return to_text(number / scales.back().factor) + scales.back().suffix;
}

}  // namespace

std::optional<bool> Result::reached() const {
  if (!goal || (goal->on == Goal::On::ratio && !ratio)) return std::nullopt;
  const double got = goal->on == Goal::On::value ? value.median : ratio->median;
  return better == Better::lower ? got <= goal->bound : got >= goal->bound;
}

void compare(Result& result, std::span<const double> values, std::string limit_name,
             std::span<const double> limits) {
  result.limit_name = std::move(limit_name);
  if (!values.empty()) result.value = summarize(values);
  if (limits.empty()) return;
  result.limit = summarize(limits);
  result.ratio = summarize(ratios(values, limits));
}

Result compared(Result result, std::span<const double> values, std::string limit_name,
                std::span<const double> limits) {
  compare(result, values, std::move(limit_name), limits);
  return result;
}

std::vector<double> per_second(std::span<const double> ns) {
  std::vector<double> rates;
  for (const double x : ns) rates.push_back(1e9 / x);
  return rates;
}

std::string to_text(double number) {
  const double size = std::abs(number);
  if (size >= 1e7) return fmt::format("{:.3g}", number);
  const int decimals = size == 0 || size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4;
  return fmt::format("{:.{}f}", number, decimals);
}

std::string to_text(const ParamValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const double number = std::get<double>(value);
  return number == std::floor(number) && std::abs(number) < 1e15
             ? std::to_string(static_cast<long long>(number))
             : to_text(number);
}

std::string to_text(const Params& params, std::string_view but) {
  std::string text;
  for (const auto& [name, value] : params) {
    if (name != but) text += (text.empty() ? "" : ", ") + name + " " + to_text(value);
  }
  return text;
}

std::string to_text(double number, const std::string& unit) {
  static constexpr std::array<Scale, 4> kTimes{
      {{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}}};
  static constexpr std::array<Scale, 4> kRates{
      {{1e9, " G/s"}, {1e6, " M/s"}, {1e3, " k/s"}, {1, " /s"}}};
  if (unit == "ns") return scaled(number, kTimes);
  if (unit == "1/s") return scaled(number, kRates);
  return to_text(number) + " " + unit;
}

}  // namespace dunlin::bench
