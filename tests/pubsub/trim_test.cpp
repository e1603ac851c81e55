#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>

#include "pubsub/participants.hpp"
#include "pubsub/topic_qos.hpp"
#include "pubsub/wire.hpp"
#include "support/errors.hpp"
#include "support/own_directory.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Topics that keep a part of their samples: for late readers, and in their logs.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;
using Numbers = std::vector<std::uint64_t>;

constexpr std::uint64_t kTrimBytes = kLeastLogTrimBytes;
constexpr std::uint64_t kMessageBytes = kHeaderBytes + sizeof(Count);

DataReaderQos stored(Durability::Kind durability = Durability::Kind::persistent) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{durability}
      << ResourceLimits{.max_samples = 100'000};
  return qos;
}

Numbers take_numbers(DataReader<Count>& reader) {
  Numbers numbers;
  for (const auto& sample : reader.take())
    if (sample.info().valid()) numbers.push_back(sample.data().number);
  return numbers;
}

/// They come in parts.
Numbers take_up_to(Participants& all, DataReader<Count>& reader, std::uint64_t end) {
  Numbers taken;
  static_cast<void>(all.until([&] {
    for (const std::uint64_t number : take_numbers(reader)) taken.push_back(number);
    return !taken.empty() && taken.back() + 1 >= end;
  }));
  return taken;
}

Numbers range(std::uint64_t first, std::uint64_t end) {
  Numbers numbers;
  for (std::uint64_t number = first; number < end; ++number) numbers.push_back(number);
  return numbers;
}

struct Ends {
  Ends(DomainParticipant& participant, const TopicQos& qos)
      : topic(participant, "counts", qos),
        writer(Publisher(participant), topic),
        reader(Subscriber(participant), topic, stored()) {}
  /// Work of its node: writes until there are so many.
  std::function<std::size_t()> write_up_to(const std::uint64_t& end, std::uint64_t& written) {
    return [this, &end, &written]() -> std::size_t {
      if (written >= end || writer.write({.number = written}) != WriteResult::written) return 0;
      ++written;
      return 1;
    };
  }
  Topic<Count> topic;
  DataWriter<Count> writer;
  DataReader<Count> reader;
};

void crash_all(Participants& all, Participants::Disks& disks) {
  for (Rank rank = 0; rank < all.nodes.size(); ++rank) all.crash(rank);
  for (auto& disk : disks) disk->crash();
}

TEST(TopicTrim, RefusesPoliciesThatKeepNothingOrFitNoLevel) {
  const auto refusal = [](const TopicQos& qos) {
    return what_is_thrown_by([&] { check_topic_qos("counts", qos); });
  };
  EXPECT_EQ(refusal({.level = Level::logged, .max_bytes = 1, .log_trim_bytes = 4096}), "nothing");
  EXPECT_EQ(refusal({.level = Level::logged, .max_age_ns = 0}),
            "topic 'counts': a max_age_ns of 0 keeps nothing; give 1 or more, or kInfiniteNs");
  EXPECT_EQ(refusal({.level = Level::atomic, .max_bytes = 1}),
            "topic 'counts': its level is atomic, which stores nothing; leave max_bytes and "
            "max_age_ns out, or give the level volatile_storage or logged");
  EXPECT_EQ(refusal({.level = Level::volatile_storage, .log_trim_bytes = 4096}),
            "topic 'counts': its level is volatile_storage, which has no log; leave "
            "log_trim_bytes out, or give the level logged");
  EXPECT_EQ(refusal({.level = Level::logged, .log_trim_bytes = 4095}),
            "topic 'counts': log_trim_bytes 4095; give 4096 or more (kLeastLogTrimBytes), or 0 to "
            "keep the whole log");
  Participants all(1);
  EXPECT_THROW(Topic<Count>(all[0], "counts", {.level = Level::atomic, .max_age_ns = 1}), Error);
}

TEST(TopicTrim, TellsOtherMembersItsPolicies) {
  for (const TopicQos& qos :
       {TopicQos{},
        TopicQos{.level = Level::logged, .history = History::keep_last(3), .log_trim_bytes = 9000},
        TopicQos{.level = Level::volatile_storage, .max_bytes = 5, .max_age_ns = 7}})
    EXPECT_EQ(read_topic_qos("ordered, " + describe(qos)), qos) << describe(qos);
  EXPECT_FALSE(read_topic_qos("ordered"));
}

TEST(TopicTrim, StoresAtMostSoManyBytesAndTheNewestSampleInAnyCase) {
  for (const auto& [bytes, first] :
       {std::pair<std::uint64_t, std::uint64_t>{10 * sizeof(Count), 90},
        {10 * sizeof(Count) - 1, 91},
        {1, 99}}) {
    Participants all(1);
    Ends a(all[0], {.level = Level::volatile_storage, .max_bytes = bytes});
    std::uint64_t written = 0;
    const std::uint64_t end = 100;
    all.nodes[0].work = a.write_up_to(end, written);
    ASSERT_TRUE(all.until([&] { return a.topic.position() == end; }));
    DataReader<Count> late{Subscriber(all[0]), a.topic, stored(Durability::Kind::transient)};
    ASSERT_TRUE(all.until([&] { return late->ready(); }));
    EXPECT_EQ(take_numbers(late), range(first, end)) << bytes;
  }
}

TEST(TopicTrim, StoresNoSampleThatIsTooOld) {
  Participants all(2);
  const TopicQos qos{.level = Level::volatile_storage,
                     .history = History::keep_last(100),
                     .max_age_ns = 50'000'000};
  Ends a(all[0], qos);
  std::uint64_t written = 0;
  std::uint64_t end = 10;
  all.nodes[0].work = a.write_up_to(end, written);
  ASSERT_TRUE(all.until([&] { return a.topic.position() == end; }));
  all.run_for(40'000'000);
  all.world.on(0, [&] { end = 15; });
  ASSERT_TRUE(all.until([&] { return a.topic.position() == end; }));
  all.run_for(20'000'000);
  // One of the same member, and one that takes the state of another one.
  DataReader<Count> late{Subscriber(all[0]), a.topic, stored(Durability::Kind::transient)};
  std::optional<Ends> b;
  all.world.on(1, [&] { b.emplace(all[1], qos); });
  ASSERT_TRUE(all.until([&] { return late->ready() && b && b->reader->ready(); }));
  EXPECT_EQ(take_numbers(late), range(10, 15));
  EXPECT_EQ(take_numbers(b->reader), Numbers())
      << "it requests `persistent` of a level that is not";
  DataReader<Count> other{Subscriber(all[1]), b->topic, stored(Durability::Kind::transient)};
  ASSERT_TRUE(all.until([&] { return other->ready(); }));
  EXPECT_EQ(take_numbers(other), range(10, 15));
}

/// A topic whose log is trimmed many times, with all its members.
struct Trimmed {
  static constexpr std::uint32_t kKept = 50;
  static constexpr TopicQos kQos{
      .level = Level::logged, .max_samples = kKept, .log_trim_bytes = kTrimBytes};
};

TEST(TopicTrim, GivesALateReaderTheOldestKeptSampleThenAllBehindIt) {
  Participants::Disks disks = Participants::make_disks(2, 3);
  Participants all(2, 3, 0, &disks);
  Ends a(all[0], Trimmed::kQos);
  std::uint64_t written = 0;
  std::uint64_t end = 3'000;
  all.nodes[0].work = a.write_up_to(end, written);
  {
    Ends b(all[1],
           Trimmed::kQos);  // a logged topic begins when all that may have its log are there
    ASSERT_TRUE(all.until([&] { return a.topic.position() == end && b.topic.position() == end; }));
  }
  const std::uint64_t whole = end * kMessageBytes;
  EXPECT_LT(disks[0]->used(), whole / 3) << "the log is trimmed";
  ASSERT_TRUE(all.until([&] { return all[0].topics().front().members.size() == 1; }));
  EXPECT_EQ(all[0].topics().front().qos, Trimmed::kQos);
  all.world.on(0, [&] { end = 4'000; });
  ASSERT_TRUE(all.until([&] { return written >= 3'100; }));
  std::optional<Ends> b;
  all.world.on(1, [&] { b.emplace(all[1], Trimmed::kQos); });
  Numbers taken;
  ASSERT_TRUE(all.until([&] {
    if (b)
      for (const std::uint64_t number : take_numbers(b->reader)) taken.push_back(number);
    return !taken.empty() && taken.back() + 1 == end;
  })) << all.nodes[1].error;
  EXPECT_GE(taken.front(), 3'000 - Trimmed::kKept);
  EXPECT_LT(taken.front(), end - Trimmed::kKept);
  EXPECT_EQ(taken, range(taken.front(), end)) << "no gap, no duplicate";
  EXPECT_EQ(all.nodes[0].error + all.nodes[1].error, "");
}

TEST(TopicTrim, HasWhatItKeptAfterARestartOfAll) {
  Participants::Disks disks = Participants::make_disks(2, 5);
  const ClientId client{std::byte{1}, std::byte{2}};
  {
    Participants all(2, 5, 0, &disks);
    Ends a(all[0], Trimmed::kQos);
    Ends b(all[1], Trimmed::kQos);
    const DataWriter<Count> second{Publisher(all[1]),
                                   b.topic};  // it is not there after the restart
    std::uint64_t written = 0;
    const std::uint64_t end = 1'000;
    all.nodes[0].work = [&, write = a.write_up_to(end, written)]() -> std::size_t {
      if (written != 500) return write();
      const Count count{.number = written};
      if (a.writer->write(&count, {.client = client, .number = 7}) != WriteResult::written)
        return 0;
      ++written;
      return 1;
    };
    ASSERT_TRUE(all.until([&] { return a.topic.position() == end && b.topic.position() == end; }))
        << all.nodes[0].error << all.nodes[1].error;
    EXPECT_EQ(b.topic.delivered_of(client), 7U);
    crash_all(all, disks);
  }
  Participants all(2, 6, 0, &disks);
  Ends a(all[0], Trimmed::kQos);
  Ends b(all[1], Trimmed::kQos);
  ASSERT_TRUE(all.until([&] {
    return a.writer->publication_matched_status().current_count == 2 && b.writer->ready();
  })) << all.nodes[0].error
      << all.nodes[1].error;
  EXPECT_EQ(take_up_to(all, a.reader, 1'000), range(1'000 - Trimmed::kKept, 1'000));
  EXPECT_EQ(take_up_to(all, b.reader, 1'000), range(1'000 - Trimmed::kKept, 1'000));
  EXPECT_EQ(a.topic.endpoints().size(), 4U) << "endpoints of before the restart are gone";
  EXPECT_EQ(a.topic.position(), 1'000U);
  EXPECT_EQ(a.topic.delivered_of(client), 7U) << "RLY-1";
  // A client that sends its sample again, and a new one.
  all.world.on(0, [&] {
    const Count again{.number = 500};
    const Count next{.number = 1'000};
    ASSERT_EQ(a.writer->write(&again, {.client = client, .number = 7}), WriteResult::written);
    ASSERT_EQ(a.writer->write(&next, {.client = client, .number = 8}), WriteResult::written);
  });
  ASSERT_TRUE(all.until([&] { return b.topic.delivered_of(client) == 8; }));
  EXPECT_EQ(take_numbers(b.reader), range(1'000, 1'001));
}

/// One life of all members of a topic, until all crash at any moment. What their readers are given
/// is held against what was `delivered` in the lives before: so many samples.
void live(std::mt19937_64& random, Participants::Disks& disks, const TopicQos& qos,
          std::uint64_t& delivered) {
  Participants all(2, random(), 0, &disks);
  std::vector<Ends> ends;
  for (Rank rank = 0; rank < 2; ++rank) ends.emplace_back(all[rank], qos);
  const auto are_ready = [&] { return ends[0].writer->ready() && ends[1].reader->ready(); };
  ASSERT_TRUE(all.until(are_ready)) << all.nodes[0].error << all.nodes[1].error;
  // Samples that were not delivered are in the log, or are not.
  const std::uint64_t first = ends[0].topic.position();
  ASSERT_GE(first, delivered) << "a sample that was delivered is in the log";
  std::uint64_t written = first;
  const std::uint64_t end = first + random() % 400;
  all.nodes[0].work = ends[0].write_up_to(end, written);
  const std::uint64_t enough = end - random() % (end - first + 1);
  ASSERT_TRUE(all.until([&] { return written >= enough; }));
  all.run_for(random() % 1'000'000);
  for (Ends& one : ends) {
    const Numbers taken = take_numbers(one.reader);
    const std::uint64_t oldest = first - std::min<std::uint64_t>(first, qos.max_samples);
    EXPECT_EQ(taken, range(oldest, oldest + taken.size())) << "no gap, no duplicate";
    EXPECT_GE(oldest + taken.size(), first) << "all that was kept";
    delivered = std::max(delivered, oldest + taken.size());
  }
  EXPECT_EQ(all.nodes[0].error + all.nodes[1].error, "");
  crash_all(all, disks);
}

TEST(TopicTrim, LosesNothingThatItKeepsInAnyCrash) {
  for_each_seed(Seeds(rounds(60)), [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Participants::Disks disks = Participants::make_disks(2, seed);
    const TopicQos qos{.level = Level::logged,
                       .max_samples = static_cast<std::uint32_t>(1 + random() % 120),
                       .log_trim_bytes = kTrimBytes + random() % 4'096};
    std::uint64_t delivered = 0;
    for (int life = 0; life < 5; ++life) {
      ASSERT_NO_FATAL_FAILURE(live(random, disks, qos, delivered));
      if (HasFailure()) return;
    }
  });
}

/// Real files: the same member three times.
TEST(TopicTrim, BoundsTheFilesOfALogOverRestarts) {
  const OwnDirectory directory;
  const std::string log = directory / "logs";
  std::filesystem::create_directory(log);
  const TopicQos qos{.level = Level::logged,
                     .max_samples = 20,
                     .ring_bytes = std::size_t{16} << 10U,  // at most so much is one commit
                     .log_trim_bytes = std::uint64_t{16} << 10U};
  std::uint64_t written = 0;
  for (std::uint64_t life = 0; life < 3; ++life) {
    auto fabric = join({.group = "trim-" + std::to_string(getpid()), .names = {"a"}, .name = "a"});
    Group group(*fabric);
    DomainParticipant participant(group, {.log_directory = log, .log_founders = {"a"}});
    Ends ends(participant, qos);
    const std::uint64_t end = (life + 1) * 5'000;
    const std::uint64_t before = written;
    const auto write = ends.write_up_to(end, written);
    std::optional<Numbers> first;
    ASSERT_TRUE(run_until(
        participant,
        [&] {
          write();
          Numbers taken = take_numbers(ends.reader);
          if (!taken.empty() && !first) first = std::move(taken);
          return ends.topic.position() == end;
        },
        60'000));
    ASSERT_TRUE(first);
    EXPECT_EQ(first->front(), life == 0 ? 0 : before - qos.max_samples);
  }
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(log))
    if (file.is_regular_file()) bytes += file.file_size();
  EXPECT_LT(bytes, 15'000 * kMessageBytes / 3);
}

}  // namespace
}  // namespace dunlin::test
