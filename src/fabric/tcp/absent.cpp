#include <dunlin/fabric/tcp.hpp>

/// This file replaces the fabric where OpenSSL is missing.
namespace dunlin::tcp {
namespace {

constexpr const char* kWhy =
    "this build of Dunlin has no tcp fabric, because OpenSSL, which the rendezvous needs, was not "
    "there when it was built: install libssl-dev, and build it again";

}  // namespace

std::unique_ptr<Fabric> join(const JoinOptions&) { throw Error(kWhy); }

std::unique_ptr<PendingJoin> begin_join(const JoinOptions&) { throw Error(kWhy); }

std::shared_ptr<Rendezvous> rendezvous(JoinOptions, std::vector<std::string>) { throw Error(kWhy); }

std::vector<std::string> networks() { return {kWhy}; }

}  // namespace dunlin::tcp
