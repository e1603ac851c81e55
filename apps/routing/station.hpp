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

  /// To be made before the table's first poll(). `plan` and `table` must outlive it.
  Station(Table<Row>& table, const Plan& plan, Listener listener);
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  /// Ends the run, which then has failed with this sentence; all routers are told.
  void stop(const std::string& why);
  /// Whether all routers have shown their routes, or one has failed: they have been told to leave.
  [[nodiscard]] bool finished() const noexcept { return !failure_.empty() || !tables_.empty(); }
  /// A sentence that names the router that failed; empty if none did.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// The forwarding table of each router at the end.
  [[nodiscard]] const std::vector<Installed>& tables() const noexcept { return tables_; }

 private:
  void order(std::uint32_t stage);
  void give_up(const std::string& why);
  void wait_for_news_of_the_lost();
  [[nodiscard]] bool report_is_due() const noexcept;
  void believe_report();
  [[nodiscard]] bool news() const noexcept;
  void note_arrivals();
  void collect(std::uint32_t stage);
  [[nodiscard]] std::uint64_t put_on_our_clock(std::vector<Outcome>& outcomes) const;
  void collect_tables();

  Table<Row>& table_;
  const Plan& plan_;
  Listener listener_;
  std::vector<std::uint32_t> routers_;
  std::uint32_t stage_ = 0;
  std::uint64_t ordered_ns_ = 0;
  std::vector<std::uint64_t> arrived_ns_;  // when the news came that a router has settled, or 0
  std::uint64_t run_began_ns_ = 0;
  std::uint64_t report_due_ns_ = UINT64_MAX;
  std::vector<Installed> tables_;
  std::string failure_;
};

}  // namespace dunlin::routing
