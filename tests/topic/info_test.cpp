#include <filesystem>
#include <string>

#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "topic/home.hpp"

/// `dunlin topic info` of a topic of a group.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

struct Position {
  std::uint32_t ship = 0;
  std::uint32_t number = 0;
  using TopicKey = KeyOf<&Position::ship>;
};

std::string info_of(Home& home, const std::string& topic) {
  Process info = start(home.words({"topic", "info", topic}));
  EXPECT_EQ(home.await(info), 0) << home.hear(info, "");
  return home.hear(info, "");
}

TEST(TopicInfo, ShowsWhichSamplesATopicKeeps) {
  Home home;
  const Topic<Position> positions(home.participant, "position",
                                  {.level = Level::volatile_storage,
                                   .history = History::keep_last(3),
                                   .max_samples = 100,
                                   .max_bytes = 5000,
                                   .max_age_ns = 90'500'000'000});
  const DataWriter<Position> writer{Publisher(home.participant), positions};
  ASSERT_TRUE(home.until([&] { return writer->ready(); }));
  const std::string info = info_of(home, "position");
  EXPECT_TRUE(contains(info,
                       "Level: volatile_storage\nKeeps: the newest 3 samples of each instance, and "
                       "100 in all, of at most 5000 bytes, for 90.5 s\n"));
  EXPECT_TRUE(contains(info, "Writers: 1\n"));
}

TEST(TopicInfo, ShowsThePoliciesOfALoggedTopicThoughItHasNoLog) {
  const OwnDirectory directory;
  std::filesystem::create_directory(directory / "logs");
  Home home({.log_directory = directory / "logs", .log_founders = {"a"}});
  const Topic<Position> positions(
      home.participant, "position",
      {.level = Level::logged, .max_samples = 100, .log_trim_bytes = 4096});
  const Topic<Position> all(home.participant, "all", {.level = Level::logged});
  const DataWriter<Position> writer{Publisher(home.participant), positions};
  const DataWriter<Position> other{Publisher(home.participant), all};
  ASSERT_TRUE(home.until([&] { return writer->ready() && other->ready(); }));
  EXPECT_TRUE(contains(info_of(home, "position"),
                       "Level: logged\nKeeps: the newest 100 samples\n"
                       "Log: trimmed to these, every 4096 bytes\nMembers: a\n"));
  EXPECT_TRUE(contains(info_of(home, "all"), "Log: has all samples\n"));
}

TEST(TopicInfo, ShowsTheTopicsOfAnOrderToItsMembers) {
  Home home;
  const Topic<Position> positions(home.participant, "position", {.order = "flight"});
  DataWriter<Position> writer{Publisher(home.participant), positions};
  ASSERT_TRUE(home.until([&] { return writer->ready(); }));
  const auto shown = [&](const Words& words, int status = 0) {
    Process process = start(home.words(words));
    EXPECT_EQ(home.await(process), status);
    return home.hear(process, "");
  };
  EXPECT_TRUE(contains(shown({"topic", "list"}), "order flight, 1 member: --order flight shows"));
  EXPECT_TRUE(contains(shown({"topic", "list", "--order", "flight"}),
                       "position [Position] atomic, 2 members\n"));
  EXPECT_TRUE(contains(shown({"topic", "info", "position", "--order", "flight"}),
                       "Level: atomic\nOrder: flight\n"));
  EXPECT_TRUE(
      contains(shown({"topic", "list", "--order", "fight"}, 3), "order 'fight': no member"));
  Process echo =
      start(home.words({"topic", "echo", "position", "--order", "flight", "--count", "1"}));
  ASSERT_TRUE(home.until([&] { return writer->publication_matched_status().current_count == 1; }));
  ASSERT_EQ(writer.write({.ship = 3, .number = 4}), WriteResult::written);
  EXPECT_EQ(home.await(echo), 0);
  EXPECT_TRUE(contains(home.hear(echo, ""), "number: 4\n"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(
      run_command({"topic", "echo", "position", "--relay", "127.0.0.1:1", "--order", "flight"}),
      app::Status::bad_input);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "--order: a client of a relay"));
}

}  // namespace
}  // namespace dunlin::test
