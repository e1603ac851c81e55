#include <string>

#include <gtest/gtest.h>

#include "store_command/conversation.hpp"
#include "support/errors.hpp"

/// DUNLIN STATUS, DRAIN and REBALANCE, without a store.
namespace {

using dunlin::test::contains;

struct MemberCommands : dunlin::test::OneClient {
  MemberCommands() {
    values.rank = 1;
    values.copies_of_a_key = 2;
    values.all_servers = {
        {.rank = 1, .id = std::string(40, 'b'), .name = "b", .host = "127.0.0.1", .port = 7001}};
    values.where_keys_are = {
        .version = 7,
        .slots = 4096,
        .lost = 1,
        .lacking = 2,
        .moving = 3,
        .members = {{.rank = 0, .weight = 64, .owned = 2048, .copies = 2040, .partial = 8},
                    {.rank = 1, .weight = 0, .takes = false}}};
  }
};

TEST_F(MemberCommands, TellWhichMemberHoldsWhichShare) {
  const std::string status = ask("dunlin status");
  for (const char* const part :
       {"*16\r\n$4\r\nrank\r\n:1\r\n$7\r\nversion\r\n:7\r\n$5\r\nslots\r\n:4096\r\n$6\r\ncopies\r\n"
        ":2\r\n$4\r\nlost\r\n:1\r\n$7\r\nlacking\r\n:2\r\n$6\r\nmoving\r\n:3\r\n$7\r\nmembers\r\n"
        "*2\r\n",
        "*18\r\n$4\r\nrank\r\n:0\r\n$4\r\nname\r\n$0\r\n\r\n$4\r\nhost\r\n$0\r\n\r\n$4\r\nport\r\n"
        ":0\r\n$6\r\nweight\r\n:64\r\n$5\r\nowned\r\n:2048\r\n$6\r\ncopies\r\n:2040\r\n$7\r\n"
        "partial\r\n:8\r\n$5\r\ntakes\r\n:1\r\n",
        "$4\r\nname\r\n$1\r\nb\r\n$4\r\nhost\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n:7001\r\n"})
    EXPECT_TRUE(contains(status, part)) << status;
}

TEST_F(MemberCommands, HandTheKeysOver) {
  EXPECT_EQ(ask("dunlin drain"), "+OK\r\n");
  EXPECT_FALSE(values.holds_keys);
  values.where_keys_are.members[1].partial = 5;
  EXPECT_TRUE(contains(ask("DUNLIN DRAIN"), "-ERR 5 slots are still here, because no other"));
  values.where_keys_are.members[1].weight = 64;
  EXPECT_TRUE(contains(ask("dunlin drain"), "-ERR this member keeps its share"));
  values.where_keys_are.members.pop_back();
  EXPECT_EQ(ask("dunlin drain"), "+OK\r\n") << "the map does not have it";
}

TEST_F(MemberCommands, GiveTheShareBack) {
  values.holds_keys = false;
  EXPECT_EQ(ask("dunlin rebalance"), "+OK\r\n");
  EXPECT_TRUE(values.holds_keys);
}

TEST_F(MemberCommands, SayWhyTheyCannot) {
  values.why_not = "ERR it cannot be";
  EXPECT_EQ(ask("dunlin drain"), "-ERR it cannot be\r\n");
  EXPECT_EQ(ask("dunlin rebalance"), "-ERR it cannot be\r\n");
  EXPECT_EQ(ask("dunlin fly"), "-ERR unknown subcommand. Try DUNLIN HELP.\r\n");
  EXPECT_EQ(ask("dunlin"), "-ERR wrong number of arguments for 'dunlin' command\r\n");
  EXPECT_TRUE(contains(ask("dunlin help"), "REBALANCE : gives this member its share"));
  EXPECT_EQ(ask("multi"), "+OK\r\n");
  EXPECT_EQ(ask("dunlin drain"), "-ERR Command not allowed inside a transaction\r\n");
}

}  // namespace
