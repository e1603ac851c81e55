#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <dunlin/relay.hpp>

#include "command.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
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
