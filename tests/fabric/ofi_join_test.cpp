#include <dunlin/join.hpp>

#include "fabric/network_join.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::on_this_host;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

struct OfiNetwork {
  static constexpr const char* kName = "ofi";
};

TEST(OfiJoin, SaysWhatThereIsIfTheProviderIsNot) {
  JoinOptions options = on_this_host("ofi", fresh_group(), 1);
  options.provider = "carrier-pigeon";
  const std::string text = what_is_thrown_by([&] { static_cast<void>(join(options)); });
  EXPECT_TRUE(contains(text, "'carrier-pigeon'"));
  for (const std::string& network : devices_of("ofi")) EXPECT_TRUE(contains(text, network));
}

TEST(OfiJoin, SaysWhatThereIsIfTheDeviceOrTheAddressIsNot) {
  JoinOptions options = on_this_host("ofi", fresh_group(), 1);
  options.device = "eth77";
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(join(options)); }), "'eth77'"));
  options.device = {};
  options.address = "203.0.113.7";  // an example's; nobody has it
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { static_cast<void>(join(options)); }), "203.0.113.7"));
}

TEST(OfiJoin, SaysWhichProviderItChose) {
  const auto options = on_this_host("ofi", fresh_group(), 1);
  const auto fabric = join(options);
  EXPECT_TRUE(contains(fabric->description(), options.provider));
}

/// Libraries that libfabric loads take some over.
TEST(OfiJoin, LeavesTheSignalsOfTheProcessToIt) {
  Process process([](Parent&) {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, [](int) {});
    struct sigaction before {};
    sigaction(SIGTERM, nullptr, &before);
    static_cast<void>(devices_of("ofi"));
    struct sigaction after {};
    sigaction(SIGTERM, nullptr, &after);
    return after.sa_handler == before.sa_handler && std::signal(SIGINT, SIG_DFL) == SIG_IGN ? 0 : 1;
  });
  EXPECT_EQ(process.exit_code(), 0);
}

}  // namespace

namespace test {

INSTANTIATE_TYPED_TEST_SUITE_P(Ofi, NetworkJoin, OfiNetwork);
INSTANTIATE_TYPED_TEST_SUITE_P(Ofi, NetworkDeath, OfiNetwork);

}  // namespace test
}  // namespace dunlin
