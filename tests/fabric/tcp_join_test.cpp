#include <dunlin/join.hpp>

#include "fabric/network_join.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::on_this_host;
using test::what_is_thrown_by;

struct TcpNetwork {
  static constexpr const char* kName = "tcp";
};

TEST(TcpJoin, SaysWhatThereIsIfTheDeviceOrTheAddressIsNot) {
  JoinOptions options = on_this_host("tcp", fresh_group(), 1);
  const auto refusal = [&] { return what_is_thrown_by([&] { static_cast<void>(join(options)); }); };
  options.device = "eth77";
  EXPECT_TRUE(contains(refusal(), "'eth77'"));
  for (const std::string& network : devices_of("tcp")) EXPECT_TRUE(contains(refusal(), network));
  options.device = {};
  options.address = "203.0.113.7";  // an example's; nobody has it
  EXPECT_TRUE(contains(refusal(), "203.0.113.7"));
  options.device = "lo";
  EXPECT_TRUE(contains(refusal(), "does not have the address 203.0.113.7"));
  options.address = {};
  options.provider = "carrier-pigeon";
  EXPECT_TRUE(contains(refusal(), "only libfabric has providers"));
}

TEST(TcpJoin, ListensOnTheDeviceThatIsAskedFor) {
  JoinOptions options = on_this_host("tcp", fresh_group(), 1);
  options.device = "lo";
  EXPECT_TRUE(contains(join(options)->description(), "on lo"));
}

}  // namespace

namespace test {

INSTANTIATE_TYPED_TEST_SUITE_P(Tcp, NetworkJoin, TcpNetwork);
INSTANTIATE_TYPED_TEST_SUITE_P(Tcp, NetworkDeath, TcpNetwork);

}  // namespace test
}  // namespace dunlin
