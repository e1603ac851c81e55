#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <dunlin/container/cost.hpp>
#include <dunlin/container/limits.hpp>
#include <dunlin/container/slot.hpp>

#include "command.hpp"
#include "container/calibrate.hpp"
#include "standard_output.hpp"
#include "text.hpp"
#include "value_option.hpp"

namespace dunlin::app {
namespace {

constexpr std::uint32_t kBriefBatches = 20;

struct Options {
  std::string container;
  std::string call;
  std::string promise = "both";
  double load = 0.5;
  double tables = 1;
  double clients = 1;
  std::uint64_t bytes = 16;
  double wait_us = 0;
  std::string costs_file;
};

Call call_of(const Options& options) {
  const bool is_queue = options.container == "queue";
  if (!is_queue && options.container != "hashmap" && options.container != "set")
    throw BadInput(
        fmt::format("{}: containers with more than one operation a call are hashmap, "
                    "set and queue",
                    in_quotes(options.container)));
  std::string names;
  for (const Call call :
       {Call::insert, Call::assign, Call::find, Call::erase, Call::push, Call::pop}) {
    if ((call == Call::push || call == Call::pop) != is_queue) continue;
    if (call == Call::assign && options.container == "set") continue;
    if (name_of(call) == options.call) return call;
    names += (names.empty() ? "" : ", ") + std::string(name_of(call));
  }
  throw BadInput(fmt::format("{}: the calls of a {} are {}", in_quotes(options.call),
                             options.container, names));
}

Promise promise_of(const std::string& name) {
  for (const Promise promise : {Promise::both, Promise::writes, Promise::reads, Promise::local})
    if (name_of(promise) == name) return promise;
  throw BadInput(fmt::format("--promise {}: both, writes, reads or local", in_quotes(name)));
}

/// "7.00 us", "157 ns".
std::string time_text(double ns) {
  const char* unit = "ns";
  for (const char* const larger : {"us", "ms", "s"}) {
    if (ns < 1000) break;
    ns /= 1000;
    unit = larger;
  }
  return fmt::format("{:.{}f} {}", ns, ns >= 100 ? 0 : ns >= 10 ? 1 : 2, unit);
}

void show(const ComponentCosts& costs, Call call, Style style, const Situation& situation) {
  say(fmt::format("{}\n", name_of(style)));
  for (const CostTerm& term : explain(costs, call, style, situation))
    say(fmt::format("  {:>6.2f} x {:>10}  = {:>10}   {}\n", term.count, time_text(term.each_ns),
                    time_text(term.count * term.each_ns), term.component));
  say(fmt::format("  {:>21}  = {:>10}\n\n", "",
                  time_text(predict_ns(costs, call, style, situation))));
}

void run_explain(const Options& options) {
  const Call call = call_of(options);
  const Situation situation{
      .promise = promise_of(options.promise),
      .load = options.load,
      .tables = options.tables,
      .clients = options.clients,
      .bytes = static_cast<double>(container::shape_of(options.bytes).slot_bytes),
      .wait_ns = options.wait_us * 1000};
  ComponentCosts costs;
  std::string source = options.costs_file;
  if (options.costs_file.empty()) {
    const Calibrated brief = calibrate({}, 2, kBriefBatches);
    costs = brief.costs;
    source = "a brief measurement just now: " + brief.measured_on;
  } else {
    try {
      costs = load_costs(options.costs_file);
    } catch (const Error& error) {
      throw BadInput(fmt::format("--costs: {}", error.what()));
    }
  }
  const bool is_queue = options.container == "queue";
  say(fmt::format("{} {}, promise {}{}, {} client{}, slots of {} bytes\ncosts: {}\n\n",
                  options.container, options.call, options.promise,
                  is_queue             ? ""
                  : options.tables > 1 ? fmt::format(", {} tables, load of the last {}",
                                                     options.tables, options.load)
                                       : fmt::format(", load {}", options.load),
                  options.clients, options.clients == 1 ? "" : "s", situation.bytes, source));
  show(costs, call, Style::one_sided, situation);
  show(costs, call, Style::message, situation);
  const Style cheaper = cheaper_style(costs, call, situation);
  const Style other = cheaper == Style::message ? Style::one_sided : Style::message;
  const double factor = predict_ns(costs, call, other, situation) /
                        std::max(predict_ns(costs, call, cheaper, situation), 1e-9);
  say(fmt::format("automatic: {}; {} takes {:.2f} times as long\n", name_of(cheaper),
                  name_of(other), factor));
}

}  // namespace

void add_explain(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "explain",
      "What a call on a container costs in each style, as the sum of its components, and which\n"
      "style `automatic` therefore takes.");
  command->footer(
      "\nExamples:\n  dunlin explain hashmap insert --promise both --load 0.8 --clients 16\n"
      "  dunlin explain queue pop --clients 4 --costs costs.json");
  const auto options = std::make_shared<Options>();
  command->add_option("container", options->container, "hashmap, set or queue")
      ->required()
      ->type_name("");
  command->add_option("call", options->call, "insert, assign, find, erase; push, pop")
      ->required()
      ->type_name("");
  add_text(*command, "--promise", options->promise, "PROMISE", "both, writes, reads or local")
      ->capture_default_str();
  add_number(*command, "--load", options->load, "A", "Of a map: keys for each slot",
             number_between(0, 1, "keys for each slot"))
      ->capture_default_str();
  add_number(*command, "--tables", options->tables, "N",
             "Of a part of a map that grows; all but one are full",
             number_between(1, kMaxMapTables, "tables"))
      ->capture_default_str();
  add_number(*command, "--clients", options->clients, "N", "That make such calls at the same time",
             number_between(1, 4096, "clients"))
      ->capture_default_str();
  add_number(*command, "--bytes", options->bytes, "N", "Of key and value, or of an element")
      ->check(number_between(1, kMaxElementBytes, "bytes"))
      ->capture_default_str();
  add_number(*command, "--wait", options->wait_us, "US",
             "Microseconds until the target polls, on average",
             number_between(0, 1e9, "microseconds"))
      ->capture_default_str();
  add_text(*command, "--costs", options->costs_file, "FILE",
           "Of `dunlin calibrate` (default: measure briefly, on shared memory)");
  command->callback([options] { run_explain(*options); });
}

}  // namespace dunlin::app
