#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "routing/check.hpp"
#include "routing/record.hpp"
#include "routing/rows.hpp"

/// The member that is no router: orders one stage after the other, and collects what the routers
/// report. Everything it does happens in the table's poll().
namespace dunlin::routing {

class Station {
 public:
  /// Told of each stage, the start first, as soon as all routers have settled.
  using Listener = std::function<void(const EventRecord&)>;

  /// Before the table's first poll(). `plan` and `table` outlive it.
  Station(Table<Row>& table, const Plan& plan, Listener listener);
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  /// All routers have shown their routes, or one has failed.
  [[nodiscard]] bool finished() const noexcept { return !failure_.empty() || !tables_.empty(); }
  /// A sentence that names the router that failed; empty if none did.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// What each router has installed at the end.
  [[nodiscard]] const std::vector<Installed>& tables() const noexcept { return tables_; }

 private:
  void order(std::uint32_t stage);
  void collect(std::uint32_t stage);
  void collect_tables();

  Table<Row>& table_;
  const Plan& plan_;
  Listener listener_;
  std::vector<std::uint32_t> routers_;
  std::uint64_t ordered_ns_ = 0;
  std::uint64_t run_began_ns_ = 0;
  std::vector<Installed> tables_;
  std::string failure_;
};

}  // namespace dunlin::routing
