#include <memory>
#include <string>
#include <vector>

#include "fabric/conformance/mixed.hpp"
#include "support/fresh_group.hpp"

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

/// MIX-N1.
TEST(MixedOfiGroup, NamesWhatEachMemberOffersIfThereIsNoNetworkThatAllOffer) {
  const std::string group = test::fresh_group();
  std::vector<std::unique_ptr<PendingJoin>> joins;
  for (Rank rank = 0; rank < 2; ++rank) {
    const Between between{.provider = rank == 0 ? "" : "tcp"};  // libfabric's
    joins.push_back(on_hosts("alone", in_turn, between).begin(group, rank, 2));
  }
  std::vector<std::string> errors(joins.size());
  while (errors[0].empty() || errors[1].empty())
    for (std::size_t i = 0; i < joins.size(); ++i) {
      if (!errors[i].empty()) continue;
      try {
        ASSERT_EQ(joins[i]->poll(), nullptr);
      } catch (const Error& error) {
        errors[i] = error.what();
      }
    }
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("no network is offered by all members"), std::string::npos) << error;
    EXPECT_NE(error.find("rank 0: tcp\n  rank 1: ofi"), std::string::npos) << error;
  }
}

}  // namespace dunlin::conformance
