#include <dunlin/fabric/ofi.hpp>

#include "fabric/ofi/offer.hpp"

/// This file replaces the fabric where libfabric or OpenSSL is missing.
namespace dunlin::ofi {
namespace {

constexpr const char* kWhy =
    "this build of Dunlin has no ofi fabric, because libfabric or OpenSSL was not there when it "
    "was built: install libfabric-dev and libssl-dev, and build it again";

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions&) { throw Error(kWhy); }

std::unique_ptr<PendingJoin> begin_join(const JoinOptions&) { throw Error(kWhy); }

std::shared_ptr<Rendezvous> rendezvous(JoinOptions, std::vector<std::string>) { throw Error(kWhy); }

stream::Offer offer(const NetworkJoinOptions&, std::uint32_t) { throw Error(kWhy); }

std::vector<std::string> networks() { return {kWhy}; }

std::vector<std::string> unfit_networks() { return {}; }

}  // namespace dunlin::ofi
