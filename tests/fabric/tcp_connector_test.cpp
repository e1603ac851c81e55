#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "fabric/tcp/connector.hpp"
#include "support/errors.hpp"

/// How two members make a connection, and what strangers get who connect where they listen.
namespace dunlin::tcp {
namespace {

using test::contains;
using test::what_is_thrown_by;

std::vector<stream::Proof> proofs_of(Rank from, std::uint32_t members) {
  std::vector<stream::Proof> made(members);
  for (Rank to = 0; to < members; ++to)
    made[to].fill(static_cast<std::byte>(1 + from * members + to));
  return made;
}
std::vector<stream::Proof> proofs_to(Rank to, std::uint32_t members) {
  std::vector<stream::Proof> made(members);
  for (Rank from = 0; from < members; ++from) made[from] = proofs_of(from, members)[to];
  return made;
}

Connector new_connector(bool encrypts = false) {
  return {listen_at({.device = {}, .address = {}, .rendezvous = "unix:nowhere"}, 8), encrypts};
}

/// Members of one process, who all know each other's endpoints.
struct Callers {
  explicit Callers(std::uint32_t members, bool encrypts = false) {
    for (Rank rank = 0; rank < members; ++rank) all.push_back(new_connector(encrypts));
    for (const Connector& one : all) endpoints.push_back(one.endpoint_address());
  }
  void begin(Rank rank, std::uint64_t deadline_ns = UINT64_MAX) {
    const auto members = static_cast<std::uint32_t>(all.size());
    all[rank].begin(rank, endpoints, proofs_of(rank, members), proofs_to(rank, members),
                    deadline_ns);
  }
  /// Until all have all connections; by rank of the owner, then of the peer.
  std::vector<std::vector<Wire>> finish() {
    std::vector<std::vector<Wire>> wires(all.size());
    for (auto& row : wires) row.resize(all.size());
    for (bool complete = false; !complete;) {
      complete = true;
      for (Rank rank = 0; rank < all.size(); ++rank) {
        while (auto made = all[rank].next()) wires[rank][made->peer] = std::move(made->wire);
        complete = complete && all[rank].complete();
      }
    }
    return wires;
  }
  std::vector<Connector> all;
  std::vector<std::vector<std::byte>> endpoints;
};

/// So many bytes, there and back.
void expect_carries(Wire& one, Wire& other, std::size_t count) {
  std::vector<std::byte> sent(count);
  for (std::size_t i = 0; i < count; ++i) sent[i] = static_cast<std::byte>(i * 7);
  std::vector<std::byte> received(count);
  std::size_t out = 0;
  for (std::size_t in = 0; in < count;) {
    const std::size_t third = (count - out) / 3;
    const std::array<iovec, 2> pieces{iovec{sent.data() + out, third},
                                      iovec{sent.data() + out + third, count - out - third}};
    if (const ssize_t moved = out < count ? one.send(pieces) : 0; moved > 0)
      out += static_cast<std::size_t>(moved);
    const iovec room{received.data() + in, count - in};
    const ssize_t moved = other.receive(std::span(&room, 1));
    ASSERT_TRUE(moved > 0 || (moved < 0 && errno == EAGAIN));
    if (moved > 0) in += static_cast<std::size_t>(moved);
  }
  EXPECT_EQ(received, sent);
}

TEST(TcpConnector, ConnectsAllMembersWithEachOther) {
  for (const bool encrypts : {false, true}) {
    Callers members(3, encrypts);
    for (Rank rank = 0; rank < 3; ++rank) members.begin(rank);
    auto wires = members.finish();
    for (Rank rank = 0; rank < 3; ++rank)
      for (Rank peer = 0; peer < rank; ++peer) {
        EXPECT_EQ(wires[rank][peer].encrypted(), encrypts);
        expect_carries(wires[rank][peer], wires[peer][rank], 300'000);
        expect_carries(wires[peer][rank], wires[rank][peer], 17);
      }
  }
}

TEST(TcpConnector, EndsAnEncryptedConnectionWithoutASignal) {
  Callers members(2, true);
  members.begin(0);
  members.begin(1);
  auto wires = members.finish();
  wires[1][0].close();
  std::array<std::byte, 8> word{};
  const iovec piece{word.data(), word.size()};
  ssize_t got = -1;
  while (got < 0 && (errno == EAGAIN || errno == 0))
    got = wires[0][1].receive(std::span(&piece, 1));
  EXPECT_TRUE(got == 0 || errno != EAGAIN);
  for (int i = 0; i < 3; ++i) static_cast<void>(wires[0][1].send(std::span(&piece, 1)));
}

/// By TCP-E2 a member that encrypts never falls back to a plain connection.
TEST(TcpConnector, RefusesMembersThatDisagreeOnEncryption) {
  Callers members(2);
  members.all[1] = new_connector(true);
  members.endpoints[1] = members.all[1].endpoint_address();
  const std::string plain = what_is_thrown_by([&] { members.begin(0); });
  EXPECT_TRUE(contains(plain, "member 1 at 127.0.0.1:"));
  EXPECT_TRUE(contains(plain, "encrypts its connections, and this member does not"));
  const std::string encrypted = what_is_thrown_by([&] { members.begin(1); });
  EXPECT_TRUE(contains(encrypted, "does not encrypt its connections, and this member does"));
}

TEST(TcpConnector, RefusesAnEndpointThatNoMemberCouldHave) {
  const std::vector<std::byte> good = Callers(2).endpoints[1];
  std::vector<std::vector<std::byte>> bad{
      {}, std::vector<std::byte>(8), std::vector<std::byte>(500)};
  bad.push_back(good);
  bad.back()[0] = std::byte{'X'};
  bad.push_back(good);
  bad.back()[16] = std::byte{99};  // no family of addresses
  bad.push_back(good);
  bad.back().pop_back();
  for (const auto& text : bad) {
    Callers members(2);
    members.endpoints[1] = text;
    EXPECT_TRUE(
        contains(what_is_thrown_by([&] { members.begin(0); }), "member 1 gives no address"));
  }
}

TEST(TcpConnector, NamesThePeerThatCannotBeReached) {
  Callers members(2);
  members.all[1] = new_connector();  // where the endpoint says, nobody listens any more
  const std::string text = what_is_thrown_by([&] {
    members.begin(0);
    while (!members.all[0].next()) members.all[0].awaited().wait();
  });
  EXPECT_TRUE(contains(text, "connecting to member 1 at 127.0.0.1:"));
  EXPECT_TRUE(contains(text, "failed"));
}

TEST(TcpConnector, NamesThePeersThatDoNotConnectInTime) {
  Callers members(3);
  members.begin(2, 1);
  const std::string text = what_is_thrown_by([&] {
    while (!members.all[2].complete()) static_cast<void>(members.all[2].next());
  });
  EXPECT_TRUE(contains(text, "there is no connection to member 0 at"));
  EXPECT_TRUE(contains(text, "member 1 at"));
}

Wire connect_as_stranger(const std::vector<std::byte>& endpoint) {
  const Endpoint there = decode(endpoint, "it");
  Descriptor socket(
      checked(::socket(there.at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  checked(connect(socket.get(), there.at.generic(), there.at.bytes), "connect");
  return Wire(std::move(socket));
}

/// TCP-C1
TEST(TcpConnector, TakesNobodyWithoutTheProofOfAMember) {
  Callers members(2);
  members.begin(1);
  Ticket right{.from = 0, .to = 1, .proof = proofs_of(0, 2)[1]};
  std::vector<Ticket> wrong(5, right);
  wrong[0].proof[31] ^= std::byte{1};
  wrong[1].from = 1;
  wrong[2].from = 77;
  wrong[3].to = 0;
  wrong[4].magic[0] = 'X';
  std::vector<Wire> strangers;
  for (const Ticket& ticket : wrong) {
    strangers.push_back(connect_as_stranger(members.endpoints[1]));
    const iovec piece{const_cast<Ticket*>(&ticket), sizeof ticket};
    ASSERT_EQ(strangers.back().send(std::span(&piece, 1)), ssize_t{sizeof ticket});
  }
  for (Wire& stranger : strangers) {  // each is closed
    std::byte word{};
    const iovec piece{&word, 1};
    ssize_t got = -1;
    do {
      EXPECT_FALSE(members.all[1].next());
      got = stranger.receive(std::span(&piece, 1));
    } while (got < 0 && errno == EAGAIN);
    EXPECT_LE(got, 0);
  }
  Wire member = connect_as_stranger(members.endpoints[1]);
  const iovec half{&right, 20};
  const iovec rest{reinterpret_cast<std::byte*>(&right) + 20, sizeof right - 20};
  ASSERT_EQ(member.send(std::span(&half, 1)), 20);
  EXPECT_FALSE(members.all[1].next());
  ASSERT_EQ(member.send(std::span(&rest, 1)), ssize_t{sizeof right - 20});
  std::optional<MadeConnection> made;
  while (!(made = members.all[1].next())) members.all[1].awaited().wait();
  EXPECT_EQ(made->peer, 0U);
}

/// TCP-C2
TEST(TcpConnector, LetsNoCrowdOfStrangersKeepAMemberOut) {
  Callers members(2);
  members.begin(1);
  std::vector<Wire> crowd;
  for (std::size_t i = 0; i < 3 * kMaxStrangers; ++i) {
    crowd.push_back(connect_as_stranger(members.endpoints[1]));
    EXPECT_FALSE(members.all[1].next());
    EXPECT_LE(members.all[1].awaited().descriptors.size(), kMaxStrangers + 3);
  }
  members.begin(0);
  auto wires = members.finish();
  expect_carries(wires[0][1], wires[1][0], 100);
}

}  // namespace
}  // namespace dunlin::tcp
