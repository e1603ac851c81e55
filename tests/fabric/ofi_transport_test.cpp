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
    Network network =
        choose_network({.provider = "tcp", .device = {}, .address = {}, .meeting = "unix:nowhere"});
    OfiTransport transport(network, 2);
    const std::vector<std::vector<std::byte>> cards{transport.card(),
                                                    std::vector<std::byte>(bytes)};
    const std::string text =
        what_is_thrown_by([&] { transport.connect(0, cards, proofs, proofs, 0); });
    EXPECT_TRUE(contains(text, "member 1 says no address")) << text;
  }
}

}  // namespace
}  // namespace dunlin::ofi
