#include "routing/cost.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "command.hpp"
#include "text.hpp"

namespace dunlin::routing {

using app::BadInput;
using app::in_quotes;

Cost cost_from(double value, std::string_view place) {
  if (!std::isfinite(value)) {
    throw BadInput(fmt::format("{}: a cost must be a finite number, this is {}", place, value));
  }
  if (value < 0) throw BadInput(fmt::format("{}: a cost cannot be negative ({})", place, value));
  if (value > to_double(kMaxCost)) {
    throw BadInput(
        fmt::format("{}: {} is more than the largest cost, {}", place, value, show_cost(kMaxCost)));
  }
  const auto cost = static_cast<Cost>(std::llround(value * static_cast<double>(kCostUnit)));
  if (cost == 0 && value > 0) {
    throw BadInput(
        fmt::format("{}: {} is less than the smallest cost but 0, {}", place, value, show_cost(1)));
  }
  return cost;
}

Cost cost_from_text(std::string_view text, std::string_view place) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc::result_out_of_range) {
    throw BadInput(fmt::format("{}: {} is out of range for a cost", place, in_quotes(text)));
  }
  if (failure != std::errc{} || end != text.data() + text.size()) {
    throw BadInput(fmt::format("{}: {} is not a number", place, in_quotes(text)));
  }
  return cost_from(value, place);
}

std::string show_cost(Cost cost) {
  if (cost == kNoLink) return "lost";
  std::string text = fmt::format("{}.{:06}", cost / kCostUnit, cost % kCostUnit);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

double to_double(Cost cost) noexcept {
  return static_cast<double>(cost) / static_cast<double>(kCostUnit);
}

}  // namespace dunlin::routing
