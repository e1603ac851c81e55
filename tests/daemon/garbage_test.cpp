#include <random>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "daemon/hostile.hpp"
#include "daemon/serving.hpp"
#include "support/rounds.hpp"

/// A client that writes whatever it likes into its shared memory, at any time.
namespace dunlin {
namespace {

using attached::Call;
using test::Hostile;

TEST(DaemonGarbage, DoesNotHarmTheDaemonOrOtherClients) {
  Hostile hostile;
  for (std::uint64_t seed = 1; seed <= test::rounds(400); ++seed) {
    std::mt19937_64 random(seed);
    hostile.begin();
    for (int step = 0; step < 60 && !hostile.broke_off(); ++step) hostile.write_garbage(random);
    hostile.end();
    ASSERT_TRUE(hostile.others_are_well()) << "seed " << seed;
  }
}

TEST(DaemonGarbage, WhatNoAttachmentDoesEndsTheSession) {
  Hostile hostile;
  const auto broken = [&](attached::Request request) {
    hostile.begin();
    hostile.ask(request);
    const bool broke_off = hostile.broke_off();
    hostile.end();
    return broke_off;
  };
  EXPECT_TRUE(broken({.slot = Hostile::kLayout.slots, .call = Call::get}));
  EXPECT_TRUE(broken({.bytes = 1U << 31, .slot = 0, .call = Call::put}));
  EXPECT_TRUE(broken({.bytes = 4096, .slot = 0, .call = Call::get, .flags = attached::kIsInline}));
  EXPECT_TRUE(broken({.offset = 7,
                      .bytes = attached::kRequestInline,
                      .slot = 0,
                      .call = Call::put,
                      .flags = attached::kIsInline}));
  EXPECT_TRUE(broken({.slot = 0, .call = Call{0}}));
  EXPECT_TRUE(broken({.slot = 0, .call = Call{200}}));
  EXPECT_FALSE(broken({.slot = 0, .call = Call::cancel}));
  EXPECT_FALSE(broken({.key = UINT64_MAX, .bytes = 8, .slot = 0, .call = Call::get}));
  EXPECT_FALSE(broken({.bytes = UINT32_MAX, .slot = 0, .call = Call::find}));
}

TEST(DaemonGarbage, ATornPutIsNotMadeByUnlockingInItsMiddle) {
  Hostile hostile;
  hostile.begin();
  const Key key = hostile.segment();
  hostile.ask({.key = key.value, .slot = 0, .call = Call::lock});
  hostile.settle();
  hostile.ask({.key = key.value, .bytes = 2048, .slot = 1, .call = Call::put});
  hostile.ask({.key = key.value, .slot = 2, .call = Call::unlock});
  hostile.ask({.key = key.value, .bytes = 2048, .slot = 3, .call = Call::put});
  EXPECT_FALSE(hostile.broke_off());
  hostile.settle();
  hostile.end();
  EXPECT_TRUE(hostile.others_are_well()) << "DMN-1";
}

TEST(DaemonGarbage, APutHasTheBytesThatWereThereWhenItWasAskedFor) {
  Hostile hostile;
  hostile.begin();
  const auto fill = [&](std::uint64_t word) {
    const std::vector<std::uint64_t> words(256, word);
    memory::place(hostile.memory().data() + Hostile::kLayout.buffer_at(1), words.data(), 2048);
  };
  fill(1);
  hostile.ask({.key = hostile.segment().value, .bytes = 2048, .slot = 1, .call = Call::put});
  fill(2);  // it waits for the segment's lock
  hostile.settle();
  const auto& words = hostile.content();
  for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(words[i], 1U) << "DMN-2: at word " << i;
  hostile.end();
}

}  // namespace
}  // namespace dunlin
