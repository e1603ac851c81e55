#include "support/hosts.hpp"

#include <array>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// Seen from other processes.
std::string path_of(const Descriptor& where) {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(where.get());
}

/// The words of a command, run in a namespace; its exit status, and what it said.
struct Outcome {
  int status = -1;
  std::string said;
};

Outcome run(const Descriptor& where, const std::string& command) {
  std::istringstream words(command);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  std::array<int, 2> ends{};
  checked(pipe2(ends.data(), O_CLOEXEC), "pipe2");
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    dup2(input.get(), 1);
    dup2(input.get(), 2);
    if (setns(where.get(), CLONE_NEWNET) == 0) execvp(raw[0], raw.data());
    _exit(127);
  }
  checked(child, "fork");
  input = Descriptor();
  Outcome outcome;
  std::array<char, 1024> part;
  for (ssize_t got = 0; (got = ::read(output.get(), part.data(), part.size())) > 0;)
    outcome.said.append(part.data(), static_cast<std::size_t>(got));
  checked(waitpid(child, &outcome.status, 0), "waitpid");
  return outcome;
}

std::string find_fault() {
  const Descriptor trial = new_namespace();
  if (!trial) return "network namespaces are not permitted here: " + error_text(errno);
  if (run(trial, "ip link set lo up").status != 0) return "there is no `ip` (Debian: iproute2)";
  const Outcome bridge = run(trial, "ip link add sw type bridge");
  if (bridge.status != 0) return "the kernel has no bridge: " + bridge.said;
  const Outcome cable = run(trial, "ip link add one type veth peer name two");
  return cable.status == 0 ? "" : "the kernel has no veth: " + cable.said;
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
  const Outcome netem = run(switch_, "tc qdisc add dev port0 root netem delay 0ms");
  if (netem.status != 0)
    why_not_impaired_ = "neither delay nor loss here, as the kernel has no netem: " + netem.said;
}

void Hosts::run_in(const Descriptor& where, const std::string& command) const {
  const Outcome outcome = run(where, command);
  if (outcome.status != 0) throw Error("'" + command + "' failed: " + outcome.said);
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

/// To a card that does not exist.
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
