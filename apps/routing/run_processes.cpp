#include <array>
#include <chrono>
#include <memory>

#include <fmt/format.h>
#include <poll.h>

#include <dunlin/run.hpp>

#include "command.hpp"
#include "routing/processes.hpp"
#include "routing/router.hpp"
#include "routing/run.hpp"
#include "routing/station.hpp"
#include "routing/station_line.hpp"
#include "signals.hpp"

namespace dunlin::routing {

namespace {

using app::SignalGuard;

constexpr std::uint32_t kJoinTimeoutMs = 10'000;
constexpr std::uint32_t kJoinTimeoutPerMemberMs = 400;  // each connects to each
constexpr std::uint32_t kAgreeTimeoutMs = 60'000;       // somebody starts the hosts by hand
// A death is noticed at once; this is for a stop. A member is silent while it maps the tables of
// all others, and waits for its turn on the cores.
constexpr std::uint32_t kSilenceTimeoutMs = 5'000;
constexpr std::uint32_t kSilenceTimeoutPerMemberMs = 100;
constexpr std::uint32_t kLeaveTimeoutMs = 5'000;
constexpr std::uint32_t kLastWordsMs = 500;   // when a run is given up
constexpr std::uint32_t kFarewellMs = 2'000;  // until the station has told the others
constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;
constexpr std::uint32_t kLookUpMs = 50;  // how often the station asks whether to stop

/// A group of processes that runs a plan, as each of them sees it.
class Crew {
 public:
  Crew(const Plan& plan, const app::Cluster& cluster)
      : plan_(plan), cluster_(cluster), group_(cluster.group("routing")) {}

  [[nodiscard]] std::unique_ptr<Fabric> join(std::uint32_t rank) const {
    return cluster_.join(
        {.group = group_,
         .members = plan_.members(),
         .rank = rank,
         .timeout_ms = kJoinTimeoutMs + plan_.members() * kJoinTimeoutPerMemberMs,
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
  void start_station(Processes& processes, StationLine& line) const {
    processes.start([this, &line] { run_station(line); });
  }

 private:
  void run_router(std::uint32_t rank, const NetworkListener& network) const;
  void run_station(StationLine& line) const;
  void see_routers_off(Table<Row>& table, std::uint32_t timeout_ms) const;

  const Plan& plan_;
  const app::Cluster& cluster_;
  std::string group_;
};

void Crew::run_router(std::uint32_t rank, const NetworkListener& network) const {
  const auto fabric = join(rank);
  if (network) network(cluster_.describe(*fabric));
  Table<Row> table(fabric, {.name = "routing"});
  Router router(table, plan_);
  while (!run_until(
      table, [&] { return router.finished(); }, kLookUpMs)) {
  }
  if (!router.failure().empty()) throw Error(router.failure());
}

void Crew::run_station(StationLine& line) const {
  const auto fabric = join(plan_.station());
  line.tell_network(cluster_.describe(*fabric));
  Table<Row> table(fabric, {.name = "routing"});
  Station station(table, plan_, [&line](const EventRecord& record) { line.tell_event(record); });
  while (!run_until(
      table, [&] { return station.finished(); }, kLookUpMs)) {
    if (const std::string why = line.asked_to_stop(); !why.empty()) station.stop(why);
  }
  const bool failed = !station.failure().empty();
  see_routers_off(table, failed ? kLastWordsMs : kLeaveTimeoutMs);
  if (failed) throw Error(station.failure());
  line.tell_tables(station.tables());
}

/// Polls until the last order has arrived everywhere: then the routers leave.
void Crew::see_routers_off(Table<Row>& table, std::uint32_t timeout_ms) const {
  const auto gone = [&] {
    for (std::uint32_t router = 0; router < plan_.routers(); ++router) {
      if (table.alive(router)) return false;
    }
    return true;
  };
  static_cast<void>(run_until(table, gone, timeout_ms));
}

/// poll() takes no notice of -1.
int descriptor_of(const app::Watch* watch) { return watch == nullptr ? -1 : watch->descriptor(); }

void sleep_until_either(int one, int other) {
  std::array<pollfd, 2> watched{{{one, POLLIN, 0}, {other, POLLIN, 0}}};
  static_cast<void>(poll(watched.data(), watched.size(), -1));
}

std::string stopped_by(const char* signal) { return fmt::format("stopped by {}", signal); }

/// Returns when all have ended well.
void supervise(Processes& processes, SignalGuard& signals, app::Watch* watch) {
  while (true) {
    processes.demand_health();
    if (const char* signal = signals.caught()) throw Error(stopped_by(signal));
    if (processes.all_ended()) return;
    if (watch != nullptr) watch->demand_others();
    processes.await_news({signals.descriptor(), descriptor_of(watch)});
  }
}

using Clock = std::chrono::steady_clock;
constexpr auto kNever = Clock::time_point::max();

/// Returns when the station has shown how it ended; passes on what the station tells.
std::vector<Installed> supervise_station(Processes& processes, SignalGuard& signals,
                                         StationLine& line, const Listener& listener,
                                         const NetworkListener& network, app::Watch* watch) {
  std::string stop;
  Clock::time_point give_up = kNever;
  while (!line.take_news(listener, network)) {
    processes.demand_health();
    if (processes.all_ended() && !line.take_news(listener, network)) {
      throw Error("the station has ended without a result");
    }
    if (watch != nullptr) watch->demand_others();
    if (const char* signal = signals.caught()) {
      const bool again = !stop.empty();
      stop = stopped_by(signal);
      if (again || !line.joined()) throw Error(stop);
      line.ask_to_stop(stop);
      give_up = Clock::now() + std::chrono::milliseconds(kFarewellMs);
    }
    if (Clock::now() >= give_up) throw Error(stop);
    const int timeout_ms = give_up == kNever ? -1 : static_cast<int>(kLookUpMs);
    processes.await_news({signals.descriptor(), line.descriptor(), descriptor_of(watch)},
                         timeout_ms);
  }
  processes.finish(kLeaveTimeoutMs);
  if (const char* signal = signals.caught(); signal != nullptr && stop.empty()) {
    stop = stopped_by(signal);
  }
  if (!stop.empty()) throw Error(stop);
  return line.take_tables();
}

}  // namespace

Finish run_on_processes(const Plan& plan, const app::Cluster& cluster, const Listener& listener,
                        const NetworkListener& network, app::Watch* watch) {
  SignalGuard signals;
  StationLine line(plan);
  Processes processes;
  const Crew crew(plan, cluster);
  crew.start_routers(processes, {});
  crew.start_station(processes, line);
  try {
    return {supervise_station(processes, signals, line, listener, network, watch)};
  } catch (const Error& error) {
    // Nobody waits for a station that is still joining; otherwise it tells the other hosts why.
    line.ask_to_stop(error.what());
    if (line.joined()) processes.finish(kFarewellMs);
    throw;
  }
}

void serve_on_processes(const Plan& plan, const app::Cluster& cluster,
                        const NetworkListener& network, app::Watch* watch) {
  SignalGuard signals;
  Processes processes;
  const Crew crew(plan, cluster);
  crew.start_routers(processes, network);
  supervise(processes, signals, watch);
}

std::unique_ptr<app::Watch> agree(const std::vector<Plan>& plans, const app::Cluster& cluster) {
  app::Intent intent{.what = "routing", .besides = "links, costs or events"};
  for (const Plan& plan : plans) {
    intent.text += (intent.text.empty() ? "" : "; ") + plan.text();
    intent.hash = intent.hash * kHashFactor + plan.hash();
  }
  SignalGuard signals;
  auto watch = std::make_unique<app::Watch>(cluster, intent, kAgreeTimeoutMs);
  while (true) {
    watch->demand_others();
    if (const char* signal = signals.caught()) throw Error(stopped_by(signal));
    if (watch->all_here()) return watch;
    sleep_until_either(signals.descriptor(), watch->descriptor());
  }
}

}  // namespace dunlin::routing
