#include "group/control_channel.hpp"

#include <array>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>

#include "support/errors.hpp"

/// Control messages of a peer, which may be no message of ours.
namespace dunlin::group {
namespace {

constexpr std::size_t kMostBytes = 1'000;
constexpr std::uint64_t kWhileNs = 1'000'000;

struct Control : testing::Test {
  sim::World world{sim::profile("ideal"), 2, 1};
  ControlChannel channel{world.fabric(0), {.most_bytes = kMostBytes}};
  std::vector<std::size_t> taken;
  std::string failure;
  Subscription events = world.fabric(0).subscribe([this](const Event& event) {
    if (event.kind == Event::Kind::peer_failed) failure = event.text;
  });
  Control() {
    world.attach(0, [this] {
      return world.fabric(0).poll() + channel.poll([this](Rank, std::span<const std::byte> text) {
        taken.push_back(text.size());
      });
    });
    world.attach(1, [this] { return world.fabric(1).poll(); });
  }

  /// Fragments of 248 bytes, each of which says that so many bytes are still to come.
  void send(std::uint64_t remaining, std::size_t fragments) {
    world.on(1, [this, remaining, fragments] {
      std::array<std::byte, kMaxMessageBytes> message{};
      std::memcpy(message.data(), &remaining, sizeof remaining);
      for (std::size_t i = 0; i < fragments; ++i)
        EXPECT_EQ(world.fabric(1).send(0, kGroupChannel, message), Refusal::none);
    });
    world.run_for(kWhileNs);
  }
};

TEST_F(Control, OfAPeerHasAtMostTheBytesThatAreStated) {
  send(248, 1);
  EXPECT_EQ(taken, std::vector<std::size_t>{248});
  EXPECT_EQ(failure, "");
  send(kMostBytes + 1, 1);
  EXPECT_TRUE(test::contains(failure, "more than the 1000 bytes that are possible")) << failure;
}

TEST_F(Control, ThatNeverEndsIsTakenNoFurther) {
  send(kMostBytes, 4);  // 992 bytes
  EXPECT_EQ(failure, "");
  send(kMostBytes, 1);
  EXPECT_TRUE(test::contains(failure, "more than the 1000 bytes that are possible")) << failure;
  EXPECT_TRUE(taken.empty());
}

}  // namespace
}  // namespace dunlin::group
