#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/container/cost.hpp>

#include "command.hpp"

namespace dunlin {
namespace {

using app::Status;

struct Ran {
  Status status;
  std::string out, error;
};
Ran run(std::vector<std::string> words) {
  words.insert(words.begin(), "dunlin");
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Status status = app::run(static_cast<int>(arguments.size()), arguments.data());
  std::string out = testing::internal::GetCapturedStdout();
  return {status, std::move(out), testing::internal::GetCapturedStderr()};
}

std::string scratch_file(const std::string& what) {
  return (std::filesystem::temp_directory_path() /
          ("dunlin-" + what + "-" + std::to_string(getpid())))
      .string();
}

TEST(Calibrate, WritesAFileThatProgramsLoad) {
  const std::string file = scratch_file("costs");
  const Ran result = run({"calibrate", "--batches", "2", "--output", file});
  ASSERT_EQ(result.status, Status::ok) << result.error;
  const ComponentCosts costs = load_costs(file);
  std::filesystem::remove(file);
  EXPECT_TRUE(costs.measured());
  EXPECT_NE(result.out.find("shared memory of this host"), std::string::npos);
  EXPECT_NE(result.out.find("compare-and-swap"), std::string::npos);
}

TEST(Calibrate, KeepsEachCostInItsFile) {
  ComponentCosts costs{.read_ns = 6, .message_ns = 500};
  for (std::size_t call = 0; call < kCalls; ++call) {
    costs.computing_ns.at(call) = 1 + static_cast<double>(call);
    costs.far_ns.at(call) = 101 + static_cast<double>(call);
  }
  const std::string file = scratch_file("kept");
  std::ofstream(file) << text_of(costs, "a test");
  const ComponentCosts loaded = load_costs(file);
  std::filesystem::remove(file);
  EXPECT_EQ(loaded.read_ns, costs.read_ns);
  EXPECT_EQ(loaded.computing_ns, costs.computing_ns);
  EXPECT_EQ(loaded.far_ns, costs.far_ns);
}

TEST(Calibrate, RefusesWhatCannotBeMeasured) {
  EXPECT_EQ(run({"calibrate", "--clients", "0"}).status, Status::bad_input);
  EXPECT_EQ(run({"calibrate", "--batches", "0"}).status, Status::bad_input);
  EXPECT_EQ(run({"calibrate", "--fabric", "sim"}).status, Status::bad_input);
}

TEST(Explain, ShowsTheSumOfTheTermsAndTheCheaperStyle) {
  const std::string file = scratch_file("explained");
  std::ofstream(file) << text_of({.read_ns = 3700,
                                  .write_ns = 3000,
                                  .compare_swap_ns = 4000,
                                  .fetch_add_ns = 3900,
                                  .message_ns = 6000,
                                  .shared_word_ns = 100},
                                 "a test");
  const Ran insert =
      run({"explain", "hashmap", "insert", "--load", "0", "--clients", "16", "--costs", file});
  EXPECT_EQ(insert.status, Status::ok) << insert.error;
  EXPECT_NE(insert.out.find("promise both, load 0, 16 clients, slots of 32 bytes"),
            std::string::npos)
      << insert.out;
  EXPECT_NE(insert.out.find("7.00 us"), std::string::npos) << insert.out;
  EXPECT_NE(insert.out.find("automatic: one_sided; message takes 4.07 times as long"),
            std::string::npos)
      << insert.out;
  const Ran push = run({"explain", "queue", "push", "--costs", file});
  EXPECT_NE(push.out.find("automatic: message; one_sided takes 1.15 times as long"),
            std::string::npos)
      << push.out;
  const Ran grown =
      run({"explain", "hashmap", "find", "--load", "0", "--tables", "3", "--costs", file});
  EXPECT_NE(grown.out.find("3 tables, load of the last 0"), std::string::npos) << grown.out;
  EXPECT_NE(grown.out.find("2.00 x    3.70 us  =    7.40 us   reads of full tables"),
            std::string::npos)
      << grown.out;
  std::filesystem::remove(file);
  EXPECT_EQ(run({"explain", "hashmap", "insert", "--costs", file}).status, Status::bad_input);
  EXPECT_EQ(run({"explain", "hashmap", "push"}).status, Status::bad_input);
  EXPECT_EQ(run({"explain", "list", "push"}).status, Status::bad_input);
  EXPECT_EQ(run({"explain", "queue", "pop", "--promise", "none"}).status, Status::bad_input);
}

}  // namespace
}  // namespace dunlin
