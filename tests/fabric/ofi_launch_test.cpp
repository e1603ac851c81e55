#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/join.hpp>

#include "support/fresh_group.hpp"
#include "support/hosts.hpp"
#include "support/own_hosts_file.hpp"
#include "support/process.hpp"

/// Members on three hosts, placed by what a launcher says, at a seed whose name means loopback on
/// its own host, as Debian's installer has it.
namespace dunlin {
namespace {

using test::fresh_group;
using test::give_own_hosts_file;
using test::Hosts;
using test::Parent;
using test::Process;

constexpr unsigned kHosts = 3;

using Variables = std::map<std::string, std::string>;

std::string hosts_file_of(unsigned host) {
  const std::string seed = host == 0 ? "127.0.1.1" : Hosts::address(0);
  return "127.0.0.1 localhost\n" + seed + " seed\n";
}

/// Joins on that host, and tells what it took from where, or why it could not.
Process member(const Hosts& hosts, unsigned host, const std::string& group,
               const Variables& variables) {
  return Process([&hosts, host, group, variables](Parent& parent) {
    hosts.enter(host);
    if (const auto fault = give_own_hosts_file(hosts_file_of(host))) {
      parent.send_line("skip: " + *fault);
      return 0;
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    setenv("DUNLIN_SECRET", "only these tests know it", 1);
    const auto fabric =
        join({.network = "ofi", .group = group, .timeout_ms = 60'000, .silence_timeout_ms = 0});
    parent.send_line("rank " + std::to_string(fabric->rank()) + ": " + fabric->description());
    return static_cast<void>(parent.receive_line()), 0;
  });
}

/// All come together, each with the rank of its host.
void expect_to_meet(const std::vector<Variables>& environments) {
  if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
  const Hosts hosts(kHosts);
  const std::string group = fresh_group();
  std::vector<Process> members;
  for (unsigned host = 0; host < kHosts; ++host)
    members.push_back(member(hosts, host, group, environments[host]));
  for (unsigned host = 0; host < kHosts; ++host) {
    const std::string said = members[host].receive_line();
    if (said.starts_with("skip: ")) GTEST_SKIP() << said;
    EXPECT_TRUE(said.starts_with("rank " + std::to_string(host) + ": ")) << said;
    EXPECT_NE(said.find("address " + Hosts::address(host)), std::string::npos) << said;
  }
  for (Process& process : members) process.send_line("go");
}

TEST(OfiLaunch, SlurmsMembersMeetAtTheFirstHostOfTheStep) {
  std::vector<Variables> environments;
  for (unsigned host = 0; host < kHosts; ++host)
    environments.push_back({{"SLURM_PROCID", std::to_string(host)},
                            {"SLURM_NTASKS", "3"},
                            {"SLURM_JOB_ID", "4711"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_STEP_NODELIST", "seed,other[1-2]"}});
  expect_to_meet(environments);
}

TEST(OfiLaunch, OpenMpisMembersMeetWhereTheyAreTold) {
  std::vector<Variables> environments;
  for (unsigned host = 0; host < kHosts; ++host)
    environments.push_back({{"OMPI_COMM_WORLD_RANK", std::to_string(host)},
                            {"OMPI_COMM_WORLD_SIZE", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                            {"DUNLIN_RENDEZVOUS", "seed:7700"}});
  expect_to_meet(environments);
}

}  // namespace
}  // namespace dunlin
