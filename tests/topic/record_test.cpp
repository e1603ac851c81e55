#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <dunlin/pubsub.hpp>
#include <dunlin/relay/relay.hpp>
#include <dunlin/run.hpp>

#include "command.hpp"
#include "mcap/file_reader.hpp"
#include "mcap/file_writer.hpp"
#include "process/program.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"
#include "topic/home.hpp"
#include "topic/recorded_topic.hpp"

/// `dunlin topic record`, `replay` and `info FILE`, with a member whose topics they are about.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

struct Position {
  std::uint32_t ship = 0;
  std::uint32_t number = 0;
  using TopicKey = KeyOf<&Position::ship>;
};
struct Entry {
  std::uint32_t number = 0;
  std::string text = {};
};
/// What "position" is elsewhere.
struct OtherPosition {
  double number = 0;
};
struct Numbered {
  std::uint64_t number = 0;
};

DataReaderQos everything() {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all();
  return qos;
}

/// Writes the sample as soon as there is room.
template <class T>
void write(Home& home, DataWriter<T>& writer, const T& sample) {
  ASSERT_TRUE(home.until([&] { return writer.write(sample) == WriteResult::written; }));
}

std::vector<app::mcap::Message> messages_of(const std::string& path, std::string* warning) {
  app::mcap::FileReader reader(path);
  std::vector<app::mcap::Message> all;
  app::mcap::Message message;
  while (reader.next(message)) {
    all.push_back(message);
    all.back().data = {};  // valid only until the next one
  }
  warning->clear();
  for (const std::string& one : reader.warnings()) *warning += one;
  return all;
}

TEST(TopicRecord, RecordsAndReplaysTheSameSamples) {
  const OwnDirectory directory;
  const std::string file = directory / "all.mcap";
  Home home;
  const Topic<Position> positions(home.participant, "position");
  const Topic<Entry> entries(home.participant, "log/entries");
  DataWriter<Position> position{Publisher(home.participant), positions};
  DataWriter<Entry> entry{Publisher(home.participant), entries};
  Process recorder = start(home.words({"topic", "record", "--output", file, "--samples", "41"}));
  ASSERT_TRUE(home.until([&] {
    return position->publication_matched_status().current_count > 0 &&
           entry->publication_matched_status().current_count > 0;
  })) << home.hear(recorder, "");
  for (std::uint32_t i = 0; i < 20; ++i) {
    write(home, position, {.ship = i % 3, .number = i});
    write(home, entry, {.number = i, .text = "entry " + std::to_string(i)});
  }
  ASSERT_TRUE(
      home.until([&] { return position.dispose_instance({.ship = 2}) == WriteResult::written; }));
  ASSERT_EQ(home.await(recorder), 0) << home.hear(recorder, "");
  EXPECT_TRUE(contains(home.hear(recorder, ""), "all.mcap\": 41 samples of 2 topics over "));

  const std::string info = output_of({"topic", "info", file});
  EXPECT_TRUE(contains(info, "Samples: 41\n"));
  EXPECT_TRUE(contains(info, "Topic: position ["));
  EXPECT_TRUE(contains(info, "x-dunlin-plain: 21 samples on 2 channels"));
  EXPECT_TRUE(contains(info, "cdr: 20 samples on 1 channel\n"));
  EXPECT_EQ(output_of({"topic", "record", "--info", file}), info);

  DataReader<Position> position_reader{Subscriber(home.participant), positions, everything()};
  DataReader<Entry> entry_reader{Subscriber(home.participant), entries, everything()};
  ASSERT_TRUE(home.until([&] { return position_reader->ready() && entry_reader->ready(); }));
  std::uint32_t next_position = 0;
  std::uint32_t next_entry = 0;
  std::uint32_t disposed = 0;
  Process player = start(home.words({"topic", "replay", file, "--rate", "1000", "--loop", "2"}));
  ASSERT_TRUE(home.until([&] {
    for (const auto& sample : position_reader.take()) {
      if (!sample.info().valid()) {
        if (sample.info().instance_state != InstanceState::disposed) continue;
        EXPECT_EQ(sample.data().ship, 2U);
        ++disposed;
        continue;
      }
      EXPECT_EQ(sample.data().number, next_position % 20);
      EXPECT_EQ(sample.data().ship, next_position++ % 20 % 3);
    }
    for (const auto& sample : entry_reader.take()) {
      if (!sample.info().valid()) continue;  // its writers have gone
      EXPECT_EQ(sample.data().number, next_entry % 20);
      EXPECT_EQ(sample.data().text, "entry " + std::to_string(next_entry++ % 20));
    }
    return next_position == 40 && next_entry == 40 && disposed > 0;
  })) << next_position
      << ", " << next_entry << ", " << disposed << ": " << home.hear(player, "");
  EXPECT_EQ(home.await(player), 0);
  EXPECT_TRUE(contains(home.hear(player, ""), "41 samples of 2 topics"));
  EXPECT_TRUE(contains(home.hear(player, ""), "82 samples replayed in "));
}

/// Twenty samples of the topic "numbers", which no group has.
void write_numbers(const std::string& path) {
  app::mcap::FileWriter writer(path, {});
  const app::topic::RecordedTopic recorded{
      .topic = "numbers", .type_text = type_support<Numbered>()->text, .plain = true};
  const std::uint16_t channel =
      writer.add(app::topic::channel_of(recorded, writer.add(app::topic::schema_of(recorded))));
  for (std::uint64_t i = 0; i < 20; ++i) {
    const Numbered sample{i};
    writer.write({.channel = channel, .log_ns = i, .data = std::as_bytes(std::span(&sample, 1))});
  }
  writer.finish();
}

/// The recorder comes into a topic only after the replay has made it.
TEST(TopicRecord, MissesNoSampleOfATopicThatAReplayMakes) {
  const OwnDirectory directory;
  const std::string file = directory / "numbers.mcap", copy = directory / "copy.mcap";
  write_numbers(file);
  Home home;
  Process recorder =
      start(home.words({"topic", "record", "--output", copy, "--samples", "20"}, "recorder"));
  ASSERT_TRUE(home.until([&] { return home.group.view().members.size() == 2; }));
  Process player = start(home.words({"topic", "replay", file}));
  EXPECT_EQ(home.await(player), 0);
  EXPECT_FALSE(contains(home.hear(player, ""), "warning")) << home.hear(player, "");
  EXPECT_EQ(home.await(recorder), 0) << home.hear(recorder, "");
  std::string warning;
  EXPECT_EQ(messages_of(copy, &warning).size(), 20U);
}

TEST(TopicRecord, ReplaysOnlyOnceAsManyReadersAreThereAsItIsToldTo) {
  const OwnDirectory directory;
  const std::string file = directory / "numbers.mcap";
  write_numbers(file);
  Home home;
  const Topic<Numbered> topic(home.participant, "numbers");
  DataReader<Numbered> reader{Subscriber(home.participant), topic, everything()};
  Process player = start(home.words({"topic", "replay", file, "--wait-readers", "2"}));
  EXPECT_TRUE(contains(home.hear(player, "numbers ["), "replays "));
  ASSERT_TRUE(home.until([&] { return reader->subscription_matched_status().current_count == 1; }));
  EXPECT_EQ(topic.counters().received, 0U);
  DataReader<Numbered> second{Subscriber(home.participant), topic, everything()};
  std::uint64_t next = 0;
  ASSERT_TRUE(home.until([&] {
    for (const auto& sample : second.take()) {
      if (!sample.info().valid()) continue;
      EXPECT_EQ(sample.data().number, next++);
    }
    return next == 20;
  })) << next
      << home.hear(player, "");
  EXPECT_EQ(home.await(player), 0);
}

TEST(TopicRecord, WarnsWhenNobodyListenedToAReplay) {
  const OwnDirectory directory;
  const std::string file = directory / "numbers.mcap";
  write_numbers(file);
  Home home;
  Process player = start(home.words({"topic", "replay", file, "--wait-readers", "0"}));
  EXPECT_EQ(home.await(player), 0);
  EXPECT_TRUE(contains(home.hear(player, ""),
                       "warning: topic 'numbers' had no reader that its samples reach"));
}

TEST(TopicRecord, RefusesToReplayATopicOfAnotherType) {
  const OwnDirectory directory;
  const std::string file = directory / "positions.mcap";
  {
    Home home;
    const Topic<Position> positions(home.participant, "position");
    DataWriter<Position> position{Publisher(home.participant), positions};
    Process recorder =
        start(home.words({"topic", "record", "position", "--output", file, "--samples", "1"}));
    ASSERT_TRUE(
        home.until([&] { return position->publication_matched_status().current_count > 0; }));
    write(home, position, {.ship = 1, .number = 2});
    ASSERT_EQ(home.await(recorder), 0) << home.hear(recorder, "");
  }
  Home home;
  const Topic<OtherPosition> positions(home.participant, "position");
  const DataWriter<OtherPosition> position{Publisher(home.participant), positions};
  Process player = start(home.words({"topic", "replay", file}));
  EXPECT_EQ(home.await(player), static_cast<int>(app::Status::bad_input));
  const std::string& why = home.hear(player, "");
  EXPECT_TRUE(contains(why, "topic 'position': its samples in "));
  EXPECT_TRUE(contains(why, "number f64"));
  EXPECT_TRUE(contains(why, "ship u32"));
}

TEST(TopicRecord, EndsTheFileWhenASignalComes) {
  const OwnDirectory directory;
  const std::string file = directory / "signal.mcap";
  Home home;
  const Topic<Numbered> topic(home.participant, "numbers");
  DataWriter<Numbered> writer{Publisher(home.participant), topic};
  Process recorder = start(home.words({"topic", "record", "--output", file}));
  ASSERT_TRUE(home.until([&] { return writer->publication_matched_status().current_count > 0; }));
  write(home, writer, {.number = 1});
  ASSERT_TRUE(home.until([&] { return topic.counters().received > 0; }));
  recorder.signal(SIGINT);
  ASSERT_EQ(home.await(recorder), 0) << home.hear(recorder, "");
  EXPECT_TRUE(contains(home.hear(recorder, ""), "; ended by SIGINT"));
  std::string warning;
  EXPECT_LE(messages_of(file, &warning).size(), 1U);
  EXPECT_EQ(warning, "");
}

TEST(TopicRecord, LeavesAFileThatCanBeReplayedWhenItIsKilled) {
  const OwnDirectory directory;
  const std::string file = directory / "killed.mcap";
  Home home;
  const Topic<Numbered> topic(home.participant, "numbers");
  DataWriter<Numbered> writer{Publisher(home.participant), topic};
  Process recorder =
      start(home.words({"topic", "record", "numbers", "--output", file, "--chunk-kb", "1"}));
  ASSERT_TRUE(home.until([&] { return writer->publication_matched_status().current_count > 0; }));
  std::string warning;
  std::uint64_t written = 0;
  ASSERT_TRUE(home.until([&] {
    while (writer.write({.number = written}) == WriteResult::written) ++written;
    return messages_of(file, &warning).size() > 10;
  }));
  recorder.kill();
  const std::size_t recorded = messages_of(file, &warning).size();
  EXPECT_TRUE(contains(warning, "has no end, as if its recorder was killed"));
  EXPECT_TRUE(contains(output_of({"topic", "info", file}), "warning: "));

  DataReader<Numbered> reader{Subscriber(home.participant), topic, everything()};
  ASSERT_TRUE(home.until([&] { return reader->ready(); }));
  static_cast<void>(reader.take());
  Process player = start(home.words({"topic", "replay", file, "--rate", "1e6"}));
  std::uint64_t next = 0;
  ASSERT_TRUE(home.until([&] {
    for (const auto& sample : reader.take())
      if (sample.info().valid() && sample.info().publication.member == "tool") {
        EXPECT_EQ(sample.data().number, next);
        ++next;
      }
    return next == recorded;
  })) << home.hear(player, "");
  EXPECT_EQ(home.await(player), 0);
  EXPECT_TRUE(contains(home.hear(player, ""), "warning: "));
}

TEST(TopicRecord, BeginsWithWhatIsStoredIfItIsAskedTo) {
  const OwnDirectory directory;
  const std::string file = directory / "stored.mcap";
  Home home;
  const Topic<Numbered> topic(home.participant, "numbers",
                              {.level = Level::volatile_storage, .history = History::keep_all()});
  DataWriter<Numbered> writer{Publisher(home.participant), topic};
  for (std::uint64_t i = 0; i < 5; ++i) write(home, writer, {.number = i});
  Process recorder = start(
      home.words({"topic", "record", "numbers", "--stored", "--output", file, "--samples", "6"}));
  ASSERT_TRUE(home.until([&] { return writer->publication_matched_status().current_count > 0; }));
  write(home, writer, {.number = 5});
  ASSERT_EQ(home.await(recorder), 0) << home.hear(recorder, "");
  app::mcap::FileReader reader(file);
  app::mcap::Message message;
  std::vector<std::uint64_t> numbers;
  while (reader.next(message)) {
    ASSERT_EQ(message.data.size(), sizeof(Numbered));
    std::memcpy(&numbers.emplace_back(), message.data.data(), sizeof(Numbered));
  }
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(reader.warnings().empty());
}

TEST(TopicRecord, EndsAfterItsDurationThoughNoSampleComes) {
  const OwnDirectory directory;
  const std::string file = directory / "short.mcap";
  Home home;
  const Topic<Numbered> topic(home.participant, "numbers");
  const DataWriter<Numbered> writer{Publisher(home.participant), topic};
  Process recorder =
      start(home.words({"topic", "record", "numbers", "--duration", "0.05", "--output", file}));
  ASSERT_EQ(home.await(recorder), 0) << home.hear(recorder, "");
  std::string warning;
  EXPECT_TRUE(messages_of(file, &warning).empty());
  EXPECT_EQ(warning, "");
}

TEST(TopicRecord, WorksThroughARelay) {
  const OwnDirectory directory;
  const std::string file = directory / "relayed.mcap";
  Home home;
  relay::Relay relay(home.participant);
  const std::string place = "127.0.0.1:" + std::to_string(relay.port());
  const auto until = [&](const std::function<bool()>& condition) {
    return home.until([&] {
      relay.poll();
      return condition();
    });
  };
  const auto ended = [&](Process& process, std::string& heard) {
    std::array<char, 512> part;
    const ssize_t got = recv(process.descriptor(), part.data(), part.size(), MSG_DONTWAIT);
    if (got > 0) heard.append(part.data(), static_cast<std::size_t>(got));
    return got == 0;
  };
  const Topic<Position> positions(home.participant, "position");
  DataWriter<Position> writer{Publisher(home.participant), positions};
  DataReader<Position> reader{Subscriber(home.participant), positions, everything()};
  Process recorder =
      start({"topic", "record", "position", "--output", file, "--samples", "5", "--relay", place});
  std::string heard;
  std::uint32_t number = 0;
  // It records what comes after it has begun.
  ASSERT_TRUE(until([&] {
    if (number % 64 == 63) static_cast<void>(reader.take());
    if (writer.write({.ship = 7, .number = number}) == WriteResult::written) ++number;
    return ended(recorder, heard);
  }));
  EXPECT_EQ(recorder.exit_code(), 0) << heard;
  std::uint32_t first = UINT32_MAX;
  std::uint32_t count = 0;
  ASSERT_TRUE(until([&] {  // all that was written has come back
    for (const auto& sample : reader.take())
      if (sample.info().sequence == number) return true;
    return false;
  }));
  heard.clear();
  Process player = start({"topic", "replay", file, "--rate", "1000", "--relay", place});
  ASSERT_TRUE(until([&] {
    for (const auto& sample : reader.take()) {
      if (!sample.info().valid()) continue;
      if (count == 0) first = sample.data().number;
      EXPECT_EQ(sample.data().number, first + count);
      ++count;
    }
    return ended(player, heard);
  }));
  EXPECT_EQ(player.exit_code(), 0) << heard;
  EXPECT_TRUE(contains(heard, "5 samples replayed"));
  EXPECT_EQ(count, 5U);
}

/// What other people's programs make of our files, and we of theirs.
struct TopicRecordPython : testing::Test {
  void SetUp() override {
    if (!process::run({.command = {python, "-c", "import mcap, lz4, zstandard"}}).status.well())
      GTEST_SKIP() << "mcap is missing (build/venv: mcap)";
  }
  const std::string python = DUNLIN_VENV_PYTHON;
  const OwnDirectory directory;
};

TEST_F(TopicRecordPython, ReadsOurFilesWithAllTheirChecksums) {
  for (const std::string compression : {"zstd", "none"}) {
    const std::string file = directory / (compression + ".mcap");
    Home home;
    const Topic<Position> positions(home.participant, "position");
    const Topic<Entry> entries(home.participant, "entries");
    DataWriter<Position> position{Publisher(home.participant), positions};
    DataWriter<Entry> entry{Publisher(home.participant), entries};
    Process recorder = start(home.words({"topic", "record", "--output", file, "--samples", "200",
                                         "--chunk-kb", "1", "--compression", compression}));
    ASSERT_TRUE(home.until([&] {
      return position->publication_matched_status().current_count > 0 &&
             entry->publication_matched_status().current_count > 0;
    }));
    for (std::uint32_t i = 0; i < 100; ++i) {
      write(home, position, {.ship = i % 3, .number = i});
      write(home, entry, {.number = i, .text = "entry"});
    }
    ASSERT_EQ(home.await(recorder), 0) << home.hear(recorder, "");
    const auto outcome = process::run({.command = {python, DUNLIN_MCAP_PY_TEST, "read", file}});
    EXPECT_TRUE(outcome.status.well()) << outcome.output;
    EXPECT_TRUE(contains(outcome.output,
                         "position x-dunlin-plain 100 100 ['dunlin.topic_qos', "
                         "'dunlin.writer', 'dunlin.writer_qos']"));
    EXPECT_TRUE(contains(outcome.output, "entries cdr 100 100 "));
    EXPECT_TRUE(contains(outcome.output, "200 messages, 2 schemas"));
  }
}

TEST_F(TopicRecordPython, WritesFilesThatWeReplay) {
  Home home;
  const Topic<Numbered> topic(home.participant, "numbers");
  DataReader<Numbered> reader{Subscriber(home.participant), topic, everything()};
  const std::string type = type_support<Numbered>()->text;
  for (const std::string compression : {"zstd", "lz4", "none", "unchunked"}) {
    const std::string file = directory / (compression + ".mcap");
    const auto outcome =
        process::run({.command = {python, DUNLIN_MCAP_PY_TEST, "write", file, compression, type}});
    ASSERT_TRUE(outcome.status.well()) << outcome.output;
    Process player = start(home.words({"topic", "replay", file, "--topics", "numbers"}));
    std::uint64_t next = 0;
    ASSERT_TRUE(home.until([&] {
      for (const auto& sample : reader.take()) {
        if (!sample.info().valid()) continue;
        EXPECT_EQ(sample.data().number, next);
        ++next;
      }
      return next == 20;
    })) << compression
        << home.hear(player, "");
    EXPECT_EQ(home.await(player), 0) << compression;
    EXPECT_TRUE(contains(home.hear(player, ""), "20 samples replayed"));
  }
}

TEST(TopicRecord, SaysWhatIsMissing) {
  const auto refusal_of = [](const Words& words) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_command(words), app::Status::bad_input);
    return testing::internal::GetCapturedStderr();
  };
  const OwnDirectory directory;
  const Words place{"--group", "g", "--join", "--name", "t"};
  const auto with_place = [&](Words words) {
    words.insert(words.end(), place.begin(), place.end());
    return words;
  };
  EXPECT_TRUE(contains(refusal_of(with_place({"topic", "record"})), "--output is missing"));
  EXPECT_TRUE(contains(refusal_of(with_place({"topic", "replay", directory / "none"})),
                       "cannot read it: No such file"));
  EXPECT_TRUE(contains(
      refusal_of({"topic", "record", "--output", directory / "f", "--relay", "127.0.0.1:1"}),
      "name those to record"));
  EXPECT_TRUE(contains(refusal_of({"topic", "info", directory / "none"}), "cannot read it"));
  const std::string pipe = directory / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(contains(refusal_of({"topic", "info", pipe}), "it is no regular file"));
  EXPECT_TRUE(contains(refusal_of({"topic", "info", directory / ""}), "it is no regular file"));
}

}  // namespace
}  // namespace dunlin::test
