#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store_command/conversation.hpp"
#include "store_command/server_process.hpp"
#include "support/rounds.hpp"

/// What servers do with their memory, as clients see it.
namespace {

using dunlin::process::program_exists;
using dunlin::test::contains;
using dunlin::test::kSanitized;
using dunlin::test::redis_cli;
using dunlin::test::request;
using dunlin::test::ServerProcess;

struct StoreMemory : testing::Test {
  void SetUp() override {
    if (!program_exists("redis-cli")) GTEST_SKIP() << "redis-cli is missing (Debian: redis-tools)";
  }
  /// Sets one key to values of many sizes, each of which is erased before the next one.
  static void set_and_erase(ServerProcess& server) {
    std::string requests;
    int count = 0;
    for (std::size_t bytes = 10; bytes < 32'000; bytes = bytes * 5 / 4, count += 2)
      requests += request({"SET", "key", std::string(bytes, 'v')}) + request({"DEL", "key"});
    const std::string end = "errors: 0, replies: " + std::to_string(count);
    const std::string said = redis_cli(server, {"--pipe"}, requests);
    EXPECT_TRUE(contains(said, end)) << said;
  }
  /// A number of INFO.
  static long figure(ServerProcess& server, const std::string& name) {
    const std::string info = redis_cli(server, {"info"});
    const std::size_t at = info.find("\n" + name + ":");
    EXPECT_NE(at, std::string::npos) << name;
    return at == std::string::npos ? -1 : std::stol(info.substr(at + name.size() + 2));
  }
  template <class Condition>
  static bool until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition())
      if (std::chrono::steady_clock::now() > end) return false;
    return true;
  }
  const std::string group = dunlin::test::fresh_group();
};

TEST_F(StoreMemory, ServersThatHoldOneValueAtATimeHaveRoomForIt) {
  std::vector<std::unique_ptr<ServerProcess>> servers;
  for (const char* const name : {"a", "b", "c", "d"})
    servers.push_back(std::make_unique<ServerProcess>(
        group, dunlin::test::Words{"--members", "a,b,c,d", "--name", name, "--memory", "3"}));
  for (const auto& server : servers) server->port();
  for (int round = 0; round < 2; ++round)
    for (const auto& server : servers) set_and_erase(*server);
  EXPECT_EQ(redis_cli(*servers[0], {"dbsize"}), "0\n");
  for (const auto& server : servers) EXPECT_EQ(figure(*server, "used_memory"), 0);
  for (const auto& server : servers)
    EXPECT_TRUE(until([&] { return figure(*server, "memory_held_unused") == 0; }))
        << "empty slabs do not come back by themselves";
  for (const auto& server : servers) server->end();
}

TEST_F(StoreMemory, ServersThatJoinAndLeaveTakeNoneWithThem) {
  ServerProcess founder(group, {"--members", "a", "--name", "a", "--memory", "2"});
  founder.port();
  for (const char* const name : {"b", "c", "d"}) {
    ServerProcess joiner(group, {"--join", "--name", name});
    set_and_erase(joiner);
    joiner.end();
  }
  ServerProcess last(group, {"--join", "--name", "e"});
  set_and_erase(last);
  set_and_erase(founder);
  last.end();
  founder.end();
}

/// More goes through the server than it has memory.
TEST_F(StoreMemory, KeysThatHaveExpiredKeepNobodyFromSetting) {
  constexpr int kKeys = kSanitized ? 10'000 : 60'000;
  ServerProcess server(group, {"--memory", kSanitized ? "16" : "64"});
  std::string requests;
  for (int i = 0; i < kKeys; ++i)
    requests += request({"SET", "key" + std::to_string(i), std::string(1'000, 'v'), "PX", "50"});
  const std::string said = redis_cli(server, {"--pipe"}, requests);
  EXPECT_TRUE(contains(said, "errors: 0, replies: " + std::to_string(kKeys))) << said;
  EXPECT_TRUE(until([&] { return redis_cli(server, {"dbsize"}) == "0\n"; })) << "DBSIZE";
  EXPECT_EQ(figure(server, "expired_keys"), kKeys);
  server.end();
}

TEST_F(StoreMemory, AServerThatIsFullSaysWhatHelps) {
  ServerProcess server(group, {"--memory", "1"});
  std::string said;
  for (int i = 0; i < 10'000 && !contains(said, "OOM"); ++i)
    said = redis_cli(server, {"set", std::to_string(i), std::string(20'000, 'v')});
  for (const char* const word : {"OOM ", "--memory", "--eviction lru", "maxmemory", "erase keys"})
    EXPECT_TRUE(contains(said, word)) << said;
  EXPECT_EQ(redis_cli(server, {"del", "0"}), "1\n");
  EXPECT_EQ(redis_cli(server, {"set", "other", std::string(20'000, 'v')}), "OK\n");
  server.end();
}

/// The index has some 170,000 main headers.
TEST_F(StoreMemory, ANearlyEmptyServerIsScannedByOneCall) {
  ServerProcess server(group, {"--memory", "256"});
  EXPECT_TRUE(redis_cli(server, {"scan", "0", "count", "1000"}).starts_with("0\n"));
  std::string requests;
  for (int i = 0; i < 300; ++i) requests += request({"SET", "key" + std::to_string(i), "v"});
  redis_cli(server, {"--pipe"}, requests);
  const std::string scanned = redis_cli(server, {"scan", "0", "count", "1000"});
  EXPECT_TRUE(scanned.starts_with("0\n")) << scanned.substr(0, 100);
  std::size_t keys = 0;
  for (std::size_t at = 0; (at = scanned.find("key", at)) != std::string::npos; ++at) ++keys;
  EXPECT_EQ(keys, 300U);
  server.end();
}

}  // namespace
