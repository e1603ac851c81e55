#include "topic/player.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/pubsub.hpp>

#include "mcap/file_writer.hpp"
#include "support/own_directory.hpp"

/// When `dunlin topic replay` publishes what: the time comes in, so nothing waits here.
namespace dunlin::test {
namespace {

using app::topic::Player;

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kRecordedNs = 1'000 * kSecondNs;
constexpr std::uint64_t kBeginNs = 5 * kSecondNs;

struct Tick {
  std::uint64_t number = 0;
};

/// Samples 0, 1, 2, ... of the topics "a" and "b" in turn, a second after each other.
struct Recorded {
  explicit Recorded(std::uint64_t samples) {
    app::mcap::FileWriter writer(path, {.chunk_bytes = 64});
    std::vector<std::uint16_t> channels;
    for (const char* const topic : {"a", "b"}) {
      const app::topic::RecordedTopic recorded{
          .topic = topic, .type_text = pubsub::type_support<Tick>()->text, .plain = true};
      const std::uint16_t schema = writer.add(app::topic::schema_of(recorded));
      channels.push_back(writer.add(app::topic::channel_of(recorded, schema)));
    }
    for (std::uint64_t number = 0; number < samples; ++number) {
      const Tick tick{number};
      writer.write({.channel = channels[number % channels.size()],
                    .log_ns = kRecordedNs + number * kSecondNs,
                    .data = std::as_bytes(std::span(&tick, 1))});
    }
    writer.finish();
  }
  OwnDirectory directory;
  std::string path = directory / "file";
};

struct Play {
  explicit Play(const app::topic::Options& options) : player(options) {}
  /// The numbers of the samples that come by then.
  std::vector<std::uint64_t> at(std::uint64_t seconds) {
    std::vector<std::uint64_t> numbers;
    done = player.play(kBeginNs + seconds * kSecondNs, [&](const Player::Sample& sample) {
      std::uint64_t number = 0;
      EXPECT_EQ(sample.raw.payload.size(), sizeof number);
      std::memcpy(&number, sample.raw.payload.data(), sizeof number);
      numbers.push_back(number);
      return true;
    });
    return numbers;
  }
  Player player;
  bool done = false;
};

using Numbers = std::vector<std::uint64_t>;

TEST(TopicPlayer, GivesEachSampleAtItsTimeAndSaysWhenTheNextIsDue) {
  const Recorded recorded(3);
  Play play({.file = recorded.path});
  EXPECT_EQ(play.at(0), Numbers{0});
  EXPECT_EQ(play.player.due_ns(), kBeginNs + kSecondNs);
  EXPECT_EQ(play.at(0), Numbers{});
  EXPECT_EQ(play.at(1), Numbers{1});
  EXPECT_FALSE(play.done);
  EXPECT_EQ(play.at(7), Numbers{2});
  EXPECT_TRUE(play.done);
}

TEST(TopicPlayer, PlaysAtTheRateThatIsAskedFor) {
  const Recorded recorded(5);
  Play twice({.rate = 2, .file = recorded.path});
  EXPECT_EQ(twice.at(0), Numbers{0});
  EXPECT_EQ(twice.at(1), (Numbers{1, 2}));
  EXPECT_EQ(twice.at(2), (Numbers{3, 4}));
  EXPECT_TRUE(twice.done);
  Play half({.rate = 0.5, .file = recorded.path});
  EXPECT_EQ(half.at(0), Numbers{0});
  EXPECT_EQ(half.at(3), Numbers{1});
}

TEST(TopicPlayer, BeginsBehindTheOffset) {
  const Recorded recorded(4);
  Play play({.file = recorded.path, .start_offset = 2});
  EXPECT_EQ(play.at(0), Numbers{2});
  EXPECT_EQ(play.at(1), Numbers{3});
  EXPECT_TRUE(play.done);
}

TEST(TopicPlayer, PlaysTheTopicsThatAreNamedAndRefusesOneThatIsNotThere) {
  const Recorded recorded(4);
  Play play({.file = recorded.path, .topics = {"b"}});
  EXPECT_EQ(play.at(0), Numbers{});
  EXPECT_EQ(play.at(9), (Numbers{1, 3}));
  EXPECT_THROW(Player({.file = recorded.path, .topics = {"c"}}), std::exception);
}

TEST(TopicPlayer, BeginsAgainAsOftenAsItIsAskedTo) {
  const Recorded recorded(2);
  Play play({.file = recorded.path, .loops = 2});
  EXPECT_EQ(play.at(0), Numbers{0});
  EXPECT_EQ(play.at(1), (Numbers{1, 0}));
  EXPECT_EQ(play.at(2), Numbers{1});
  EXPECT_TRUE(play.done);
}

TEST(TopicPlayer, KeepsASampleForWhichThereIsNoRoom) {
  const Recorded recorded(1);
  Player player({.file = recorded.path});
  EXPECT_FALSE(player.play(kBeginNs, [](const Player::Sample&) { return false; }));
  int published = 0;
  EXPECT_TRUE(player.play(kBeginNs, [&](const Player::Sample&) { return ++published == 1; }));
  EXPECT_EQ(published, 1);
}

}  // namespace
}  // namespace dunlin::test
