#include <memory>

#include <fmt/format.h>

#include <dunlin/fabric/shm.hpp>
#include <dunlin/run.hpp>

#include "group_name.hpp"
#include "routing/processes.hpp"
#include "routing/router.hpp"
#include "routing/run.hpp"
#include "routing/station.hpp"

namespace dunlin::routing {

namespace {

constexpr std::uint32_t kJoinTimeoutMs = 10'000;  // and, as each connects to each, for a member:
constexpr std::uint32_t kJoinTimeoutPerMemberMs = 400;
// A death is noticed at once; this is for a stop. A member is silent while it maps the tables of
// all others, and waits for its turn on the cores.
constexpr std::uint32_t kSilenceTimeoutMs = 5'000;
constexpr std::uint32_t kSilenceTimeoutPerMemberMs = 100;
constexpr std::uint32_t kLeaveTimeoutMs = 5'000;
constexpr std::uint32_t kLookUpMs = 50;  // how often the station asks for signals

std::unique_ptr<Fabric> join(const Plan& plan, const std::string& group, std::uint32_t rank) {
  return shm::join(
      {.group = group,
       .members = plan.members(),
       .rank = rank,
       .timeout_ms = kJoinTimeoutMs + plan.members() * kJoinTimeoutPerMemberMs,
       .silence_timeout_ms = kSilenceTimeoutMs + plan.members() * kSilenceTimeoutPerMemberMs});
}

void run_router(const Plan& plan, const std::string& group, std::uint32_t rank) {
  const auto fabric = join(plan, group, rank);
  Table<Row> table(fabric, {.name = "routing"});
  Router router(table, plan);
  const auto over = [&] { return router.finished() || !table.alive(plan.station()); };
  while (!run_until(table, over, kLookUpMs)) {
  }
}

void end_if_asked(SignalGuard& signals) {
  if (const char* signal = signals.caught()) throw Error(fmt::format("stopped by {}", signal));
}

Finish run_station(std::unique_ptr<Fabric> fabric, const Plan& plan, const Listener& listener,
                   SignalGuard& signals) {
  Table<Row> table(fabric, {.name = "routing"});
  Station station(table, plan, listener);
  while (!run_until(
      table, [&] { return station.finished(); }, kLookUpMs)) {
    end_if_asked(signals);
  }
  if (!station.failure().empty()) throw Error(station.failure());
  return {station.tables()};
}

}  // namespace

Finish run_on_shm(const Plan& plan, const Listener& listener) {
  Processes processes;
  const std::string group = app::fresh_group("routing");
  for (std::uint32_t rank = 0; rank < plan.routers(); ++rank) {
    processes.start([&plan, &group, rank] { run_router(plan, group, rank); });
  }
  try {
    auto fabric = join(plan, group, plan.station());
    SignalGuard signals;  // until here a signal ends us as it ends anybody, and with us the routers
    Finish finish = run_station(std::move(fabric), plan, listener, signals);
    processes.finish(kLeaveTimeoutMs);
    end_if_asked(signals);
    return finish;
  } catch (const Error& error) {
    // A router that could not start knows better what went wrong than we, who missed it.
    const std::string complaint = processes.complaint();
    throw Error(complaint.empty() ? error.what() : complaint);
  }
}

}  // namespace dunlin::routing
