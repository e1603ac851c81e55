#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/pubsub.hpp>

#include "command.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"
#include "topic/home.hpp"

/// `dunlin topic publish`, `echo` and `record` as the members of a logged topic.
namespace dunlin::test {
namespace {

struct Noted {
  std::uint64_t life = 0;
};

class LoggedTopic {
 public:
  LoggedTopic() {
    for (const char* name : {"a", "b"}) std::filesystem::create_directory(directory_ / name);
    std::ofstream(directory_ / "type") << pubsub::type_support<Noted>()->text << "\n";
  }
  [[nodiscard]] Process publish(std::uint64_t life) const {
    return start(words({"publish", "notes", "{\"life\": " + std::to_string(life) + "}", "--rate",
                        "500", "--type", directory_ / "type"},
                       "a"));
  }
  [[nodiscard]] Process echo() const { return start(words({"echo", "notes", "--stored"}, "b")); }
  [[nodiscard]] Process record(const std::string& file) const {
    return start(words({"record", "notes", "--stored", "--samples", "20", "--output", file}, "b"));
  }
  [[nodiscard]] std::string file() const { return directory_ / "notes.mcap"; }
  /// The life of the next sample that it prints; 0: it has ended.
  static std::uint64_t next_life(Process& echo) {
    for (;;) {
      const std::string line = echo.receive_line();
      if (line.empty()) return 0;
      if (line.starts_with("life: ")) return std::stoull(line.substr(6));
    }
  }

 private:
  [[nodiscard]] Words words(const Words& first, const std::string& name) const {
    Words all{"topic"};
    all.insert(all.end(), first.begin(), first.end());
    for (const std::string& word :
         {std::string("--create"), std::string("--group"), group_, std::string("--members"),
          std::string("a,b"), std::string("--name"), name, std::string("--log"),
          std::string(directory_ / name), std::string("--log-founders"), std::string("a,b")})
      all.push_back(word);
    return all;
  }

  OwnDirectory directory_;
  std::string group_ = fresh_group();
};

TEST(LoggedTopicCommand, BeginsAgainWithAllSamplesAfterAllWereKilled) {
  const LoggedTopic topic;
  std::uint64_t seen = 0;
  {
    Process publisher = topic.publish(1);
    Process echo = topic.echo();
    while (seen < 50 && LoggedTopic::next_life(echo) == 1) ++seen;
    ASSERT_EQ(seen, 50U);
    publisher.kill();
    echo.kill();
  }
  {
    Process publisher = topic.publish(2);
    Process echo = topic.echo();
    std::uint64_t of_before = 0;
    std::uint64_t life = LoggedTopic::next_life(echo);
    for (; life == 1; life = LoggedTopic::next_life(echo)) ++of_before;
    EXPECT_GE(of_before, seen) << "each sample that a reader was given is in the log";
    for (int i = 0; i < 20; ++i, life = LoggedTopic::next_life(echo)) ASSERT_EQ(life, 2U);
    publisher.kill();
    echo.kill();
  }
  Process publisher = topic.publish(3);
  Process recorder = topic.record(topic.file());
  EXPECT_TRUE(contains(recorder.receive_all_lines(), "20 samples of 1 topic"));
  EXPECT_EQ(recorder.exit_code(), 0);
  publisher.signal(SIGTERM);
  EXPECT_EQ(publisher.exit_code(), 0);
  EXPECT_TRUE(contains(output_of({"topic", "info", topic.file()}), "notes"));
}

TEST(LoggedTopicCommand, TakesOptionsOfLogsOnlyWithALog) {
  const auto refusal = [](const Words& more) {
    Words all{"topic", "echo", "notes", "--group", "g", "--members", "a", "--name", "a"};
    all.insert(all.end(), more.begin(), more.end());
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_command(all), app::Status::bad_input);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_TRUE(contains(refusal({"--log-quorum"}), "--log-quorum: only members with a log"));
  EXPECT_TRUE(contains(refusal({"--log", "."}), "--log-founders is missing"));
  EXPECT_TRUE(contains(refusal({"--create"}), "so it needs --log"));
  EXPECT_TRUE(contains(refusal({"--keep", "3"}), "give --create, too"));
}

}  // namespace
}  // namespace dunlin::test
