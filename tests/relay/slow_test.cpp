#include "relay/house.hpp"
#include "support/errors.hpp"

/// Relays whose topics, or whose clients, are slow.
namespace dunlin::test {
namespace {

using namespace dunlin::relay;
using pubsub::WriteResult;

/// A topic with little room, and a reader that holds it back.
struct HeldTopic {
  House house;
  pubsub::Topic<Counted> topic{house.participant, "held", {.ring_bytes = 16'384}};
  pubsub::DataReader<Counted> slow{pubsub::Subscriber(house.participant), topic, patient()};

  static pubsub::DataReaderQos patient() {
    pubsub::DataReaderQos qos;
    qos << pubsub::Reliability::reliable() << pubsub::History::keep_all()
        << pubsub::ResourceLimits{.max_samples = 10};
    return qos;
  }
};

/// RLY-5 promises what this test checks.
TEST(Relay, HoldsAClientBackWhileItsTopicHasNoRoom) {
  HeldTopic held;
  House& house = held.house;
  const auto client = house.client({.window_bytes = 65'536});
  house.polled = {client.get()};
  RelayWriter<Counted> writer(*client, "held");
  ASSERT_TRUE(house.until([&] { return held.slow->ready() && writer.ready(); }));
  ASSERT_TRUE(house.until([&] {
    return writer.write({0, static_cast<std::uint32_t>(writer.written())}) == WriteResult::no_room;
  }));
  const std::uint64_t written = writer.written();
  EXPECT_LT(writer.acknowledged(), written);
  EXPECT_LT(house.relay.counters().at("published"), written) << "the rest waits before the relay";
  std::uint32_t taken = 0;
  ASSERT_TRUE(house.until([&] {
    for (const auto& sample : held.slow.take()) EXPECT_EQ(sample.data().number, taken++);
    return taken == written && writer.all_acknowledged();
  }));
  EXPECT_EQ(writer.write({0, 0}), WriteResult::written);
}

TEST(Relay, ShowsLifeToAClientThatItHoldsBack) {
  HeldTopic held;
  House& house = held.house;
  ASSERT_TRUE(house.until([&] { return held.slow->ready(); }));
  Stranger stranger(house.relay.port());
  Buffer bytes;
  add_hello(bytes, {});
  add_open(bytes, 0, {.writes = true, .topic = "held"});
  stranger.say(bytes);
  ASSERT_TRUE(house.until([&] {
    EXPECT_FALSE(stranger.listen());
    return stranger.count(FrameKind::opened) > 0;
  }));
  bytes.clear();
  const Buffer eight(8);
  for (std::uint64_t number = 1; number <= 1'000; ++number)
    add_sample(bytes, 0, 0, {.number = number, .payload = eight});
  add_empty(bytes, FrameKind::ping);
  stranger.say(bytes);
  ASSERT_TRUE(house.until([&] {
    EXPECT_FALSE(stranger.listen());
    return stranger.count(FrameKind::pong) >= 2;
  }));
  EXPECT_LT(house.relay.counters().at("published"), 1'000U) << "the ping has not been looked at";
}

TEST(Relay, HasNothingToDoWhileItHoldsAClientBack) {
  HeldTopic held;
  House& house = held.house;
  const auto client = house.client({.window_bytes = 65'536});
  house.polled = {client.get()};
  RelayWriter<Counted> writer(*client, "held");
  ASSERT_TRUE(house.until([&] { return held.slow->ready() && writer.ready(); }));
  ASSERT_TRUE(house.until([&] { return writer.write({0, 0}) == WriteResult::no_room; }));
  house.polled = {};
  std::uint32_t idle = 0;
  for (std::uint32_t i = 0; i < 100'000 && idle < 200; ++i) idle = house.poll() == 0 ? idle + 1 : 0;
  EXPECT_EQ(idle, 200U);
}

TEST(Relay, BeginsAnEndpointWhoseOpeningWaitedForAFullQueue) {
  House house({.queue_bytes = 4'096});
  pubsub::Topic<Heavy> topic(house.participant, "heavy");
  pubsub::DataWriter<Heavy> writer{pubsub::Publisher(house.participant), topic};
  pubsub::Topic<Counted> other(house.participant, "counts");
  pubsub::DataWriter<Counted> other_writer{pubsub::Publisher(house.participant), other};
  Stranger stranger(house.relay.port());
  Buffer bytes;
  add_hello(bytes, {});
  add_open(bytes, 0, {.topic = "heavy"});
  stranger.say(bytes);
  ASSERT_TRUE(house.until([&] {
    EXPECT_FALSE(stranger.listen());
    return stranger.count(FrameKind::opened) == 1 && writer->ready() && other_writer->ready();
  }));
  ASSERT_EQ(writer.write({}), WriteResult::written);
  while (house.relay.counters().at("delivered") == 0) house.participant.poll();
  bytes.clear();
  add_open(bytes, 1, {.topic = "counts"});
  stranger.say(bytes);
  static_cast<void>(house.relay.waits());  // the next poll looks at the sockets
  ASSERT_TRUE(house.until([&] {
    EXPECT_FALSE(stranger.listen());
    return stranger.count(FrameKind::opened) == 2;
  }));
}

/// RLY-6 promises what this test checks.
TEST(Relay, EndsAReliableReaderThatIsSlowAndSkipsForOthers) {
  House house({.queue_bytes = 16'384});
  pubsub::Topic<Heavy> topic(house.participant, "heavy");
  pubsub::DataWriter<Heavy> writer{pubsub::Publisher(house.participant), topic};
  const auto quick = house.client();
  const auto reliable = house.client();
  const auto patient = house.client();
  house.polled = {quick.get(), reliable.get(), patient.get()};
  RelayReader<Heavy> quick_reader(*quick, "heavy");
  RelayReader<Heavy> slow_reader(*reliable, "heavy", {.max_samples = 2});
  RelayReader<Heavy> skipping_reader(
      *patient, "heavy", {.reliability = pubsub::Reliability::best_effort(), .max_samples = 2});
  ASSERT_TRUE(house.until([&] {
    return quick_reader.ready() && slow_reader.ready() && skipping_reader.ready() &&
           writer->ready();
  }));
  // The sockets take some megabytes before the relay's own queues fill.
  std::uint64_t written = 0;
  std::uint64_t taken = 0;
  Heavy heavy;
  ASSERT_TRUE(house.until([&] {
    heavy.number = written;
    if (taken == written && writer.write(heavy) == WriteResult::written) ++written;
    for (const auto& sample : quick_reader.take()) EXPECT_EQ(sample.data.number, taken++);
    return house.relay.counters().at("dropped") > 0 && house.relay.counters().at("skipped") > 0;
  }));
  std::uint64_t got = 0;
  ASSERT_TRUE(house.until([&] {
    static_cast<void>(slow_reader.take());
    got += skipping_reader.take().size();
    if (taken == written && writer.write(heavy) == WriteResult::written) ++written;
    taken += quick_reader.take().size();
    return !slow_reader.why_refused().empty() && skipping_reader.lost() > 0;
  }));
  EXPECT_TRUE(contains(slow_reader.why_refused(), "too slow")) << slow_reader.why_refused();
  EXPECT_EQ(quick_reader.lost(), 0U);
  EXPECT_GT(got, 0U);
}

TEST(Relay, CutsOffAClientThatTakesNothing) {
  House house({.queue_bytes = 4'096, .stall_ns = 1});
  pubsub::Topic<Heavy> topic(house.participant, "heavy");
  pubsub::DataWriter<Heavy> writer{pubsub::Publisher(house.participant), topic};
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Heavy> reader(*client, "heavy");
  ASSERT_TRUE(house.until([&] { return reader.ready() && writer->ready(); }));
  house.polled = {};
  ASSERT_TRUE(house.until([&] {
    static_cast<void>(writer.write({}));
    return house.relay.clients() == 0;
  }));
  EXPECT_TRUE(contains(house.relay.last_parting(), "it takes nothing of the"));
}

}  // namespace
}  // namespace dunlin::test
