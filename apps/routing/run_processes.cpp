#include <memory>

#include <fmt/format.h>

#include <dunlin/run.hpp>

#include "command.hpp"
#include "routing/processes.hpp"
#include "routing/router.hpp"
#include "routing/run.hpp"
#include "routing/station.hpp"

namespace dunlin::routing {

namespace {

constexpr std::uint32_t kJoinTimeoutMs = 10'000;  // and, as each connects to each, for a member:
constexpr std::uint32_t kJoinTimeoutPerMemberMs = 400;
constexpr std::uint32_t kJoinTimeoutOfHostsMs = 60'000;  // somebody starts them by hand
// A death is noticed at once; this is for a stop. A member is silent while it maps the tables of
// all others, and waits for its turn on the cores.
constexpr std::uint32_t kSilenceTimeoutMs = 5'000;
constexpr std::uint32_t kSilenceTimeoutPerMemberMs = 100;
constexpr std::uint32_t kLeaveTimeoutMs = 5'000;
constexpr std::uint32_t kLastWordsMs = 500;  // when a run is given up
constexpr std::uint32_t kLookUpMs = 50;      // how often the station asks for signals

[[noreturn]] void fail(bool refused, const std::string& sentence) {
  if (refused) throw app::BadInput(sentence);
  throw Error(sentence);
}

/// A group of processes that runs a plan, as each of them sees it.
class Crew {
 public:
  Crew(const Plan& plan, const app::Cluster& cluster)
      : plan_(plan), cluster_(cluster), group_(cluster.group("routing")) {}

  [[nodiscard]] std::unique_ptr<Fabric> join(std::uint32_t rank) const {
    const std::uint32_t base_ms = plan_.hosts() > 1 ? kJoinTimeoutOfHostsMs : kJoinTimeoutMs;
    return cluster_.join(
        {.group = group_,
         .members = plan_.members(),
         .rank = rank,
         .timeout_ms = base_ms + plan_.members() * kJoinTimeoutPerMemberMs,
         .silence_timeout_ms = kSilenceTimeoutMs + plan_.members() * kSilenceTimeoutPerMemberMs});
  }

  /// The network is told by the first router of a host without a station.
  void start_routers(Processes& processes, const NetworkListener& network) const {
    for (std::uint32_t rank = 0; rank < plan_.routers(); ++rank) {
      if (plan_.host_of(rank) != cluster_.host()) continue;
      processes.start([this, rank, network] {
        run_router(rank, rank == cluster_.host() ? network : NetworkListener{});
      });
    }
  }

 private:
  void run_router(std::uint32_t rank, const NetworkListener& network) const {
    const auto fabric = join(rank);
    if (network) network(cluster_.describe(*fabric));
    Table<Row> table(fabric, {.name = "routing"});
    Router router(table, plan_);
    while (!run_until(
        table, [&] { return router.finished(); }, kLookUpMs)) {
    }
    if (!router.failure().empty()) fail(router.refused(), router.failure());
  }

  const Plan& plan_;
  const app::Cluster& cluster_;
  std::string group_;
};

std::string stopped_by(const char* signal) { return fmt::format("stopped by {}", signal); }

/// Until the last order has arrived everywhere: then they leave.
void see_them_off(Table<Row>& table, const Plan& plan, std::uint32_t timeout_ms) {
  const auto gone = [&] {
    for (std::uint32_t router = 0; router < plan.routers(); ++router) {
      if (table.alive(router)) return false;
    }
    return true;
  };
  static_cast<void>(run_until(table, gone, timeout_ms));
}

Finish run_station(const std::unique_ptr<Fabric>& fabric, const Plan& plan,
                   const Listener& listener, SignalGuard& signals) {
  Table<Row> table(fabric, {.name = "routing"});
  Station station(table, plan, listener);
  while (!run_until(
      table, [&] { return station.finished(); }, kLookUpMs)) {
    if (const char* signal = signals.caught()) station.stop(stopped_by(signal));
  }
  const bool failed = !station.failure().empty();
  see_them_off(table, plan, failed ? kLastWordsMs : kLeaveTimeoutMs);
  if (failed) fail(station.refused(), station.failure());
  return {station.tables()};
}

}  // namespace

Finish run_on_processes(const Plan& plan, const app::Cluster& cluster, const Listener& listener,
                        const NetworkListener& network) {
  Processes processes;
  const Crew crew(plan, cluster);
  crew.start_routers(processes, {});
  try {
    const auto fabric = crew.join(plan.station());
    SignalGuard signals;  // until here a signal ends us as it ends anybody, and with us the routers
    if (network) network(cluster.describe(*fabric));
    Finish finish = run_station(fabric, plan, listener, signals);
    processes.finish(kLeaveTimeoutMs);
    if (const char* signal = signals.caught()) throw Error(stopped_by(signal));
    return finish;
  } catch (const app::BadInput&) {
    throw;
  } catch (const Error&) {
    // A router that could not start knows better what went wrong than we, who missed it.
    processes.complain();
    throw;
  }
}

void serve_on_processes(const Plan& plan, const app::Cluster& cluster,
                        const NetworkListener& network) {
  Processes processes;
  const Crew crew(plan, cluster);
  crew.start_routers(processes, network);
  processes.demand_success();
}

}  // namespace dunlin::routing
