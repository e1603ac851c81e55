#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/suites.hpp"
#include "command.hpp"
#include "support/errors.hpp"
#include "support/hosts.hpp"
#include "support/process.hpp"

/// `dunlin bench table` between hosts that are network namespaces.
namespace dunlin::bench {
namespace {

using test::contains;
using test::Hosts;
using test::Parent;
using test::Process;

constexpr std::uint32_t kHosts = 3;
/// Eight of the bare limit alone: then the members have met, and measure.
constexpr std::size_t kConnectionsMidway = 9;

std::string content_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class BenchOverHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (!Hosts::why_not().empty()) GTEST_SKIP() << Hosts::why_not();
    folder_ = testing::TempDir() + "dunlin-bench-hosts-" + std::to_string(getpid());
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ + "/secret") << "a secret of the tests of benchmarks\n";
    std::filesystem::permissions(folder_ + "/secret", std::filesystem::perms::owner_read);
    hosts_.emplace(kHosts);
  }
  void TearDown() override {
    commands_.clear();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  /// The same command on each host; what it says goes to a file.
  void start(const std::vector<std::string>& more) {
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      commands_.emplace_back([this, more, host](Parent&) {
        hosts_->enter(host);
        const int said = open(said_by(host).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        for (const int stream : {1, 2}) dup2(said, stream);
        std::vector<std::string> words{"dunlin-bench",   "table",
                                       "--fabric",       "ofi",
                                       "--hosts",        std::to_string(kHosts),
                                       "--host",         std::to_string(host),
                                       "--rendezvous",   Hosts::address(0) + ":7700",
                                       "--secret-file",  folder_ + "/secret",
                                       "--join-timeout", "60",
                                       "--json",         json_of(host)};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<const char*> raw;
        for (const std::string& word : words) raw.push_back(word.c_str());
        CLI::App program;
        add_suites(program);
        return static_cast<int>(app::run(program, static_cast<int>(raw.size()), raw.data()));
      });
    }
  }
  [[nodiscard]] std::string said_by(std::uint32_t host) const {
    return folder_ + "/said" + std::to_string(host);
  }
  [[nodiscard]] std::string json_of(std::uint32_t host) const {
    return folder_ + "/json" + std::to_string(host);
  }
  /// Connections from and to that host's address, as its kernel counts them. (Until it has entered
  /// its namespace, they are those of ours.)
  [[nodiscard]] std::size_t connections_of(std::uint32_t host) const {
    in_addr address{};
    inet_pton(AF_INET, Hosts::address(host).c_str(), &address);
    char own[16];
    std::snprintf(own, sizeof own, ": %08X:", address.s_addr);
    std::ifstream lines("/proc/" + std::to_string(commands_[host].pid()) + "/net/tcp");
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);)
      count += contains(line, own) && contains(line, " 01 ") ? 1 : 0;  // established
    return count;
  }

  void expect_loss(std::uint32_t host) const {
    const std::string said = content_of(said_by(host));
    const auto tells = [&](const char* text) { return contains(said, text); };
    EXPECT_TRUE(tells("is gone: ") || tells("is lost: ") || tells("connection has closed") ||
                tells("recv failed") || tells("send failed"))
        << said;
  }

  std::string folder_;
  std::optional<Hosts> hosts_;
  std::vector<Process> commands_;
};

/// By BCH-H3 only process 0 has results.
TEST_F(BenchOverHosts, MeasuresOnAllAndReportsAtTheFirst) {
  start({"--only", "detection", "counting", "--quick", "--rounds", "2"});
  for (std::uint32_t host = 0; host < kHosts; ++host)
    EXPECT_EQ(commands_[host].exit_code(), 0) << content_of(said_by(host));
  const auto results = nlohmann::json::parse(content_of(json_of(0)));
  ASSERT_EQ(results.size(), 3U);
  for (const auto& result : results) {
    EXPECT_EQ(result["fabric"], "ofi");
    EXPECT_GT(result["value"], 0);
    EXPECT_EQ(result["ratio_spread"]["rounds"], 2);
  }
  EXPECT_EQ(results[2]["params"]["processes"], kHosts);
  EXPECT_TRUE(contains(content_of(said_by(0)), "address " + Hosts::address(0)));
  for (const std::uint32_t host : {1U, 2U}) {
    EXPECT_FALSE(std::filesystem::exists(json_of(host)));
    EXPECT_TRUE(contains(content_of(said_by(host)), "The results are at host 0."));
  }
}

/// BCH-H5 promises what this test checks.
TEST_F(BenchOverHosts, EndsEverywhereWithASentenceWhenAHostDiesMidway) {
  start({"--only", "detection", "--rounds", "1000"});
  while (connections_of(1) < kConnectionsMidway) std::this_thread::yield();
  commands_[1].kill();
  for (const std::uint32_t host : {0U, 2U}) {
    EXPECT_EQ(commands_[host].exit_code(), static_cast<int>(app::Status::could_not_run));
    expect_loss(host);
  }
}

TEST_F(BenchOverHosts, EndsEverywhereWithASentenceWhenACableIsCutMidway) {
  start({"--only", "detection", "--rounds", "1000"});
  while (connections_of(1) < kConnectionsMidway) std::this_thread::yield();
  hosts_->cut(1);
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    EXPECT_EQ(commands_[host].exit_code(), static_cast<int>(app::Status::could_not_run));
    expect_loss(host);
  }
}

TEST_F(BenchOverHosts, PushesAndIdlesBetweenThem) {
  start({"--only", "push", "idle", "--quick", "--rounds", "2"});
  for (std::uint32_t host = 0; host < kHosts; ++host)
    EXPECT_EQ(commands_[host].exit_code(), 0) << content_of(said_by(host));
  std::map<std::string, int> counts;
  for (const auto& result : nlohmann::json::parse(content_of(json_of(0)))) {
    EXPECT_GE(result["value"], 0);
    ++counts[result["name"]];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"idle", 2}, {"push", 4}}));
}

TEST_F(BenchOverHosts, RefusesFiguresOfOneHost) {
  start({"--only", "failure"});
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    EXPECT_EQ(commands_[host].exit_code(), static_cast<int>(app::Status::bad_input));
    EXPECT_TRUE(contains(content_of(said_by(host)), "between hosts there is no figure failure"));
  }
}

}  // namespace
}  // namespace dunlin::bench
