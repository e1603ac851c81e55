#include <string>

#include <gtest/gtest.h>

#include <dunlin/dunlin.hpp>

#include "store_command/conversation.hpp"
#include "store_command/server_process.hpp"
#include "store_command/socket.hpp"
#include "support/rounds.hpp"

/// Transactions and scripts of `dunlin store serve`, over the members' memory.
namespace {

using dunlin::test::kSanitized;
using dunlin::test::request;
using dunlin::test::ServerProcess;
using dunlin::test::Socket;
using dunlin::test::Words;

Words founder(const std::string& name) { return {"--members", "a,b", "--name", name}; }

/// Sends a request, and returns so many lines of the reply.
std::string ask(const Socket& client, const std::string& line, int lines = 1) {
  client.send(line + "\r\n");
  std::string reply;
  for (int i = 0; i < lines; ++i) reply += client.receive_line();
  return reply;
}

TEST(StoreTransactions, HappenAsAWholeWhileOthersChangeTheSameKeys) {
  const std::string group = dunlin::test::fresh_group();
  ServerProcess a(group, founder("a"));
  ServerProcess b(group, founder("b"));
  const Socket first(a.port());
  const Socket second(b.port());
  const int count = kSanitized ? 50 : 300;
  std::string transfers;
  for (int i = 0; i < count; ++i) {
    const std::string from = "account" + std::to_string(i % 4);
    const std::string to = "account" + std::to_string((i + 1) % 4);
    transfers += request({"MULTI"}) + request({"DECRBY", from, "3"}) +
                 request({"INCRBY", to, "3"}) + request({"EXEC"});
  }
  first.send(transfers);
  second.send(transfers);
  for (const Socket* const client : {&first, &second})
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(client->receive_line(), "+OK\r\n");
      EXPECT_EQ(client->receive_line(), "+QUEUED\r\n");
      EXPECT_EQ(client->receive_line(), "+QUEUED\r\n");
      ASSERT_EQ(client->receive_line(), "*2\r\n");
      EXPECT_EQ(client->receive_line().front(), ':');
      EXPECT_EQ(client->receive_line().front(), ':');
    }
  long total = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(ask(first, "STRLEN account" + std::to_string(i)).front(), ':');
    ask(second, "GET account" + std::to_string(i));
    total += std::stol(second.receive_line());
  }
  EXPECT_EQ(total, 0);
  b.end();
  a.end();
}

TEST(StoreTransactions, DoNothingIfAClientOfAnotherMemberHasChangedAWatchedKey) {
  const std::string group = dunlin::test::fresh_group();
  ServerProcess a(group, founder("a"));
  ServerProcess b(group, founder("b"));
  const Socket client(a.port());
  const Socket other(b.port());
  for (const char* const key : {"k0", "k1", "k2", "k3"}) {  // of either member
    EXPECT_EQ(ask(client, std::string("WATCH ") + key), "+OK\r\n");
    EXPECT_EQ(ask(other, std::string("SET ") + key + " theirs"), "+OK\r\n");
    EXPECT_EQ(ask(client, "MULTI"), "+OK\r\n");
    EXPECT_EQ(ask(client, std::string("SET ") + key + " ours"), "+QUEUED\r\n");
    EXPECT_EQ(ask(client, "EXEC"), "*-1\r\n");
    EXPECT_EQ(ask(other, std::string("GET ") + key, 2), "$6\r\ntheirs\r\n");
    EXPECT_EQ(ask(client, std::string("WATCH ") + key), "+OK\r\n");
    EXPECT_EQ(ask(client, "MULTI"), "+OK\r\n");
    EXPECT_EQ(ask(client, std::string("SET ") + key + " ours"), "+QUEUED\r\n");
    EXPECT_EQ(ask(client, "EXEC", 2), "*1\r\n+OK\r\n");
    EXPECT_EQ(ask(other, std::string("GET ") + key, 2), "$4\r\nours\r\n");
  }
  EXPECT_EQ(ask(client, "RENAME k0 elsewhere"), "+OK\r\n");
  EXPECT_EQ(ask(other, "EVAL \"return redis.call('del', KEYS[1], KEYS[2])\" 2 elsewhere k1"),
            ":2\r\n");
  EXPECT_EQ(ask(client, "DBSIZE"), ":2\r\n");
  std::string sets = "MSET";
  for (int i = 0; i < 300; ++i) sets += " f" + std::to_string(i) + " v";
  EXPECT_EQ(ask(client, sets), "+OK\r\n");
  EXPECT_EQ(ask(other, "DBSIZE"), ":302\r\n");
  EXPECT_EQ(ask(client, "FLUSHALL"), "+OK\r\n");
  EXPECT_EQ(ask(other, "DBSIZE"), ":0\r\n");
  b.end();
  a.end();
}

/// As docs/store.md says.
TEST(StoreTransactions, AreSeenByAProgramThatJoinsTheServers) {
  const std::string group_name = dunlin::test::fresh_group();
  ServerProcess server(group_name);
  const Socket client(server.port());
  EXPECT_EQ(ask(client, "SET k value"), "+OK\r\n");
  dunlin::test::Process program([&](dunlin::test::Parent&) {
    auto group = dunlin::Group::join(
        "program", {.rendezvous = dunlin::make_rendezvous({.group = group_name})});
    dunlin::GroupMembers members(*group, 64);
    dunlin::remote::Progress progress(group->fabric(), members);
    dunlin::Store store(progress);
    const bool is_there = store.get("k").outcome().text() == "value";
    const bool is_put = store.put("other", "of a program").outcome().ok();
    group->leave();
    dunlin::run_until(
        *group, [&] { return group->ended(); }, 60'000);
    return is_there && is_put ? 0 : 1;
  });
  EXPECT_EQ(program.exit_code(), 0);
  EXPECT_EQ(ask(client, "GET other", 2), "$12\r\nof a program\r\n");
  server.end();
}

}  // namespace
