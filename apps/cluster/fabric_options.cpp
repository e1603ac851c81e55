#include "cluster/fabric_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "fabric/join/options.hpp"
#include "fabric/launch/complete.hpp"
#include "text.hpp"

namespace dunlin::app {
namespace {

/// CLI11 would take -1 for a very large number.
const CLI::Validator kCount(
    [](const std::string& text) {
      const bool digits = !text.empty() && text.size() <= 9 &&
                          text.find_first_not_of("0123456789") == std::string::npos;
      return digits ? std::string() : "must be a whole number";
    },
    "");

constexpr std::string_view kMilliseconds = "MS";

/// The field of DefaultTimeOuts that has the default of a time.
struct Default {
  std::string_view option;
  std::string DefaultTimeOuts::*text;
};
constexpr std::array kDefaults{
    Default{.option = "timeout_ms", .text = &DefaultTimeOuts::join},
    Default{.option = "silence_timeout_ms", .text = &DefaultTimeOuts::silence},
};

/// What the help of a time says of its default; empty: nothing.
std::string default_of(const JoinOption& option, const DefaultTimeOuts& defaults) {
  const auto found = std::ranges::find(kDefaults, option.name, &Default::option);
  return found == kDefaults.end() ? "" : fmt::format(" (default: {})", defaults.*found->text);
}

/// What is wrong with an option that is given in the simulator; empty: nothing.
std::string_view fault_in_simulator(const JoinOption& option) {
  if (!option.not_in_simulator.empty()) return option.not_in_simulator;
  return option.needs == JoinOption::Needs::nothing ? std::string_view() : lack_of(option.needs);
}

}  // namespace

std::vector<std::string> fabric_names(Simulator simulator) {
  std::vector<std::string> names;
  for (const Network& network : networks()) names.emplace_back(network.name);
  if (simulator == Simulator::with) names.emplace_back("sim");
  return names;
}

void add_fabric_option(CLI::App& command, FabricOptions& options, const std::string& about) {
  // After the help, and only for a command that runs: others have no interest in the environment.
  command.parse_complete_callback([&command, &options] {
    if (command.count("--fabric") == 0) options.network = launch::network_name();
  });
  command.add_option("--fabric", options.network, about)->default_str("DUNLIN_NETWORK, else shm");
}

void add_fabric_options(CLI::App& command, FabricOptions& options, const std::string& about,
                        const DefaultTimeOuts& defaults) {
  add_fabric_option(command, options, about);
  add_network_options(command, options, defaults);
}

void add_network_options(CLI::App& command, FabricOptions& options,
                         const DefaultTimeOuts& defaults) {
  add_reach_options(command, options, defaults);
  command.add_option("--hosts", options.hosts, "How many hosts take part, with a command each")
      ->check(kCount)
      ->type_name("N");
  command.add_option("--host", options.host, "Which of them this one is, from 0")
      ->check(kCount)
      ->type_name("I");
}

void add_reach_options(CLI::App& command, FabricOptions& options, const DefaultTimeOuts& defaults) {
  for (const JoinOption& option : join_options()) {
    const std::string flag(option.flag);
    std::string about(option.about);
    if (flag.empty() || option.name == "network") continue;
    if (option.value.empty()) {
      command.add_flag_callback(
          flag, [&options, &option] { option.take(options, "1"); }, about);
    } else if (option.value == kMilliseconds) {
      about += default_of(option, defaults);
      const auto take = [&options, &option](const double& value_s) {
        option.take(options, std::to_string(static_cast<std::uint32_t>(value_s * 1e3)));
      };
      command.add_option_function<double>(flag, take, about)->check(seconds())->type_name("S");
    } else {
      const auto take = [&options, &option](const std::string& text) {
        option.take(options, text);
      };
      command.add_option_function<std::string>(flag, take, about)
          ->check(not_empty())
          ->type_name(std::string(option.value));
    }
  }
}

void check(const FabricOptions& options) {
  const bool simulated = options.network == "sim";
  const auto known = std::ranges::find(networks(), options.network, &Network::name);
  if (!simulated && known == networks().end())
    throw BadInput(fmt::format("--fabric {}: there are {}; its default is DUNLIN_NETWORK",
                               in_quotes(options.network),
                               fmt::join(fabric_names(Simulator::with), ", ")));
  using Needs = JoinOption::Needs;
  const auto refuse = [&](std::string_view flag, std::string_view why, Needs needs) {
    throw BadInput(fmt::format("{}: {}; use it with --fabric {}, not {}", flag, why,
                               networks_with(needs), options.network));
  };
  for (const JoinOption& option : join_options()) {
    if (option.flag.empty() || !option.given(options) || option.name == "network") continue;
    if (simulated) {
      const std::string_view fault = fault_in_simulator(option);
      if (!fault.empty()) refuse(option.flag, fault, option.needs);
    } else if (!honours(*known, option.needs)) {
      refuse(option.flag, lack_of(option.needs), option.needs);
    }
  }
  const bool between_hosts = !simulated && known->between_hosts;
  if (between_hosts || (!options.hosts && !options.host)) return;
  refuse(options.hosts ? "--hosts" : "--host", lack_of(Needs::hosts), Needs::hosts);
}

}  // namespace dunlin::app
