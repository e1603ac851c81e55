#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/experiment.hpp"

/// Runs a list of experiments as the command line asks for, and reports.
namespace CLI {
class App;
}

namespace dunlin::bench {

struct SuiteOptions {
  std::vector<std::string> only = {};  // names of experiments; empty: all
  std::string fabric = {};             // only those on this one; empty: all
  std::string json_file = {};
  std::string report_file = {};
  Effort effort = {};
  bool list = false;
};

/// A list of experiments that is a command, `dunlin bench NAME`.
struct Suite {
  std::string name;
  std::string description;
  /// Called when the command runs, as it asks which networks there are.
  std::vector<Experiment> (*experiments)();
  bool has_profile = false;        // --profile
  std::uint32_t most_members = 0;  // of --members; 0: there is no such option
};

/// Adds the command, with the options that every suite has and those of its own.
void add_suite(CLI::App& program, const Suite& suite);

/// Those asked for. Throws BadInput that names what there is if `only` or `fabric` match nothing.
[[nodiscard]] std::vector<const Experiment*> chosen(const std::vector<Experiment>& experiments,
                                                    const SuiteOptions& options);

/// Run them one after the other, report each as soon as it is there, then write the files.
void run_suite(const std::vector<Experiment>& experiments, const SuiteOptions& options,
               const std::function<void(std::string_view)>& say);

}  // namespace dunlin::bench
