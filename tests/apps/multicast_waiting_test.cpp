#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "apps/multicast_member.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"

/// `dunlin multicast` before it is in a view.
namespace {

using dunlin::test::contains;
using dunlin::test::Member;
using dunlin::test::Words;

void expect_to_end_in_order(Member& member, int signal, const std::string& name) {
  member.signal(signal);
  const std::string line = member.receive_line_of("ends because of " + name);
  EXPECT_TRUE(contains(line, "was in no view")) << line;
  EXPECT_EQ(member.exit_code(), 0);
}

TEST(MulticastWaiting, NamesTheFoundersThatHaveNotComeAndEndsWhenASignalComes) {
  Member a(Words{"--group", dunlin::test::fresh_group(), "--name", "a", "--members", "a,b,c"});
  const std::string line = a.receive_line_of("waits for ");
  EXPECT_TRUE(contains(line, "'b'")) << line;
  EXPECT_TRUE(contains(line, "'c'")) << line;
  EXPECT_FALSE(contains(line, "'a'")) << line;
  expect_to_end_in_order(a, SIGTERM, "SIGTERM");
}

TEST(MulticastWaiting, SaysThatNobodyHasLetItInAndEndsWhenASignalComes) {
  Member d(Words{"--group", dunlin::test::fresh_group(), "--name", "d", "--join"});
  d.receive_line_of("waits for a member of group ");
  expect_to_end_in_order(d, SIGINT, "SIGINT");
}

TEST(MulticastWaiting, HelpNamesTheDefaultsOfTheTimeOuts) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(dunlin::test::run_multicast({"--help"}), dunlin::app::Status::ok);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(contains(help, "until all are there (default: 60)")) << help;
  EXPECT_TRUE(contains(help, "0: never (default: 1)")) << help;
}

}  // namespace
