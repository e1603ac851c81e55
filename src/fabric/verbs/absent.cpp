#include <dunlin/fabric/verbs.hpp>

#include "fabric/verbs/offer.hpp"

/// This file replaces the fabric where libibverbs, librdmacm or OpenSSL is missing.
namespace dunlin::verbs {
namespace {

constexpr const char* kWhy =
    "this build of Dunlin has no verbs fabric, because libibverbs, librdmacm or OpenSSL was not "
    "there when it was built: install libibverbs-dev, librdmacm-dev and libssl-dev, and build it "
    "again";

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions&) { throw Error(kWhy); }

std::unique_ptr<PendingJoin> begin_join(const JoinOptions&) { throw Error(kWhy); }

std::shared_ptr<Rendezvous> rendezvous(JoinOptions, std::vector<std::string>) { throw Error(kWhy); }

std::vector<std::string> devices() { return {kWhy}; }

std::vector<DeviceAddress> device_addresses() { return {}; }

stream::Offer offer(const NetworkJoinOptions&, std::uint32_t) { throw Error(kWhy); }

}  // namespace dunlin::verbs
