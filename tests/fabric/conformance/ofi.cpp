#include <dunlin/join.hpp>

#include "fabric/conformance/growing.hpp"
#include "fabric/conformance/real_group.hpp"

namespace dunlin::conformance {

namespace {

/// Silence is not counted: a test polls when it likes, on a machine that has other work.
JoinOptions options_for(const std::string& group, Rank rank, std::uint32_t nodes) {
  return {.network = "ofi",
          .group = group,
          .members = nodes,
          .rank = rank,
          .timeout_ms = 60'000,
          .silence_timeout_ms = 0,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it",
          .provider = "tcp"};
}

}  // namespace

/// Over loopback; the members meet at a Unix socket, and libfabric finds the ports.
std::vector<Backend> ofi_backends() {
  Backend tcp{.variant = "tcp"};
  tcp.join = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return join(options_for(group, rank, nodes));
  };
  tcp.begin = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return begin_join(options_for(group, rank, nodes));
  };
  tcp.start = [tcp](std::uint32_t nodes) { return start_real_group(tcp, nodes); };
  return {tcp};
}

DUNLIN_CONFORMANCE(Ofi, ofi_backends);
DUNLIN_CONFORMANCE_SUITE(Ofi, Forming, ofi_backends);

namespace {

/// A newcomer meets nobody: the suite tells it of the members.
std::unique_ptr<GrowingBackend> on_ofi(std::uint32_t founders, std::uint32_t nodes) {
  return real_growing_backend(
      founders, nodes,
      [](const std::string& group, Rank rank, std::uint32_t members) {
        return begin_join(options_for(group, rank, members));
      },
      [](const std::string& group, Rank rank) {
        JoinOptions options = options_for("newcomers", JoinOptions::kAnyRank, 0);
        options.rendezvous = "unix:" + group + "-" + std::to_string(rank);
        return make_rendezvous(options, {});
      });
}

const bool kOfiGrows = add_grower({"Ofi", on_ofi});

}  // namespace

}  // namespace dunlin::conformance
