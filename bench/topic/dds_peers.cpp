#include "bench/topic/dds_peers.hpp"

#include <cstdlib>

#include <unistd.h>

#include "bench/harness/program.hpp"
#include "bench/table/nodes.hpp"
#include "process/child.hpp"
#include "process/program.hpp"

namespace dunlin::bench {
namespace {

using Words = std::vector<std::string>;
using Seconds = std::chrono::seconds;

/// Runs both to their ends, so that they leave nothing behind, and returns what the first one has
/// printed. The second one takes a second longer.
std::string run_both(const std::function<process::Program(Seconds, const Words&)>& program,
                     Seconds each, const Words& one, const Words& other) {
  process::Child beside([&] {
    static_cast<void>(process::run(program(each + Seconds(1), other)));
    return 0;
  });
  std::string output = process::run(program(each, one)).output;
  beside.wait();
  return output;
}

/// No other participants have the tag; each takes a free port.
std::string cyclone_configuration(const std::string& tag) {
  return "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"lo\"/>"
         "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><Tag>" +
         tag +
         "</Tag><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>40"
         "</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>"
         "</Domain></CycloneDDS>";
}

DdsPeer cyclone_dds(Seconds each) {
  const char* const name = "ddsperf";
  DdsPeer peer{.name = "Cyclone DDS, UDP on loopback"};
  if (!process::program_exists(name))
    peer.missing = "Cyclone DDS was not measured: there is no ddsperf (Debian: cyclonedds-tools)";
  const auto run = [name, each](const Words& one, const Words& other) {
    const std::string configuration = cyclone_configuration(fresh_group());
    return run_both(
        [&](Seconds duration, const Words& mode) {
          process::Program program{
              .command = {name, "-D", std::to_string(duration.count())},
              .prepare = [&] { ::setenv("CYCLONEDDS_URI", configuration.c_str(), 1); }};
          program.command.insert(program.command.end(), mode.begin(), mode.end());
          return program;
        },
        each, one, other);
  };
  peer.samples_per_second = [name, run](std::size_t bytes) {
    const std::string output = run({"sub"}, {"pub", "size", std::to_string(bytes)});
    return last_number_after(" rate ", name, output) * 1000;  // kS/s
  };
  peer.latency_ns = [name, run](std::size_t bytes) {
    const std::string output = run({"ping", "size", std::to_string(bytes)}, {"pong"});
    return last_number_after(" 50% ", name, output) * 1000;  // us
  };
  return peer;
}

DdsPeer fast_dds(Seconds each) {
  const char* const name = "dunlin-fast-dds";
  const std::string path = find_program(name, folder_of_this_program());
  DdsPeer peer{.name = "Fast DDS, its shared memory"};
  if (path.empty())
    peer.missing = std::string("Fast DDS was not measured: ") + name +
                   " was not found beside dunlin; it is built where there is Fast DDS (Debian: "
                   "libfastrtps-dev)";
  const auto run = [path, each](const char* one, const char* other, std::size_t bytes) {
    // Two runs on one host are in one domain at most if their processes' numbers are so far apart.
    const std::string domain = std::to_string(::getpid() % 200 + 10);
    return run_both(
        [&](Seconds duration, const Words& role) {
          return process::Program{.command = {path, role.front(), domain, std::to_string(bytes),
                                              std::to_string(duration.count())}};
        },
        each, {one}, {other});
  };
  peer.samples_per_second = [name, run](std::size_t bytes) {
    return last_number_after("rate ", name, run("sub", "pub", bytes));
  };
  peer.latency_ns = [name, run](std::size_t bytes) {
    return last_number_after("latency ", name, run("ping", "pong", bytes));
  };
  return peer;
}

}  // namespace

std::vector<DdsPeer> all_dds_peers(Seconds each) { return {cyclone_dds(each), fast_dds(each)}; }

}  // namespace dunlin::bench
