#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

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
        std::vector<std::string> words{"dunlin",
                                       "bench",
                                       "table",
                                       "--fabric",
                                       "ofi",
                                       "--hosts",
                                       std::to_string(kHosts),
                                       "--host",
                                       std::to_string(host),
                                       "--meeting",
                                       Hosts::address(0) + ":7700",
                                       "--secret-file",
                                       folder_ + "/secret",
                                       "--json",
                                       json_of(host)};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<const char*> raw;
        for (const std::string& word : words) raw.push_back(word.c_str());
        CLI::App program;
        app::add_commands(program);
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
  /// Connections of that host, as its kernel counts them.
  [[nodiscard]] std::size_t connections_of(std::uint32_t host) const {
    std::ifstream lines("/proc/" + std::to_string(commands_[host].pid()) + "/net/tcp");
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);)
      count += contains(line, " 01 ") ? 1 : 0;  // established
    return count;
  }

  std::string folder_;
  std::optional<Hosts> hosts_;
  std::vector<Process> commands_;
};

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

TEST_F(BenchOverHosts, EndsEverywhereWithASentenceWhenAHostDiesMidway) {
  start({"--only", "detection", "--rounds", "1000"});
  // Eight of the bare limit alone: then the members have met, and measure.
  while (connections_of(1) < 9) std::this_thread::yield();
  commands_[1].kill();
  for (const std::uint32_t host : {0U, 2U}) {
    EXPECT_EQ(commands_[host].exit_code(), static_cast<int>(app::Status::could_not_run));
    const std::string said = content_of(said_by(host));
    EXPECT_TRUE(contains(said, "is gone: ") || contains(said, "connection has closed") ||
                contains(said, "recv failed") || contains(said, "send failed"))
        << said;
  }
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
