#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "routing/compute_model.hpp"
#include "routing/paths.hpp"
#include "routing/rows.hpp"

/// One router: keeps its own links' costs in its row and shortest paths to all others installed.
/// Everything it does happens in the table's poll().
namespace dunlin::routing {

class Router {
 public:
  /// To be made before the table's first poll(). `plan` and `table` must outlive it. The model is
  /// for simulated CPUs.
  Router(Table<Row>& table, const Plan& plan, ComputeModel model = {});
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// The station has said that the run is over, or is lost.
  [[nodiscard]] bool finished() const noexcept { return finished_ || !failure_.empty(); }
  /// A sentence that says why the run did not come to its end; empty if it did.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// The user who gave the hosts their input caused the failure.
  [[nodiscard]] const Paths& paths() const noexcept { return paths_; }

 private:
  void lose(std::uint32_t member, std::string_view why);
  void obey();
  void write_changes(std::uint32_t stage);
  void announce();
  void install();
  void watch();
  void settle();
  void show();
  [[nodiscard]] std::uint32_t ordered() const noexcept;
  [[nodiscard]] bool paths_may_change() const noexcept;
  [[nodiscard]] bool seen_all_of(std::uint32_t stage) const noexcept;
  [[nodiscard]] bool may_announce() const noexcept;
  [[nodiscard]] bool may_settle() const noexcept;

  Table<Row>& table_;
  const Plan& plan_;
  const Topology& topology_;
  const ComputeModel model_;
  const std::vector<std::uint32_t> station_only_;
  Paths paths_;
  std::vector<Cost> costs_;
  Outcome outcome_;
  std::uint32_t obeyed_ = 0;
  std::uint32_t unannounced_ = 0;  // the stage of costs that we wrote and have not announced
  std::uint32_t settled_ = 0;
  bool finished_ = false;
  std::string failure_;
};

}  // namespace dunlin::routing
