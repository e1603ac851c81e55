#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <malloc.h>

#include "pubsub/participants.hpp"

/// Instances: what ends them, what late readers are told of that, and how many a reader may have.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

constexpr std::uint64_t kMs = 1'000'000;

DataReaderQos stored(std::uint32_t samples = 1'000) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{Durability::Kind::transient}
      << ResourceLimits{.max_samples = samples};
  return qos;
}

/// What a reader was given: "5=1" is sample 1 of instance 5; "5 no writers" and "5 disposed".
std::vector<std::string> take(DataReader<Count>& reader, std::uint32_t most = 1'000) {
  std::vector<std::string> all;
  for (const auto& sample : reader.take({.max_samples = most})) {
    const std::string instance = std::to_string(sample.data().instance);
    if (sample.info().valid())
      all.push_back(instance + "=" + std::to_string(sample.data().number));
    else if (sample.info().instance_state == InstanceState::disposed)
      all.push_back(instance + " disposed");
    else
      all.push_back(instance + " no writers");
  }
  return all;
}

using Given = std::vector<std::string>;

/// Two writers of a topic at node 0.
class Writers {
 public:
  explicit Writers(const TopicQos& qos, std::uint32_t joiners = 0,
                   Participants::Disks* disks = nullptr)
      : all(1, 1, joiners, disks),
        topic(all[0], "counts", qos),
        first(Publisher(all[0]), topic),
        second(Publisher(all[0]), topic) {
    EXPECT_TRUE(all.until([&] { return first->ready() && second->ready(); }));
  }
  void write(DataWriter<Count>& writer, std::uint32_t instance, std::uint64_t number) {
    all.world.on(0, [&] {
      EXPECT_EQ(writer.write({.instance = instance, .number = number}), WriteResult::written);
    });
    all.run_for(kMs);
  }
  void unregister(DataWriter<Count>& writer, std::uint32_t instance) {
    all.world.on(0, [&] {
      EXPECT_EQ(writer.unregister_instance({.instance = instance}), WriteResult::written);
    });
    all.run_for(kMs);
  }
  void dispose(DataWriter<Count>& writer, std::uint32_t instance) {
    all.world.on(0, [&] {
      EXPECT_EQ(writer.dispose_instance({.instance = instance}), WriteResult::written);
    });
    all.run_for(kMs);
  }
  DataReader<Count> reader(const DataReaderQos& qos = stored()) {
    DataReader<Count> made{Subscriber(all[0]), topic, qos};
    EXPECT_TRUE(all.until([&] { return made->ready(); }));
    all.run_for(kMs);
    return made;
  }
  Participants all;
  Topic<Count> topic;
  DataWriter<Count> first;
  DataWriter<Count> second;
};

TEST(InstanceTest, UnregisterTakesTheRoomOfNoStoredSample) {
  for (const TopicQos& qos :
       {TopicQos{.level = Level::volatile_storage, .max_samples = 1},
        TopicQos{.level = Level::volatile_storage, .history = History::keep_last(1)}}) {
    Writers at(qos);
    at.write(at.first, 5, 1);
    at.unregister(at.first, 5);
    DataReader<Count> late = at.reader();
    EXPECT_EQ(take(late), (Given{"5=1", "5 no writers"}));
  }
}

/// A binding knows the type of a topic when it runs only.
TEST(InstanceTest, ARawReaderOfAKeyedTypeTellsInstancesApart) {
  Writers at({.level = Level::volatile_storage});
  at.write(at.first, 5, 1);
  at.write(at.first, 6, 2);
  at.write(at.first, 5, 3);
  at.dispose(at.first, 6);
  at.write(at.first, 7, 4);
  at.unregister(at.first, 7);
  const auto type = type_support<Count>();
  const AnyTopic topic(at.all[0], "counts", raw_keyed_type_support(type->text, type->name),
                       {.level = Level::volatile_storage});
  DataReaderQos qos = stored();
  qos << History::keep_last(1);
  AnyReader reader(topic, qos);
  ASSERT_TRUE(at.all.until([&] { return reader.ready(); }));
  at.all.run_for(kMs);
  Given given;
  const AnyReader::Loan samples = reader.take();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Count count;
    const auto& raw = *static_cast<const RawSample*>(samples.data(i));
    ASSERT_TRUE(decode_sample(*type, raw.plain, raw.payload, &count));
    given.push_back(std::to_string(count.instance) +
                    (samples.info(i).valid() ? "=" + std::to_string(count.number) : " ended"));
  }
  EXPECT_EQ(given, (Given{"5=3", "6 ended", "7 ended"}));
}

TEST(InstanceTest, ARawWriterOfAKeyedTypeWritesTheInstancesOfATypedOne) {
  const TopicQos qos{.level = Level::volatile_storage, .history = History::keep_last(1)};
  Writers at(qos);
  at.write(at.first, 5, 1);
  const auto type = type_support<Count>();
  const AnyTopic topic(at.all[0], "counts", raw_keyed_type_support(type->text, type->name), qos);
  AnyWriter writer(topic, {});
  ASSERT_TRUE(at.all.until([&] { return writer.ready(); }));
  const Count count{.instance = 5, .number = 2};
  std::vector<std::byte> key;
  type->append_key(&count, key);
  const auto bytes = std::as_bytes(std::span(&count, 1));
  const RawSample sample{.key_hash = hash_key(key), .payload = {bytes.begin(), bytes.end()}};
  at.all.world.on(0, [&] { EXPECT_EQ(writer.write(&sample), WriteResult::written); });
  at.all.run_for(kMs);
  DataReader<Count> late = at.reader();
  EXPECT_EQ(take(late), (Given{"5=2"}));  // the storage has one sample of the instance
}

TEST(InstanceTest, UnregisterTakesTheRoomOfNoSampleThatStaysInTheLog) {
  Participants::Disks disks = Participants::make_disks(1, 1);
  Writers at({.level = Level::logged, .max_samples = 1}, 0, &disks);
  at.write(at.first, 5, 1);
  at.unregister(at.first, 5);
  DataReader<Count> late = at.reader();
  EXPECT_EQ(take(late), (Given{"5=1", "5 no writers"}));
}

TEST(InstanceTest, ALateReaderIsToldWhereWritersUnregistered) {
  Writers at({.level = Level::volatile_storage});
  at.write(at.first, 5, 1);
  at.write(at.second, 5, 2);
  at.unregister(at.first, 5);
  at.write(at.first, 6, 3);
  at.unregister(at.first, 6);
  at.write(at.first, 6, 4);
  DataReader<Count> late = at.reader();
  const Given expected{"5=1", "5=2", "6=3", "6 no writers", "6=4"};
  EXPECT_EQ(take(late), expected);
}

/// PUB-T2: the samples' state goes with them.
TEST(InstanceTest, AMemberThatComesInIsToldWhatWasUnregistered) {
  Writers at({.level = Level::volatile_storage, .history = History::keep_last(1)}, 1);
  at.write(at.first, 5, 1);
  at.unregister(at.first, 5);
  at.write(at.second, 6, 2);
  at.all.come(1);
  ASSERT_TRUE(at.all.until([&] { return at.all.nodes[1].participant != nullptr; }));
  const Topic<Count> topic(at.all[1], "counts",
                           {.level = Level::volatile_storage, .history = History::keep_last(1)});
  DataReader<Count> late{Subscriber(at.all[1]), topic, stored()};
  ASSERT_TRUE(at.all.until([&] { return late->ready(); }));
  at.all.run_for(kMs);
  EXPECT_EQ(take(late), (Given{"5=1", "5 no writers", "6=2"}));
}

/// The reader has room for one sample: it has passed the first instance, and not the second one.
TEST(InstanceTest, AReaderOnItsWayIsToldOfEachUnregisterOnce) {
  Writers at({.level = Level::volatile_storage});
  at.write(at.first, 5, 1);
  at.write(at.first, 6, 2);
  at.write(at.first, 6, 3);
  DataReader<Count> late = at.reader(stored(1));
  at.unregister(at.first, 5);
  at.unregister(at.first, 6);
  Given given;
  ASSERT_TRUE(at.all.until([&] {
    for (std::string& one : take(late)) given.push_back(std::move(one));
    return given.size() >= 5;
  }));
  at.all.run_for(kMs);
  EXPECT_TRUE(take(late).empty());
  EXPECT_EQ(given, (Given{"5=1", "5 no writers", "6=2", "6=3", "6 no writers"}));
}

TEST(InstanceTest, DisposingAnInstanceWithoutWritersIsReported) {
  Writers at({});
  DataReader<Count> reader = at.reader([] {
    DataReaderQos qos;
    return qos << History::keep_all();
  }());
  at.write(at.first, 5, 1);
  at.unregister(at.first, 5);
  at.dispose(at.second, 5);
  at.dispose(at.second, 5);
  at.write(at.second, 5, 2);
  const auto samples = reader.take();
  ASSERT_EQ(samples.length(), 4U);
  EXPECT_EQ(samples[1].info().instance_state, InstanceState::alive) << "the instance's, by now";
  EXPECT_FALSE(samples[2].info().valid());
  EXPECT_EQ(samples[3].data().number, 2U);
  EXPECT_EQ(samples[3].info().disposed_generation, 1U);
  EXPECT_EQ(samples[3].info().no_writers_generation, 0U);
}

TEST(InstanceTest, AReliableReaderHoldsTheTopicBackForAnInstanceTooMany) {
  Writers at({.ring_bytes = 1024});
  DataReaderQos qos;
  qos << Reliability::reliable() << ResourceLimits{.max_samples = 1'000, .max_instances = 2};
  DataReader<Count> reader = at.reader(qos);
  std::uint32_t written = 0;
  at.all.nodes[0].work = [&]() -> std::size_t {
    if (written == 500 || at.first.write({.instance = written}) != WriteResult::written) return 0;
    ++written;
    return 1;
  };
  at.all.run_for(100 * kMs);
  EXPECT_LT(written, 60U) << "its ring has room for some 20 samples";
  EXPECT_EQ(take(reader), (Given{"0=0", "1=0", "2=0"})) << "none that the writer wrote is missing";
  EXPECT_EQ(reader->sample_rejected_status().total_count, 1U);
  reader = {};
  EXPECT_TRUE(at.all.until([&] { return written == 500; })) << "it holds the others no longer";
  at.all.nodes[0].work = nullptr;
}

TEST(InstanceTest, AReliableReaderGoesOnOnceAnEndedInstanceIsTaken) {
  Writers at({});
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all()
      << ResourceLimits{.max_samples = 1'000, .max_instances = 1};
  DataReader<Count> reader = at.reader(qos);
  for (std::uint32_t instance = 1; instance <= 3; ++instance) {
    at.write(at.first, instance, instance);
    at.unregister(at.first, instance);
  }
  EXPECT_EQ(take(reader), (Given{"1=1", "1 no writers", "2=2"}));
  at.all.run_for(kMs);
  EXPECT_EQ(take(reader), (Given{"2 no writers", "3=3"}));
  at.all.run_for(kMs);
  EXPECT_EQ(take(reader), (Given{"3 no writers"}));
  EXPECT_EQ(reader->sample_lost_status().total_count, 0U);
}

struct Image {
  std::uint32_t key = 0;
  std::array<std::uint8_t, 100'000> pixels = {};
  using TopicKey = KeyOf<&Image::key>;
};

/// A tool tells the instances of exclusive writers apart by their hashes, and needs no more of
/// them.
TEST(InstanceTest, TakesLittleMemoryForTheInstancesThatAToolTellsApart) {
  constexpr std::uint32_t kInstances = 1'000;
  constexpr std::uint32_t kMostInstances = 10;
  Participants all(1);
  const TopicQos qos{.ring_bytes = 1U << 20U};
  const Topic<Image> topic(all[0], "images", qos);
  DataWriter<Image> writer{Publisher(all[0]), topic,
                           DataWriterQos{.ownership = {.kind = Ownership::Kind::exclusive}}};
  const AnyTopic untyped(all[0], "images", raw_type_support(), qos);
  DataReaderQos either;
  either << Reliability::reliable() << Ownership{.kind = Ownership::Kind::either}
         << ResourceLimits{.max_instances = kMostInstances};
  AnyReader reader(untyped, either);
  std::uint32_t samples = 0;
  std::uint32_t disposed = 0;
  reader.on_sample(
      [&](const void*, const SampleInfo& info) { ++(info.valid() ? samples : disposed); });
  ASSERT_TRUE(all.until([&] { return writer->publication_matched_status().current_count == 1; }));
  const auto held = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before = held();
  const auto image = std::make_unique<Image>();
  for (image->key = 0; image->key < kInstances; ++image->key) {
    all.world.on(0, [&] {
      EXPECT_EQ(writer.write(*image), WriteResult::written);
      EXPECT_EQ(writer.dispose_instance(*image), WriteResult::written);
      EXPECT_EQ(writer.unregister_instance(*image), WriteResult::written);
    });
    all.run_for(kMs);
  }
  EXPECT_EQ(samples, kInstances);
  EXPECT_EQ(disposed, kInstances);
  EXPECT_LT(held() - std::min(held(), before), 10U * sizeof(Image));
  EXPECT_EQ(reader.sample_rejected_status().total_count, 0U) << "disposed ones make room";
}

}  // namespace
}  // namespace dunlin::test
