#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/mixed/networks.hpp"

/// Which networks a member offers to those of other hosts, and which of them a group takes
/// (MIX-N1).
namespace dunlin::mixed {
namespace {

using Kind = NetworkPlan::Kind;

const std::array<verbs::DeviceAddress, 3> kDevices{
    {{"rxe0", "10.77.0.1", true}, {"mlx5_0", "10.0.0.7", false}, {"mlx5_1", "10.0.1.7", false}}};

/// "verbs mlx5_0 10.0.0.7, tcp".
std::string plan_of(const JoinOptions& options,
                    std::span<const verbs::DeviceAddress> devices = kDevices) {
  std::string text;
  for (const NetworkPlan& plan : plan_networks(options, devices)) {
    text += text.empty() ? "" : ", ";
    text += plan.kind == Kind::verbs ? "verbs" : plan.kind == Kind::ofi ? "ofi" : "tcp";
    if (!plan.options.device.empty()) text += " " + plan.options.device;
    if (!plan.options.address.empty()) text += " " + plan.options.address;
    if (plan.optional) text += " if it can";
  }
  return text;
}

TEST(MixedNetworks, PreferRdmaDevicesOfHardware) {
  EXPECT_EQ(plan_of({}), "verbs mlx5_0 10.0.0.7 if it can, tcp");
  EXPECT_EQ(plan_of({.address = "10.0.1.7"}), "verbs mlx5_1 10.0.1.7 if it can, tcp 10.0.1.7");
  EXPECT_EQ(plan_of({}, {}), "tcp");
}

TEST(MixedNetworks, NeverTakeADeviceOfSoftwareUnlessItIsNamed) {
  EXPECT_EQ(plan_of({}, std::span(kDevices).first(1)), "tcp");
  EXPECT_EQ(plan_of({.address = "10.77.0.1"}), "tcp 10.77.0.1");
  EXPECT_EQ(plan_of({.device = "rxe0"}), "verbs rxe0");
}

TEST(MixedNetworks, FollowWhatTheUserNames) {
  EXPECT_EQ(plan_of({.device = "mlx5_1"}), "verbs mlx5_1");
  EXPECT_EQ(plan_of({.device = "eth0"}), "tcp eth0");
  EXPECT_EQ(plan_of({.encrypt = true}), "tcp");
  EXPECT_EQ(plan_of({.provider = "tcp"}), "ofi");
}

TEST(MixedNetworks, AreTheFirstThatAllMembersHave) {
  const auto member = [](std::vector<std::string> networks) {
    Endpoint endpoint;
    for (std::string& name : networks) endpoint.networks.push_back({std::move(name), {}});
    return endpoint;
  };
  std::array<stream::Offer, 2> offers;
  offers[0].name = "verbs";
  offers[1].name = "tcp";
  const Endpoint both = member({"verbs", "tcp"});
  const auto chosen = [&](std::vector<Endpoint> members) {
    const auto place = choose_network(offers, members);
    return place ? offers.at(*place).name : "none";
  };
  EXPECT_EQ(chosen({both, both}), "verbs");
  EXPECT_EQ(chosen({both, member({"tcp"}), both}), "tcp");
  EXPECT_EQ(chosen({both, member({"verbs"})}), "verbs");
  EXPECT_EQ(chosen({both, member({"ofi"})}), "none");
  EXPECT_EQ(names_of(both.networks), "verbs or tcp");
}

}  // namespace
}  // namespace dunlin::mixed
