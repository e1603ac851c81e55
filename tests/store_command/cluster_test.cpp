#include <string>

#include <gtest/gtest.h>

#include "store/redis_slot.hpp"
#include "store_command/conversation.hpp"
#include "store_command/server_process.hpp"

/// What clients of a Redis Cluster ask.
namespace {

using dunlin::Rank;
using dunlin::app::resp::redis_slot_of;
using dunlin::app::resp::ServedAt;
using dunlin::process::program_exists;
using dunlin::test::contains;
using dunlin::test::ServerProcess;
using dunlin::test::Words;

/// The values are those of Redis: CLUSTER KEYSLOT.
TEST(RedisSlot, IsThatOfRedisCluster) {
  EXPECT_EQ(redis_slot_of(""), 0U);
  EXPECT_EQ(redis_slot_of("123456789"), 0x31c3U);
  EXPECT_EQ(redis_slot_of("foo"), 12182U);
  EXPECT_EQ(redis_slot_of("bar"), 5061U);
  EXPECT_EQ(redis_slot_of("{foo}.a"), redis_slot_of("foo"));
  EXPECT_EQ(redis_slot_of("a{foo}{bar}"), redis_slot_of("foo"));
  EXPECT_EQ(redis_slot_of("a{{foo}}"), redis_slot_of("{foo"));
  EXPECT_NE(redis_slot_of("{}foo"), redis_slot_of("foo")) << "empty braces name no part";
  EXPECT_NE(redis_slot_of("{foo"), redis_slot_of("foo"));
}

ServedAt server_of(Rank rank, const std::string& name) {
  return {.rank = rank,
          .id = std::string(39, 'f') + name,
          .name = name,
          .host = "127.0.0.1",
          .port = 7000 + rank};
}

// --- the commands --------------------------------------------------------------------------------

struct RedisCluster : dunlin::test::OneClient {
  RedisCluster() {
    values.all_servers = {server_of(0, "a"), server_of(1, "b"), server_of(4, "e")};
    values.rank = 1;
    values.where_keys_are = {.version = 7, .slots = 4096, .members = {}};
  }
};

/// The reply to CLUSTER SLOTS has this for each server.
std::string slots_of(const char* first, const char* last, const ServedAt& server) {
  return std::string("*3\r\n:") + first + "\r\n:" + last +
         "\r\n*4\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(server.port) + "\r\n$40\r\n" +
         server.id + "\r\n*0\r\n";
}

TEST_F(RedisCluster, DealsTheSlotsInEqualRanges) {
  EXPECT_EQ(ask("cluster slots"), "*3\r\n" + slots_of("0", "5460", server_of(0, "a")) +
                                      slots_of("5461", "10921", server_of(1, "b")) +
                                      slots_of("10922", "16383", server_of(4, "e")));
  values.all_servers = {server_of(1, "b")};
  EXPECT_EQ(ask("cluster slots"), "*1\r\n" + slots_of("0", "16383", server_of(1, "b")));
}

TEST_F(RedisCluster, NamesTheServers) {
  EXPECT_EQ(ask("cluster myid"), "$40\r\n" + service.run_id() + "\r\n");
  const std::string nodes = ask("cluster nodes");
  EXPECT_TRUE(
      contains(nodes, server_of(0, "a").id + " 127.0.0.1:7000@0 master - 0 0 1 connected 0-5460\n"))
      << nodes;
  EXPECT_TRUE(contains(nodes, "127.0.0.1:7001@0 myself,master - 0 0 2 connected 5461-10921\n"));
  const std::string shards = ask("cluster shards");
  for (const char* const part :
       {"*3\r\n*4\r\n$5\r\nslots\r\n*2\r\n:0\r\n:5460\r\n$5\r\nnodes\r\n*1\r\n*14\r\n",
        "$4\r\nport\r\n:7004\r\n", "$6\r\nhealth\r\n$6\r\nonline\r\n"})
    EXPECT_TRUE(contains(shards, part)) << shards;
}

TEST_F(RedisCluster, SaysWhetherAllKeysHaveAMember) {
  EXPECT_TRUE(contains(ask("cluster info"), "cluster_state:ok\r\n"));
  EXPECT_TRUE(contains(ask("cluster info"), "cluster_known_nodes:3\r\n"));
  values.where_keys_are.lost = 1;
  EXPECT_TRUE(contains(ask("cluster info"), "cluster_state:fail\r\n"));
}

TEST_F(RedisCluster, TakesWhatItsClientsSend) {
  EXPECT_EQ(ask("cluster keyslot foo"), ":12182\r\n");
  EXPECT_EQ(ask("readonly"), "+OK\r\n");
  EXPECT_EQ(ask("readwrite"), "+OK\r\n");
  EXPECT_EQ(ask("cluster meet 127.0.0.1 7000"),
            "-ERR unknown subcommand 'meet'. Try CLUSTER HELP.\r\n");
  EXPECT_TRUE(contains(ask("cluster help"), "KEYSLOT <key>: "));
}

// --- clients -------------------------------------------------------------------------------------

struct StoreClusterClients : testing::Test {
  Words founder(const std::string& name) const {
    return {"--members", "a,b,c", "--name", name, "--copies", "2"};
  }
  const std::string group = dunlin::test::fresh_group();
  ServerProcess a{group, founder("a")};
  ServerProcess b{group, founder("b")};
  ServerProcess c{group, founder("c")};
};

TEST_F(StoreClusterClients, OfRedisPyGoOnWhenAServerDies) {
  const std::string python = DUNLIN_VENV_PYTHON;
  if (!dunlin::process::run({.command = {python, "-c", "import redis"}}).status.well())
    GTEST_SKIP() << "redis-py is missing (build/venv: redis)";
  const auto outcome =
      dunlin::process::run({.command = {python, DUNLIN_REDIS_PY_CLUSTER_TEST,
                                        std::to_string(c.pid()), c.port(), b.port(), a.port()}});
  EXPECT_TRUE(outcome.status.well()) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "all as expected")) << outcome.output;
  EXPECT_EQ(c.exit_code(), -SIGKILL);
  a.end();
  b.end();
}

TEST_F(StoreClusterClients, OfRedisBenchmarkSpreadTheirRequests) {
  if (!program_exists("redis-benchmark")) GTEST_SKIP() << "redis-benchmark is missing";
  for (ServerProcess* const server : {&a, &b, &c})
    while (
        !contains(dunlin::test::redis_cli(*server, {"cluster", "info"}), "cluster_known_nodes:3"))
      ASSERT_FALSE(HasFailure());
  const auto outcome =
      dunlin::process::run({.command = {"redis-benchmark", "-p", b.port(), "--cluster", "-n",
                                        "1000", "-r", "1000", "-q", "-t", "set,get"}});
  EXPECT_TRUE(outcome.status.well()) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "Cluster has 3 master nodes")) << outcome.output;
  EXPECT_FALSE(contains(outcome.output, "rror")) << outcome.output;
  for (ServerProcess* const server : {&a, &b, &c}) server->end();
}

}  // namespace
