#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "pubsub/participants.hpp"

/// Topics end to end, in the simulator.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

DataReaderQos keeps_all(Durability::Kind durability = Durability::Kind::volatile_) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{durability};
  return qos;
}

std::vector<std::uint64_t> take_numbers(DataReader<Count>& reader) {
  std::vector<std::uint64_t> numbers;
  for (const auto& sample : reader.take())
    if (sample.info().valid()) numbers.push_back(sample.data().number);
  return numbers;
}

struct Ends {
  Topic<Count> topic;
  DataWriter<Count> writer;
  DataReader<Count> reader;
};
Ends make_ends(DomainParticipant& participant, const TopicQos& qos = {},
               const DataReaderQos& reader_qos = keeps_all()) {
  Ends ends;
  ends.topic = Topic<Count>(participant, "counts", qos);
  ends.writer = DataWriter<Count>(Publisher(participant), ends.topic);
  ends.reader = DataReader<Count>(Subscriber(participant), ends.topic, reader_qos);
  return ends;
}

TEST(TopicTest, GivesTheSamplesOfAllWritersInOneOrderToAllReaders) {
  Participants all(3);
  std::vector<Ends> ends;
  for (Rank rank = 0; rank < 3; ++rank) ends.push_back(make_ends(all[rank]));
  std::vector<std::uint64_t> written(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    all.nodes[rank].work = [&, rank]() -> std::size_t {
      if (written[rank] == 50 || ends[rank].writer->publication_matched_status().current_count < 3)
        return 0;
      const Count next{.writer = rank, .instance = rank, .number = rank * 1000 + written[rank]};
      if (ends[rank].writer.write(next) != WriteResult::written) return 0;
      ++written[rank];
      return 1;
    };
  std::vector<std::vector<std::uint64_t>> taken(3);
  ASSERT_TRUE(all.until([&] {
    for (Rank rank = 0; rank < 3; ++rank)
      for (const std::uint64_t number : take_numbers(ends[rank].reader))
        taken[rank].push_back(number);
    return std::ranges::all_of(taken, [](const auto& t) { return t.size() == 150; });
  }));
  EXPECT_EQ(taken[0], taken[1]);
  EXPECT_EQ(taken[0], taken[2]);
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    std::vector<std::uint64_t> of_writer;
    for (const std::uint64_t number : taken[0])
      if (number / 1000 == rank) of_writer.push_back(number % 1000);
    ASSERT_EQ(of_writer.size(), 50U);
    EXPECT_TRUE(std::ranges::is_sorted(of_writer));
  }
}

/// The handler's poll takes no further sample, which the other reader would get first.
TEST(TopicTest, IsInOrderForEachReaderAlsoIfTheHandlerOfAnotherOnePolls) {
  Participants all(2);
  Ends writes = make_ends(all[0]);
  Ends polls = make_ends(all[1]);
  Ends sees = make_ends(all[1]);
  std::vector<std::uint64_t> polled, seen;
  polls.reader.on_sample([&](const Count& count, const SampleInfo&) {
    polled.push_back(count.number);
    all[1].poll();
  });
  sees.reader.on_sample(
      [&](const Count& count, const SampleInfo&) { seen.push_back(count.number); });
  ASSERT_TRUE(all.until(
      [&] { return writes.writer->ready() && polls.reader->ready() && sees.reader->ready(); }));
  std::uint64_t written = 0;
  all.world.on(0, [&] {
    while (written < 100 && writes.writer.write({.number = written}) == WriteResult::written)
      ++written;
  });
  ASSERT_TRUE(all.until(
      [&] { return written > 10 && seen.size() == written && polled.size() == written; }));
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(polled, seen);
}

TEST(TopicTest, BuildsSamplesInPlaceAndShowsThemInPlace) {
  Participants all(2);
  Ends a = make_ends(all[0]);
  Ends b = make_ends(all[1]);
  std::vector<std::uint64_t> seen;
  std::vector<std::string> from;
  b.reader.on_sample([&](const Count& count, const SampleInfo& info) {
    seen.push_back(count.number);
    from.emplace_back(info.publication.member);
  });
  ASSERT_TRUE(all.until([&] { return a.writer->ready() && b.reader->ready(); }));
  all.world.on(0, [&] {
    Count* const count = a.writer.loan();
    ASSERT_NE(count, nullptr);
    *count = {.writer = 0, .instance = 7, .number = 42};
    a.writer.publish();
  });
  ASSERT_TRUE(all.until([&] { return !seen.empty(); }));
  EXPECT_EQ(seen, std::vector<std::uint64_t>{42});
  EXPECT_EQ(from.front(), "node0");
  EXPECT_EQ(b.reader.take().length(), 0U);
}

TEST(TopicTest, GivesALateReaderWhatWasStoredThenWhatComes) {
  for (const Level level : {Level::volatile_storage, Level::atomic}) {
    Participants all(2);
    Ends a = make_ends(all[0], {.level = level});
    std::uint64_t written = 0;
    all.nodes[0].work = [&]() -> std::size_t {
      if (written == 200 || a.writer.write({.number = written}) != WriteResult::written) return 0;
      ++written;
      return 1;
    };
    ASSERT_TRUE(all.until([&] { return written >= 100; }));
    std::optional<Ends> b;
    all.world.on(1, [&] {
      b = make_ends(all[1], {.level = level},
                    keeps_all(level == Level::atomic ? Durability::Kind::volatile_
                                                     : Durability::Kind::transient_local));
    });
    ASSERT_TRUE(all.until([&] { return b && b->reader->ready(); }));
    ASSERT_TRUE(all.until([&] { return written == 200; }));
    all.run_for(10'000'000);
    const std::vector<std::uint64_t> taken = take_numbers(b->reader);
    for (std::size_t i = 1; i < taken.size(); ++i) ASSERT_EQ(taken[i], taken[i - 1] + 1);
    if (level == Level::volatile_storage) {
      ASSERT_EQ(taken.size(), 200U);
    } else {
      ASSERT_LT(taken.size(), 200U);
    }
  }
}

TEST(TopicTest, GivesASecondReaderOfAMemberTheSameAsTheFirst) {
  Participants all(1);
  const TopicQos stored{.level = Level::volatile_storage, .max_samples = 10};
  Ends a = make_ends(all[0], stored, keeps_all(Durability::Kind::transient));
  ASSERT_TRUE(all.until([&] { return a.writer->ready(); }));
  all.world.on(0, [&] {
    for (std::uint64_t i = 0; i < 25; ++i)
      ASSERT_EQ(a.writer.write({.number = i}), WriteResult::written);
  });
  all.run_for(5'000'000);
  DataReader<Count> late{Subscriber(all[0]), a.topic, keeps_all(Durability::Kind::transient)};
  ASSERT_TRUE(all.until([&] { return late->ready(); }));
  EXPECT_EQ(take_numbers(a.reader).size(), 25U);
  EXPECT_EQ(take_numbers(late),
            (std::vector<std::uint64_t>{15, 16, 17, 18, 19, 20, 21, 22, 23, 24}));
}

TEST(TopicTest, KeepsALoggedTopicOverARestartOfAll) {
  Participants::Disks disks = Participants::make_disks(2, 7);
  const TopicQos logged{.level = Level::logged};
  std::vector<std::uint64_t> before;
  {
    Participants all(2, 7, 0, &disks);
    Ends a = make_ends(all[0], logged);
    Ends b = make_ends(all[1], logged);
    std::uint64_t written = 0;
    all.nodes[0].work = [&]() -> std::size_t {
      if (written == 30 || a.writer.write({.number = written}) != WriteResult::written) return 0;
      ++written;
      return 1;
    };
    ASSERT_TRUE(all.until([&] {
      for (const std::uint64_t number : take_numbers(b.reader)) before.push_back(number);
      return before.size() == 30;
    })) << before.size()
        << all.nodes[0].error << all.nodes[1].error << a.topic.why_refused();
    all.crash(0);
    all.crash(1);
    for (auto& disk : disks) disk->crash();
  }
  Participants all(2, 8, 0, &disks);
  Ends a = make_ends(all[0], logged, keeps_all(Durability::Kind::persistent));
  Ends b = make_ends(all[1], logged, keeps_all(Durability::Kind::persistent));
  ASSERT_TRUE(all.until([&] { return a.writer->ready() && b.reader->ready(); }))
      << all.nodes[0].error << all.nodes[1].error;
  all.world.on(0, [&] { ASSERT_EQ(a.writer.write({.number = 30}), WriteResult::written); });
  std::vector<std::uint64_t> after;
  ASSERT_TRUE(all.until([&] {
    for (const std::uint64_t number : take_numbers(b.reader)) after.push_back(number);
    return after.size() == 31;
  })) << after.size();
  before.push_back(30);
  EXPECT_EQ(after, before);
}

TEST(TopicTest, RefusesAnotherTypeAndShowsBoth) {
  Participants all(2);
  Ends a = make_ends(all[0]);
  ASSERT_TRUE(all.until([&] { return a.writer->ready(); }));
  const Topic<Plain> other(all[1], "counts");
  DataWriter<Plain> writer{Publisher(all[1]), other};
  ASSERT_TRUE(all.until([&] { return !writer->why_refused().empty(); }));
  EXPECT_EQ(writer.write({.number = 1}), WriteResult::refused);
  const std::string why = writer->why_refused();
  EXPECT_NE(why.find("writer u32 @0"), std::string::npos) << why;
  EXPECT_NE(why.find("number u64 @0"), std::string::npos) << why;
  EXPECT_NE(why.find("'node1'"), std::string::npos) << why;
  ASSERT_TRUE(all.until([&] { return a.topic.inconsistent_topic_status().total_count == 1; }));
  EXPECT_EQ(other.inconsistent_topic_status().total_count, 1U);
}

TEST(TopicTest, RefusesAnotherLevelAndShowsBoth) {
  Participants all(2);
  Ends a = make_ends(all[0]);
  ASSERT_TRUE(all.until([&] { return a.writer->ready(); }));
  Ends b = make_ends(all[1], {.level = Level::volatile_storage});
  ASSERT_TRUE(all.until([&] { return !b.topic.why_refused().empty(); }));
  EXPECT_NE(b.topic.why_refused().find("level atomic"), std::string::npos) << b.topic.why_refused();
  EXPECT_NE(b.topic.why_refused().find("level volatile_storage"), std::string::npos);
  EXPECT_EQ(b.writer.write({}), WriteResult::refused);
}

TEST(TopicTest, ListsTheTopicsOfAllMembersUntilTheLastOneGoes) {
  Participants all(2);
  {
    Ends a = make_ends(all[0]);
    ASSERT_TRUE(all.until([&] { return all[1].topics().size() == 1; }));
    const TopicInfo info = all[1].topics().front();
    EXPECT_EQ(info.name, "counts");
    EXPECT_EQ(info.type_name, "dunlin::test::Count");
    EXPECT_EQ(info.qos.level, Level::atomic);
    EXPECT_EQ(info.members, std::vector<std::string>{"node0"});
    ASSERT_TRUE(all.until([&] { return a.writer->ready() && a.reader->ready(); }));
  }
  ASSERT_TRUE(all.until([&] { return all[1].topics().empty(); }));
}

TEST(TopicTest, LetsTopicsComeAgainAfterTheyWent) {
  Participants all(2);
  Ends b = make_ends(all[1]);
  for (std::uint64_t round = 0; round < 5; ++round) {
    Ends a = make_ends(all[0]);
    ASSERT_TRUE(all.until([&] {
      return a.writer->ready() && b.writer->publication_matched_status().current_count == 2;
    }));
    bool written = false;
    all.nodes[0].work = [&]() -> std::size_t {
      if (written) return 0;
      written = a.writer.write({.number = round}) == WriteResult::written;
      return written ? 1 : 0;
    };
    std::vector<std::uint64_t> taken;
    ASSERT_TRUE(all.until([&] {
      for (const std::uint64_t number : take_numbers(b.reader)) taken.push_back(number);
      return !taken.empty();
    }));
    EXPECT_EQ(taken, std::vector<std::uint64_t>{round});
    all.nodes[0].work = nullptr;
  }
  ASSERT_TRUE(all.until([&] { return b.writer->publication_matched_status().current_count == 1; }));
  EXPECT_EQ(b.writer->publication_matched_status().total_count, 6U);
}

/// The last handle goes with the writer; another member has the samples in its ring, and has not
/// looked.
TEST(TopicTest, LosesNothingOfAWriterThatIsClosed) {
  for (const Level level : {Level::unordered, Level::atomic}) {
    Participants all(3);
    const TopicQos qos{.level = level};
    std::vector<Ends> ends;
    for (Rank rank = 0; rank < 3; ++rank) ends.push_back(make_ends(all[rank], qos));
    ASSERT_TRUE(all.until([&] {
      return std::ranges::all_of(ends, [](const Ends& one) {
        return one.writer->publication_matched_status().current_count == 3;
      });
    }));
    all.run_for(1'000'000);
    all.world.pause(1, 500'000);
    all.world.on(0, [&] {
      for (std::uint64_t i = 0; i < 100; ++i)
        EXPECT_EQ(ends[0].writer.write({.number = i}), WriteResult::written);
      ends[0] = {};
    });
    ASSERT_TRUE(all.until([&] { return !all[0].holds_topics(); }));
    all.run_for(10'000'000);
    for (const Rank rank : {1U, 2U})
      EXPECT_EQ(take_numbers(ends[rank].reader).size(), 100U) << rank << " " << describe(level);
  }
}

TEST(TopicTest, LosesNothingOfATopicThatIsOpenedAnewAtOnce) {
  Participants all(2);
  const TopicQos qos{.level = Level::unordered};
  Ends here = make_ends(all[0], qos);
  Ends there = make_ends(all[1], qos);
  ASSERT_TRUE(
      all.until([&] { return here.writer->publication_matched_status().current_count == 2; }));
  all.run_for(1'000'000);
  all.world.pause(1, 500'000);
  all.world.on(0, [&] {
    for (std::uint64_t i = 0; i < 100; ++i)
      EXPECT_EQ(here.writer.write({.number = i}), WriteResult::written);
    here = {};
  });
  all.run_for(1'000'000);  // it asks to be out of the topic
  bool anew = false;
  all.world.on(0, [&] {
    here = make_ends(all[0], qos);
    anew = true;
  });
  ASSERT_TRUE(all.until([&] { return anew && here.writer->ready(); }));
  all.world.on(0, [&] { EXPECT_EQ(here.writer.write({.number = 100}), WriteResult::written); });
  all.run_for(10'000'000);
  EXPECT_EQ(take_numbers(there.reader).size(), 101U);
}

/// Its reader is full, so node 0 passes from the generation with the old process to that with the
/// new one, without looking at the one in between.
TEST(TopicTest, ForgetsTheWritersOfAMemberThatHasStartedAnew) {
  Participants all(3, 1, 1);
  DataReaderQos one = keeps_all();
  one << ResourceLimits{.max_samples = 1};
  Ends here = make_ends(all[0], {}, one);
  Ends old = make_ends(all[1]);
  ASSERT_TRUE(
      all.until([&] { return old.writer->publication_matched_status().current_count == 2; }));
  all.world.on(1, [&] {
    for (std::uint64_t i = 0; i < 3; ++i)
      EXPECT_EQ(old.writer.write({.number = i}), WriteResult::written);
  });
  all.run_for(1'000'000);
  all.crash(1);
  ASSERT_TRUE(all.until([&] { return all.nodes[0].group->view().members.size() == 2; }));
  all.come(3, "node1");
  std::optional<Topic<Count>> anew;
  all.nodes[3].work = [&]() -> std::size_t {
    if (!anew) anew.emplace(all[3], "counts");
    return 0;
  };
  const auto members = [&] {
    const auto topics = all[0].topics();
    return topics.empty() ? 0 : topics[0].members.size();
  };
  ASSERT_TRUE(all.until([&] { return anew && members() == 2; }));
  all.run_for(1'000'000);
  std::size_t taken = 0;
  all.nodes[0].work = [&] {
    const std::size_t now = take_numbers(here.reader).size();
    taken += now;
    return now;
  };
  ASSERT_TRUE(all.until([&] { return taken == 3; }));
  all.run_for(1'000'000);
  EXPECT_EQ(here.topic.endpoints().size(), 2U) << "those of node 0";
}

}  // namespace
}  // namespace dunlin::test
