#include <dunlin/join.hpp>

#include "fabric/conformance/growing.hpp"
#include "fabric/conformance/real_group.hpp"

namespace dunlin::conformance {

namespace {

/// Silence is not counted: a test polls when it likes, on a machine that has other work.
JoinOptions options_for(const std::string& group, Rank rank, std::uint32_t nodes) {
  return {.network = "tcp",
          .group = group,
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
    return join(options_for(group, rank, nodes));
  };
  plain.begin = [](const std::string& group, Rank rank, std::uint32_t nodes) {
    return begin_join(options_for(group, rank, nodes));
  };
  plain.start = [plain](std::uint32_t nodes) { return start_real_group(plain, nodes); };
  return {plain};
}

DUNLIN_CONFORMANCE(Tcp, tcp_backends);
DUNLIN_CONFORMANCE_SUITE(Tcp, Forming, tcp_backends);

namespace {

/// A newcomer meets nobody: the suite tells it of the members.
std::unique_ptr<GrowingBackend> on_tcp(std::uint32_t founders, std::uint32_t nodes, bool encrypts) {
  return real_growing_backend(
      founders, nodes,
      [encrypts](const std::string& group, Rank rank, std::uint32_t members) {
        JoinOptions options = options_for(group, rank, members);
        options.encrypt = encrypts;
        return begin_join(options);
      },
      [encrypts](const std::string& group, Rank rank) {
        JoinOptions options = options_for("newcomers", JoinOptions::kAnyRank, 0);
        options.rendezvous = "unix:" + group + "-" + std::to_string(rank);
        options.encrypt = encrypts;
        return make_rendezvous(options, {});
      });
}

const bool kTcpGrows = add_grower({"Tcp", [](std::uint32_t founders, std::uint32_t nodes) {
                                     return on_tcp(founders, nodes, false);
                                   }});
const bool kEncryptedTcpGrows =
    add_grower({"TcpEncrypted", [](std::uint32_t founders, std::uint32_t nodes) {
                  return on_tcp(founders, nodes, true);
                }});

}  // namespace

}  // namespace dunlin::conformance
