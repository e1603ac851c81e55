#include "bench/harness/suite.hpp"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>

#include "bench/harness/report.hpp"
#include "cluster/cluster.hpp"
#include "cluster/watch.hpp"
#include "command.hpp"
#include "output_file.hpp"
#include "standard_output.hpp"
#include "team/cores.hpp"
#include "value_option.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kUntilAllHaveComeMs = 60'000;  // somebody starts them by hand

bool wanted(const Experiment& experiment, const SuiteOptions& options) {
  const bool among_all = options.only.empty() && (options.list || !experiment.only_by_name);
  const bool by_name =
      among_all || std::ranges::find(options.only, experiment.name) != options.only.end();
  return by_name && (options.fabric.empty() || options.fabric == experiment.fabric);
}

std::string names(const std::vector<Experiment>& experiments) {
  std::string text;
  for (const Experiment& experiment : experiments) {
    text += (text.empty() ? "" : ", ") + experiment.name + " (" + experiment.fabric + ")";
  }
  return text;
}

std::string preface(const Effort& effort) {
  const std::size_t cores = app::usable_cores().size();
  return fmt::format(
      "{} core{}; processes are pinned to their own where that is enough. Medians of {} rounds; "
      "limits are measured in the same processes, in turns.{}\n\n",
      cores, cores == 1 ? "" : "s", effort.rounds,
      effort.quick ? "\nA quick run: to see that all works, not to quote." : "");
}

std::string name_with_params(const Experiment& experiment, const Result& result) {
  const std::string params = to_text(result.params);
  return params.empty() ? experiment.name : experiment.name + " (" + params + ")";
}

/// Nothing if no result has a goal.
std::string summary(const std::vector<Finding>& findings) {
  std::size_t goals = 0;
  std::size_t reached = 0;
  std::string others;
  for (const Finding& finding : findings) {
    for (const Result& result : finding.results) {
      if (!result.goal) continue;
      const auto verdict = result.reached();
      ++goals;
      reached += verdict == true ? 1 : 0;
      if (verdict == true) continue;
      others += fmt::format("  {}: {}\n", verdict ? "missed" : "not measured",
                            name_with_params(*finding.experiment, result));
    }
  }
  if (goals == 0) return {};
  return fmt::format("{} of {} goals reached.\n{}", reached, goals, others);
}

bool is_network(const std::string& fabric) {
  const auto found = std::ranges::find(networks(), fabric, &dunlin::Network::name);
  return found != networks().end() && found->between_hosts;
}

/// Where the figures run, if some of them use a network; checks its options.
app::Cluster cluster_for(const SuiteOptions& options,
                         const std::vector<const Experiment*>& selected) {
  app::FabricOptions network = options.effort.network;
  app::Cluster cluster;
  bool asked = false;
  for (const Experiment* experiment : selected) {
    if (!is_network(experiment->fabric) || (asked && cluster.fabric() == experiment->fabric))
      continue;
    network.network = experiment->fabric;
    cluster = app::Cluster(network);
    asked = true;
  }
  if (asked) return cluster;
  network.network = options.fabric == "sim" ? "sim" : "shm";
  app::check(network);
  return cluster;
}

/// Leaves those that can be measured between hosts.
void keep_for_hosts(const SuiteOptions& options, std::vector<const Experiment*>& selected) {
  std::string others;
  for (const Experiment* experiment : selected)
    if (!experiment->between_hosts) others += (others.empty() ? "" : ", ") + experiment->name;
  const bool named = !options.only.empty() && !options.fabric.empty();
  std::erase_if(selected, [](const Experiment* experiment) { return !experiment->between_hosts; });
  if (selected.empty() || (named && !others.empty())) {
    throw app::BadInput("between hosts there is no figure " + others +
                        "; measure it with --fabric on one host, without --hosts and a launcher");
  }
}

/// What would make the work be in vain, before it is done.
void check(const SuiteOptions& options, const std::vector<const Experiment*>& selected) {
  const bool simulates = std::ranges::find(selected, "sim", &Experiment::fabric) != selected.end();
  if (!options.effort.profile.empty() && !simulates) {
    throw app::BadInput("--profile: none of the figures that were asked for is simulated");
  }
  if (!options.json_file.empty()) app::demand_writable({"--json", options.json_file});
  if (!options.report_file.empty()) app::demand_writable({"--report", options.report_file});
}

std::string names_over_fabrics(const std::vector<const Experiment*>& selected) {
  std::string figures;
  for (const Experiment* experiment : selected) {
    figures += fmt::format("{}{} over {}", figures.empty() ? "" : ", ", experiment->name,
                           experiment->fabric);
  }
  return figures;
}

/// What all hosts must be about to do.
app::Intent intent_of(const std::string& figures, const Effort& effort) {
  const std::string all =
      fmt::format("{}; {} rounds{}", figures, effort.rounds, effort.quick ? ", quick" : "");
  return {.what = "bench", .text = all, .hash = std::hash<std::string>()(all)};
}

/// Where this host of several has its part.
std::string preface_of_hosts(const app::Cluster& cluster, const std::string& figures) {
  return fmt::format(
      "Host {} of {}: {}. {}\n", cluster.host(), cluster.hosts(), figures,
      cluster.host() == 0 ? "All else is measured on one host." : "The results are at host 0.");
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const sim::Profile& profile : sim::profiles()) names.push_back(profile.name);
  return names;
}

void add_options(CLI::App& command, SuiteOptions& options) {
  std::vector<std::string> fabrics = app::fabric_names(app::Simulator::with);
  fabrics.emplace_back("none");
  command.add_flag("--list", options.list, "Name the figures and stop");
  command.add_option("--only", options.only, "Measure only these figures")->type_name("NAME");
  command.add_option("--fabric", options.fabric, "Only the figures on this fabric")
      ->check(CLI::IsMember(fabrics));
  app::add_network_options(
      command, options.effort.network,
      {.join = "10; 60 for hosts", .silence = "1 where failures are measured, else never"});
  command.add_option("--rounds", options.effort.rounds, "Rounds, of which the median is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_flag("--quick", options.effort.quick, "A hundredth of the work, to try things out");
  app::add_text(command, "--json", options.json_file, "FILE", "Write one object a result");
  app::add_text(command, "--report", options.report_file, "FILE",
                "Write one self-contained page to FILE");
}

}  // namespace

void add_suite(CLI::App& program, const Suite& suite) {
  CLI::App* command = program.add_subcommand(suite.name, suite.description);
  const auto options = std::make_shared<SuiteOptions>();
  add_options(*command, *options);
  if (suite.has_profile)
    command->add_option("--profile", options->effort.profile, "Simulate this network instead")
        ->check(CLI::IsMember(profile_names()));
  if (suite.most_members > 0)
    command
        ->add_option("--members", options->effort.members,
                     "Of a group on shared memory; 2 if not given")
        ->check(CLI::Range(2U, suite.most_members));
  command->callback(
      [options, experiments = suite.experiments] { run_suite(experiments(), *options, app::say); });
}

std::vector<const Experiment*> chosen(const std::vector<Experiment>& experiments,
                                      const SuiteOptions& options) {
  for (const std::string& name : options.only) {
    if (std::ranges::find(experiments, name, &Experiment::name) == experiments.end()) {
      throw app::BadInput("there is no figure '" + name + "'; there are " + names(experiments));
    }
  }
  std::vector<const Experiment*> result;
  for (const Experiment& experiment : experiments) {
    if (wanted(experiment, options)) result.push_back(&experiment);
  }
  if (result.empty()) {
    if (is_network(options.fabric)) {  // which says what there is
      app::FabricOptions network = options.effort.network;
      network.network = options.fabric;
      static_cast<void>(app::Cluster(network));
    }
    throw app::BadInput("no figure matches --only and --fabric; there are " + names(experiments));
  }
  return result;
}

void run_suite(const std::vector<Experiment>& experiments, const SuiteOptions& options,
               const std::function<void(std::string_view)>& say) {
  std::vector<const Experiment*> selected = chosen(experiments, options);
  if (options.list) {
    for (const Experiment* experiment : selected) {
      say(fmt::format("{:<20} {:<4} {}\n", experiment->name, experiment->fabric,
                      experiment->title));
    }
    return;
  }
  const app::Cluster cluster = cluster_for(options, selected);
  if (cluster.hosts() > 1) keep_for_hosts(options, selected);
  if (cluster.host() == 0) check(options, selected);
  const std::string figures = names_over_fabrics(selected);
  app::Watch watch(cluster, intent_of(figures, options.effort), kUntilAllHaveComeMs);
  watch.await_others();
  if (cluster.hosts() > 1) say(preface_of_hosts(cluster, figures));
  if (cluster.host() == 0) say(preface(options.effort));
  Effort effort = options.effort;
  effort.watch = &watch;
  std::vector<Finding> findings;
  watch.guard([&] {
    for (const Experiment* experiment : selected) {
      findings.push_back({experiment, experiment->run(effort)});
      if (cluster.host() == 0) say(text_report(findings.back()) + "\n");
    }
  });
  if (cluster.host() != 0) return;
  say(summary(findings));
  if (!options.json_file.empty()) app::write_file(options.json_file, json_report(findings));
  if (!options.report_file.empty()) app::write_file(options.report_file, html_report(findings));
}

}  // namespace dunlin::bench
