#include "bench/harness/suite.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/harness/cores.hpp"
#include "bench/harness/report.hpp"
#include "cluster/cluster.hpp"
#include "command.hpp"
#include "output_file.hpp"

namespace dunlin::bench {
namespace {

bool wanted(const Experiment& experiment, const SuiteOptions& options) {
  const bool by_name = options.only.empty() ||
                       std::ranges::find(options.only, experiment.name) != options.only.end();
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
  const std::size_t cores = usable_cores().size();
  return fmt::format(
      "{} core{}; processes are pinned to their own where that is enough. Medians of {} rounds; "
      "limits are measured in the same processes, in turns.{}\n\n",
      cores, cores == 1 ? "" : "s", effort.rounds,
      effort.quick ? "\nA quick run: to see that all works, not to quote." : "");
}

std::string name_with_params(const Result& result) {
  const std::string params = to_text(result.params);
  return params.empty() ? result.name : result.name + " (" + params + ")";
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
      others +=
          fmt::format("  {}: {}\n", verdict ? "missed" : "not measured", name_with_params(result));
    }
  }
  if (goals == 0) return {};
  return fmt::format("{} of {} goals reached.\n{}", reached, goals, others);
}

/// The options of a network, if figures on it are selected; `fabric` is its name.
void check_network(const SuiteOptions& options, const std::vector<const Experiment*>& selected) {
  app::FabricOptions network = options.effort.network;
  if (network.hosts || network.host || !network.meeting.empty()) {
    throw app::BadInput("--hosts, --host and --meeting: a benchmark runs on this host alone");
  }
  for (const Experiment* experiment : selected) {
    network.fabric = experiment->fabric;
    if (network.fabric != "ofi") continue;
    if (app::Cluster(network).hosts() == 1) return;
    throw app::BadInput("a benchmark starts its processes itself: use no launcher");
  }
  network.fabric = options.fabric == "sim" ? "sim" : "shm";
  app::check(network);
}

/// What would make the work be in vain, before it is done.
void check(const SuiteOptions& options, const std::vector<const Experiment*>& selected) {
  const bool simulates = std::ranges::find(selected, "sim", &Experiment::fabric) != selected.end();
  if (!options.effort.profile.empty() && !simulates) {
    throw app::BadInput("--profile: none of the figures that were asked for is simulated");
  }
  check_network(options, selected);
  if (!options.json_file.empty()) app::demand_writable({"--json", options.json_file});
  if (!options.plot_folder.empty()) prepare_plots(options.plot_folder);
}

}  // namespace

void add_options(CLI::App& command, SuiteOptions& options) {
  command.add_flag("--list", options.list, "Name the figures and stop");
  command.add_option("--only", options.only, "Measure only these figures")->type_name("NAME");
  command.add_option("--fabric", options.fabric, "Only the figures on this fabric")
      ->check(CLI::IsMember({"shm", "ofi", "sim", "none"}));
  app::add_network_options(command, options.effort.network);
  command.add_option("--rounds", options.effort.rounds, "Rounds, of which the median is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_flag("--quick", options.effort.quick, "A hundredth of the work, to try things out");
  command.add_option("--json", options.json_file, "Write one object a result")
      ->check(app::not_empty())
      ->type_name("FILE");
  command.add_option("--plot", options.plot_folder, "Draw one SVG a figure (needs gnuplot)")
      ->check(app::not_empty())
      ->type_name("DIR");
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
    throw app::BadInput("no figure matches --only and --fabric; there are " + names(experiments));
  }
  return result;
}

void run_suite(const std::vector<Experiment>& experiments, const SuiteOptions& options,
               const std::function<void(std::string_view)>& say) {
  const std::vector<const Experiment*> selected = chosen(experiments, options);
  if (options.list) {
    for (const Experiment* experiment : selected) {
      say(fmt::format("{:<20} {:<4} {}\n", experiment->name, experiment->fabric,
                      experiment->title));
    }
    return;
  }
  check(options, selected);
  say(preface(options.effort));
  std::vector<Finding> findings;
  for (const Experiment* experiment : selected) {
    findings.push_back({experiment, experiment->run(options.effort)});
    say(text_report(findings.back()) + "\n");
  }
  say(summary(findings));
  if (!options.json_file.empty()) app::write_file(options.json_file, json_report(findings));
  if (!options.plot_folder.empty()) plot_report(options.plot_folder, findings);
}

}  // namespace dunlin::bench
