#include "bench/topic/dds_peers.hpp"

#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "bench/fabric/group.hpp"
#include "bench/harness/program.hpp"
#include "bench/topic/roudi.hpp"

namespace dunlin::bench {
namespace {

using Words = std::vector<std::string>;
using Seconds = std::chrono::seconds;

constexpr const char* kDdsperf = "ddsperf";
constexpr const char* kFastDds = "dunlin-fast-dds";

/// What the processes of `ddsperf` get.
struct Ddsperf {
  std::string configuration;
  Words options = {};
  std::function<void()> prepare = [] {};  // called in the process
};

/// Without the lines on the process itself, whose number each line begins with: "[7] 2.0  host:7
/// size 64 mean ...".
std::string of_others(const std::string& output) {
  std::istringstream lines(output);
  std::string others;
  for (std::string line; std::getline(lines, line);) {
    const std::string own = line.substr(0, line.find(']'));
    if (own.empty() || line.find(":" + own.substr(1) + " ") == std::string::npos)
      others += line + "\n";
  }
  return others;
}

DdsPeer ddsperf(const std::string& peer_name, const Ddsperf& with) {
  DdsPeer peer{.name = peer_name};
  if (!process::program_exists(kDdsperf))
    peer.missing = "Cyclone DDS was not measured: there is no ddsperf (Debian: cyclonedds-tools)";
  peer.program = [with](const std::string& role, std::size_t bytes, Seconds seconds) {
    process::Program program{.command = {kDdsperf, "-D", std::to_string(seconds.count())},
                             .prepare = [with] {
                               ::setenv("CYCLONEDDS_URI", with.configuration.c_str(), 1);
                               with.prepare();
                             }};
    Words words = with.options;
    words.push_back(role);
    if (role == "pub" || role == "ping") {
      words.emplace_back("size");
      words.push_back(std::to_string(bytes));
    }
    program.command.insert(program.command.end(), words.begin(), words.end());
    return program;
  };
  peer.samples_per_second = [](const std::string& output) {
    return last_number_after(" rate ", kDdsperf, output) * 1000;  // kS/s
  };
  peer.latency_ns = [](const std::string& output) {
    return last_number_after(" 50% ", kDdsperf, of_others(output)) * 1000;  // us
  };
  return peer;
}

/// Cyclone DDS 0.10 uses its shared memory only for endpoints that keep the last samples, and that
/// do not ignore those of their own process.
DdsPeer cyclone_dds_with_shared_memory(const std::string& tag) {
  const auto daemon = std::make_shared<std::optional<RouDi>>();
  DdsPeer peer =
      ddsperf("Cyclone DDS, its shared memory", {.configuration = cyclone_on_shared_memory(tag),
                                                 .options = {"-L", "-k", "16"},
                                                 .prepare = [daemon] { daemon->value().enter(); }});
  if (peer.missing.empty()) peer.missing = RouDi::missing();
  peer.program = [daemon, program = std::move(peer.program)](const std::string& role,
                                                             std::size_t bytes, Seconds seconds) {
    if (!daemon->has_value()) daemon->emplace();
    return program(role, bytes, seconds);
  };
  return peer;
}

/// `addresses` are none for shared memory.
DdsPeer fast_dds(const std::string& peer_name, const std::string& tag, const Words& addresses) {
  const std::string path = find_program(kFastDds, process::folder_of_this_program());
  DdsPeer peer{.name = peer_name};
  if (path.empty())
    peer.missing = std::string("Fast DDS was not measured: ") + kFastDds +
                   " was not found beside dunlin; it is built where there is Fast DDS (Debian: "
                   "libfastrtps-dev)";
  // Two runs seldom are in one domain.
  const std::string domain = std::to_string(std::hash<std::string>()(tag) % 200 + 10);
  peer.program = [path, domain, addresses](const std::string& role, std::size_t bytes,
                                           Seconds seconds) {
    process::Program program{
        .command = {path, role, domain, std::to_string(bytes), std::to_string(seconds.count())}};
    program.command.insert(program.command.end(), addresses.begin(), addresses.end());
    return program;
  };
  peer.samples_per_second = [](const std::string& output) {
    return last_number_after("rate ", kFastDds, output);
  };
  peer.latency_ns = [](const std::string& output) {
    return last_number_after("latency ", kFastDds, output);
  };
  return peer;
}

}  // namespace

std::vector<DdsPeer> dds_peers_on_this_host() {
  const std::string tag = fresh_group();
  return {ddsperf("Cyclone DDS, UDP on loopback", {.configuration = cyclone_on_udp(tag)}),
          cyclone_dds_with_shared_memory(tag), fast_dds("Fast DDS, its shared memory", tag, {})};
}

std::vector<DdsPeer> dds_peers_on_udp(const std::string& tag, const DdsAddresses& at) {
  return {ddsperf("Cyclone DDS, UDP", {.configuration = cyclone_on_udp(tag, at)}),
          fast_dds("Fast DDS, UDP", tag, {at.own, at.other})};
}

}  // namespace dunlin::bench
