#include <string>

#include <gtest/gtest.h>

#include "store_command/conversation.hpp"
#include "store_command/server_process.hpp"
#include "store_command/socket.hpp"

/// Replies of `dunlin store serve` that are longer than what it keeps for a client.
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

}  // namespace
