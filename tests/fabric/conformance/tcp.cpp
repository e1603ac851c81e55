#include <dunlin/fabric/tcp.hpp>

#include "fabric/conformance/real_group.hpp"

namespace dunlin::conformance {

namespace {

/// Silence is not counted: a test polls when it likes, on a machine that has other work.
tcp::JoinOptions options_for(const std::string& group, Rank rank, std::uint32_t nodes) {
  return {.group = group,
          .members = nodes,
          .rank = rank,
          .timeout_ms = 60'000,
          .silence_timeout_ms = 0,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it"};
}

}  // namespace

/// Over loopback; the members meet at a Unix socket, and the kernel chooses the ports.
std::vector<Backend> tcp_backends() {
  Backend plain{.variant = "plain"};
  plain.join = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return tcp::join(options_for(group, rank, nodes));
  };
  plain.begin = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return tcp::begin_join(options_for(group, rank, nodes));
  };
  plain.start = [plain](std::uint32_t nodes) { return start_real_group(plain, nodes); };
  return {plain};
}

DUNLIN_CONFORMANCE(Tcp, tcp_backends);
DUNLIN_CONFORMANCE_SUITE(Tcp, Forming, tcp_backends);

}  // namespace dunlin::conformance
