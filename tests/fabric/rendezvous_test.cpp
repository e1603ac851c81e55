#include <algorithm>
#include <memory>
#include <set>

#include "fabric/rendezvous/roster_exchange.hpp"
#include "fabric/rendezvous_group.hpp"
#include "support/process.hpp"

namespace dunlin::rendezvous {
namespace {

using namespace test;
using dunlin::test::Parent;
using dunlin::test::Process;

/// A process that meets, says what it knows, and ends.
Process member_process(const Options& options, const std::string& endpoint_address) {
  return Process([options, endpoint_address](Parent& parent) {
    const Roster roster = meet_with(options, endpoint_address);
    std::string said = std::to_string(roster.rank) + ":";
    for (const Member& member : roster.members)
      said += " " + member.name + text_of(member.endpoint_address);
    parent.send_line(said);
    return 0;
  });
}

std::string key_text(const Roster& roster) {
  return {reinterpret_cast<const char*>(roster.key.data()), roster.key.size()};
}

/// Each gets another rank, the endpoint addresses of all by rank, and the same key.
void expect_all_meet(const std::vector<Options>& all) {
  std::vector<std::unique_ptr<MemberThread>> members;
  for (std::size_t i = 0; i < all.size(); ++i)
    members.push_back(std::make_unique<MemberThread>(all[i], "card " + std::to_string(i)));
  std::set<Rank> ranks;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Roster& roster = members[i]->roster();
    ASSERT_EQ(roster.members.size(), all.size());
    ranks.insert(roster.rank);
    for (auto& other : members) {
      const std::string endpoint_address =
          text_of(other->roster().members[roster.rank].endpoint_address);
      EXPECT_EQ(endpoint_address, "card " + std::to_string(i));
      EXPECT_EQ(other->roster().key, roster.key);
    }
  }
  EXPECT_EQ(ranks.size(), all.size());
}

/// By RDV-N5 each member gets the rank and the endpoint address of every member.
TEST(RosterExchange, GivesEachMemberARankAndTheEndpointsOfAll) {
  expect_all_meet(std::vector<Options>(7, counted(fresh_address(), 7)));
}

TEST(RosterExchange, WorksOverTcp) {
  expect_all_meet(std::vector<Options>(5, counted(fresh_tcp_address(), 5)));
}

TEST(RosterExchange, WorksOverTcpByName) {
  expect_all_meet(std::vector<Options>(3, counted(fresh_tcp_address("localhost"), 3)));
}

TEST(RosterExchange, WorksOverIpVersion6) {
  const std::string address = fresh_tcp_address("[::1]");
  std::string fault;
  if (!claim(resolve(parse_address(address), fault)).listener)
    GTEST_SKIP() << "there is no IPv6 on this machine";
  expect_all_meet(std::vector<Options>(3, counted(address, 3)));
}

TEST(RosterExchange, GivesANamedMemberThePlaceOfItsName) {
  const std::string address = fresh_address();
  const std::vector<std::string> names{"ada", "bob", "cyd"};
  MemberThread cyd(named(address, names, "cyd"), "c"), ada(named(address, names, "ada"), "a");
  const Roster bob = meet_with(named(address, names, "bob"), "b");
  EXPECT_EQ(bob.rank, 1u);
  EXPECT_EQ(ada.roster().rank, 0u);
  EXPECT_EQ(cyd.roster().rank, 2u);
  EXPECT_EQ(bob.members[2].name, "cyd");
  EXPECT_EQ(text_of(bob.members[2].endpoint_address), "c");
}

TEST(RosterExchange, GivesTheRankThatIsAskedFor) {
  const std::string address = fresh_address();
  MemberThread two(ranked(address, 3, 2)), zero(ranked(address, 3, 0));
  EXPECT_EQ(meet_with(ranked(address, 3, 1)).rank, 1u);
  EXPECT_EQ(two.roster().rank, 2u);
  EXPECT_EQ(zero.roster().rank, 0u);
}

TEST(RosterExchange, WhoTakesAnyRankLeavesThoseThatAreAskedFor) {
  const std::string address = fresh_address();
  MemberThread host(counted(address, 3));
  HandJoiner second(counted(address, 3));
  ASSERT_TRUE(second.come());
  MemberThread last(ranked(address, 3, 0));
  EXPECT_EQ(second.stay(), JoinerHandshake::Outcome::met);
  EXPECT_EQ(host.roster().rank, 1u);
  EXPECT_EQ(second.visit().roster().rank, 2u);
  EXPECT_EQ(last.roster().rank, 0u);
}

TEST(RosterExchange, AGroupOfOneNeedsNobody) {
  const Roster roster = meet_with(counted(fresh_address(), 1), "me");
  EXPECT_EQ(roster.rank, 0u);
  EXPECT_EQ(text_of(roster.members.at(0).endpoint_address), "me");
}

TEST(RosterExchange, HasAKeyOfItsOwn) {
  std::set<std::string> keys;
  for (int i = 0; i < 3; ++i) keys.insert(key_text(meet_with(counted(fresh_address(), 1))));
  EXPECT_EQ(keys.size(), 3u);
}

TEST(RosterExchange, CarriesTheLargestEndpoints) {
  const std::string address = fresh_address();
  const std::string endpoint_address(kMaxEndpointAddressBytes, 'x');
  std::vector<std::unique_ptr<MemberThread>> others;
  for (int i = 0; i < 39; ++i)
    others.push_back(std::make_unique<MemberThread>(counted(address, 40), endpoint_address));
  const Roster roster = meet_with(counted(address, 40), endpoint_address);
  ASSERT_EQ(roster.members.size(), 40u);
  for (const Member& member : roster.members)
    EXPECT_EQ(text_of(member.endpoint_address), endpoint_address);
}

TEST(RosterExchange, WorksBetweenProcesses) {
  const std::string address = fresh_tcp_address();
  const std::vector<std::string> names{"ada", "bob", "cyd"};
  std::vector<Process> members;
  for (const std::string& name : names)
    members.push_back(member_process(named(address, names, name), "'s"));
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(members[rank].receive_line(), std::to_string(rank) + ": ada's bob's cyd's");
    EXPECT_EQ(members[rank].exit_code(), 0);
  }
}

TEST(RosterExchange, MayBeHeldAgainAtOnceAtTheSameAddress) {
  const std::string address = fresh_tcp_address();
  for (int i = 0; i < 20; ++i) expect_all_meet(std::vector<Options>(2, counted(address, 2)));
}

}  // namespace
}  // namespace dunlin::rendezvous
