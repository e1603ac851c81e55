#include "support/hosts.hpp"

#include <iterator>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "process/program.hpp"

namespace dunlin::test {
namespace {

/// A namespace without a name; empty if that is not permitted.
Descriptor new_namespace() {
  Descriptor made;
  std::thread([&made] {
    if (unshare(CLONE_NEWNET) == 0)
      made = Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }).join();
  return made;
}

/// The path by which other processes see a descriptor.
std::string path_of(const Descriptor& where) {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(where.get());
}

/// The words of a command, run in a namespace.
process::Outcome run(const Descriptor& where, const std::string& command) {
  std::istringstream words(command);
  const auto enter = [&] { checked(setns(where.get(), CLONE_NEWNET), "setns"); };
  return process::run(
      {.command = {std::istream_iterator<std::string>(words), {}}, .prepare = enter});
}

std::string find_fault() {
  const Descriptor trial = new_namespace();
  if (!trial) return "network namespaces are not permitted here: " + error_text(errno);
  for (const char* program : {"ip", "tc"}) {
    if (!process::program_exists(program))
      return std::string("there is no `") + program + "` (Debian: iproute2)";
  }
  const process::Outcome bridge = run(trial, "ip link add sw type bridge");
  if (!bridge.status.well()) return "the kernel has no bridge: " + bridge.output;
  const process::Outcome cable = run(trial, "ip link add one type veth peer name two");
  return cable.status.well() ? "" : "the kernel has no veth: " + cable.output;
}

}  // namespace

const std::string& Hosts::why_not() {
  static const std::string fault = find_fault();
  return fault;
}

std::string Hosts::address(unsigned host) { return "10.83.0." + std::to_string(host + 1); }

Hosts::Hosts(unsigned count) : switch_(new_namespace()) {
  run_in(switch_, "ip link add sw type bridge");
  run_in(switch_, "ip link set sw up");
  for (unsigned host = 0; host < count; ++host) {
    const Descriptor& made = hosts_.emplace_back(new_namespace());
    const std::string port = "port" + std::to_string(host);
    run_in(switch_, "ip link add " + port + " type veth peer name eth0 netns " + path_of(made));
    run_in(switch_, "ip link set " + port + " master sw up");
    run_in(made, "ip link set lo up");
    run_in(made, "ip address add " + address(host) + "/24 dev eth0");
    run_in(made, "ip link set eth0 up");
  }
  const process::Outcome netem = run(switch_, "tc qdisc add dev port0 root netem delay 0ms");
  if (!netem.status.well())
    why_not_impaired_ = "neither delay nor loss here, as the kernel has no netem: " + netem.output;
}

void Hosts::run_in(const Descriptor& where, const std::string& command) const {
  const process::Outcome outcome = run(where, command);
  if (!outcome.status.well()) throw Error("'" + command + "' failed: " + outcome.output);
}

void Hosts::enter(unsigned host) const {
  checked(setns(hosts_.at(host).get(), CLONE_NEWNET), "entering a network namespace");
}

void Hosts::cut(unsigned host) const {
  run_in(switch_, "ip link set port" + std::to_string(host) + " down");
}
void Hosts::heal(unsigned host) const {
  run_in(switch_, "ip link set port" + std::to_string(host) + " up");
}

/// Directs the packets to a card that does not exist.
void Hosts::cut_one_way(unsigned from, unsigned to) const {
  run_in(hosts_.at(from), "ip neighbour replace " + address(to) +
                              " lladdr 02:00:00:00:00:01 nud permanent dev eth0");
}
void Hosts::heal_one_way(unsigned from, unsigned to) const {
  run_in(hosts_.at(from), "ip neighbour del " + address(to) + " dev eth0");
}

void Hosts::impair(unsigned host, const std::string& how) const {
  run_in(hosts_.at(host), "tc qdisc replace dev eth0 root netem " + how);
}

}  // namespace dunlin::test
