#include "bench/topic/ddsperf.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <dunlin/error.hpp>

#include "bench/table/nodes.hpp"
#include "process/child.hpp"
#include "process/program.hpp"

namespace dunlin::bench {
namespace {

constexpr const char* kProgram = "ddsperf";

/// No other participants have the tag; each takes a free port.
std::string configuration(const std::string& tag) {
  return "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"lo\"/>"
         "</Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><Tag>" +
         tag +
         "</Tag><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>40"
         "</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>"
         "</Domain></CycloneDDS>";
}

process::Program program(std::chrono::seconds duration, const std::vector<std::string>& mode,
                         const std::string& tag) {
  process::Program one{
      .command = {kProgram, "-D", std::to_string(duration.count())},
      .prepare = [tag] { ::setenv("CYCLONEDDS_URI", configuration(tag).c_str(), 1); }};
  one.command.insert(one.command.end(), mode.begin(), mode.end());
  return one;
}

/// The number behind the last of these words. Throws Error.
double last_number_after(std::string_view words, const std::string& output) {
  const std::size_t at = output.rfind(words);
  if (at == std::string::npos)
    throw Error(std::string("bench: ") + kProgram + " does not tell \"" + std::string(words) +
                "\": " + output);
  return std::strtod(output.c_str() + at + words.size(), nullptr);
}

}  // namespace

std::string DdsPerf::missing() {
  if (process::program_exists(kProgram)) return "";
  return "Cyclone DDS was not measured: there is no ddsperf (Debian: cyclonedds-tools)";
}

std::string DdsPerf::run(const std::vector<std::string>& mode,
                         const std::vector<std::string>& other_mode) const {
  const std::string tag = fresh_group();
  const process::Child other([&] {
    static_cast<void>(process::run(program(each_ + std::chrono::seconds(1), other_mode, tag)));
    return 0;
  });
  return process::run(program(each_, mode, tag)).output;
}

double DdsPerf::samples_per_second(std::size_t bytes) const {
  const std::string output = run({"sub"}, {"pub", "size", std::to_string(bytes)});
  return last_number_after(" rate ", output) * 1000;  // kS/s
}

double DdsPerf::latency_ns(std::size_t bytes) const {
  const std::string output = run({"ping", "size", std::to_string(bytes)}, {"pong"});
  return last_number_after(" 50% ", output) * 1000;  // us
}

}  // namespace dunlin::bench
