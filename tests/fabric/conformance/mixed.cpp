#include "fabric/conformance/mixed.hpp"

#include <thread>

#include "fabric/conformance/growing.hpp"
#include "fabric/conformance/real_group.hpp"
#include "fabric/mixed/join.hpp"

namespace dunlin::conformance {

namespace {

/// Silence is not counted: a test polls when it likes, on a machine that has other work.
JoinOptions options_of_member(const std::string& group, Rank rank, std::uint32_t nodes) {
  return {.network = "auto",
          .group = group,
          .members = nodes,
          .rank = rank,
          .timeout_ms = 60'000,
          .silence_timeout_ms = 0,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it"};
}

}  // namespace

std::string in_turn(Rank rank) { return rank % 2 == 0 ? "even" : "odd"; }
std::string in_pairs(Rank rank) { return "host" + std::to_string(rank / 2); }

Backend on_hosts(const std::string& variant, HostOf host_of, const Between& between) {
  Backend backend{.variant = variant};
  backend.begin = [host_of, between](const std::string& group, Rank rank, std::uint32_t nodes) {
    JoinOptions options = options_of_member(group, rank, nodes);
    options.provider = between.provider;
    options.device = between.device;
    return mixed::begin_join_on(host_of(rank), options);
  };
  backend.join = [begin = backend.begin](const std::string& group, Rank rank, std::uint32_t nodes) {
    const std::unique_ptr<PendingJoin> join = begin(group, rank, nodes);
    std::unique_ptr<Fabric> fabric;
    while (!(fabric = join->poll())) std::this_thread::yield();
    return fabric;
  };
  backend.start = [backend](std::uint32_t nodes) { return start_real_group(backend, nodes); };
  return backend;
}

std::vector<Backend> mixed_backends() {
  return {on_hosts("in_turn", in_turn), on_hosts("in_pairs", in_pairs)};
}

DUNLIN_CONFORMANCE(Mixed, mixed_backends);
DUNLIN_CONFORMANCE_SUITE(Mixed, Forming, mixed_backends);

/// What the suite would not notice.
/// By MIX-B1 each peer is reached by one of the two.
TEST(MixedGroup, SharesMemoryWithinAHostAndNotBetweenHosts) {
  const std::unique_ptr<Group> group = on_hosts("in_pairs", in_pairs).start(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    const std::string& ways = group->node(rank).description();
    const Rank neighbour = rank ^ 1;
    EXPECT_NE(ways.find("shared memory with rank " + std::to_string(neighbour) + " (on this host)"),
              std::string::npos)
        << ways;
    EXPECT_NE(ways.find("(on another host)"), std::string::npos) << ways;
    EXPECT_EQ(group->node(rank).host_members(), 2U);
  }
}

namespace {

/// As make_rendezvous(), on a host of its own.
class RendezvousOnAHost final : public Rendezvous {
 public:
  RendezvousOnAHost(std::string host, const JoinOptions& options)
      : host_(std::move(host)), options_(options), usual_(make_rendezvous(options, {})) {}
  const std::string& group() const noexcept override { return usual_->group(); }
  std::unique_ptr<PendingJoin> accept() override { return usual_->accept(); }
  std::unique_ptr<PendingJoin> connect() override { return usual_->connect(); }
  std::unique_ptr<PendingEntry> enter() override { return mixed::begin_entry_on(host_, options_); }
  std::uint64_t now_ns() const override { return usual_->now_ns(); }

 private:
  std::string host_;
  JoinOptions options_;
  std::shared_ptr<Rendezvous> usual_;
};

std::unique_ptr<GrowingBackend> on_mixed(std::uint32_t founders, std::uint32_t nodes,
                                         HostOf host_of) {
  return real_growing_backend(
      founders, nodes,
      [host_of](const std::string& group, Rank rank, std::uint32_t members) {
        return mixed::begin_join_on(host_of(rank), options_of_member(group, rank, members));
      },
      [host_of](const std::string& group, Rank rank) -> std::shared_ptr<Rendezvous> {
        JoinOptions options = options_of_member("newcomers", JoinOptions::kAnyRank, 0);
        options.rendezvous = "unix:" + group + "-" + std::to_string(rank);
        return std::make_shared<RendezvousOnAHost>(host_of(rank), options);
      });
}

const bool kMixedGrowsInTurn =
    add_grower({"MixedInTurn", [](std::uint32_t founders, std::uint32_t nodes) {
                  return on_mixed(founders, nodes, in_turn);
                }});
const bool kMixedGrowsInPairs =
    add_grower({"MixedInPairs", [](std::uint32_t founders, std::uint32_t nodes) {
                  return on_mixed(founders, nodes, in_pairs);
                }});

}  // namespace

}  // namespace dunlin::conformance
