#include "fabric/rendezvous/local_address.hpp"
#include "fabric/rendezvous_group.hpp"
#include "support/own_hosts_file.hpp"
#include "support/process.hpp"

/// Names and addresses of the host that a rendezvous is held at.
namespace dunlin::rendezvous {
namespace {

using namespace test;
using dunlin::test::give_own_hosts_file;
using dunlin::test::Parent;
using dunlin::test::Process;

/// What the check says, in a process to which 127.0.1.1 is "seedhost".
std::string where_the_own_name_is_loopback(const std::function<std::string()>& check) {
  Process process([&](Parent& parent) {
    // As Debian's installer writes it.
    const auto fault = give_own_hosts_file("127.0.0.1 localhost\n127.0.1.1 seedhost\n");
    parent.send_line(fault ? "skip: " + *fault : check());
    return 0;
  });
  return process.receive_line();
}

#define DUNLIN_EXPECT_OR_SKIP(said, expected)             \
  do {                                                    \
    const std::string what = said;                        \
    if (what.starts_with("skip: ")) GTEST_SKIP() << what; \
    EXPECT_EQ(what, expected);                            \
  } while (false)

TEST(RendezvousAddress, WhoseNameIsLoopbackHereListensEverywhere) {
  const std::string address = fresh_tcp_address("seedhost");
  const std::string other = "127.0.0.1" + address.substr(address.rfind(':'));
  DUNLIN_EXPECT_OR_SKIP(where_the_own_name_is_loopback([&]() -> std::string {
                          MemberThread host(counted(address, 2));
                          // One comes by another address of this machine.
                          HandJoiner joiner(counted(other, 2));
                          if (!joiner.come()) return "did not come";
                          if (joiner.stay() != JoinerHandshake::Outcome::met) return "did not meet";
                          return "rank " + std::to_string(host.roster().rank);
                        }),
                        "rank 0");
}

TEST(RendezvousAddress, WhoseNameIsLoopbackHereMeetsThoseOfThisHost) {
  const std::string address = fresh_tcp_address("seedhost");
  DUNLIN_EXPECT_OR_SKIP(where_the_own_name_is_loopback([&] {
                          MemberThread one(counted(address, 2)), two(counted(address, 2));
                          return one.roster().key == two.roster().key ? "met" : "did not";
                        }),
                        "met");
}

TEST(RendezvousAddress, WhoseNameIsLoopbackHereGivesOthersAnAddressThatTheyCanDevice) {
  DUNLIN_EXPECT_OR_SKIP(where_the_own_name_is_loopback([&]() -> std::string {
                          const LocalAddress own = local_address("seedhost:7700");
                          if (!contains(own.why, "'seedhost' means this host's loopback here"))
                            return own.why;
                          const bool no_other = own.why.ends_with("there is no other");
                          return means_loopback(own.text) == no_other ? "right"
                                                                      : own.text + ": " + own.why;
                        }),
                        "right");
}

TEST(RendezvousAddress, LocalhostIsMeantAsItIsSaid) {
  std::string fault;
  for (const char* text : {"localhost:7700", "127.0.0.1:7700", "[::1]:7700"}) {
    for (const SocketAddress& target : resolve(parse_address(text), fault))
      EXPECT_FALSE(target.own_name) << text;
  }
  EXPECT_EQ(local_address("127.0.0.1:7700").text, "127.0.0.1");
  EXPECT_EQ(local_address("unix:here").text, "127.0.0.1");
}

TEST(RendezvousAddress, KnowsWhichNamesMeanLoopbackEverywhere) {
  for (const char* host : {"localhost", "db.localhost", "localhost.localdomain", "127.0.0.1",
                           "127.0.1.1", "::1", "ip6-localhost"})
    EXPECT_TRUE(means_loopback(host)) << host;
  for (const char* host : {"seed", "localhosts", "128.0.0.1", "::2", "10.0.0.127", "mylocalhost"})
    EXPECT_FALSE(means_loopback(host)) << host;
}

}  // namespace
}  // namespace dunlin::rendezvous
