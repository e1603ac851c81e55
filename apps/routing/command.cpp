#include "command.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <dunlin/fabric/sim.hpp>

#include "cluster/cluster.hpp"
#include "output_file.hpp"
#include "report/page.hpp"
#include "routing/json_output.hpp"
#include "routing/print.hpp"
#include "routing/run.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "value_option.hpp"

namespace dunlin::app {

namespace {

using namespace routing;

constexpr const char* kDescription =
    "Route over real networks: each router is a process that keeps its links' costs in a row of a\n"
    "shared table, and computes again only when a change could alter one of its shortest paths.";

constexpr const char* kFooter = R"(
Topologies: files in node-link JSON (those of the topohub package, for example) or GraphML, or
hub-ring:N, in which a hub with cheap links serves a ring of N-1 routers.

A script has one event a line; routers go by id or name, names with blanks in double quotes:
  cost "New York" Chicago 1500     both directions of a link; one: cost Denver -> Seattle 12.5
  down Denver Seattle              the link is lost
  up Denver Seattle                it is back, as dear as before; or: up Denver Seattle 99

Columns: time from the write of the change until the first router away from the link, and the last
router of all, had installed their new routes; how long the last one computed; how many routers
computed, and how many could tell that they need not.

Several hosts: the same command on each, with --host from 0 on; host 0 plays the events, prints and
checks. Times are then those on the clock of host 0, from its order until it hears of the routes.

Exit status: 0 all routers agree with an independent computation (Boost.Graph); 1 they do not;
2 wrong input; 3 it could not run.

Examples:
  dunlin routing --topology Abilene.json
  dunlin routing --topology Abilene.json --topology Geant2012.json --events 50 --report run.html
  dunlin routing --topology hub-ring:16 --fabric sim --profile ib40-2015 --json run.json
  dunlin routing --topology Abilene.json --fabric tcp
  dunlin routing --topology Abilene.json --fabric tcp --rendezvous 10.0.0.1:7700 --secret-file secret
                 --hosts 3 --host 0)";

struct Options {
  std::vector<std::string> topologies;
  std::string cost = "";
  std::optional<std::uint64_t> events;
  std::string script;
  std::uint64_t seed = 1;
  app::FabricOptions fabric;
  std::string profile;
  std::string json_file;
  std::string report_file;
};

constexpr std::uint32_t kDefaultEvents = 10;
constexpr const char* kDefaultProfile = "ib100";

void check_files(const Options& options) {
  std::vector<NamedFile> read;
  std::vector<NamedFile> written;
  for (const std::string& file : options.topologies) read.push_back({"--topology", file});
  if (!options.script.empty()) read.push_back({"--script", options.script});
  if (!options.json_file.empty()) written.push_back({"--json", options.json_file});
  if (!options.report_file.empty()) written.push_back({"--report", options.report_file});
  demand_distinct(written, read);
  for (const NamedFile& file : written) demand_writable(file);
}

void check(const Options& options) {
  if (options.fabric.network != "sim" && !options.profile.empty()) {
    throw BadInput("--profile: only the simulator has profiles; use it with --fabric sim");
  }
  if (!options.script.empty() && options.events) {
    throw BadInput("--script and --events: the events come from one of them, not from both");
  }
  if (!options.script.empty() && options.topologies.size() > 1) {
    throw BadInput("--script: it names routers of one network; use it with one --topology");
  }
  if (options.events.value_or(0) > kMaxEvents) {
    throw BadInput(
        fmt::format("--events {}: at most {} (kMaxEvents)", *options.events, kMaxEvents));
  }
  check_files(options);
}

/// A launcher gives all hosts the same options; a user who says which host this is means them.
void check_host(const Options& options, const Cluster& cluster) {
  const bool writes = !options.json_file.empty() || !options.report_file.empty();
  if (cluster.host() == 0 || !writes || !options.fabric.host) return;
  throw BadInput("--json and --report: only host 0 has something to write");
}

/// The name of the simulator's profile, checked; empty on real fabrics.
std::string choose_profile(const Options& options) {
  if (options.fabric.network != "sim") return {};
  try {
    return sim::profile(options.profile.empty() ? kDefaultProfile : options.profile).name;
  } catch (const Error& error) {
    throw BadInput(fmt::format("--profile {}: {}", in_quotes(options.profile), error.what()));
  }
}

struct Job {
  Topology topology;
  std::vector<LinkEvent> events;
};

std::vector<Job> load_jobs(const Options& options, const Cluster& cluster) {
  const CostRule rule = options.cost.empty() ? CostRule{} : CostRule::parse(options.cost);
  std::vector<Job> jobs;
  for (const std::string& name : options.topologies) {
    Topology topology = load_topology(name, rule);
    auto events =
        options.script.empty()
            ? random_events(topology,
                            static_cast<std::uint32_t>(options.events.value_or(kDefaultEvents)),
                            options.seed)
            : read_script(options.script, topology);
    if (topology.size() < cluster.hosts()) {
      throw BadInput(fmt::format("--hosts {}: {} has {} routers, and each host needs one",
                                 cluster.hosts(), topology.name, topology.size()));
    }
    jobs.push_back({std::move(topology), std::move(events)});
  }
  return jobs;
}

std::string place_text(const Job& job, const Cluster& cluster, const std::string& profile) {
  if (cluster.simulated()) return fmt::format("simulated {}", profile);
  const std::string processes = fmt::format("{} processes", job.topology.size() + 1);
  return cluster.hosts() == 1 ? processes
                              : fmt::format("{} on {} hosts", processes, cluster.hosts());
}

RunRecord play(const Job& job, const Options& options, const Cluster& cluster,
               const std::string& profile, Watch& watch) {
  RunRecord run;
  run.topology = job.topology;
  run.fabric = cluster.fabric();
  run.profile = profile;
  run.hosts = cluster.hosts();
  if (options.script.empty() || cluster.simulated()) run.seed = options.seed;
  say(heading(job.topology, place_text(job, cluster, profile), job.events.size()));

  bool started = false;
  const auto listener = [&](const EventRecord& record) {
    if (!started) {
      say(columns());
      run.start = record;
    } else {
      run.events.push_back(record);
    }
    started = true;
    say(event_line(job.topology, record, run.events.size()));
  };
  const auto on_network = [&](const std::string& network) {
    run.network = network;
    say(fmt::format("  network: {}\n", network));
  };
  const Plan plan(job.topology, job.events, cluster.hosts());
  const Finish finish = cluster.simulated()
                            ? run_on_sim(plan, profile, options.seed, listener)
                            : run_on_processes(plan, cluster, listener, on_network, &watch);
  run.verdict = routing::check(
      job.topology, costs_after(job.topology, job.events, job.events.size()), finish.tables);
  say(conclusion(run));
  return run;
}

void serve(const Job& job, const Cluster& cluster, Watch& watch) {
  say(heading(job.topology, place_text(job, cluster, {}), job.events.size()));
  const Plan plan(job.topology, job.events, cluster.hosts());
  const auto on_network = [](const std::string& network) {
    say(fmt::format("  network: {}\n", network));
  };
  serve_on_processes(plan, cluster, on_network, &watch);
  say(fmt::format("  Host {} has done its part; host 0 has the results.\n", cluster.host()));
}

void run_routing(const Options& options) {
  check(options);
  const Cluster cluster(options.fabric);
  check_host(options, cluster);
  const std::string profile = choose_profile(options);
  const std::vector<Job> jobs = load_jobs(options, cluster);  // all is read before anything runs
  std::vector<Plan> plans;
  for (const Job& job : jobs) plans.emplace_back(job.topology, job.events, cluster.hosts());
  const std::unique_ptr<Watch> watch = agree(plans, cluster);
  std::vector<RunRecord> runs;
  watch->guard([&] {
    for (const Job& job : jobs) {
      if (&job != &jobs.front()) say("\n");
      if (cluster.host() > 0) {
        serve(job, cluster, *watch);
      } else {
        runs.push_back(play(job, options, cluster, profile, *watch));
      }
    }
  });
  if (cluster.host() > 0) return;
  if (!options.json_file.empty()) write_file(options.json_file, to_json(runs, 1) + "\n");
  if (!options.report_file.empty())
    write_file(options.report_file, report_page("routing", to_json(runs, -1)));
  demand_agreement(runs);
}

}  // namespace

void add_routing(CLI::App& program) {
  CLI::App* command = program.add_subcommand("routing", kDescription);
  command->footer(kFooter);
  const auto options = std::make_shared<Options>();
  add_text(*command, "--topology", options->topologies, "FILE|hub-ring:N",
           "Network to route over; may be repeated")
      ->required();
  add_text(*command, "--cost", options->cost, "RULE",
           "What a link costs: unit, length, or an attribute of the links by name\n"
           "(default: length where every link has one, else unit)");
  add_number(*command, "--events", options->events, "N",
             "How many random link events (default: 10)");
  add_text(*command, "--script", options->script, "FILE", "Events from a file instead");
  add_number(*command, "--seed", options->seed, "S", "Of the random events, and of the simulator")
      ->capture_default_str();
  add_fabric_options(
      *command, options->fabric,
      "shm: a process for each router; tcp: the same between hosts; auto: shm within each\n"
      "host, tcp between them; ofi: over libfabric's networks; verbs: over RDMA devices;\n"
      "sim: simulated, in virtual time",
      {.join = "10, and 0.4 for each router; 60 for hosts",
       .silence = "5, and 0.1 for each router"});
  add_text(*command, "--profile", options->profile, "NAME",
           "The network that sim simulates (default: ib100)");
  add_text(*command, "--json", options->json_file, "FILE", "Write all figures to FILE");
  add_text(*command, "--report", options->report_file, "FILE.html",
           "Write one self-contained page to FILE");
  command->callback([options] { run_routing(*options); });
}

}  // namespace dunlin::app
