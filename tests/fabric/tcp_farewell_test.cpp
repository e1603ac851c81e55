#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/join.hpp>

#include "fabric/network_join.hpp"

/// STR-S8: what a member had for the others when it went.
namespace dunlin {
namespace {

constexpr std::size_t kBytes = std::size_t{16} << 20;  // more than the sockets take

/// One member fills the region of the other, which does not poll before, and goes at once.
/// By TCP-T2 the end of a connection is told after all frames that came on it.
TEST(TcpFarewell, WhatWasPostedArrivesThoughItsMemberHasGone) {
  const JoinOptions options = test::on_this_host("tcp", test::fresh_group(), 2);
  std::atomic<bool> connected{false}, posted{false};
  std::thread sender([&] {
    const auto fabric = join(options);
    const Rank peer = 1 - fabric->rank();
    const Region region = fabric->allocate({.name = "box", .bytes = kBytes});
    fabric->announce(region);
    while (!fabric->connected(peer, region.id())) fabric->poll();
    connected = true;
    const std::vector<std::uint64_t> words(kBytes / kWordBytes, 7);
    EXPECT_TRUE(fabric->post(put(peer, region.id(), 0, words.data(), kBytes)).all());
    posted = true;
  });
  const auto fabric = join(options);
  const Region region = fabric->allocate({.name = "box", .bytes = kBytes});
  fabric->announce(region);
  while (!connected) fabric->poll();
  while (!posted) std::this_thread::yield();
  while (!fabric->failed(1 - fabric->rank())) fabric->poll();
  sender.join();
  const auto* const words = reinterpret_cast<const std::uint64_t*>(region.memory().data());
  for (std::size_t i = 0; i < kBytes / kWordBytes; ++i) ASSERT_EQ(memory::load(words[i]), 7U) << i;
}

}  // namespace
}  // namespace dunlin
