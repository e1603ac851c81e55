#include "fabric/core/failure_detector.hpp"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

constexpr std::uint64_t kTimeout = 1000;

TEST(FailureDetector, FindsAPeerSilentOnceTheTimeoutHasPassedWithoutABeat) {
  FailureDetector detector(2, kTimeout, 0);
  for (std::uint64_t now = 100; now < kTimeout; now += 100) {
    detector.look(now);
    EXPECT_FALSE(detector.silent(1, 0)) << now;
  }
  detector.look(kTimeout);
  EXPECT_TRUE(detector.silent(1, 0));
}

TEST(FailureDetector, StartsTheWindowAnewWithEachBeat) {
  FailureDetector detector(1, kTimeout, 0);
  for (std::uint64_t now = 400; now <= 4000; now += 400) {
    detector.look(now);
    EXPECT_FALSE(detector.silent(0, now / 800)) << now;
  }
}

TEST(FailureDetector, BlamesNobodyAfterItsOwnAbsence) {
  FailureDetector detector(2, kTimeout, 0);
  detector.look(10 * kTimeout);
  EXPECT_FALSE(detector.silent(0, 0));
  for (std::uint64_t later = 250; later < kTimeout; later += 250) {
    detector.look(10 * kTimeout + later);
    EXPECT_FALSE(detector.silent(0, 0));
    EXPECT_FALSE(detector.silent(1, later));
  }
  detector.look(11 * kTimeout);
  EXPECT_TRUE(detector.silent(0, 0));
  EXPECT_FALSE(detector.silent(1, 9999));
}

TEST(FailureDetector, FindsNobodySilentWithoutATimeout) {
  FailureDetector detector(1, 0, 0);
  detector.look(1);
  EXPECT_FALSE(detector.silent(0, 0));
  detector.look(UINT64_MAX);
  EXPECT_FALSE(detector.silent(0, 0));
}

}  // namespace
}  // namespace dunlin
