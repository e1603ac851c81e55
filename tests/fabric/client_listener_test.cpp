#include "fabric/client_listener.hpp"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/errors.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

constexpr int kClients = 3;

int turn_away_all(test::Parent& parent) {
  ClientListener listener("127.0.0.1", 0, "give another one");
  parent.send_line(std::to_string(listener.address().port()));
  if (parent.receive_line() != "connected") return 1;
  const rlimit few{.rlim_cur = 64, .rlim_max = 64};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 2;
  std::vector<Descriptor> all;
  do all.emplace_back(dup(parent.descriptor()));
  while (all.back());
  for (int client = 0; client < kClients; ++client) {
    const auto arrival = listener.accept();
    if (!arrival || !arrival->excess) return 3 + client;
  }
  return 0;
}

TEST(ClientListener, TurnsAwayOneClientAfterTheOtherIfThereIsNoDescriptor) {
  test::Process server(turn_away_all);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoul(server.receive_line())));
  std::array<Descriptor, kClients> clients;
  for (Descriptor& client : clients) {
    client = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  server.send_line("connected");
  EXPECT_EQ(server.exit_code(), 0);
}

TEST(ClientListener, TakesNoStarForAnAddress) {
  EXPECT_TRUE(test::contains(
      test::what_is_thrown_by([] { const ClientListener any("*", 0, "give another one"); }),
      "cannot listen at * port 0: not an address"));
}

}  // namespace
}  // namespace dunlin
