#include <dunlin/error.hpp>

#include "fabric/join/network.hpp"
#include "fabric/verbs/offer.hpp"

/// This file replaces the fabric where libibverbs, librdmacm or OpenSSL is missing.
namespace dunlin::verbs {

constinit const JoinableNetwork kNetwork{.missing =
                                             "this build of Dunlin has no verbs fabric, because "
                                             "libibverbs, librdmacm or OpenSSL was not "
                                             "there when it was built: install libibverbs-dev, "
                                             "librdmacm-dev and libssl-dev, and build it "
                                             "again"};

std::vector<DeviceAddress> device_addresses() { return {}; }

stream::Offer offer(const JoinOptions&, std::uint32_t) {
  throw Error(std::string(kNetwork.missing));
}

}  // namespace dunlin::verbs
