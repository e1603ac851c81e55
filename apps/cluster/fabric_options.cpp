#include "cluster/fabric_options.hpp"

#include <array>
#include <initializer_list>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
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

struct FabricKind {
  std::string_view name;
  bool providers;  // has several networks to choose from
  bool encrypts;   // what members tell each other
  bool network;    // reaches other hosts
  bool real;       // takes time
};

// A further network is added here, and in cluster.cpp.
constexpr std::array kFabrics{
    FabricKind{
        .name = "shm", .providers = false, .encrypts = false, .network = false, .real = true},
    FabricKind{
        .name = "sim", .providers = false, .encrypts = false, .network = false, .real = false},
    FabricKind{.name = "tcp", .providers = false, .encrypts = true, .network = true, .real = true},
    FabricKind{.name = "auto", .providers = true, .encrypts = true, .network = true, .real = true},
    FabricKind{.name = "ofi", .providers = true, .encrypts = false, .network = true, .real = true},
    FabricKind{
        .name = "verbs", .providers = false, .encrypts = false, .network = true, .real = true},
};

std::string list_of(bool FabricKind::*property) {
  std::string text;
  for (const FabricKind& fabric : kFabrics) {
    if (fabric.*property) text += fmt::format("{}{}", text.empty() ? "" : " or ", fabric.name);
  }
  return text;
}

const FabricKind& find(const std::string& name) {
  std::string all;
  for (const FabricKind& fabric : kFabrics) {
    if (fabric.name == name) return fabric;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", fabric.name);
  }
  throw BadInput(fmt::format("--fabric {}: there are {}", in_quotes(name), all));
}

struct Use {
  std::string_view option;
  bool given;
  bool FabricKind::*needs;
  std::string_view what;
};

}  // namespace

void add_fabric_options(CLI::App& command, FabricOptions& options, const std::string& about,
                        const DefaultTimeOuts& defaults) {
  command.add_option("--fabric", options.fabric, about)->capture_default_str();
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
  command
      .add_option("--provider", options.provider,
                  "ofi: libfabric's network (default: tcp); auto: take it between hosts")
      ->check(not_empty())
      ->type_name("NAME");
  command.add_flag(
      "--encrypt", options.encrypt,
      "tcp, auto: encrypt everything that hosts tell each other (all of them or none)");
  command
      .add_option("--device", options.device,
                  "The network's device (default: the first that has the address)")
      ->check(not_empty())
      ->type_name("NAME");
  command
      .add_option(
          "--address", options.address,
          "This host's address on the network (default: from where it reaches the rendezvous)")
      ->check(not_empty())
      ->type_name("IP");
  command
      .add_option("--rendezvous", options.rendezvous,
                  "Where the hosts meet: one of them can bind it, all can reach it")
      ->check(not_empty())
      ->type_name("HOST:PORT|unix:NAME");
  command
      .add_option("--secret-file", options.secret_file,
                  "What all hosts know and nobody else does; or DUNLIN_SECRET_FILE names it")
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option("--join-timeout", options.join_timeout_s,
                  "How long to wait until all are there (default: " + defaults.join + ")")
      ->check(seconds())
      ->type_name("S");
  command
      .add_option("--silence-timeout", options.silence_timeout_s,
                  "Silence after which a process counts as dead; 0: never (default: " +
                      defaults.silence + ")")
      ->check(seconds())
      ->type_name("S");
}

void check(const FabricOptions& options) {
  const FabricKind& fabric = find(options.fabric);
  constexpr std::string_view kNetwork = "only a network has several hosts, devices and addresses";
  const std::initializer_list<Use> uses = {
      {"--provider", !options.provider.empty(), &FabricKind::providers,
       "only libfabric has providers"},
      {"--encrypt", options.encrypt, &FabricKind::encrypts, "it does not encrypt"},
      {"--device", !options.device.empty(), &FabricKind::network, kNetwork},
      {"--address", !options.address.empty(), &FabricKind::network, kNetwork},
      {"--rendezvous", !options.rendezvous.empty(), &FabricKind::network, kNetwork},
      {"--secret-file", !options.secret_file.empty(), &FabricKind::network, kNetwork},
      {"--hosts", options.hosts.has_value(), &FabricKind::network, kNetwork},
      {"--host", options.host.has_value(), &FabricKind::network, kNetwork},
      {"--join-timeout", options.join_timeout_s.has_value(), &FabricKind::real,
       "nobody waits in the simulator"},
      {"--silence-timeout", options.silence_timeout_s.has_value(), &FabricKind::real,
       "the simulator's profiles say how long that is"}};
  for (const Use& use : uses) {
    if (!use.given || fabric.*use.needs) continue;
    throw BadInput(fmt::format("{}: {}; use it with --fabric {}, not {}", use.option, use.what,
                               list_of(use.needs), options.fabric));
  }
}

}  // namespace dunlin::app
