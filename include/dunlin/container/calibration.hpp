#pragma once

#include <cstdint>
#include <memory>

#include <dunlin/container/containers.hpp>
#include <dunlin/container/cost.hpp>

namespace dunlin {

namespace container {
struct CalibrationState;
}

/// A Calibration measures the component costs of a fabric: round trips from this member to another,
/// which polls meanwhile. One thread uses it, the one that polls.
///
///     dunlin::Calibration calibration(containers);                  // at each member
///     if (rank == 0) containers.set_costs(calibration.measure(1));  // the others poll
class Calibration {
 public:
  /// Makes a calibration. Does not wait for the other members; throws Error.
  explicit Calibration(Containers& containers);
  ~Calibration();
  Calibration(const Calibration&) = delete;
  Calibration& operator=(const Calibration&) = delete;

  /// Waits while it measures all costs but shared_word_ns: medians of `batches` batches of some
  /// round trips each; on shared memory this takes some tenths of a second. Throws Error if
  /// `target` is this member, or is lost.
  [[nodiscard]] ComponentCosts measure(Rank target, std::uint32_t batches = 100);
  /// Measures a fetch-and-add on a word of `target`, to which other members may add meanwhile. If n
  /// members call this at once, shared_word_ns is (the mean result - fetch_add_ns) / (n - 1).
  [[nodiscard]] double measure_shared_word(Rank target, std::uint32_t batches = 100);

 private:
  std::unique_ptr<container::CalibrationState> state_;
};

}  // namespace dunlin
