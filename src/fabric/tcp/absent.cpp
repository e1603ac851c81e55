#include "fabric/join/network.hpp"

/// This file replaces the fabric where OpenSSL is missing.
namespace dunlin::tcp {

constinit const JoinableNetwork kNetwork{
    .missing =
        "this build of Dunlin has no tcp fabric, because OpenSSL, which the rendezvous needs, was "
        "not "
        "there when it was built: install libssl-dev, and build it again"};

}  // namespace dunlin::tcp
