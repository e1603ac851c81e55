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
  EXPECT_TRUE(hostile.others_are_well());
}

void fill(Hostile& hostile, std::uint32_t slot, std::uint64_t word) {
  const std::vector<std::uint64_t> words(512, word);
  memory::place(hostile.memory().data() + Hostile::kLayout.buffer_at(slot), words.data(), 4096);
}

TEST(DaemonGarbage, APutUnderALockComesBeforeThatLocksEnd) {
  Hostile hostile;
  hostile.begin();
  const std::uint64_t key = hostile.segment().value;
  hostile.ask({.key = key, .slot = 0, .call = Call::lock});
  hostile.settle();
  for (std::uint16_t slot = 0; slot < 3; ++slot) {  // each put waits for the one before
    fill(hostile, slot, slot);
    hostile.ask({.key = key, .bytes = 4096, .slot = slot, .call = Call::put});
  }
  hostile.ask({.key = key, .slot = 3, .call = Call::unlock});
  EXPECT_TRUE(hostile.put(3));  // once it has the lock
  hostile.settle();
  for (const std::uint64_t word : hostile.content()) ASSERT_EQ(word, 3U) << "DMN-1";
  hostile.end();
}

TEST(DaemonGarbage, APutHasTheBytesThatWereThereWhenItWasAskedFor) {
  Hostile hostile;
  hostile.begin();
  fill(hostile, 1, 1);
  hostile.ask({.key = hostile.segment().value, .bytes = 4096, .slot = 1, .call = Call::put});
  fill(hostile, 1, 2);  // it waits for the segment's lock
  hostile.settle();
  for (const std::uint64_t word : hostile.content()) ASSERT_EQ(word, 1U) << "DMN-2";
  hostile.end();
}

}  // namespace
}  // namespace dunlin
