#include "fabric/sleeping.hpp"

#include <memory>

#include <dunlin/join.hpp>

#include "fabric/shm_group.hpp"

namespace dunlin {
namespace {

struct Sleeping : testing::Test {
  static std::unique_ptr<Fabric> alone() {
    return join({.group = test::fresh_group(), .members = 1, .silence_timeout_ms = 0});
  }
  bool sleep_unless_found(const std::function<bool()>& poll) {
    const auto collect = [this] {
      ++collected;
      Waits waits{.fabrics = {one.get()}};
      if (other) waits.fabrics.push_back(other.get());
      return waits;
    };
    return sleep_unless(poll, collect, 0);
  }

  std::unique_ptr<Fabric> one = alone();
  std::unique_ptr<Fabric> other = alone();
  int collected = 0;
};

TEST_F(Sleeping, AsksOnceBeforeItsPollAndOnceBehindItWhatToWaitFor) {
  EXPECT_FALSE(sleep_unless_found([] { return false; }));
  EXPECT_EQ(collected, 2);
  EXPECT_TRUE(sleep_unless_found([] { return true; }));
  EXPECT_EQ(collected, 4);
}

TEST_F(Sleeping, TouchesNothingThatHasGoneInThePoll) {
  for (const bool found : {false, true}) {
    other = alone();
    EXPECT_EQ(sleep_unless_found([&] {
                other.reset();
                return found;
              }),
              found);
  }
}

}  // namespace
}  // namespace dunlin
