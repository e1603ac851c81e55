#pragma once

#include <cstddef>
#include <span>
#include <vector>

/// The statistics of a series of measured rounds. Medians and quantiles, because the machines on
/// which this runs are shared: a mean there tells more about the neighbours than about the code.
namespace dunlin::bench {

struct Summary {
  std::size_t rounds = 0;
  double min = 0;
  double p10 = 0;
  double median = 0;
  double p90 = 0;
  double max = 0;
};

/// The q-quantile (0 to 1) of a sorted, non-empty series, interpolated between neighbours.
[[nodiscard]] double quantile(std::span<const double> sorted, double q);

/// Throws Error if the series is empty or holds anything but finite numbers.
[[nodiscard]] Summary summarize(std::span<const double> series);

/// The ratio of each round's two neighbours in time, so that noise which hits both cancels out.
[[nodiscard]] std::vector<double> ratios(std::span<const double> values,
                                         std::span<const double> limits);

}  // namespace dunlin::bench
