#include "fabric/conformance/real_group.hpp"
#include "support/socket_transport.hpp"

namespace dunlin::conformance {

namespace {

/// Silence is not counted: a test polls when it likes, on a machine that has other work.
Backend over_sockets(const std::string& variant, std::uint32_t buffers) {
  Backend backend{.variant = variant};
  backend.join = [buffers](const std::string& group, Rank rank, std::uint32_t nodes) {
    return test::join_over_sockets(
        {.group = group, .rank = rank, .members = nodes, .buffers = buffers}, 0);
  };
  backend.start = [backend](std::uint32_t nodes) { return start_real_group(backend, nodes); };
  return backend;
}

}  // namespace

/// Streams without a network; and with hardly any room on the way, so that frames wait.
std::vector<Backend> stream_backends() {
  return {over_sockets("sockets", 4), over_sockets("narrow", 1)};
}

DUNLIN_CONFORMANCE(Stream, stream_backends);

}  // namespace dunlin::conformance
