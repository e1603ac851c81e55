#include "store/server_list.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

/// The list on which the servers of a store agree.
namespace {

using dunlin::Rank;
using dunlin::app::resp::ServedAt;
using dunlin::app::resp::ServerList;

ServedAt server_of(Rank rank, const std::string& name) {
  return {.rank = rank,
          .id = std::string(39, 'f') + name,
          .name = name,
          .host = "127.0.0.1",
          .port = 7000 + rank};
}

void decide(ServerList& list, std::string_view line) {
  list.decided(std::as_bytes(std::span(line)));
}

struct ListOfServers : testing::Test {
  ListOfServers() {
    const std::vector<Rank> members{0, 1, 4};
    list.members_are(members);
    decide(list, ServerList::proposal_of(server_of(4, "e")));
    decide(list, ServerList::proposal_of(server_of(0, "a")));
  }
  ServerList list;
};

TEST_F(ListOfServers, HasTheServersByRank) {
  EXPECT_EQ(list.servers(), (std::vector{server_of(0, "a"), server_of(4, "e")}));
  ServedAt moved = server_of(0, "a");
  moved.host = "::1";
  decide(list, ServerList::proposal_of(moved));
  EXPECT_EQ(list.servers(), (std::vector{moved, server_of(4, "e")}));
}

TEST_F(ListOfServers, LosesThoseThatEndAndThoseThatFail) {
  decide(list, ServerList::proposal_to_end(4));
  decide(list, ServerList::proposal_to_end(1));
  EXPECT_EQ(list.servers(), std::vector{server_of(0, "a")});
  list.members_are(std::vector<Rank>{1, 4});
  EXPECT_TRUE(list.servers().empty());
  decide(list, ServerList::proposal_of(server_of(0, "a")));
  EXPECT_TRUE(list.servers().empty()) << "of one that has gone meanwhile";
}

TEST_F(ListOfServers, IsTheSameAfterItWasSavedAndLoaded) {
  ServerList other;
  ASSERT_TRUE(other.load(list.save()));
  EXPECT_EQ(other.servers(), list.servers());
  decide(other, ServerList::proposal_of(server_of(1, "b")));
  EXPECT_EQ(other.servers().size(), 3U) << "it knows the members";
  ServerList empty;
  EXPECT_TRUE(empty.load(ServerList().save()));
}

TEST_F(ListOfServers, RefusesWhatIsNoLineOfAServer) {
  const std::vector<ServedAt> before = list.servers();
  const std::string id(40, '0');
  for (const std::string& line :
       {std::string(), std::string("x"), "1 " + id, "1 " + id + " 70000 host b",
        "1 " + id + " 7001  b", "1 " + id.substr(1) + " 7001 host b",
        "1 " + id + " 7001 " + std::string(129, 'h') + " b", std::string("99999999999999")}) {
    decide(list, line);
    EXPECT_EQ(list.servers(), before) << line;
    const std::string state = "0 1 4\n" + line + "\n";
    ServerList other;
    EXPECT_FALSE(other.load(std::as_bytes(std::span(state)))) << line;
  }
}

}  // namespace
