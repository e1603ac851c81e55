#include <dunlin/join.hpp>

#include "fabric/conformance/real_group.hpp"

/// Encryption changes how bytes are cut, and what is seen of a death.
namespace dunlin::conformance {

namespace {

JoinOptions encrypted_options_for(const std::string& group, Rank rank, std::uint32_t nodes) {
  return {.network = "tcp",
          .group = group,
          .members = nodes,
          .rank = rank,
          .timeout_ms = 60'000,
          .silence_timeout_ms = 0,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it",
          .encrypt = true};
}

}  // namespace

std::vector<Backend> encrypted_tcp_backends() {
  Backend encrypted{.variant = "encrypted"};
  encrypted.join = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return join(encrypted_options_for(group, rank, nodes));
  };
  encrypted.begin = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return begin_join(encrypted_options_for(group, rank, nodes));
  };
  encrypted.start = [encrypted](std::uint32_t nodes) { return start_real_group(encrypted, nodes); };
  return {encrypted};
}

DUNLIN_CONFORMANCE_SUITE(TcpEncrypted, Order, encrypted_tcp_backends);
DUNLIN_CONFORMANCE_SUITE(TcpEncrypted, Death, encrypted_tcp_backends);

}  // namespace dunlin::conformance
