#include <algorithm>
#include <string>
#include <vector>

#include "pubsub/match.hpp"
#include "pubsub/participants.hpp"
#include "pubsub/reader_core.hpp"

/// The policies, one by one, at the times of the simulator.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

constexpr std::uint64_t kMs = 1'000'000;

/// A writer at node 0 and a reader at node 1 that match.
class Pair {
 public:
  explicit Pair(const DataReaderQos& reader_qos, const DataWriterQos& writer_qos = {},
                const TopicQos& topic_qos = {}, DataReader<Count>::Filter filter = nullptr)
      : all(2),
        written_to(all[0], "counts", topic_qos),
        read_from(all[1], "counts", topic_qos),
        writer(Publisher(all[0]), written_to, writer_qos),
        reader(Subscriber(all[1]), read_from, reader_qos, std::move(filter)) {
    EXPECT_TRUE(all.until([&] { return writer->ready() && reader->ready(); }));
    all.run_for(kMs);
  }
  WriteResult write(const Count& count) {
    WriteResult result = WriteResult::ended;
    all.world.on(0, [&] { result = writer.write(count); });
    all.run_for(kMs / 10);
    return result;
  }
  std::vector<std::uint64_t> take() {
    std::vector<std::uint64_t> numbers;
    for (const auto& sample : reader.take())
      if (sample.info().valid()) numbers.push_back(sample.data().number);
    return numbers;
  }
  Participants all;
  Topic<Count> written_to;
  Topic<Count> read_from;
  DataWriter<Count> writer;
  DataReader<Count> reader;
};

DataReaderQos all_of(DataReaderQos qos = {}) {
  qos << History::keep_all();
  return qos;
}

TEST(QosTest, NamesBothSidesAndThePolicyOfAMismatch) {
  DataWriterQos offered;
  offered << Reliability::best_effort();
  DataReaderQos requested;
  requested << Reliability::reliable();
  Pair pair(requested, offered);
  const std::string at_reader = pair.reader->requested_incompatible_qos_status().last;
  EXPECT_NE(at_reader.find("writer 0 of member 'node0' and reader 0 of member 'node1'"),
            std::string::npos)
      << at_reader;
  EXPECT_NE(at_reader.find("reliability: best_effort is offered, reliable is requested"),
            std::string::npos);
  EXPECT_EQ(pair.writer->offered_incompatible_qos_status().last, at_reader);
  EXPECT_EQ(pair.write({.number = 1}), WriteResult::written);
  EXPECT_TRUE(pair.take().empty());
}

TEST(QosTest, ComparesEachPolicyThatIsOffered) {
  const auto differs = [](DataWriterQos offered, DataReaderQos requested, Level level,
                          const std::string& policy) {
    return mismatch(offered, level, requested).starts_with(policy);
  };
  DataReaderQos reader;
  EXPECT_EQ(mismatch({}, Level::atomic, reader), "");
  reader << Durability{Durability::Kind::persistent};
  EXPECT_TRUE(differs({}, reader, Level::volatile_storage, "durability"));
  EXPECT_EQ(mismatch({}, Level::logged, reader), "");
  reader = {};
  reader << Deadline{.period_ns = 5};
  EXPECT_TRUE(differs({}, reader, Level::atomic, "deadline"));
  reader = {};
  reader << Liveliness{.kind = Liveliness::Kind::manual_by_topic};
  EXPECT_TRUE(differs({}, reader, Level::atomic, "liveliness"));
  reader = {};
  reader << Liveliness{.lease_ns = 5};
  EXPECT_TRUE(differs({}, reader, Level::atomic, "liveliness lease"));
  reader = {};
  reader << Ownership{.kind = Ownership::Kind::exclusive};
  EXPECT_TRUE(differs({}, reader, Level::atomic, "ownership"));
}

TEST(QosTest, KeepsTheLastSamplesOfEachInstance) {
  DataReaderQos qos;
  qos << History::keep_last(2);
  Pair pair(qos);
  for (std::uint64_t i = 0; i < 10; ++i)
    ASSERT_EQ(pair.write({.instance = static_cast<std::uint32_t>(i % 2), .number = i}),
              WriteResult::written);
  EXPECT_EQ(pair.take(), (std::vector<std::uint64_t>{6, 7, 8, 9}));
}

TEST(QosTest, ReadsAgainWhatWasNotTaken) {
  Pair pair(all_of());
  ASSERT_EQ(pair.write({.number = 1}), WriteResult::written);
  ASSERT_EQ(pair.write({.number = 2}), WriteResult::written);
  {
    const auto first = pair.reader.read({.max_samples = 1});
    ASSERT_EQ(first.length(), 1U);
    EXPECT_EQ(first[0].info().sample_state, SampleState::not_read);
    EXPECT_EQ(first[0].info().view_state, ViewState::new_view);
  }
  EXPECT_EQ(pair.reader.read({.sample_states = SampleState::read})[0].info().view_state,
            ViewState::not_new_view);
  const auto lent = pair.reader.take();
  ASSERT_EQ(lent.length(), 2U);
  EXPECT_EQ(lent[0].info().sample_rank, 1U);
  EXPECT_EQ(lent[0].info().sequence, 1U);
  ASSERT_EQ(pair.write({.number = 3}), WriteResult::written);
  EXPECT_EQ(lent[1].data().number, 2U) << "PUB-R2: what is lent stays";
}

/// It knows no keys: all instances are one for it.
TEST(QosTest, TellsAToolOfEachDispose) {
  Participants all(2);
  const Topic<Count> topic(all[0], "counts", {});
  const AnyTopic untyped(all[1], "counts", raw_type_support(), {});
  DataWriter<Count> writer{Publisher(all[0]), topic};
  AnyReader reader(untyped, all_of());
  ASSERT_TRUE(all.until([&] { return writer->publication_matched_status().current_count == 1; }));
  for (const std::uint32_t instance : {5U, 6U}) {
    all.world.on(0, [&] {
      EXPECT_EQ(writer.write({.instance = instance}), WriteResult::written);
      EXPECT_EQ(writer.dispose_instance({.instance = instance}), WriteResult::written);
    });
    all.run_for(kMs);
  }
  const auto samples = reader.take();
  ASSERT_EQ(samples.size(), 4U);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples.info(i).valid(), i % 2 == 0);
    EXPECT_EQ(samples.info(i).instance_state,
              i % 2 == 0 ? InstanceState::alive : InstanceState::disposed);
  }
}

TEST(QosTest, TellsTheStatesOfInstances) {
  Pair pair(all_of());
  ASSERT_EQ(pair.write({.instance = 5, .number = 1}), WriteResult::written);
  pair.all.world.on(
      0, [&] { EXPECT_EQ(pair.writer.dispose_instance({.instance = 5}), WriteResult::written); });
  pair.all.run_for(kMs);
  {
    const auto samples = pair.reader.take();
    ASSERT_EQ(samples.length(), 2U);
    EXPECT_FALSE(samples[1].info().valid());
    EXPECT_EQ(samples[1].data().instance, 5U);
    EXPECT_EQ(samples[1].info().instance_state, InstanceState::disposed);
  }
  ASSERT_EQ(pair.write({.instance = 5, .number = 2}), WriteResult::written);
  {
    const auto samples = pair.reader.take();
    ASSERT_EQ(samples.length(), 1U);
    EXPECT_EQ(samples[0].info().disposed_generation, 1U);
    EXPECT_EQ(samples[0].info().view_state, ViewState::new_view);
  }
  pair.writer = {};
  pair.all.run_for(kMs);
  const auto samples = pair.reader.take();
  ASSERT_EQ(samples.length(), 1U);
  EXPECT_EQ(samples[0].info().instance_state, InstanceState::no_writers);
  EXPECT_NE(pair.reader.lookup_instance({.instance = 5}), 0U);
  EXPECT_EQ(pair.reader.lookup_instance({.instance = 6}), 0U);
}

TEST(QosTest, MissesADeadlineWhenItIsOver) {
  DataReaderQos requested = all_of();
  requested << Deadline{.period_ns = 10 * kMs};
  DataWriterQos offered;
  offered << Deadline{.period_ns = 10 * kMs};
  Pair pair(requested, offered);
  std::uint64_t missed_ns = 0;
  pair.reader->on_status([&](Status status) {
    if (has(status, Status::requested_deadline_missed) && missed_ns == 0)
      missed_ns = pair.all.world.now_ns();
  });
  ASSERT_EQ(pair.write({.number = 1}), WriteResult::written);
  const std::uint64_t received_ns = pair.reader.read()[0].info().reception_ns;
  pair.all.run_for(9 * kMs);
  EXPECT_EQ(missed_ns, 0U);
  pair.all.run_for(2 * kMs);
  EXPECT_GE(missed_ns, received_ns + 10 * kMs);
  EXPECT_LT(missed_ns, received_ns + 10 * kMs + 10'000) << "at the very moment, but for the poll";
  EXPECT_EQ(pair.writer->offered_deadline_missed_status().total_count, 1U);
  pair.all.run_for(20 * kMs);
  EXPECT_EQ(pair.reader->requested_deadline_missed_status().total_count, 3U);
}

TEST(QosTest, LosesTheLivelinessOfAWriterThatAssertsNothing) {
  DataWriterQos offered;
  offered << Liveliness{.kind = Liveliness::Kind::manual_by_topic, .lease_ns = 5 * kMs};
  DataReaderQos requested = all_of();
  Pair pair(requested, offered);
  ASSERT_EQ(pair.write({.number = 1}), WriteResult::written);
  EXPECT_EQ(pair.reader->liveliness_changed_status().alive_count, 1U);
  pair.all.run_for(6 * kMs);
  EXPECT_EQ(pair.reader->liveliness_changed_status().alive_count, 0U);
  EXPECT_EQ(pair.reader->liveliness_changed_status().not_alive_count, 1U);
  EXPECT_EQ(pair.writer->liveliness_lost_status().total_count, 1U);
  pair.all.world.on(0, [&] { EXPECT_EQ(pair.writer->assert_liveliness(), WriteResult::written); });
  pair.all.run_for(kMs);
  EXPECT_EQ(pair.reader->liveliness_changed_status().alive_count, 1U);
  pair.all.run_for(6 * kMs);
  EXPECT_EQ(pair.reader->liveliness_changed_status().not_alive_count, 1U) << "each time";
  EXPECT_EQ(pair.writer->liveliness_lost_status().total_count, 2U);
  ASSERT_EQ(pair.write({.number = 2}), WriteResult::written);
  EXPECT_EQ(pair.reader->liveliness_changed_status().alive_count, 1U);
  pair.all.run_for(6 * kMs);
  EXPECT_EQ(pair.reader->liveliness_changed_status().not_alive_count, 1U);
  EXPECT_EQ(pair.writer->liveliness_lost_status().total_count, 3U);
}

TEST(QosTest, KeepsAnAutomaticWriterAliveAndNoticesItsCrash) {
  DataWriterQos offered;
  offered << Liveliness{.kind = Liveliness::Kind::automatic, .lease_ns = 3 * kMs};
  // With two members, the one of rank 0 is a quorum alone: the reader is there.
  Participants all(2);
  const Topic<Count> at0(all[0], "counts");
  const Topic<Count> at1(all[1], "counts");
  DataReader<Count> reader{Subscriber(all[0]), at0, all_of()};
  DataWriter<Count> writer{Publisher(all[1]), at1, offered};
  ASSERT_TRUE(all.until([&] { return writer->ready() && reader->ready(); }));
  bool written = false;
  all.nodes[1].work = [&]() -> std::size_t {
    if (written) return 0;
    written = writer.write({.number = 1}) == WriteResult::written;
    return 1;
  };
  all.run_for(50 * kMs);
  EXPECT_EQ(reader->liveliness_changed_status().alive_count, 1U);
  EXPECT_EQ(writer->liveliness_lost_status().total_count, 0U);
  all.crash(1);
  ASSERT_TRUE(all.until([&] { return reader->subscription_matched_status().current_count == 0; }));
  EXPECT_EQ(reader->liveliness_changed_status().alive_count, 0U);
  const auto samples = reader.take();
  EXPECT_EQ(samples[samples.length() - 1].info().instance_state, InstanceState::no_writers);
}

TEST(QosTest, GivesNoSampleThatIsTooOld) {
  DataWriterQos offered;
  offered << Lifespan{.duration_ns = 5 * kMs};
  Pair pair(all_of(), offered);
  ASSERT_EQ(pair.write({.number = 1}), WriteResult::written);
  pair.all.run_for(4 * kMs);
  ASSERT_EQ(pair.write({.number = 2}), WriteResult::written);
  EXPECT_EQ(pair.reader.read().length(), 2U);
  pair.all.run_for(2 * kMs);
  EXPECT_EQ(pair.take(), std::vector<std::uint64_t>{2});
}

TEST(QosTest, FiltersByTimeAndByContent) {
  DataReaderQos requested = all_of();
  requested << TimeBasedFilter{.minimum_separation_ns = 10 * kMs};
  Pair pair(requested, {}, {}, [](const Count& count) { return count.number % 2 == 0; });
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_EQ(pair.write({.number = i}), WriteResult::written);
  pair.all.run_for(11 * kMs);
  ASSERT_EQ(pair.write({.number = 6}), WriteResult::written);
  EXPECT_EQ(pair.take(), (std::vector<std::uint64_t>{2, 6}));
}

TEST(QosTest, GivesAnInstanceToItsStrongestLiveWriter) {
  DataReaderQos requested = all_of();
  requested << Ownership{.kind = Ownership::Kind::exclusive};
  DataWriterQos weak;
  weak << Ownership{.kind = Ownership::Kind::exclusive, .strength = 1};
  Pair pair(requested, weak);
  DataWriterQos strong_qos;
  strong_qos << Ownership{.kind = Ownership::Kind::exclusive, .strength = 2};
  DataWriter<Count> strong{Publisher(pair.all[0]), pair.written_to, strong_qos};
  ASSERT_TRUE(pair.all.until([&] { return strong->ready(); }));
  ASSERT_EQ(pair.write({.number = 1}), WriteResult::written);
  pair.all.world.on(0, [&] { ASSERT_EQ(strong.write({.number = 2}), WriteResult::written); });
  pair.all.run_for(kMs);
  ASSERT_EQ(pair.write({.number = 3}), WriteResult::written);
  strong = {};
  pair.all.run_for(kMs);
  ASSERT_EQ(pair.write({.number = 4}), WriteResult::written);
  EXPECT_EQ(pair.take(), (std::vector<std::uint64_t>{1, 2, 4}));
}

TEST(QosTest, RejectsInstancesBeyondTheLimit) {
  DataReaderQos requested = all_of();
  requested << ResourceLimits{.max_samples = 10, .max_instances = 2};
  Pair pair(requested);
  for (std::uint32_t i = 0; i < 4; ++i)
    ASSERT_EQ(pair.write({.instance = i, .number = i}), WriteResult::written);
  EXPECT_EQ(pair.take(), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(pair.reader->sample_rejected_status().total_count, 2U);
}

/// By PUB-S1 a reliable reader that is full holds its topic back.
TEST(QosTest, HoldsTheTopicBackForAReaderThatIsFull) {
  DataReaderQos requested = all_of();
  requested << Reliability::reliable() << ResourceLimits{.max_samples = 3};
  Pair pair(requested, {}, {.ring_bytes = 1024});
  std::uint64_t written = 0;
  pair.all.nodes[0].work = [&]() -> std::size_t {
    if (written == 500 || pair.writer.write({.number = written}) != WriteResult::written) return 0;
    ++written;
    return 1;
  };
  pair.all.run_for(100 * kMs);
  EXPECT_LT(written, 60U) << "its ring has room for some 20 samples";
  std::vector<std::uint64_t> taken;
  pair.all.nodes[1].work = [&]() -> std::size_t {
    const std::vector<std::uint64_t> more = pair.take();
    taken.insert(taken.end(), more.begin(), more.end());
    return more.size();
  };
  ASSERT_TRUE(pair.all.until([&] { return taken.size() == 500; }));
  for (std::uint64_t i = 0; i < 500; ++i) ASSERT_EQ(taken[i], i);
}

/// A view ends amid a poll: the ends of instances come between the question whether a reader is
/// full and the message at hand.
TEST(QosTest, AReaderThatHoldsTheTopicBackTakesTheMessageAtHand) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << ResourceLimits{.max_samples = 2};
  ReaderCore reader(nullptr, type_support<Count>(), 0, qos, nullptr);
  RemoteWriter goes{.member = "goes"};
  RemoteWriter stays{.member = "stays"};
  const auto receive = [&](RemoteWriter& writer, std::uint32_t instance) {
    const Count count{.instance = instance};
    reader.receive({.header = {.kind = Kind::sample},
                    .payload = std::as_bytes(std::span(&count, 1)),
                    .writer = &writer,
                    .received_ns = 0,
                    .position = 1},
                   0);
  };
  reader.matched(true);
  reader.matched(true);
  receive(goes, 1);
  ASSERT_FALSE(reader.is_full());
  reader.unmatched(goes, 0);
  ASSERT_TRUE(reader.is_full());
  receive(stays, 2);
  EXPECT_EQ(reader.lost_status.total_count, 0U);
  std::vector<ReaderSlot*> slots;
  std::vector<SampleInfo> infos;
  EXPECT_EQ(reader.lend({}, true, slots, infos, 0), 3U);
  reader.give_back(slots);
}

TEST(QosTest, DropsASlowReaderAfterTheStatedTime) {
  DataReaderQos requested = all_of();
  requested << Reliability::reliable() << ResourceLimits{.max_samples = 3}
            << SlowReader{.kind = SlowReader::Kind::drop, .after_ns = 20 * kMs};
  Pair pair(requested, {}, {.ring_bytes = 1024});
  std::uint64_t written = 0;
  pair.all.nodes[0].work = [&]() -> std::size_t {
    if (written == 500 || pair.writer.write({.number = written}) != WriteResult::written) return 0;
    ++written;
    return 1;
  };
  pair.all.run_for(15 * kMs);
  EXPECT_LT(written, 60U);
  EXPECT_FALSE(pair.reader->sample_lost_status().dropped);
  ASSERT_TRUE(pair.all.until([&] { return written == 500; }, 100 * kMs));
  EXPECT_TRUE(pair.reader->sample_lost_status().dropped);
  EXPECT_EQ(pair.take().size(), 3U);
}

TEST(QosTest, CallsListenersAndTriggersConditions) {
  struct Listener : DataReaderListener<Count> {
    void on_data_available(DataReader<Count>& reader) override {
      for (const auto& sample : reader.take()) taken.push_back(sample.data().number);
    }
    std::vector<std::uint64_t> taken;
  };
  Pair pair(all_of());
  Listener listener;
  pair.reader.listener(&listener);
  const ReadCondition has_samples(pair.reader);
  const QueryCondition has_two(
      pair.reader,
      std::function<bool(const Count&)>([](const Count& count) { return count.number == 2; }));
  GuardCondition guard;
  WaitSet waits;
  waits.attach(has_samples);
  waits.attach(has_two);
  waits.attach(guard);
  ASSERT_EQ(pair.write({.number = 1}), WriteResult::written);
  EXPECT_EQ(listener.taken, std::vector<std::uint64_t>{1});
  EXPECT_TRUE(waits.triggered().empty());
  pair.reader.listener(nullptr);
  guard.trigger_value(true);
  ASSERT_EQ(pair.write({.number = 3}), WriteResult::written);
  EXPECT_EQ(waits.triggered(), (std::vector<Condition>{has_samples, guard}));
  ASSERT_EQ(pair.write({.number = 2}), WriteResult::written);
  EXPECT_EQ(waits.triggered().size(), 3U);
}

}  // namespace
}  // namespace dunlin::test
