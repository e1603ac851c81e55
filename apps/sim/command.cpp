#include "command.hpp"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/scenario.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr const char* kFooter = R"(
Each seed makes a group of 2 to 6 members, up to three subgroups that overlap, messages, and faults:
crashes, hung processes behind live network cards, pauses, slow nodes, cut, one-way and slow links,
disks that get slow, get full or fail, members that leave, and in one seed of three members that come
in. The real group and multicast run on a simulated network, and the logs of durable subgroups on
simulated disks, whose machines all crash in the end, and start again. The auditor compares what every
member saw with docs/group.md and docs/multicast.md; the first fault ends the run, with its seed.

Exit status: 0 no fault was found; 1 one was; 2 wrong input; 3 it could not run.

Examples:
  dunlin sim multicast --seeds 1..2000
  dunlin sim multicast --seeds 371 --trace)";

constexpr std::uint64_t kLargestSeed = UINT64_MAX - 1;  // so that one behind it can be counted

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 1'000;
};

struct SimOptions {
  std::string seeds = "1..1000";
  double interval_s = 10;
  bool trace = false;
  bool no_joins = false;
  bool changing = false;
  bool no_disk_faults = false;
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Seeds parse_seeds(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto first = number(std::string_view(text).substr(0, dots));
  const auto last =
      dots == std::string::npos ? first : number(std::string_view(text).substr(dots + 2));
  if (!first || !last || *first > *last || *last > kLargestSeed)
    throw BadInput(
        fmt::format("--seeds {}: give a number from 0 to {}, or two with '..' between them, the "
                    "lower one first: 1..2000",
                    in_quotes(text), kLargestSeed));
  return {*first, *last};
}

void print_line(std::uint64_t time_ns, const std::string& what) {
  say(fmt::format("{:>12} ns  {}\n", time_ns, what));
}

/// Seeds may run for hours: says now and then, where results are not printed, how far they have
/// got.
class Progress {
 public:
  Progress(const Seeds& seeds, double interval_s) : seeds_(seeds), interval_(interval_s) {}
  void done(std::uint64_t seed) {
    const auto now = Clock::now();
    if (interval_.count() == 0 || now - said_ < interval_ || seed == seeds_.last) return;
    said_ = now;
    fmt::print(stderr, "seeds {}..{} of {}..{}: all as promised so far\n", seeds_.first, seed,
               seeds_.first, seeds_.last);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Seeds seeds_;
  std::chrono::duration<double> interval_;
  Clock::time_point said_ = Clock::now();
};

void run_sim(const SimOptions& options) {
  const Seeds seeds = parse_seeds(options.seeds);
  Progress progress(seeds, options.interval_s);
  const sim::Kinds kinds{.joins = !options.no_joins,
                         .disk_faults = !options.no_disk_faults,
                         .changing = options.changing};
  std::uint64_t views = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t faults = 0;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    if (options.trace) say(fmt::format("seed {}\n", seed));
    const sim::Outcome outcome =
        sim::run_multicast(seed, options.trace ? sim::Trace(print_line) : sim::Trace(), kinds);
    if (!outcome.fault.empty())
      throw VerificationFailed(
          fmt::format("seed {}: {}; see it happen: dunlin sim multicast --seeds {}{} --trace", seed,
                      outcome.fault, seed,
                      std::string(kinds.joins ? "" : " --no-joins") +
                          (kinds.disk_faults ? "" : " --no-disk-faults") +
                          (kinds.changing ? " --changing" : "")));
    views += outcome.views;
    deliveries += outcome.deliveries;
    faults += outcome.faults;
    progress.done(seed);
  }
  say(fmt::format(
      "{} seeds, {} views, {} faults injected, {} messages delivered: all as promised\n",
      seeds.last - seeds.first + 1, views, faults, deliveries));
}

}  // namespace

void add_sim(CLI::App& program) {
  auto options = std::make_shared<SimOptions>();
  CLI::App* sim =
      program.add_subcommand("sim", "run the real protocols in the simulator, and audit them");
  sim->require_subcommand(1);
  CLI::App* command =
      sim->add_subcommand("multicast", "groups and their multicasts, with faults drawn from seeds");
  command->footer(kFooter);
  command
      ->add_option(
          "--seeds", options->seeds,
          fmt::format("a seed, or a range of them: 1..2000; the largest is {}", kLargestSeed))
      ->capture_default_str()
      ->check(not_empty());
  add_number(*command, "--interval", options->interval_s, "S",
             "seconds between lines on standard error that say how far it is; 0: none", seconds())
      ->capture_default_str();
  command->add_flag("--trace", options->trace, "print what happens, line by line");
  command->add_flag("--changing", options->changing,
                    "subgroups come at run time, and none is durable");
  command->add_flag("--no-joins", options->no_joins, "nobody comes in later, in no seed");
  command->add_flag("--no-disk-faults", options->no_disk_faults, "no disk fails or gets slow");
  command->callback([options] { run_sim(*options); });
}

}  // namespace dunlin::app
