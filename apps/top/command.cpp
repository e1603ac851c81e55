#include "command.hpp"

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/fabric_options.hpp"
#include "top/output.hpp"
#include "top/terminal.hpp"

namespace dunlin::app {
namespace {

constexpr double kOnceIntervalS = 0.2;
constexpr double kDefaultIntervalS = 1;
constexpr double kLeastIntervalS = 0.01;
constexpr double kMostIntervalS = 3600;

/// CLI::Range would let "nan" through, which is on neither side of any bound.
const CLI::Validator kInterval(
    [](const std::string& text) {
      double seconds = 0;
      const bool number = CLI::detail::lexical_cast(text, seconds);
      const bool right = number && seconds >= kLeastIntervalS && seconds <= kMostIntervalS;
      return right ? std::string() : "must be a number of seconds from 0.01 to 3600";
    },
    "");

struct TopOptions {
  top::Selection selection;
  double interval_s = 0;  // 0: the default
  bool once = false;
  bool json = false;
  bool no_rates = false;
  bool raw = false;
};

void run_top(const TopOptions& options) {
  const double interval_s = options.interval_s != 0 ? options.interval_s
                            : options.once          ? kOnceIntervalS
                                                    : kDefaultIntervalS;
  top::OutputOptions output{.selection = options.selection,
                            .interval = std::chrono::nanoseconds(
                                options.no_rates ? 0 : static_cast<std::int64_t>(interval_s * 1e9)),
                            .json = options.json,
                            .raw = options.raw};
  if (options.once) return top::print_once(output);
  if (options.json || !top::on_terminal()) return top::print_stream(output);
  top::show_live(output);
}

}  // namespace

void add_top(CLI::App& program) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command =
      program.add_subcommand("top", "watch running groups: rows, predicates, rates, ages");
  command->footer(
      "Reads the memory of the observed processes, and touches nothing else: they take no part, "
      "and may even be stopped. Rates come from two looks an interval apart.");
  command->add_option("group,--group", options->selection.group, "only this group")
      ->check(not_empty());
  command->add_option("--table", options->selection.table, "only this table")->check(not_empty());
  const std::vector<std::string> fabrics = fabric_names(Simulator::without);
  command
      ->add_option("--fabric", options->selection.fabric,
                   fmt::format("only groups on this fabric: {}", fmt::join(fabrics, ", ")))
      ->check(CLI::IsMember(fabrics));
  command
      ->add_option("--interval", options->interval_s,
                   "seconds between two looks (default: 1, with --once 0.2)")
      ->check(kInterval);
  auto* once = command->add_flag("--once", options->once, "print what is there, and end");
  command->add_flag("--json", options->json,
                    "print JSON (docs/top.md): one object, or without --once one a line");
  command->add_flag("--no-rates", options->no_rates, "look only once: no rates, no waiting")
      ->needs(once);
  command->add_flag("--raw", options->raw,
                    "show multicasts as the columns of their tables (docs/multicast.md)");
  command->callback([options] { run_top(*options); });
}

}  // namespace dunlin::app
