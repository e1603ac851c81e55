#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "relay/house.hpp"
#include "support/errors.hpp"

/// Clients of a relay, and policies of members' writers and of topics that clients cannot choose.
namespace dunlin::test {
namespace {

using namespace dunlin::relay;
using pubsub::WriteResult;

ReaderQos stored_too() {
  return {.durability = {.kind = pubsub::Durability::Kind::transient_local}};
}
pubsub::TopicQos keeping_all() {
  pubsub::TopicQos qos;
  qos.level = pubsub::Level::volatile_storage;
  return qos;
}
template <class T>
pubsub::DataWriter<T> writer_of(House& house, const pubsub::Topic<T>& topic,
                                const pubsub::DataWriterQos& qos) {
  return pubsub::DataWriter<T>{pubsub::Publisher(house.participant), topic, qos};
}
template <class T>
void write_one(House& house, pubsub::DataWriter<T>& writer, const T& sample) {
  ASSERT_TRUE(house.until([&] { return writer.write(sample) == WriteResult::written; }));
}

TEST(RelayPolicies, GiveClientsWhatBestEffortWritersHaveStoredAndThenWhatTheyWrite) {
  House house;
  const pubsub::Topic<Counted> topic(house.participant, "counts", keeping_all());
  auto writer = writer_of(house, topic, {.reliability = pubsub::Reliability::best_effort()});
  for (std::uint32_t i = 0; i < 5'000; ++i) write_one(house, writer, {1, i});
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Counted> reader(*client, "counts", stored_too());
  std::vector<std::uint32_t> taken;
  const auto take_all = [&](std::size_t count) {
    return house.until([&] {
      for (const auto& sample : reader.take()) taken.push_back(sample.data.number);
      return taken.size() >= count || !reader.why_refused().empty();
    });
  };
  ASSERT_TRUE(take_all(5'000)) << taken.size();
  for (std::uint32_t i = 5'000; i < 5'100; ++i) write_one(house, writer, {1, i});
  ASSERT_TRUE(take_all(5'100)) << taken.size();
  EXPECT_EQ(reader.why_refused(), "");
  for (std::uint32_t i = 0; i < 5'100; ++i) ASSERT_EQ(taken[i], i);
  EXPECT_EQ(reader.lost(), 0U);
}

/// Samples of a writer that does not own the instance are nobody's, and not lost.
TEST(RelayPolicies, GiveClientsTheSamplesOfTheWriterThatOwnsAnInstance) {
  House house;
  const pubsub::Topic<Keyed> topic(house.participant, "keyed", keeping_all());
  using pubsub::Ownership;
  const auto exclusive = [](std::uint32_t strength) {
    return pubsub::DataWriterQos{
        .ownership = {.kind = Ownership::Kind::exclusive, .strength = strength}};
  };
  auto strong = writer_of(house, topic, exclusive(2));
  auto weak = writer_of(house, topic, exclusive(1));
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Keyed> live(*client, "keyed");
  ASSERT_TRUE(house.until([&] { return live.ready() && weak->ready() && strong->ready(); }));
  write_one(house, strong, {1, 10});
  write_one(house, weak, {2, 20});  // nobody else writes this one
  write_one(house, weak, {1, 11});
  write_one(house, weak, {2, 21});
  write_one(house, strong, {1, 12});
  std::map<std::uint32_t, std::vector<std::uint32_t>> taken;
  const std::map<std::uint32_t, std::vector<std::uint32_t>> expected{{1, {10, 12}}, {2, {20, 21}}};
  const auto take_from = [&](RelayReader<Keyed>& reader) {
    taken.clear();
    return house.until([&] {
      for (const auto& sample : reader.take())
        if (sample.valid) taken[sample.data.key].push_back(sample.data.value);
      return !taken[1].empty() && taken[1].back() == 12;
    });
  };
  ASSERT_TRUE(take_from(live)) << live.why_refused();
  EXPECT_EQ(taken, expected);
  EXPECT_EQ(live.lost(), 0U);
  RelayReader<Keyed> late(*client, "keyed", stored_too());
  ASSERT_TRUE(take_from(late)) << late.why_refused();
  EXPECT_EQ(taken, expected);
  EXPECT_EQ(late.lost(), 0U);
  strong->close();
  ASSERT_TRUE(house.until([&] { return topic.endpoints().size() < 4; }));
  write_one(house, weak, {1, 13});
  ASSERT_TRUE(house.until([&] { return live.available(); }));
  EXPECT_EQ(live.take().at(0).data.value, 13U);
}

/// A late reader of a topic that keeps the last sample of each instance misses nothing.
TEST(RelayPolicies, CountNoSampleAsLostThatItsTopicKeepsNoMore) {
  House house;
  pubsub::TopicQos qos = keeping_all();
  qos.history = pubsub::History::keep_last(1);
  const pubsub::Topic<Keyed> topic(house.participant, "keyed", qos);
  auto writer = writer_of(house, topic, {});
  for (std::uint32_t i = 0; i < 20; ++i) write_one(house, writer, {i < 10 ? i : 3U, i});
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Keyed> reader(*client, "keyed", stored_too());
  std::vector<std::uint32_t> taken;
  ASSERT_TRUE(house.until([&] {
    for (const auto& sample : reader.take()) taken.push_back(sample.data.value);
    return taken.size() == 10;
  }));
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{0, 1, 2, 4, 5, 6, 7, 8, 9, 19}));
  write_one(house, writer, {5, 20});
  ASSERT_TRUE(house.until([&] { return reader.available(); }));
  EXPECT_EQ(reader.lost(), 0U);
}

/// By a key hash of its choice, a client would replace what others have stored.
TEST(RelayPolicies, StoreAClientsSampleUnderItsOwnKey) {
  House house;
  pubsub::TopicQos qos = keeping_all();
  qos.history = pubsub::History::keep_last(1);
  const pubsub::Topic<Keyed> topic(house.participant, "keyed", qos);
  auto writer = writer_of(house, topic, {});
  write_one(house, writer, {1, 10});
  const std::uint32_t key = 1;
  const std::uint64_t hash_of_1 = pubsub::hash_key(std::as_bytes(std::span(&key, 1)));
  Stranger stranger(house.relay.port());
  Buffer bytes;
  add_hello(bytes, {});
  add_open(bytes, 0, {.writes = true, .topic = "keyed"});
  stranger.say(bytes);
  ASSERT_TRUE(house.until([&] {
    EXPECT_FALSE(stranger.listen()) << stranger.goodbye();
    return stranger.count(FrameKind::opened) == 1;
  }));
  bytes.clear();
  const Keyed sample{2, 20};
  add_sample(bytes, 0, 0,
             {.number = 1, .key_hash = hash_of_1, .payload = std::as_bytes(std::span(&sample, 1))});
  stranger.say(bytes);
  ASSERT_TRUE(house.until([&] {
    EXPECT_FALSE(stranger.listen()) << stranger.goodbye();
    return stranger.count(FrameKind::acknowledged) == 1;
  }));
  const auto client = house.client();
  house.polled = {client.get()};
  RelayReader<Keyed> reader(*client, "keyed", stored_too());
  std::vector<std::uint32_t> taken;
  ASSERT_TRUE(house.until([&] {
    for (const auto& one : reader.take()) taken.push_back(one.data.value);
    return !taken.empty() && taken.back() == 20;
  }));
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{10, 20}));
}

/// Keys lie behind other members, and in structs.
struct Doorway {
  std::uint16_t floor = 0;
  std::uint8_t door = 0;
  using TopicKey = pubsub::KeyOf<&Doorway::floor>;
};
struct Located {
  std::uint8_t load = 0;
  std::array<Doorway, 2> way = {};
  std::uint64_t id = 0;
  using TopicKey = pubsub::KeyOf<&Located::id, &Located::way>;
};
struct Named {
  std::vector<std::uint32_t> numbers = {};
  std::string name = {};
  bool there = false;
  std::optional<std::int16_t> age = {};
  using TopicKey = pubsub::KeyOf<&Named::there, &Named::name>;
};

template <class T>
void expect_one_stored(const T& by_member, const T& by_client) {
  House house;
  pubsub::TopicQos qos = keeping_all();
  qos.history = pubsub::History::keep_last(1);
  const pubsub::Topic<T> topic(house.participant, "keyed", qos);
  auto writer = writer_of(house, topic, {});
  write_one(house, writer, by_member);
  const auto client = house.client();
  house.polled = {client.get()};
  RelayWriter<T> client_writer(*client, "keyed");
  ASSERT_TRUE(house.until([&] { return client_writer.ready(); }));
  ASSERT_EQ(client_writer.write(by_client), WriteResult::written);
  ASSERT_TRUE(house.until([&] { return client_writer.all_acknowledged(); }))
      << house.relay.last_parting();
  EXPECT_EQ(topic.held_in_memory(), 1U);
}

TEST(RelayPolicies, TakeTheKeyOfASampleFromAnyPlaceInIt) {
  expect_one_stored<Located>({1, {Doorway{5, 1}, Doorway{6, 2}}, 9},
                             {2, {Doorway{5, 3}, Doorway{6, 4}}, 9});
  expect_one_stored<Named>({{1, 2, 3}, "a", true, 4}, {{}, "a", true, {}});
}

TEST(RelayPolicies, RefuseASampleThatIsNoneOfItsType) {
  House house;
  const pubsub::Topic<Named> topic(house.participant, "named");
  const auto writer = writer_of(house, topic, {});
  ASSERT_TRUE(house.until([&] { return writer->ready(); }));
  Buffer good;
  pubsub::type_support<Named>()->encode(std::make_unique<Named>().get(), good);
  const Buffer cut(good.begin(), good.end() - 8);
  Buffer other = good;
  other[1] = std::byte{9};  // the header of an appendable type
  Buffer bad_bool = good;
  bad_bool.at(13) = std::byte{2};  // behind the header, no numbers, and an empty name
  for (const Buffer& payload : {cut, other, bad_bool}) {
    Stranger stranger(house.relay.port());
    Buffer bytes;
    add_hello(bytes, {});
    add_open(bytes, 0, {.writes = true, .topic = "named"});
    stranger.say(bytes);
    ASSERT_TRUE(house.until([&] {
      EXPECT_FALSE(stranger.listen()) << stranger.goodbye();
      return stranger.count(FrameKind::opened) == 1;
    }));
    bytes.clear();
    add_sample(bytes, 0, kXcdr, {.number = 1, .payload = payload});
    stranger.say(bytes);
    ASSERT_TRUE(house.until([&] { return stranger.listen(); }));
    EXPECT_TRUE(contains(stranger.goodbye(), "none of the type of topic 'named'"))
        << stranger.goodbye();
  }
  EXPECT_EQ(house.relay.counters().at("published"), 0U);
}

}  // namespace
}  // namespace dunlin::test
