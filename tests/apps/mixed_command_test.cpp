#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/network_members.hpp"
#include "support/hosts.hpp"

/// Two hosts with four members each: `--fabric auto` shares memory within each of them.
namespace {

using dunlin::app::Status;
using dunlin::test::compare;
using dunlin::test::contains;
using dunlin::test::Hosts;
using dunlin::test::Member;
using dunlin::test::NetworkMembers;
using dunlin::test::Parent;
using dunlin::test::Process;
using dunlin::test::Words;

constexpr unsigned kHosts = 2;
constexpr unsigned kOnEach = 4;
constexpr const char* kNames = "abcdefgh";  // a to d on the first host

unsigned host_of(unsigned member) { return member / kOnEach; }

TEST(MixedCommand, MulticastsAmongFourMembersOnEachOfTwoHosts) {
  if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
  const Hosts hosts(kHosts);
  const NetworkMembers common("auto");
  std::vector<Member> members;
  for (unsigned i = 0; i < kHosts * kOnEach; ++i) {
    const std::string port = ":" + std::to_string(7701 + i);  // in a namespace of this test's own
    members.emplace_back(
        common.words(std::string(1, kNames[i]),
                     {"--members", "a,b,c,d,e,f,g,h", "--rendezvous", Hosts::address(0) + ":7700",
                      "--listen", Hosts::address(host_of(i)) + port}),
        [&hosts, i] { hosts.enter(host_of(i)); });
  }
  EXPECT_TRUE(
      contains(members[0].receive_line_of("network: "),
               "shared memory with 'b' (rank 1), 'c' (rank 2), 'd' (rank 3) (on this host); "
               "tcp at "));
  const std::string of_last = members.back().receive_line_of("network: ");
  EXPECT_TRUE(contains(of_last,
                       "shared memory with 'e' (rank 4), 'f' (rank 5), 'g' (rank 6) (on "
                       "this host); tcp at "));
  EXPECT_TRUE(contains(of_last,
                       " with 'a' (rank 0), 'b' (rank 1), 'c' (rank 2), 'd' (rank 3) (on "
                       "this host, in another network namespace)"));
  for (Member& member : members) member.receive_line_of("digest 1000 ");
  members[1].kill();
  for (Member& member : members)
    if (&member != &members[1]) member.receive_line_of("view 2: a, c, d, e, f, g, h; without b");
  for (int i = 0; i < 4; ++i) members[7].receive_line_of("digest ");
  const std::string last = std::to_string(members[7].digests.rbegin()->first);
  for (const std::size_t other : {0U, 2U, 4U}) {
    members[other].receive_line_of("digest " + last + " ");
    EXPECT_GE(compare(members[other], members[7]), 4U);
  }
}

TEST(MixedCommand, RoutesAmongFourRoutersOnEachOfTwoHosts) {
  if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
  const Hosts hosts(kHosts);
  const NetworkMembers common("auto");
  std::vector<Process> parts;
  for (unsigned host = 0; host < kHosts; ++host)
    parts.emplace_back([&, host](Parent& parent) {
      hosts.enter(host);
      for (const int number : {STDOUT_FILENO, STDERR_FILENO}) dup2(parent.descriptor(), number);
      const Words words{"dunlin",         "routing",
                        "--topology",     "hub-ring:8",
                        "--events",       "20",
                        "--fabric",       "auto",
                        "--rendezvous",   Hosts::address(0) + ":7700",
                        "--secret-file",  common.secret_file(),
                        "--hosts",        std::to_string(kHosts),
                        "--host",         std::to_string(host),
                        "--join-timeout", "60"};
      std::vector<const char*> all;
      for (const std::string& word : words) all.push_back(word.c_str());
      return static_cast<int>(dunlin::app::run(static_cast<int>(all.size()), all.data()));
    });
  const std::string said = parts[0].receive_all_lines();
  EXPECT_TRUE(contains(said, "All 8 routers agree with Boost.Graph")) << said;
  EXPECT_TRUE(contains(said, "shared memory with ")) << said;
  EXPECT_TRUE(contains(said, "(on this host); tcp at ")) << said;
  for (Process& part : parts) EXPECT_EQ(part.exit_code(), static_cast<int>(Status::ok));
}

}  // namespace
