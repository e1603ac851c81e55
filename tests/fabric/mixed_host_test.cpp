#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/mixed/mixed_backend.hpp"

/// With whom a member shares memory, and what it tells of itself.
namespace dunlin::mixed {
namespace {

Endpoint some_endpoint(const OwnHost& own) {
  return {.host = own.host(),
          .networks = {{.network = "tcp", .endpoint = std::vector<std::byte>(20, std::byte{7})},
                       {.network = "verbs", .endpoint = {}}}};
}

TEST(MixedHost, SharesMemoryWithAMemberOfTheSameHost) {
  const OwnHost own;
  ASSERT_EQ(own.fault(), "");
  const OwnHost other;
  const Way way = way_to(own, other.host());
  EXPECT_TRUE(way.here);
  EXPECT_EQ(way.why, "on this host");
  EXPECT_TRUE(way_to(other, own.host()).here) << "both find the same";
}

/// MIX-H1 lists what two members must share, and both come to the same result.
TEST(MixedHost, SaysWhyItReachesAMemberOverTheNetwork) {
  const OwnHost own;
  const OwnHost other;
  const auto why = [&](void (*change)(Host&)) {
    Host changed = other.host();
    change(changed);
    const Way way = way_to(own, changed);
    EXPECT_FALSE(way.here);
    EXPECT_EQ(compare(changed, own.host()).here,
              compare(own.host(), changed).here || !changed.shares)
        << "both find the same";
    return way.why;
  };
  EXPECT_EQ(why([](Host& host) { host.boot[3] ^= std::byte{1}; }), "on another host");
  EXPECT_EQ(why([](Host& host) { ++host.network_namespace; }),
            "on this host, in another network namespace");
  EXPECT_EQ(why([](Host& host) { ++host.process_namespace; }),
            "on this host, in another process namespace");
  EXPECT_EQ(why([](Host& host) { ++host.user_namespace; }), "on this host, of another user");
  EXPECT_EQ(why([](Host& host) { ++host.user; }), "on this host, of another user");
  EXPECT_EQ(why([](Host& host) { host.shares = false; }),
            "on this host, but it cannot share memory");
}

/// Two machines that were copied while they ran have the same boot and the same namespaces.
TEST(MixedHost, SharesNoMemoryWithACopyOfItsMachine) {
  const OwnHost own;
  Host copy = own.host();
  copy.listener ^= 1;
  EXPECT_TRUE(compare(own.host(), copy).here);
  const Way way = way_to(own, copy);
  EXPECT_FALSE(way.here);
  EXPECT_EQ(way.why, "it seems to be on this host, but does not answer at its socket");
}

TEST(MixedHost, PretendsToBeOnAnotherHostForTests) {
  const OwnHost one("one"), same("one"), two("two");
  EXPECT_TRUE(way_to(one, same.host()).here);
  EXPECT_EQ(way_to(one, two.host()).why, "on another host");
}

TEST(MixedEndpoint, IsReadAsItWasWritten) {
  const OwnHost own;
  const Endpoint written = some_endpoint(own);
  const std::optional<Endpoint> read = decode(encode(written));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(compare(read->host, own.host()).here);
  EXPECT_EQ(read->host.listener, own.host().listener);
  ASSERT_NE(read->find("tcp"), nullptr);
  EXPECT_EQ(read->find("tcp")->endpoint, written.networks[0].endpoint);
  ASSERT_NE(read->find("verbs"), nullptr);
  EXPECT_TRUE(read->find("verbs")->endpoint.empty());
  EXPECT_EQ(read->find("ofi"), nullptr);
}

TEST(MixedEndpoint, IsRefusedIfItIsCutOrLongerThanItSays) {
  const std::vector<std::byte> bytes = encode(some_endpoint(OwnHost()));
  for (std::size_t count = 0; count < bytes.size(); ++count)
    EXPECT_FALSE(decode(std::span(bytes).first(count)).has_value()) << count;
  std::vector<std::byte> longer = bytes;
  longer.push_back({});
  EXPECT_FALSE(decode(longer).has_value());
}

TEST(MixedEndpoint, IsRefusedIfItSaysWhatCannotBe) {
  const std::vector<std::byte> bytes = encode(some_endpoint(OwnHost()));
  const auto with = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::byte> changed = bytes;
    changed[at] = std::byte{value};
    return decode(changed).has_value();
  };
  EXPECT_TRUE(with(60, 0));
  EXPECT_FALSE(with(0, 'X')) << "another magic";
  EXPECT_FALSE(with(60, 2)) << "shares memory more than one can";
  EXPECT_FALSE(with(62, 9)) << "more networks than there can be";
  EXPECT_FALSE(with(71, 'x')) << "a name without an end";
}

/// Whatever is read of it can be written, and is read again as the same.
TEST(MixedEndpoint, IsReadWhateverWasChangedInIt) {
  const std::vector<std::byte> bytes = encode(some_endpoint(OwnHost()));
  std::minstd_rand random(5);
  std::size_t readable = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> changed = bytes;
    for (std::size_t count = 1 + random() % 4; count > 0; --count)
      changed[random() % changed.size()] = static_cast<std::byte>(random());
    for (std::size_t cut = random() % 3; cut > 0; --cut) changed.pop_back();
    const std::optional<Endpoint> read = decode(changed);
    if (!read) continue;
    ++readable;
    EXPECT_EQ(encode(*read), changed);
  }
  EXPECT_GT(readable, 100U);
}

/// docs/formats/mixed-endpoint.md
TEST(MixedEndpoint, IsLaidOutAsItsPageSays) {
  Endpoint endpoint;
  const std::uint8_t boot[] = {0x0f, 0x7c, 0x2d, 0x8e, 0x11, 0x22, 0x33, 0x44,
                               0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc};
  std::memcpy(endpoint.host.boot.data(), boot, sizeof boot);
  endpoint.host.network_namespace = 0xf0000078;
  endpoint.host.process_namespace = 0xeffffffc;
  endpoint.host.user_namespace = 0xeffffffd;
  endpoint.host.listener = 0x0102030405060708;
  endpoint.host.user = 1000;
  endpoint.host.shares = true;
  endpoint.networks = {{.network = "tcp", .endpoint = {std::byte{1}, std::byte{2}}}};
  std::string text;
  for (const std::byte byte : encode(endpoint)) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(byte));
    text += digits;
  }
  EXPECT_EQ(text,
            "444e4c4e4155544f0f7c2d8e112233445566778899aabbcc"
            "780000f000000000fcffffef00000000fdffffef00000000"
            "0807060504030201e803000001000100"
            "746370000000000002000102");
}

TEST(MixedWays, AreToldWithTheirReasonsByKind) {
  const std::vector<Way> ways{{true, "itself"},          {false, "on another host"},
                              {true, "on this host"},    {false, "on another host"},
                              {false, "another reason"}, {}};
  EXPECT_EQ(describe_ways(ways, 0, {"a", "b", "c", "d", "e", ""}, "tcp at 10.0.0.7"),
            "shared memory with 'c' (rank 2) (on this host); tcp at 10.0.0.7 with 'b' (rank 1), "
            "'d' (rank 3) (on another host); tcp at 10.0.0.7 with 'e' (rank 4) (another reason)");
  EXPECT_EQ(describe_ways(std::vector<Way>{{true, "itself"}}, 0, {"a"}, "tcp at 10.0.0.7"),
            "tcp at 10.0.0.7 with nobody yet");
}

}  // namespace
}  // namespace dunlin::mixed
