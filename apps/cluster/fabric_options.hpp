#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/join.hpp>

namespace CLI {
class App;
}

/// The options of a command line about the fabric; they are the same for every command.
namespace dunlin::app {

/// Options of a join, of which a command gives its groups some itself, such as their names.
/// `network` may also be "sim", which is no network of join().
struct FabricOptions : JoinOptions {
  FabricOptions(JoinOptions join = {.network = "shm"}, std::optional<std::uint32_t> of_hosts = {},
                std::optional<std::uint32_t> this_host = {})
      : JoinOptions(std::move(join)), hosts(of_hosts), host(this_host) {}

  std::optional<std::uint32_t> hosts;
  std::optional<std::uint32_t> host;
};

/// The values of `--fabric`: the networks of join(), and the simulator.
enum class Simulator : bool { without, with };
[[nodiscard]] std::vector<std::string> fabric_names(Simulator simulator);

/// The silence after which servers take each other for dead: longer than a debugger's stop, or a
/// busy host, usually takes.
inline constexpr std::uint32_t kServerSilenceMs = 10'000;

/// The help's text on the defaults of the time-outs, which differ between commands. The table
/// `kDefaults` of fabric_options.cpp says which option each field belongs to. The help of a time
/// that has no row there names no default.
struct DefaultTimeOuts {
  std::string join;
  std::string silence;
};

/// `--fabric`; without it, the network that a join in the command's environment takes. `about` says
/// what the command does on the fabrics.
void add_fabric_option(CLI::App& command, FabricOptions& options, const std::string& about);
/// `--fabric`, and the options that belong to it.
void add_fabric_options(CLI::App& command, FabricOptions& options, const std::string& about,
                        const DefaultTimeOuts& defaults);
/// Adds these options without `--fabric`.
void add_network_options(CLI::App& command, FabricOptions& options,
                         const DefaultTimeOuts& defaults);
/// Adds these options without `--hosts` and `--host`.
void add_reach_options(CLI::App& command, FabricOptions& options, const DefaultTimeOuts& defaults);

/// Throws BadInput unless there is such a fabric in this build, and all options belong to it.
void check(const FabricOptions& options);

}  // namespace dunlin::app
