#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pubsub/participants.hpp"

/// Which members of a topic are senders of its multicast: those with a writer, and no others
/// (PUB-W1). And writers that are told of room.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

using Names = std::vector<std::string>;

DataReaderQos all_samples() {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all();
  return qos;
}

/// The senders of the only topic of the group, as node 0 sees them.
Names senders_of(Participants& all) {
  const auto subgroups = all[0].group().subgroups();
  return subgroups.empty() ? Names() : subgroups.front().senders;
}

struct Reading {
  Reading(DomainParticipant& participant, const TopicQos& qos = {})
      : topic(participant, "counts", qos), reader(Subscriber(participant), topic, all_samples()) {}
  std::size_t take() {
    const auto samples = reader.take();
    for (const auto& sample : samples)
      if (sample.info().valid()) numbers.push_back(sample.data().number);
    return samples.length();
  }

  Topic<Count> topic;
  DataReader<Count> reader;
  std::vector<std::uint64_t> numbers;
};

/// A topic with readers at all nodes, and a writer at node 0.
class ReadersOfOne {
 public:
  explicit ReadersOfOne(std::uint32_t members, const TopicQos& qos = {},
                        const ParticipantOptions& options = {})
      : all(members, 1, 0, nullptr, sim::profile("ib100"), options) {
    for (Rank rank = 0; rank < members; ++rank) {
      readings.push_back(std::make_unique<Reading>(all[rank], qos));
      all.nodes[rank].work = [this, rank] { return work(rank); };
    }
    writer = DataWriter<Count>(Publisher(all[0]), readings[0]->topic);
  }
  [[nodiscard]] bool all_have(std::uint64_t samples) const {
    return std::ranges::all_of(
        readings, [&](const auto& one) { return !one || one->numbers.size() == samples; });
  }
  /// Writes so many samples, so many at once in 100 us.
  bool write(std::uint64_t samples, std::uint64_t at_once = 1) {
    last_ = written + samples;
    at_once_ = at_once;
    return all.until([this] { return written == last_ && all_have(last_); });
  }

  Participants all;
  std::vector<std::unique_ptr<Reading>> readings;
  DataWriter<Count> writer;
  std::uint64_t written = 0;

 private:
  std::size_t work(Rank rank) {
    std::size_t done = readings[rank] ? readings[rank]->take() : 0;
    if (rank != 0 || written == last_) return done;
    const std::uint64_t now_ns = all.world.now_ns();
    if (now_ns < next_ns_) {
      all[0].fabric().wake_at(next_ns_);
      return done;
    }
    for (std::uint64_t i = 0; i < at_once_ && written < last_; ++i) {
      if (writer.write({.number = written}) != WriteResult::written) return done;
      ++written;
      ++done;
    }
    next_ns_ = now_ns + 100'000;
    return done;
  }
  std::uint64_t last_ = 0;
  std::uint64_t at_once_ = 1;
  std::uint64_t next_ns_ = 0;
};

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kLinger = 150 * kMs;  // somewhat more than ParticipantOptions says

TEST(TopicSenders, AreTheMembersWithAWriter) {
  ReadersOfOne topic(4);
  ASSERT_TRUE(topic.write(10));
  EXPECT_EQ(senders_of(topic.all).size(), 4U) << "readers have just announced themselves";
  topic.all.run_for(kLinger);
  EXPECT_EQ(senders_of(topic.all), Names{"node0"});
  ASSERT_TRUE(topic.write(10));

  DataWriter<Count> second{Publisher(topic.all[2]), topic.readings[2]->topic};
  ASSERT_TRUE(topic.all.until([&] { return second->ready(); }));
  EXPECT_EQ(senders_of(topic.all), (Names{"node0", "node2"}));
  topic.all.run_for(kLinger);
  EXPECT_EQ(senders_of(topic.all), (Names{"node0", "node2"}));
  ASSERT_EQ(second.write({.number = 20}), WriteResult::written);
  topic.written = 21;
  ASSERT_TRUE(topic.write(10));

  second = {};
  topic.all.run_for(kLinger);
  EXPECT_EQ(senders_of(topic.all), Names{"node0"});
  ASSERT_TRUE(topic.write(10));
}

/// Eight samples at once. If all 16 members were senders, and waited for each other's nulls, a
/// sample would take 60 operations.
TEST(TopicSenders, AreNotReadersWhoseNullsAndRingsCost) {
  constexpr std::uint64_t kSamples = 800;
  ReadersOfOne topic(16, {.ring_bytes = 65'536});
  ASSERT_TRUE(topic.write(1));
  topic.all.run_for(kLinger);
  ASSERT_EQ(senders_of(topic.all), Names{"node0"});
  const std::uint64_t before = topic.all.world.operations();
  ASSERT_TRUE(topic.write(kSamples, 8));
  EXPECT_LE(topic.all.world.operations() - before, 37 * kSamples);
}

TEST(TopicSenders, AnnounceALaterReaderAndCeaseAgain) {
  ReadersOfOne topic(3);
  ASSERT_TRUE(topic.write(10));
  topic.all.run_for(kLinger);
  Reading later(topic.all[1]);
  ASSERT_TRUE(topic.all.until([&] { return later.reader->ready(); }));
  ASSERT_TRUE(topic.write(10));
  later.take();
  EXPECT_EQ(later.numbers.size(), 10U);
  topic.all.run_for(kLinger);
  EXPECT_EQ(senders_of(topic.all), Names{"node0"});
  ASSERT_TRUE(topic.write(10));
}

TEST(TopicSenders, NeedNotComeBackToLeave) {
  ReadersOfOne topic(3);
  ASSERT_TRUE(topic.write(10));
  topic.all.run_for(kLinger);
  std::vector<SubgroupInfo> changes;
  topic.all[0].group().on_subgroup([&](const SubgroupInfo& now) { changes.push_back(now); });
  topic.all.world.on(2, [&] { topic.readings[2].reset(); });
  topic.all.run_for(kLinger);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].members, (Names{"node0", "node1"}));
  EXPECT_EQ(topic.writer->publication_matched_status().current_count, 2U);
  ASSERT_TRUE(topic.write(10));
}

/// What was stored is given by a member that is no sender to one that is none soon.
TEST(TopicSenders, AreNotNeededToKeepATopic) {
  const TopicQos qos{.level = Level::volatile_storage};
  ReadersOfOne topic(2, qos);
  ASSERT_TRUE(topic.write(10));
  topic.writer = {};
  topic.all.run_for(kLinger);
  EXPECT_EQ(senders_of(topic.all), Names());
  DataReaderQos stored = all_samples();
  stored << Durability{Durability::Kind::transient_local};
  DataReader<Count> late{Subscriber(topic.all[1]), topic.readings[1]->topic, stored};
  ASSERT_TRUE(topic.all.until([&] { return late->ready(); }));
  EXPECT_EQ(late.take().length(), 11U) << "10 samples, and that there is no writer any more";
  topic.all.run_for(kLinger);
  EXPECT_EQ(senders_of(topic.all), Names());
}

TEST(TopicSenders, AreToldOfRoomOnceAfterARefusal) {
  ReadersOfOne topic(2, {.ring_bytes = 4096});
  std::size_t calls = 0;
  bool ready = false;
  topic.writer.on_room([&] {
    ++calls;
    ready = topic.writer->ready();
  });
  EXPECT_EQ(topic.writer.write({}), WriteResult::not_ready);
  topic.all.run_for(kMs);
  EXPECT_EQ(calls, 1U) << "a writer hears that it is ready, too";
  EXPECT_TRUE(ready);
  while (topic.writer.write({.number = topic.written}) == WriteResult::written) ++topic.written;
  EXPECT_EQ(topic.writer.loan(), nullptr);
  EXPECT_EQ(calls, 1U);
  topic.writer.on_room([&] {
    ++calls;
    if (Count* const sample = topic.writer.loan()) {
      *sample = {.number = topic.written++};
      topic.writer.publish();
    }
  });
  topic.all.run_for(kMs);
  EXPECT_EQ(calls, 2U);
  EXPECT_TRUE(topic.all_have(topic.written)) << "what the handler wrote leaves by itself";
}

}  // namespace
}  // namespace dunlin::test
