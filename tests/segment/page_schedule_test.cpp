#include "segment/page_schedule.hpp"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

constexpr int kPollsPerPage = 256;

struct Schedule : testing::Test {
  bool is_due(std::size_t done) {
    return schedule.is_due(done, [this] { return digest; });
  }
  PageSchedule schedule;
  std::uint64_t digest = 7;
};

TEST_F(Schedule, WritesOnceAfterAChangeWhenAPollFindsNothingToDo) {
  EXPECT_TRUE(is_due(0)) << "nothing has been shown yet";
  EXPECT_FALSE(is_due(0));
  digest = 8;
  EXPECT_FALSE(is_due(1)) << "it is busy";
  EXPECT_TRUE(is_due(0));
  EXPECT_FALSE(is_due(0));
}

TEST_F(Schedule, WritesInEvery256thPollHoweverBusy) {
  for (int poll = 1; poll <= 3 * kPollsPerPage; ++poll)
    EXPECT_EQ(is_due(1), poll % kPollsPerPage == 0) << poll;
}

}  // namespace
}  // namespace dunlin
