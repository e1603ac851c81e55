#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "store_command/server_process.hpp"

/// Members of `dunlin store serve` that get keys when they come, and hand them over when they go.
namespace {

using dunlin::app::Status;
using dunlin::process::program_exists;
using dunlin::test::contains;
using dunlin::test::redis_cli;
using dunlin::test::run_store;
using dunlin::test::ServerProcess;
using dunlin::test::Words;

constexpr int kKeys = 200;

/// A line for each key: what redis-cli prints for so many commands.
std::string for_each_key(std::string_view line) {
  std::string lines;
  for (int i = 0; i < kKeys; ++i) lines += fmt::format(fmt::runtime(line), i) + '\n';
  return lines;
}
std::string get_all(ServerProcess& server) {
  return redis_cli(server, {}, for_each_key("get key{0}"));
}
const std::string kAllValues = for_each_key("value{0}");

struct StoreKeysThatMove : testing::Test {
  void SetUp() override {
    if (!program_exists("redis-cli")) GTEST_SKIP() << "redis-cli is missing (Debian: redis-tools)";
  }
  static void put_all(ServerProcess& server) {
    ASSERT_EQ(redis_cli(server, {}, for_each_key("set key{0} value{0}")), for_each_key("OK"));
  }
  static void hand_over(ServerProcess& server) {
    server.signal(SIGTERM);
    server.receive_line_of("has handed its keys over");
    server.receive_line_of("ends because of SIGTERM");
    EXPECT_EQ(server.exit_code(), 0);
  }

  const std::string group = dunlin::test::fresh_group();
};

TEST_F(StoreKeysThatMove, AreTakenByOneThatJoinsAndHandedOverWhenItGoes) {
  ServerProcess a(group, {"--members", "a,b", "--name", "a"});
  ServerProcess b(group, {"--members", "a,b", "--name", "b"});
  put_all(a);
  ServerProcess c(group, {"--join", "--name", "c", "--hand-over"});
  c.port();
  const std::string told = c.receive_line_of("has its share of the keys: ");
  EXPECT_TRUE(contains(told, "1365 of 4096 slots") || contains(told, "1366 of 4096 slots")) << told;
  EXPECT_EQ(get_all(b), kAllValues);
  hand_over(c);
  EXPECT_EQ(get_all(a), kAllValues);
  a.end();
  b.end();
}

TEST_F(StoreKeysThatMove, AreNotTakenByOneThatWantsNone) {
  ServerProcess a(group, {"--name", "a"});
  put_all(a);
  ServerProcess b(group, {"--join", "--name", "b", "--no-keys"});
  b.port();
  b.receive_line_of("holds no keys, and serves those of the others");
  EXPECT_EQ(get_all(b), kAllValues);
  EXPECT_TRUE(contains(redis_cli(b, {"dunlin", "rebalance"}), "contributes no memory"));
  b.kill();
  EXPECT_EQ(get_all(a), kAllValues);
  a.end();
}

TEST_F(StoreKeysThatMove, MoveInACacheToo) {
  ServerProcess a(group, {"--name", "a", "--eviction", "lru", "--hand-over"});
  put_all(a);
  ServerProcess b(group, {"--join", "--name", "b", "--eviction", "lru"});
  b.port();
  b.receive_line_of("has its share of the keys: 2048 of 4096 slots");
  EXPECT_EQ(get_all(b), kAllValues);
  hand_over(a);
  EXPECT_EQ(get_all(b), kAllValues);
  b.end();
}

/// What a tool prints.
std::string tool(const char* name, ServerProcess& server, Status status = Status::ok) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_store({name, "--resp", server.endpoint()}), status);
  return testing::internal::GetCapturedStdout();
}

TEST_F(StoreKeysThatMove, GoAndComeBackByTheTools) {
  ServerProcess a(group, {"--members", "a,b", "--name", "a"});
  ServerProcess b(group, {"--members", "a,b", "--name", "b"});
  put_all(a);
  EXPECT_EQ(tool("drain", b),
            "member 'b' holds no keys any more, and serves those of the others\n");
  EXPECT_EQ(tool("drain", b),
            "member 'b' holds no keys any more, and serves those of the others\n");
  EXPECT_TRUE(contains(tool("status", b), "4096 slots, each at 1 member: all are in their places"));
  EXPECT_EQ(get_all(b), kAllValues);
  testing::internal::CaptureStderr();
  EXPECT_EQ(tool("drain", a, Status::could_not_run), "");
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "fewer other members that hold"));
  EXPECT_EQ(tool("rebalance", b), "member 'b' has its share of the keys: 2048 of 4096 slots\n");
  EXPECT_EQ(tool("drain", a),
            "member 'a' holds no keys any more, and serves those of the others\n");
  a.end();
  EXPECT_EQ(get_all(b), kAllValues);
  b.end();
}

TEST_F(StoreKeysThatMove, AreShownByTheStatus) {
  ServerProcess a(group, {"--name", "a", "--memory", "32"});
  a.port();
  a.receive_line_of("has its share of the keys: 4096 of 4096 slots");
  ServerProcess b(group, {"--join", "--name", "b", "--memory", "96"});
  b.port();
  b.receive_line_of("has its share of the keys: 3072 of 4096 slots");
  for (ServerProcess* const server : {&a, &b}) {
    std::string status;
    do status = tool("status", *server);  // until this server has heard of it, and all is settled
    while (!contains(status, b.endpoint()) || !contains(status, "all are in their places"));
    EXPECT_TRUE(contains(status, "  32   1024       0       0  yes\n")) << status;
    EXPECT_TRUE(contains(status, "  96   3072       0       0  yes\n")) << status;
    EXPECT_TRUE(contains(status, "   0  a  ")) << status;
  }
  b.kill();
  std::string status;
  do status = tool("status", a);
  while (!contains(status, "3072 lost"));
  EXPECT_TRUE(contains(status, "All members that held the lost slots have failed")) << status;
  a.end();
}

TEST_F(StoreKeysThatMove, AreHandedOverByAFounder) {
  ServerProcess a(group, {"--members", "a,b", "--name", "a", "--hand-over"});
  ServerProcess b(group, {"--members", "a,b", "--name", "b"});
  put_all(b);
  hand_over(a);
  EXPECT_EQ(get_all(b), kAllValues);
  b.end();
}

/// The words of a founder.
Words with_copies(const std::string& founders, const std::string& name) {
  return {"--members", founders, "--copies", "2", "--hand-over", "--name", name};
}

TEST_F(StoreKeysThatMove, AreHandedOverByAFounderWithTwoCopies) {
  ServerProcess a(group, with_copies("a,b,c", "a"));
  ServerProcess b(group, with_copies("a,b,c", "b"));
  ServerProcess c(group, with_copies("a,b,c", "c"));
  put_all(b);
  hand_over(a);
  EXPECT_EQ(get_all(b), kAllValues);
  EXPECT_EQ(get_all(c), kAllValues);
  // One member has no second copies, so the keys cannot be handed over.
  b.signal(SIGTERM);
  b.receive_line_of("ends because of SIGTERM");
  EXPECT_EQ(b.exit_code(), 3);
  EXPECT_EQ(get_all(c), kAllValues);
}

TEST_F(StoreKeysThatMove, AreTakenByOneThatJoinsWithTwoCopies) {
  ServerProcess a(group, {"--members", "a,b,c", "--copies", "2", "--name", "a"});
  ServerProcess b(group, {"--members", "a,b,c", "--copies", "2", "--name", "b"});
  ServerProcess c(group, {"--members", "a,b,c", "--copies", "2", "--name", "c"});
  put_all(a);
  ServerProcess d(group, {"--join", "--copies", "2", "--name", "d", "--hand-over"});
  d.port();
  d.receive_line_of("has its share of the keys: 1024 of 4096 slots, and copies of 1024 others");
  EXPECT_EQ(get_all(b), kAllValues);
  hand_over(d);
  EXPECT_EQ(get_all(a), kAllValues);
  a.end();
  b.end();
  c.end();
}

TEST_F(StoreKeysThatMove, AreNotMissedWhereThereAreNone) {
  ServerProcess alone(group, {"--hand-over"});
  alone.port();
  alone.end();
}

TEST_F(StoreKeysThatMove, GoWithTheLastMember) {
  ServerProcess alone(group, {"--hand-over"});
  put_all(alone);
  alone.signal(SIGTERM);
  alone.receive_line_of("ends because of SIGTERM");
  alone.receive_line_of("have gone with this member: there is no other member");
  EXPECT_EQ(alone.exit_code(), 3);
}

/// The other member is stopped, so the keys cannot move until it goes on.
TEST_F(StoreKeysThatMove, GoIfAnotherSignalComes) {
  ServerProcess a(group, {"--members", "a,b", "--name", "a", "--hand-over"});
  ServerProcess b(group, {"--members", "a,b", "--name", "b"});
  put_all(a);
  b.signal(SIGSTOP);
  a.signal(SIGTERM);
  a.receive_line_of("hands its keys over");
  a.signal(SIGINT);
  a.receive_line_of("leaves without handing over the rest, because of SIGINT");
  b.signal(SIGCONT);
  a.receive_line_of("ends because of SIGTERM");
  EXPECT_EQ(a.exit_code(), 3);
  b.end();
}

/// Nobody sees what it prints any more, as when a terminal is closed.
TEST_F(StoreKeysThatMove, AreHandedOverByOneThatCannotPrint) {
  ServerProcess a(group, {"--members", "a,b", "--name", "a", "--hand-over"},
                  [] { signal(SIGPIPE, SIG_IGN); });
  ServerProcess b(group, {"--members", "a,b", "--name", "b"});
  put_all(a);
  ASSERT_EQ(shutdown(a.descriptor(), SHUT_RD), 0);
  a.signal(SIGHUP);
  a.signal(SIGHUP);
  EXPECT_NE(a.exit_code(), 0) << "it says that it could not print";
  EXPECT_EQ(get_all(b), kAllValues);
  b.end();
}

TEST(StoreMovesOnTheCommandLine, AreRefusedWhereKeysCannotMove) {
  struct Refusal {
    Words words;
    const char* complaint;
  };
  const Refusal refusals[] = {
      {{"serve", "--no-keys"}, "it is for one that comes with --join"},
      {{"serve", "--join", "--name", "c", "--no-keys", "--hand-over"}, "holds no keys"},
      {{"serve", "--announce", "two words"}, "must be a host's name or address"},
  };
  for (const Refusal& refusal : refusals) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_store(refusal.words), Status::bad_input);
    EXPECT_TRUE(dunlin::test::contains(testing::internal::GetCapturedStderr(), refusal.complaint))
        << refusal.complaint;
  }
}

}  // namespace
