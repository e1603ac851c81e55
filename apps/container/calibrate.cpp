#include "container/calibrate.hpp"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "container/container_member.hpp"
#include "output_file.hpp"
#include "standard_output.hpp"
#include "team/cores.hpp"
#include "team/team_group.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr std::uint32_t kMostClients = 32;

std::string machine_text() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown processor";
}

/// The last member of the team is the target, member 0 measures, and then all but the target add to
/// one word.
ComponentCosts measure_as(Member& me, const TeamGroup& group, std::uint32_t batches) {
  ContainerMember here(me, group.join(me.rank()));
  const auto poll = [&] { here.containers.poll(); };
  const Rank target = me.size() - 1;
  if (me.rank() == 0) me.note(group.description(*here.fabric));
  me.meet(poll);
  ComponentCosts costs;
  if (me.rank() == 0) costs = here.calibration.measure(target, batches);
  me.meet(poll);
  const double mine =
      me.rank() == target ? 0 : here.calibration.measure_shared_word(target, batches);
  double sum = 0;
  for (const std::string& word : me.exchange(fmt::format("{}", mine), poll)) sum += std::stod(word);
  const std::uint32_t clients = me.size() - 1;
  if (clients > 1)
    costs.shared_word_ns = std::max(sum / clients - costs.fetch_add_ns, 0.0) / (clients - 1);
  me.meet(poll);
  return costs;
}

struct Options {
  FabricOptions network;
  std::uint64_t clients = 2;
  std::uint64_t batches = 200;
  std::string output;
};

void run_calibrate(const Options& options) {
  if (options.clients == 0 || options.clients > kMostClients)
    throw BadInput(fmt::format("--clients {}: 1 to {}", options.clients, kMostClients));
  if (options.batches == 0 || options.batches > 1'000'000)
    throw BadInput(fmt::format("--batches {}: 1 to 1000000", options.batches));
  if (options.network.network == "sim")
    throw BadInput("--fabric sim: a simulator's costs are those of its profile");
  if (!options.output.empty()) demand_writable({"--output", options.output});
  const Calibrated done = calibrate(options.network, static_cast<std::uint32_t>(options.clients),
                                    static_cast<std::uint32_t>(options.batches));
  say(fmt::format("{}\n\n", done.measured_on));
  for_each_cost(done.costs, [](const std::string&, const std::string& words, double ns) {
    say(fmt::format("  {:<24}{:>12.2f} ns\n", words, ns));
  });
  if (options.clients == 1) say("  (one client: nothing is known of a word that several use)\n");
  if (options.output.empty()) return;
  write_file(options.output, text_of(done.costs, done.measured_on));
  say(fmt::format("\nPrograms load {} by dunlin::load_costs().\n", options.output));
}

}  // namespace

Calibrated calibrate(const FabricOptions& network, std::uint32_t clients, std::uint32_t batches) {
  check(network);
  const TeamGroup group(Cluster(network), {.name = "calibrate", .members = clients + 1});
  Team team(group.team(clients + 1));
  team.run([&](Member& me) {
    const ComponentCosts costs = measure_as(me, group, batches);
    if (me.rank() != 0) return;
    for_each_cost(costs,
                  [&](const std::string&, const std::string&, double ns) { me.record(0, ns); });
  });
  Calibrated done;
  const auto recorded = team.series(0);
  std::size_t next = 0;
  if (!recorded.empty())
    for_each_cost(done.costs, [&](const std::string&, const std::string&, double& cost) {
      cost = recorded[next++];
    });
  done.measured_on = fmt::format("{}; {}, {} cores, {} client{}", team.note(), machine_text(),
                                 usable_cores().size(), clients, clients == 1 ? "" : "s");
  return done;
}

void add_calibrate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("calibrate",
                                             "Measure what the operations of a fabric cost here, "
                                             "for the predictions of containers: round\n"
                                             "trips between processes, which poll all the time.");
  command->footer(
      "\nPrograms give the file to their containers (docs/cost-model.md); `dunlin explain "
      "--costs`\n"
      "shows what a call then costs.\n\n"
      "Examples:\n  dunlin calibrate --output costs.json\n"
      "  dunlin calibrate --fabric tcp --clients 4 --output tcp.json");
  const auto options = std::make_shared<Options>();
  add_fabric_options(*command, options->network,
                     "shm: processes of this host; tcp: over sockets; ofi: over libfabric's\n"
                     "networks; verbs: over RDMA devices",
                     {.join = "10; 60 for hosts", .silence = "none"});
  add_number(*command, "--clients", options->clients, "N",
             "So many add to one word at once, to see what each further one costs")
      ->capture_default_str();
  add_number(*command, "--batches", options->batches, "N",
             "Medians of so many batches of 16 round trips")
      ->capture_default_str();
  add_text(*command, "--output", options->output, "FILE", "Write them to FILE");
  command->callback([options] { run_calibrate(*options); });
}

}  // namespace dunlin::app
