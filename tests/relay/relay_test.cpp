#include <algorithm>
#include <map>
#include <random>

#include "relay/house.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"

/// Relays and clients over real sockets, in one thread.
namespace dunlin::test {
namespace {

using namespace dunlin::relay;
using pubsub::WriteResult;

ReaderQos stored() { return {.durability = {.kind = pubsub::Durability::Kind::transient_local}}; }
pubsub::TopicQos storage() {
  pubsub::TopicQos qos;
  qos.level = pubsub::Level::volatile_storage;
  return qos;
}

TEST(Relay, GivesAClientItsOwnSamples) {
  House house;
  const auto client = house.client();
  house.polled = {client.get()};
  RelayWriter<Text> writer(*client, "texts", pubsub::TopicQos{});
  RelayReader<Text> reader(*client, "texts");
  EXPECT_EQ(writer.write({"early"}), WriteResult::not_ready);
  ASSERT_TRUE(house.until([&] { return writer.ready() && reader.ready(); }))
      << client->why_disconnected();
  EXPECT_EQ(writer.write({"one", {1, 2}}), WriteResult::written);
  EXPECT_EQ(writer.write({"two", {}}), WriteResult::written);
  std::vector<RelaySample<Text>> taken;
  ASSERT_TRUE(house.until([&] {
    for (auto& sample : reader.take()) taken.push_back(std::move(sample));
    return taken.size() == 2 && writer.all_acknowledged();
  }));
  EXPECT_EQ(taken[0].data.text, "one");
  EXPECT_EQ(taken[0].data.numbers, (std::vector<std::uint16_t>{1, 2}));
  EXPECT_EQ(taken[1].data.text, "two");
  EXPECT_EQ(taken[0].position + 1, taken[1].position);
  EXPECT_EQ(writer.acknowledged(), 2U);
  EXPECT_EQ(house.relay.counters().at("published"), 2U);
}

TEST(Relay, GivesManyClientsOneOrder) {
  constexpr std::uint32_t kClients = 12;
  const auto each = static_cast<std::uint32_t>(rounds(40));
  House house;
  std::vector<std::unique_ptr<RelayClient>> clients;
  std::vector<RelayWriter<Counted>> writers;
  std::vector<RelayReader<Counted>> readers;
  for (std::uint32_t i = 0; i < kClients; ++i) {
    clients.push_back(house.client());
    house.polled.push_back(clients.back().get());
    writers.emplace_back(*clients.back(), "counts", pubsub::TopicQos{});
    readers.emplace_back(*clients.back(), "counts");
  }
  ASSERT_TRUE(house.until([&] {
    return std::ranges::all_of(writers, &AnyRelayWriter::ready) &&
           std::ranges::all_of(readers, &AnyRelayReader::ready);
  }));
  EXPECT_EQ(house.relay.clients(), kClients);
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> taken(kClients);
  ASSERT_TRUE(house.until([&] {
    bool done = true;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      const auto next = static_cast<std::uint32_t>(writers[i].written());
      if (next < each) static_cast<void>(writers[i].write({i, next}));
      for (const auto& sample : readers[i].take())
        taken[i].emplace_back(sample.data.client, sample.data.number);
      done = done && taken[i].size() == std::size_t{each} * kClients;
    }
    return done;
  }));
  for (const auto& one : taken) EXPECT_EQ(one, taken[0]);
  std::map<std::uint32_t, std::uint32_t> next;
  for (const auto& [client, number] : taken[0]) EXPECT_EQ(number, next[client]++);
}

TEST(Relay, SharesATopicWithEndpointsOfItsOwnMember) {
  House house;
  pubsub::Topic<Keyed> topic(house.participant, "keyed");
  pubsub::DataWriter<Keyed> member_writer{pubsub::Publisher(house.participant), topic};
  pubsub::DataReaderQos qos;
  qos << pubsub::Reliability::reliable() << pubsub::History::keep_all();
  pubsub::DataReader<Keyed> member_reader{pubsub::Subscriber(house.participant), topic, qos};
  const auto client = house.client();
  house.polled = {client.get()};
  RelayWriter<Keyed> writer(*client, "keyed");
  RelayReader<Keyed> reader(*client, "keyed");
  ASSERT_TRUE(
      house.until([&] { return writer.ready() && reader.ready() && member_writer->ready(); }));
  ASSERT_EQ(writer.write({5, 50}), WriteResult::written);
  ASSERT_EQ(member_writer.write({6, 60}), WriteResult::written);
  ASSERT_EQ(writer.dispose_instance({5, 0}), WriteResult::written);
  std::vector<RelaySample<Keyed>> taken;
  std::vector<std::pair<std::uint32_t, bool>> by_member;
  ASSERT_TRUE(house.until([&] {
    for (auto& sample : reader.take()) taken.push_back(sample);
    for (const auto& sample : member_reader.take())
      by_member.emplace_back(sample.data().key, sample.info().valid());
    return taken.size() == 3 && by_member.size() == 3;
  }));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(taken[i].data.key, by_member[i].first);
  const auto gone = std::ranges::find_if(taken, [](const auto& one) { return !one.valid; });
  ASSERT_NE(gone, taken.end());
  EXPECT_EQ(gone->data.key, 5U);
  EXPECT_TRUE(std::ranges::find(by_member, std::pair{5U, false}) != by_member.end());
}

TEST(Relay, RefusesAnotherTypeAndOtherPoliciesAndShowsBoth) {
  House house;
  pubsub::Topic<Counted> topic(house.participant, "counts");
  pubsub::DataWriter<Counted> member_writer{pubsub::Publisher(house.participant), topic};
  ASSERT_TRUE(house.until([&] { return member_writer->ready(); }));
  const auto client = house.client();
  house.polled = {client.get()};
  RelayWriter<Keyed> writer(*client, "counts");
  RelayReader<Keyed> reader(*client, "counts");
  RelayReader<Counted> other(*client, "counts", {}, storage());
  RelayReader<Counted> late(*client, "counts", stored());
  ASSERT_TRUE(house.until([&] {
    return !writer.why_refused().empty() && !reader.why_refused().empty() &&
           !other.why_refused().empty() && !late.why_refused().empty();
  }));
  EXPECT_TRUE(contains(writer.why_refused(), "client u32")) << writer.why_refused();
  EXPECT_TRUE(contains(reader.why_refused(), "key u32")) << reader.why_refused();
  EXPECT_TRUE(contains(other.why_refused(), "level atomic")) << other.why_refused();
  EXPECT_TRUE(contains(other.why_refused(), "level volatile")) << other.why_refused();
  EXPECT_TRUE(contains(late.why_refused(), "stores nothing")) << late.why_refused();
  EXPECT_EQ(writer.write({1, 1}), WriteResult::refused);
  EXPECT_TRUE(client->connected());
}

TEST(Relay, WaitsForATopicThatNobodyHasYet) {
  House house;
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Counted> reader(*client, "later");
  ASSERT_TRUE(house.until([&] { return client->connected(); }));
  pubsub::Topic<Counted> topic(house.participant, "later");
  pubsub::DataWriter<Counted> writer{pubsub::Publisher(house.participant), topic};
  ASSERT_TRUE(house.until([&] { return reader.ready(); }));
  ASSERT_TRUE(house.until([&] { return writer.write({1, 7}) == WriteResult::written; }));
  ASSERT_TRUE(house.until([&] { return reader.available(); }));
  EXPECT_EQ(reader.take().at(0).data.number, 7U);
}

TEST(Relay, GivesALateReaderWhatIsStoredAndThenWhatComes) {
  const auto before = static_cast<std::uint32_t>(rounds(3'000));
  const std::uint32_t all = before + before / 2;
  House house({.queue_bytes = 65'536});
  pubsub::Topic<Counted> topic(house.participant, "stored", storage());
  pubsub::DataWriter<Counted> writer{pubsub::Publisher(house.participant), topic};
  std::uint32_t written = 0;
  const auto write_up_to = [&](std::uint32_t end) {
    while (written < end && writer.write({0, written}) == WriteResult::written) ++written;
    return written == end;
  };
  ASSERT_TRUE(house.until([&] { return write_up_to(before); }));
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Counted> reader(*client, "stored", stored());
  std::uint32_t taken = 0;
  ASSERT_TRUE(house.until([&] {
    if (taken > before / 4) static_cast<void>(write_up_to(std::min(all, written + 10)));
    for (const auto& sample : reader.take()) EXPECT_EQ(sample.data.number, taken++);
    return taken == all;
  })) << taken
      << reader.why_refused();
  EXPECT_EQ(reader.lost(), 0U);
}

TEST(Relay, TellsAClientThatBreaksTheProtocolAndServesTheOthers) {
  House house;
  const auto client = house.client();
  house.polled = {client.get()};
  ASSERT_TRUE(house.until([&] { return client->connected(); }));
  Buffer hello;
  add_hello(hello, {});
  const auto after_hello = [&](const std::function<void(Buffer&)>& add) {
    Buffer bytes = hello;
    add(bytes);
    return bytes;
  };
  Buffer old;
  add_hello(old, {.version = 9});
  const std::vector<std::pair<Buffer, std::string>> cases = {
      {Buffer(100, std::byte{'G'}), "which this side does not send"},
      {after_hello([&](Buffer& b) { add_hello(b, {}); }), "a second hello"},
      {after_hello([](Buffer& b) {
         add_open(b, 0, {.topic = "t"});
         add_sample(b, 0, 0, {.number = 1});
       }),
       "no writer that was"},
      {after_hello([](Buffer& b) {
         add_open(b, 0, {.writes = true, .topic = "t"});
         add_open(b, 0, {.writes = true, .topic = "u"});
       }),
       "is opened twice"},
      {after_hello([](Buffer& b) {
         add_open(b, 0, {.writes = true, .topic = "t"});
         add_open(b, 1, {.writes = true, .topic = "t"});
       }),
       "two writers"},
      {old, "speaks version 9"}};
  for (const auto& [bytes, why] : cases) {
    Stranger stranger(house.relay.port());
    stranger.say(bytes);
    ASSERT_TRUE(house.until([&] { return stranger.listen(); })) << why;
    EXPECT_TRUE(contains(stranger.goodbye(), why)) << stranger.goodbye();
  }
  EXPECT_TRUE(client->connected());
  EXPECT_EQ(house.relay.clients(), 1U);
}

TEST(Relay, RefusesSamplesThatAreNoneOfTheTopicsType) {
  House house;
  pubsub::Topic<Counted> topic(house.participant, "counts");
  pubsub::DataWriter<Counted> member_writer{pubsub::Publisher(house.participant), topic};
  ASSERT_TRUE(house.until([&] { return member_writer->ready(); }));
  const Buffer eight(8);
  const Buffer nine(9);
  const std::vector<std::tuple<std::uint8_t, ClientSample, std::string>> cases = {
      {std::uint8_t{0}, {.number = 1, .payload = nine}, "none of the type"},
      {kXcdr, {.number = 1, .payload = eight}, "none of the type"}};
  for (const auto& [flags, sample, why] : cases) {
    Stranger stranger(house.relay.port());
    Buffer begin;
    add_hello(begin, {});
    add_open(begin, 0, {.writes = true, .topic = "counts"});
    stranger.say(begin);
    const std::size_t welcome = kFrameHeaderBytes + 13;
    ASSERT_TRUE(house.until([&] { return stranger.listen() || stranger.heard.size() > welcome; }));
    Buffer bytes;
    add_sample(bytes, 0, flags, sample);
    stranger.say(bytes);
    ASSERT_TRUE(house.until([&] { return stranger.listen(); })) << why;
    EXPECT_TRUE(contains(stranger.goodbye(), why)) << stranger.goodbye();
  }
  EXPECT_EQ(house.relay.counters().at("published"), 0U);
}

TEST(Relay, TakesTheFirstNumberOfAConnectionAsItIsAndRefusesAGapBehindIt) {
  House house;
  pubsub::Topic<Counted> topic(house.participant, "counts");
  pubsub::DataWriter<Counted> member_writer{pubsub::Publisher(house.participant), topic};
  ASSERT_TRUE(house.until([&] { return member_writer->ready(); }));
  Stranger stranger(house.relay.port());
  Buffer begin;
  add_hello(begin, {});
  add_open(begin, 0, {.writes = true, .topic = "counts"});
  stranger.say(begin);
  const std::size_t welcome = kFrameHeaderBytes + 13;
  ASSERT_TRUE(house.until([&] { return stranger.listen() || stranger.heard.size() > welcome; }));
  const Buffer eight(8);
  Buffer bytes;
  for (const std::uint64_t number : {7U, 8U, 10U})
    add_sample(bytes, 0, 0, {.number = number, .payload = eight});
  stranger.say(bytes);
  ASSERT_TRUE(house.until([&] { return stranger.listen(); }));
  EXPECT_TRUE(contains(stranger.goodbye(), "sample 10 of topic 'counts' does not follow"))
      << stranger.goodbye();
  EXPECT_EQ(house.relay.counters().at("published"), 2U);
}

TEST(Relay, TakesTheFurtherSamplesOfAClientThatItsTopicDoesNotRemember) {
  auto house = std::make_unique<House>();
  House other;  // another group, with another topic of that name
  const auto client = std::make_unique<RelayClient>(
      ClientOptions{.relays = {house->place(), other.place()}, .retry_ns = 1'000'000});
  house->polled = other.polled = {client.get()};
  RelayWriter<Counted> writer(*client, "counts", pubsub::TopicQos{});
  ASSERT_TRUE(house->until([&] { return writer.ready(); }));
  for (std::uint32_t i = 1; i <= 3; ++i) ASSERT_EQ(writer.write({0, i}), WriteResult::written);
  ASSERT_TRUE(house->until([&] { return writer.all_acknowledged(); }));
  house.reset();
  RelayReader<Counted> reader(*client, "counts");
  ASSERT_TRUE(other.until([&] { return reader.ready(); })) << client->why_disconnected();
  for (std::uint32_t i = 4; i <= 6; ++i) ASSERT_EQ(writer.write({0, i}), WriteResult::written);
  std::vector<std::uint32_t> taken;
  ASSERT_TRUE(other.until([&] {
    for (const auto& sample : reader.take()) taken.push_back(sample.data.number);
    return taken.size() == 3 && writer.all_acknowledged();
  })) << client->why_disconnected();
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{4, 5, 6}));
  EXPECT_EQ(writer.acknowledged(), 6U);
}

TEST(Relay, SurvivesWhatStrangersSay) {
  House house;
  const auto client = house.client();
  house.polled = {client.get()};
  RelayWriter<Counted> writer(*client, "counts", pubsub::TopicQos{});
  ASSERT_TRUE(house.until([&] { return writer.ready(); }));
  std::mt19937_64 random(3);
  const std::uint64_t all = rounds(100);
  for (std::uint64_t i = 0; i < all; ++i) {
    Buffer bytes;
    ClientId id = {};
    id[0] = static_cast<std::byte>(random());
    add_hello(bytes, {.id = id});
    const Buffer payload(random() % 16);
    add_open(bytes, 1, {.writes = true, .topic = "counts"});
    add_open(bytes, 2,
             {.topic = "counts", .after_beginning = random(), .after_position = random()});
    add_sample(bytes, 1, static_cast<std::uint8_t>(random() % 4),
               {.number = random() % 3, .payload = payload});
    add_empty(bytes, FrameKind::ping);
    add_empty(bytes, FrameKind::close, static_cast<std::uint16_t>(random() % 4));
    for (std::uint64_t n = random() % 3; n > 0; --n)
      bytes[40 + random() % (bytes.size() - 40)] = static_cast<std::byte>(random());
    Stranger stranger(house.relay.port());
    stranger.say(Bytes(bytes).first(bytes.size() - random() % 8));
    for (int n = 0; n < 40; ++n) house.poll();
  }
  ASSERT_EQ(writer.write({1, 1}), WriteResult::written);
  ASSERT_TRUE(house.until([&] { return writer.all_acknowledged(); }));
  ASSERT_TRUE(house.until([&] { return house.relay.clients() == 1; }));
}

TEST(Relay, NeedsASecretWhereOthersReachIt) {
  const auto make = [] { const House house({.address = "0.0.0.0"}); };
  EXPECT_TRUE(contains(what_is_thrown_by(make), "needs the group's secret"))
      << what_is_thrown_by(make);
}

TEST(Relay, GoesOnWithTheNewConnectionOfAClient) {
  House house;
  ClientId id = {};
  id[3] = std::byte{9};
  Buffer hello;
  add_hello(hello, {.id = id});
  Stranger first(house.relay.port());
  first.say(hello);
  ASSERT_TRUE(house.until([&] { return first.listen() || !first.heard.empty(); }));
  Stranger second(house.relay.port());
  second.say(hello);
  ASSERT_TRUE(house.until([&] { return first.listen(); }));
  EXPECT_TRUE(contains(first.goodbye(), "has taken its place")) << first.goodbye();
  EXPECT_EQ(house.relay.clients(), 1U);
}

TEST(RelayClient, WritesATopicAgainAfterItsFirstWriterHasGone) {
  House house;
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Counted> reader(*client, "counts", {}, pubsub::TopicQos{});
  ASSERT_TRUE(house.until([&] { return reader.ready(); }));
  std::vector<std::uint32_t> taken;
  for (const std::uint32_t round : {0U, 1U, 2U}) {
    house.poll();  // the former writer goes
    RelayWriter<Counted> writer(*client, "counts");
    ASSERT_TRUE(house.until([&] { return writer.ready(); })) << writer.why_refused();
    EXPECT_EQ(writer.written(), 0U);
    for (std::uint32_t i = 0; i < 5; ++i)
      ASSERT_EQ(writer.write({round, round * 5 + i}), WriteResult::written);
    ASSERT_TRUE(house.until([&] {
      for (const auto& sample : reader.take()) taken.push_back(sample.data.number);
      return writer.all_acknowledged() && taken.size() >= writer.written() + round * 5;
    })) << client->why_disconnected();
    EXPECT_EQ(writer.acknowledged(), 5U);
  }
  ASSERT_EQ(taken.size(), 15U);
  for (std::uint32_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], i);
  EXPECT_EQ(client->counters().connections, 1U);
  EXPECT_EQ(house.relay.counters().at("resumed"), 0U) << "later writers are of the same connection";
}

TEST(Relay, CountsTheConnectionsOfClientsThatComeBack) {
  House house;
  ClientId id = {};
  id[3] = std::byte{9};
  for (std::uint64_t connection = 1; connection <= 3; ++connection) {
    Stranger stranger(house.relay.port());
    Buffer bytes;
    add_hello(bytes, {.id = id});
    add_open(bytes, 0,
             {.writes = true,
              .topic = "counts",
              .type_text = pubsub::type_support<Counted>()->text,
              .qos = pubsub::TopicQos{}});
    stranger.say(bytes);
    ASSERT_TRUE(house.until([&] {
      EXPECT_FALSE(stranger.listen()) << stranger.goodbye();
      return stranger.count(FrameKind::opened) == 1;
    }));
    EXPECT_EQ(house.relay.counters().at("resumed"), connection - 1);
    bytes.clear();
    const Counted sample{.client = 9, .number = 1};
    add_sample(bytes, 0, 0,
               {.number = connection, .payload = std::as_bytes(std::span(&sample, 1))});
    stranger.say(bytes);
    ASSERT_TRUE(house.until([&] {
      stranger.listen();
      return stranger.count(FrameKind::acknowledged) == 1;
    }));
  }
  EXPECT_EQ(house.relay.counters().at("published"), 3U);
  EXPECT_EQ(house.relay.counters().at("published_bytes"), 3 * sizeof(Counted));
}

/// No member could read or write a topic of such a type.
TEST(Relay, RefusesATypeWhoseTextIsNone) {
  House house;
  for (const char* const text :
       {"x", "x\n", "x final\n", " final\nmember u32\n", "x final\nmember u32",
        "x final plain\nmember u32 @0\n", "x final plain 8 \nmember u32 @0\n",
        "x final plain -8\nmember u32 @0\n", "x final plain 0\nmember u32 @0\n",
        "x final plain 99999999999999999999\nmember u32 @0\n",
        "x final plain 1048577\nmember u32 @0\n", "x extensible\nmember u32\n"}) {
    Stranger stranger(house.relay.port());
    Buffer bytes;
    add_hello(bytes, {});
    add_open(bytes, 0,
             {.writes = true, .topic = "counts", .type_text = text, .qos = pubsub::TopicQos{}});
    stranger.say(bytes);
    ASSERT_TRUE(house.until([&] {
      stranger.listen();
      return stranger.count(FrameKind::refused) == 1;
    })) << text;
  }
  // The topic is as good as new.
  const auto client = house.client();
  house.polled = {client.get()};
  RelayWriter<Counted> writer(*client, "counts");
  ASSERT_TRUE(house.until([&] { return writer.ready(); })) << writer.why_refused();
}

TEST(RelayClient, RefusesOptionsThatCannotWork) {
  const auto error = [](ClientOptions options) {
    return what_is_thrown_by([&] { const RelayClient client(options); });
  };
  EXPECT_TRUE(contains(error({}), "kMaxRelays"));
  EXPECT_TRUE(contains(error({.relays = {"here"}}), "give HOST:PORT"));
  EXPECT_TRUE(contains(error({.relays = {"127.0.0.1:x"}}), "its address cannot be found"));
}

TEST(RelayClient, HasOneWriterOfATopicAndEndsWithItsClient) {
  auto client = std::make_unique<RelayClient>(ClientOptions{.relays = {"127.0.0.1:1"}});
  RelayWriter<Counted> writer(*client, "counts");
  const std::string why = what_is_thrown_by([&] { RelayWriter<Counted>(*client, "counts"); });
  EXPECT_TRUE(contains(why, "has a writer of it already")) << why;
  client.reset();
  EXPECT_EQ(writer.write({}), WriteResult::ended);
}

}  // namespace
}  // namespace dunlin::test
