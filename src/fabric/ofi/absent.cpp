#include <dunlin/error.hpp>

#include "fabric/join/network.hpp"
#include "fabric/ofi/offer.hpp"

/// This file replaces the fabric where libfabric or OpenSSL is missing.
namespace dunlin::ofi {

constinit const JoinableNetwork kNetwork{
    .missing =
        "this build of Dunlin has no ofi fabric, because libfabric or OpenSSL was not there when "
        "it was built: install libfabric-dev and libssl-dev, and build it again"};

stream::Offer offer(const JoinOptions&, std::uint32_t) {
  throw Error(std::string(kNetwork.missing));
}

}  // namespace dunlin::ofi
