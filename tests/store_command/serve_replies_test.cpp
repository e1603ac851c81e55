#include <string>

#include <gtest/gtest.h>

#include "store_command/conversation.hpp"
#include "store_command/server_process.hpp"
#include "store_command/socket.hpp"

/// Replies of `dunlin store serve` over the store's memory, such as those that are longer than what
/// it keeps for a client.
namespace {

using dunlin::test::request;
using dunlin::test::ServerProcess;
using dunlin::test::Socket;

/// RSP-S2.
TEST(StoreReplies, ComeWholeHoweverLongTheyAre) {
  ServerProcess server(dunlin::test::fresh_group());
  const Socket client(server.port());
  const std::string value(1'000, 'v');
  client.send(request({"SET", "k", value}));
  EXPECT_EQ(client.receive_line(), "+OK\r\n");
  constexpr int kCount = 2'000;  // some 2 MB, beyond what the kernel keeps for a socket at first
  std::string line = "MGET";
  std::string replies = "*" + std::to_string(kCount) + "\r\n";
  for (int i = 0; i < kCount; ++i) {
    line += " k";
    replies += "$1000\r\n" + value + "\r\n";
  }
  client.send(line + "\r\nPING\r\n");
  replies += "+PONG\r\n";
  EXPECT_TRUE(client.receive(replies.size()) == replies);
  server.end();
}

TEST(StoreReplies, TellThatACursorDoesNotExist) {
  ServerProcess server(dunlin::test::fresh_group());
  const Socket client(server.port());
  for (const char* const cursor : {"18446744073709551615", "1125899906842624", "8589934592"}) {
    client.send(request({"SCAN", cursor}));
    EXPECT_EQ(client.receive_line(), "-ERR invalid cursor\r\n") << cursor;
  }
  client.send(request({"DBSIZE"}));
  EXPECT_EQ(client.receive_line(), ":0\r\n");
  server.end();
}

/// The first client's scripts take 100 ms of processor time each.
TEST(StoreReplies, ComeWhileAnotherClientsScriptsRun) {
  ServerProcess server(dunlin::test::fresh_group());
  const Socket first(server.port());
  const Socket second(server.port());
  second.send("PING\r\n");
  EXPECT_EQ(second.receive_line(), "+PONG\r\n");
  std::string scripts;
  for (int i = 0; i < 100; ++i) scripts += request({"EVAL", "while true do end", "0"});
  first.send(scripts);
  EXPECT_TRUE(dunlin::test::contains(first.receive_line(), "which is the limit"));
  second.send(request({"INFO", "stats"}));
  std::string line;
  const std::string name = "total_commands_processed:";
  do line = second.receive_line();
  while (!line.empty() && !line.starts_with(name));
  ASSERT_FALSE(line.empty());
  EXPECT_LT(std::stoi(line.substr(name.size())), 20);
  server.end();
}

}  // namespace
