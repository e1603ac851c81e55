#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <dunlin/relay.hpp>

#include "command.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"

namespace dunlin::test {
namespace {

using Words = std::vector<std::string>;

struct Measure {
  std::int32_t sensor = 0;
  double celsius = 0;
};

app::Status run_command(const Words& words) {
  std::vector<const char*> all{"dunlin"};
  for (const std::string& word : words) all.push_back(word.c_str());
  return app::run(static_cast<int>(all.size()), all.data());
}

/// The command in a process whose output is its parent's line.
Process start(const Words& words) {
  return Process([words](Parent& parent) {
    for (const int number : {STDOUT_FILENO, STDERR_FILENO}) dup2(parent.descriptor(), number);
    return static_cast<int>(run_command(words));
  });
}

std::string refusal_of(const Words& words, app::Status expected) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_command(words), expected);
  return testing::internal::GetCapturedStderr();
}

TEST(RelayCommand, ServesClientsAndTheTopicCommandUntilASignalComes) {
  Process server = start({"relay", "--group", fresh_group(), "--members", "r", "--name", "r",
                          "--serve", "127.0.0.1:0"});
  std::string line;
  do line = server.receive_line();
  while (!line.empty() && line.find("relays for clients at ") == std::string::npos);
  ASSERT_TRUE(contains(line, "relays for clients at 127.0.0.1:"));
  const std::size_t at = line.find("127.0.0.1:");
  const std::string place = line.substr(at, line.find(',', at) - at);

  relay::RelayClient client({.relays = {place}});
  relay::RelayWriter<Measure> writer(client, "measures", pubsub::TopicQos{});
  ASSERT_TRUE(client.run_until([&] { return writer.ready(); }, 60'000));
  Process echo = start({"topic", "echo", "measures", "--count", "1", "--relay", place});
  // The command reads what comes after it has begun.
  std::string echoed;
  ASSERT_TRUE(client.run_until(
      [&] {
        EXPECT_NE(writer.write({7, 1.5}), pubsub::WriteResult::refused);
        pollfd there{.fd = echo.descriptor(), .events = POLLIN, .revents = 0};
        return ::poll(&there, 1, 1) > 0;
      },
      60'000));
  EXPECT_EQ(echo.receive_line(), "sensor: 7");
  EXPECT_EQ(echo.receive_line(), "celsius: 1.5");

  relay::RelayReader<Measure> reader(client, "measures");
  ASSERT_TRUE(
      client.run_until([&] { return reader.ready() && writer.all_acknowledged(); }, 60'000));
  Process publish = start({"topic", "publish", "measures", R"({"sensor": 9})", "--count", "1",
                           "--relay", "127.0.0.1:1," + place});
  bool seen = false;
  ASSERT_TRUE(client.run_until(
      [&] {
        for (const auto& sample : reader.take()) seen = seen || sample.data.sensor == 9;
        return seen;
      },
      60'000));
  EXPECT_EQ(publish.receive_line(), "1 sample acknowledged");
  EXPECT_EQ(publish.exit_code(), 0);

  server.signal(SIGTERM);
  do line = server.receive_line();
  while (!line.empty() && line.find("ends because of SIGTERM") == std::string::npos);
  EXPECT_TRUE(contains(line, "3 connections"));
  EXPECT_EQ(server.exit_code(), 0);
}

/// A relay of a group of these members, or that comes into it (none).
class LoggingRelay {
 public:
  LoggingRelay(const std::string& group, const std::string& name, const std::string& members,
               const std::string& log)
      : process(start(words(group, name, members, log))) {}
  /// Where it serves, once it does: all founders are started before.
  std::string place() {
    while (place_.empty()) {
      const std::string line = process.receive_line();
      EXPECT_NE(line, "");
      if (line.empty()) return {};
      if (line.find("relays for clients at ") == std::string::npos) continue;
      const std::size_t at = line.find("127.0.0.1:");
      place_ = line.substr(at, line.find(',', at) - at);
    }
    return place_;
  }
  Process process;

 private:
  static Words words(const std::string& group, const std::string& name, const std::string& members,
                     const std::string& log) {
    Words all{"relay", "--group", group, "--name", name, "--serve", "127.0.0.1:0", "--log", log};
    for (const char* word : {"--log-founders", "a,b,c", "--log-quorum"}) all.emplace_back(word);
    all.emplace_back(members.empty() ? "--join" : "--members");
    if (!members.empty()) all.push_back(members);
    return all;
  }
  std::string place_;
};

const pubsub::TopicQos kLogged{.level = pubsub::Level::logged};

void write_measures(const std::string& place, std::int32_t first, std::int32_t end) {
  relay::RelayClient client({.relays = {place}});
  relay::RelayWriter<Measure> writer(client, "measures", kLogged);
  EXPECT_TRUE(client.run_until(
      [&] {
        while (first < end && writer.write({first, 0}) == pubsub::WriteResult::written) ++first;
        return first == end && writer.all_acknowledged();
      },
      60'000))
      << writer.why_refused();
}

/// So many are stored, from 0 on.
void expect_measures(const std::string& place, std::int32_t count) {
  relay::RelayClient client({.relays = {place}});
  const relay::ReaderQos stored{.durability = {pubsub::Durability::Kind::persistent}};
  relay::RelayReader<Measure> reader(client, "measures", stored, kLogged);
  std::int32_t next = 0;
  EXPECT_TRUE(client.run_until(
      [&] {
        for (const auto& sample : reader.take()) EXPECT_EQ(sample.data.sensor, next++);
        return next >= count || !reader.why_refused().empty();
      },
      60'000));
  EXPECT_EQ(reader.why_refused(), "");
  EXPECT_EQ(next, count);
}

TEST(RelayCommand, KeepsLoggedTopicsThatBeginAgainWithTwoOfThreeRelays) {
  const OwnDirectory directory;
  for (const char* name : {"a", "b", "c"}) std::filesystem::create_directory(directory / name);
  const std::string group = fresh_group();
  {
    LoggingRelay a(group, "a", "a,b,c", directory / "a");
    LoggingRelay b(group, "b", "a,b,c", directory / "b");
    LoggingRelay c(group, "c", "a,b,c", directory / "c");
    write_measures(a.place(), 0, 100);
    for (LoggingRelay* const relay : {&a, &b, &c}) relay->process.kill();
  }
  LoggingRelay b(group, "b", "b,c", directory / "b");
  LoggingRelay c(group, "c", "b,c", directory / "c");
  expect_measures(b.place(), 100);
  write_measures(c.place(), 100, 200);
  LoggingRelay a(group, "a", "", directory / "a");
  expect_measures(a.place(), 200);
  for (LoggingRelay* const relay : {&b, &c}) relay->process.signal(SIGTERM);
  EXPECT_EQ(b.process.exit_code(), 0);
  EXPECT_EQ(c.process.exit_code(), 0);
}

TEST(RelayCommand, TakesOptionsOfLogsOnlyWithALog) {
  const Words relay{"relay", "--group", "g", "--members", "r", "--name", "r"};
  const auto with = [&](const Words& more) {
    Words all = relay;
    all.insert(all.end(), more.begin(), more.end());
    return refusal_of(all, app::Status::bad_input);
  };
  EXPECT_TRUE(contains(with({"--log-quorum"}), "--log-quorum: only members with a log need it"));
  EXPECT_TRUE(contains(with({"--log", "."}), "--log-founders is missing"));
}

TEST(RelayCommand, NeedsASecretWhereOthersReachIt) {
  const std::string why =
      refusal_of({"relay", "--group", "g", "--members", "r", "--name", "r", "--serve", "0.0.0.0:0"},
                 app::Status::bad_input);
  EXPECT_TRUE(contains(why, "clients need a secret"));
}

TEST(RelayCommand, TopicNeedsAGroupOrARelay) {
  EXPECT_TRUE(contains(refusal_of({"topic", "echo", "square"}, app::Status::bad_input),
                       "--group and --name are missing: give them, or --relay"));
  EXPECT_TRUE(contains(
      refusal_of({"topic", "echo", "square", "--relay", "here"}, app::Status::could_not_run),
      "give HOST:PORT"));
}

}  // namespace
}  // namespace dunlin::test
