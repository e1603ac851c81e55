#include <dunlin/error.hpp>

#include "cluster/agreement.hpp"

/// Without OpenSSL, there are no several hosts.
namespace dunlin::app {

void check(const Party&) {}

void agree(const Party&, const Intent&) {
  throw Error("this build has no groups over several hosts, as OpenSSL was not there");
}

}  // namespace dunlin::app
