#include "fabric/stepped_join.hpp"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

namespace dunlin {
namespace {

/// Waits for what the test says, and counts its steps.
class Steps final : public SteppedJoin {
 public:
  int taken = 0;
  Awaited next = {};
  bool fails = false;

 private:
  std::unique_ptr<Fabric> step() override {
    ++taken;
    if (fails) throw Error("it failed");
    return nullptr;
  }
  Awaited awaited() override { return next; }
};

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    checked(pipe(ends.data()), "making a pipe");
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
  }
  void fill() const { EXPECT_EQ(::write(in.get(), "x", 1), 1); }
  Descriptor out;
  Descriptor in;
};

Awaited news_of(const Pipe& pipe) {
  Awaited news;
  news.add(pipe.out);
  return news;
}

bool readable(const PendingJoin& pending_join, int timeout_ms = 0) {
  pollfd look{pending_join.wait_descriptor(), POLLIN, 0};
  return ::poll(&look, 1, timeout_ms) > 0;
}

TEST(SteppedJoin, TakesItsFirstStepAtOnce) {
  Steps steps;
  EXPECT_TRUE(readable(steps));
  EXPECT_EQ(steps.poll(), nullptr);
  EXPECT_EQ(steps.taken, 1);
  EXPECT_FALSE(readable(steps));
}

TEST(SteppedJoin, GoesOnOnlyWhenWhatItAwaitsIsThere) {
  const Pipe pipe;
  Steps steps;
  steps.next = news_of(pipe);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(steps.poll(), nullptr);
  EXPECT_EQ(steps.taken, 1);
  EXPECT_FALSE(readable(steps));
  pipe.fill();
  EXPECT_TRUE(readable(steps));
  EXPECT_EQ(steps.poll(), nullptr);
  EXPECT_EQ(steps.taken, 2);
}

TEST(SteppedJoin, ForgetsWhatItAwaitedBefore) {
  const Pipe before;
  const Pipe after;
  Steps steps;
  const int descriptor = steps.wait_descriptor();
  steps.next = news_of(before);
  EXPECT_EQ(steps.poll(), nullptr);
  before.fill();
  steps.next = news_of(after);
  EXPECT_EQ(steps.poll(), nullptr);
  EXPECT_FALSE(readable(steps)) << "the first pipe is still readable";
  EXPECT_EQ(steps.poll(), nullptr);
  EXPECT_EQ(steps.taken, 2);
  after.fill();
  EXPECT_TRUE(readable(steps));
  EXPECT_EQ(steps.wait_descriptor(), descriptor);
}

TEST(SteppedJoin, GoesOnWhenItsTimeHasCome) {
  Steps steps;
  steps.next.by(read_clock_ns(CLOCK_MONOTONIC) + 2'000'000);
  EXPECT_EQ(steps.poll(), nullptr);
  EXPECT_TRUE(readable(steps, 60'000));
  EXPECT_EQ(steps.poll(), nullptr);
  EXPECT_EQ(steps.taken, 2);
}

TEST(SteppedJoin, IsOverAfterAnError) {
  Steps steps;
  steps.fails = true;
  EXPECT_THROW(static_cast<void>(steps.poll()), Error);
  EXPECT_THROW(static_cast<void>(steps.poll()), Error);
  EXPECT_EQ(steps.taken, 1);
}

}  // namespace
}  // namespace dunlin
