#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bench/harness/statistics.hpp"

/// A figure as it is reported: what was measured under which parameters, and beside it the raw
/// operation that bounds it.
namespace dunlin::bench {

enum class Better { lower, higher };

/// A rate, as its unit tells, is better if it is higher.
[[nodiscard]] inline Better better_of(std::string_view unit) noexcept {
  return unit.ends_with("/s") ? Better::higher : Better::lower;
}

using ParamValue = std::variant<double, std::string>;
using Params = std::vector<std::pair<std::string, ParamValue>>;

/// A bound that the value, or its ratio to the limit, should keep.
struct Goal {
  enum class On { value, ratio };
  On on = On::ratio;
  double bound = 1;
};

struct Result {
  Params params = {};
  std::string unit = {};  // "ns", "1/s", "%"
  Better better = better_of(unit);
  Summary value = {};
  std::string limit_name = {};  // "bare ping-pong"
  std::optional<Summary> limit = {};
  std::optional<Summary> ratio = {};  // value to limit, round by round
  std::optional<Goal> goal = {};
  std::optional<double> published = {};
  std::string note = {};

  [[nodiscard]] std::optional<bool> reached() const;
};

/// Fills value, limit and ratio from rounds taken in turns; only the value if the limit was not
/// measured, and nothing where nothing was recorded, as at the hosts that member 0 of the team does
/// not belong to.
void compare(Result& result, std::span<const double> values, std::string limit_name,
             std::span<const double> limits);
/// The result with these.
[[nodiscard]] Result compared(Result result, std::span<const double> values, std::string limit_name,
                              std::span<const double> limits);

/// For a figure whose limit is a rate while what was measured is nanoseconds.
[[nodiscard]] std::vector<double> per_second(std::span<const double> ns);

/// That goal of the ratio, if there is one.
[[nodiscard]] inline std::optional<Goal> ratio_goal(std::optional<double> bound) {
  return bound ? std::optional(Goal{.bound = *bound}) : std::nullopt;
}

/// A number in three or four digits: "1.24", "157", "2.1e+09" only where nothing else is short.
[[nodiscard]] std::string to_text(double number);
[[nodiscard]] std::string to_text(const ParamValue& value);
/// "processes 4, policy spin": all but one.
[[nodiscard]] std::string to_text(const Params& params, std::string_view but = {});
/// With its unit, scaled: 1530 "ns" is "1.53 us", 1.1e8 "1/s" is "110 M/s".
[[nodiscard]] std::string to_text(double number, const std::string& unit);

}  // namespace dunlin::bench
