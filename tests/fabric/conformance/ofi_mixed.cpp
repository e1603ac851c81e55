#include "fabric/conformance/mixed.hpp"

namespace dunlin::conformance {

namespace {

/// Where another network makes a difference to what mixed.cpp holds.
std::vector<Backend> ofi_mixed_backends() {
  return {on_hosts("in_pairs", in_pairs, {.provider = "tcp"})};
}

}  // namespace

DUNLIN_CONFORMANCE_SUITE(MixedOfi, Regions, ofi_mixed_backends);
DUNLIN_CONFORMANCE_SUITE(MixedOfi, Expulsion, ofi_mixed_backends);
DUNLIN_CONFORMANCE_SUITE(MixedOfi, Waiting, ofi_mixed_backends);
DUNLIN_CONFORMANCE_SUITE(MixedOfi, Forming, ofi_mixed_backends);

}  // namespace dunlin::conformance
