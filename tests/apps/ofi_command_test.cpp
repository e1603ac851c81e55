#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cluster/secret.hpp"
#include "command.hpp"
#include "support/errors.hpp"

namespace {

using dunlin::app::Status;
using dunlin::test::contains;

std::string scratch(const std::string& name) {
  return testing::TempDir() + "dunlin-" + name + "-" + std::to_string(getpid());
}

Status run_routing(std::vector<const char*> words) {
  CLI::App program;
  dunlin::app::add_commands(program);
  words.insert(words.begin(), {"dunlin", "routing", "--topology", "hub-ring:4", "--fabric", "ofi"});
  return dunlin::app::run(program, static_cast<int>(words.size()), words.data());
}

TEST(OfiCommand, SaysWhichNetworkItHasChosenAndWhy) {
  const std::string file = scratch("run.json");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_routing({"--events", "2", "--json", file.c_str()}), Status::ok);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(contains(said, "\n  network: libfabric tcp on lo, address 127.0.0.1 (from which"));
  EXPECT_TRUE(contains(said, "All 4 routers agree with Boost.Graph"));
  const auto run = nlohmann::json::parse(std::ifstream(file)).at("runs").at(0);
  EXPECT_EQ(run["fabric"], "ofi");
  EXPECT_EQ(run["hosts"], 1);
  EXPECT_TRUE(contains(run["network"], "libfabric tcp"));
  std::filesystem::remove(file);
}

TEST(OfiCommand, RefusesMoreHostsThanRoutersAndKeepsTheSecret) {
  const std::string file = scratch("secret");
  std::ofstream(file) << "one of sixteen bytes or more\n";
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_routing({"--meeting", "unix:x", "--hosts", "5", "--host", "0", "--secret-file",
                         file.c_str()}),
            Status::bad_input);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dunlin: --hosts 5: hub-ring:4 has 4 routers, and each host needs one\n");
  std::filesystem::remove(file);
}

TEST(Secret, IsAFileWithoutTheLineEndBehindIt) {
  const std::string file = scratch("secret");
  std::ofstream(file) << "one of sixteen bytes or more\r\n\n";
  EXPECT_EQ(dunlin::app::read_secret("--secret-file", file), "one of sixteen bytes or more");
  std::ofstream(file) << "short\n";
  const std::string said =
      dunlin::test::what_is_thrown_by([&] { (void)dunlin::app::read_secret("X", file); });
  EXPECT_TRUE(contains(said, "a secret has 16 to 4096 bytes"));
  EXPECT_EQ(said.find("short"), std::string::npos) << "it is not for all to see";
  std::filesystem::remove(file);
  EXPECT_TRUE(
      contains(dunlin::test::what_is_thrown_by([&] { (void)dunlin::app::read_secret("X", file); }),
               "No such file or directory"));
}

TEST(Secret, IsAnotherOneEachTime) {
  EXPECT_NE(dunlin::app::random_secret(), dunlin::app::random_secret());
  EXPECT_EQ(dunlin::app::random_secret().size(), 64U);
}

}  // namespace
