#include "bench/harness/statistics.hpp"

#include <algorithm>
#include <cmath>

#include <dunlin/error.hpp>

namespace dunlin::bench {

double quantile(std::span<const double> sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Summary summarize(std::span<const double> series) {
  if (series.empty()) throw Error("bench: a series without a single round cannot be summarized");
  if (!std::ranges::all_of(series, [](double x) { return std::isfinite(x); })) {
    throw Error("bench: a round measured something that is not a finite number");
  }
  std::vector<double> sorted(series.begin(), series.end());
  std::ranges::sort(sorted);
  return {.rounds = sorted.size(),
          .min = sorted.front(),
          .p10 = quantile(sorted, 0.1),
          .median = quantile(sorted, 0.5),
          .p90 = quantile(sorted, 0.9),
          .max = sorted.back()};
}

std::vector<double> ratios(std::span<const double> values, std::span<const double> limits) {
  if (values.size() != limits.size()) {
    throw Error("bench: " + std::to_string(values.size()) + " rounds of values against " +
                std::to_string(limits.size()) + " rounds of the limit");
  }
  std::vector<double> result(values.size());
  std::ranges::transform(values, limits, result.begin(), std::divides<>());
  return result;
}

}  // namespace dunlin::bench
