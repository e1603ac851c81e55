#include "fabric/ofi/ofi_transport.hpp"

#include <gtest/gtest.h>

#include "support/errors.hpp"

/// What a member says of itself when it meets is bytes from a network.
namespace dunlin::ofi {
namespace {

using test::contains;
using test::what_is_thrown_by;

TEST(OfiTransport, RefusesAPeersAddressThatNoNetworkCouldHave) {
  constexpr std::size_t kFarTooLong = 1000;
  const std::vector<stream::Proof> proofs(2);
  for (const std::size_t bytes : {std::size_t{0}, kFarTooLong}) {
    Network network = choose_network(
        {.provider = "tcp", .device = {}, .address = {}, .rendezvous = "unix:nowhere"});
    OfiTransport transport(network, 2);
    const std::vector<std::vector<std::byte>> endpoint_addresses{transport.endpoint_address(),
                                                                 std::vector<std::byte>(bytes)};
    const std::string text =
        what_is_thrown_by([&] { transport.connect(0, endpoint_addresses, proofs, proofs, 0); });
    EXPECT_TRUE(contains(text, "member 1 says no address")) << text;
  }
}

TEST(OfiTransport, NamesThePeerThatCannotBeReachedAndItsAddress) {
  const std::vector<stream::Proof> proofs(2);
  const auto network = [] {
    return choose_network(
        {.provider = "tcp", .device = {}, .address = {}, .rendezvous = "unix:nowhere"});
  };
  Network ours = network();
  OfiTransport transport(ours, 2);
  std::vector<std::byte> endpoint_address;
  {
    Network theirs = network();
    endpoint_address = OfiTransport(theirs, 2).endpoint_address();  // where nobody listens any more
  }
  const std::vector<std::vector<std::byte>> endpoint_addresses{transport.endpoint_address(),
                                                               endpoint_address};
  const std::string text = what_is_thrown_by([&] {
    transport.connect(0, endpoint_addresses, proofs, proofs, UINT64_MAX);
    while (!transport.connected()) transport.awaited().wait();
  });
  EXPECT_TRUE(contains(text, "connecting to member 1 at " +
                                 endpoint_address_text("tcp", endpoint_address) + " failed: "));
  EXPECT_TRUE(contains(endpoint_address_text("tcp", endpoint_address), "127.0.0.1:"));
}

}  // namespace
}  // namespace dunlin::ofi
