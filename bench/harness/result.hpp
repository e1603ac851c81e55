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

using ParamValue = std::variant<double, std::string>;
using Params = std::vector<std::pair<std::string, ParamValue>>;

/// A bound that the value, or its ratio to the limit, should keep.
struct Goal {
  enum class On { value, ratio };
  On on = On::ratio;
  double bound = 1;
};

struct Result {
  std::string name;  // of the figure, e.g. "detection"
  Params params = {};
  std::string unit;  // "ns", "1/s", "%"
  Better better = Better::lower;
  Summary value = {};
  std::string limit_name = {};  // "bare ping-pong"
  std::optional<Summary> limit = {};
  std::optional<Summary> ratio = {};  // value to limit, round by round
  std::optional<Goal> goal = {};
  std::optional<double> published = {};
  std::string note = {};

  [[nodiscard]] std::optional<bool> reached() const;
};

/// Fills value, limit and ratio from rounds taken in turns; nothing where nothing was recorded, as
/// at the hosts that member 0 of the team does not belong to.
void compare(Result& result, std::span<const double> values, std::string limit_name,
             std::span<const double> limits);

/// A number in three or four digits: "1.24", "157", "2.1e+09" only where nothing else is short.
[[nodiscard]] std::string to_text(double number);
[[nodiscard]] std::string to_text(const ParamValue& value);
/// "processes 4, policy spin": all but one.
[[nodiscard]] std::string to_text(const Params& params, std::string_view but = {});
/// With its unit, scaled: 1530 "ns" is "1.53 us", 1.1e8 "1/s" is "110 M/s".
[[nodiscard]] std::string to_text(double number, const std::string& unit);

}  // namespace dunlin::bench
