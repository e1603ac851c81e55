#include "command.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

/// `dunlin sim` as a user calls it.
namespace dunlin::app {
namespace {

struct Ran {
  Status status;
  std::string output;
  std::string errors;
};

Ran run_sim(const std::vector<const char*>& words) {
  std::vector<const char*> arguments = {"dunlin", "sim", "multicast"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Status status = run(static_cast<int>(arguments.size()), arguments.data());
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(SimCommand, SaysWhatItHasRun) {
  const Ran ran = run_sim({"--seeds", "5..7"});
  EXPECT_EQ(ran.status, Status::ok);
  EXPECT_EQ(ran.output.find("3 seeds, "), 0U) << ran.output;
  EXPECT_NE(ran.output.find("all as promised"), std::string::npos);
}

TEST(SimCommand, SaysHowFarItIsBesideWhatItPrints) {
  const Ran ran = run_sim({"--seeds", "5..7", "--interval", "1e-9"});
  EXPECT_EQ(ran.output.find("3 seeds, "), 0U) << ran.output;
  EXPECT_EQ(ran.errors,
            "seeds 5..5 of 5..7: all as promised so far\n"
            "seeds 5..6 of 5..7: all as promised so far\n");
  EXPECT_EQ(run_sim({"--seeds", "5..7", "--interval", "0"}).errors, "");
}

TEST(SimCommand, TracesASeed) {
  const Ran ran = run_sim({"--seeds", "5", "--trace"});
  EXPECT_EQ(ran.status, Status::ok);
  EXPECT_NE(ran.output.find("seed 5\n"), std::string::npos);
  EXPECT_NE(ran.output.find("node0: view 1: node0"), std::string::npos);
}

TEST(SimCommand, RefusesSeedsThatAreNone) {
  for (const char* const seeds :
       {"x", "5..", "..5", "7..5", "-1", "1...5", "18446744073709551615", "99999999999999999999"}) {
    const Ran ran = run_sim({"--seeds", seeds});
    EXPECT_EQ(ran.status, Status::bad_input) << seeds;
    EXPECT_NE(ran.errors.find("--seeds"), std::string::npos) << ran.errors;
    EXPECT_NE(ran.errors.find("from 0 to 18446744073709551614"), std::string::npos) << ran.errors;
  }
}

}  // namespace
}  // namespace dunlin::app
