#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/join.hpp>
#include <dunlin/run.hpp>

#include "relay/house.hpp"
#include "support/own_directory.hpp"
#include "support/process.hpp"
#include "support/rounds.hpp"

/// Relays that are killed while clients alone use a topic: no member has an endpoint of its own.
namespace dunlin::test {
namespace {

using namespace dunlin::relay;
using pubsub::Level;
using pubsub::WriteResult;

constexpr std::uint32_t kFailoverMs = 60'000;
constexpr const char* kNames[] = {"x", "y", "z"};

/// Serves until it is killed. It tells its port once it knows all relays.
int serve_clients(Parent& parent, const std::string& group_name, const std::string& name,
                  const std::string& logs) {
  const auto fabric = join({.group = group_name, .names = {"x", "y", "z"}, .name = name});
  Group group(*fabric);
  pubsub::ParticipantOptions options;
  if (!logs.empty()) options = {.log_directory = logs, .log_founders = {"x", "y", "z"}};
  pubsub::DomainParticipant participant(group, options);
  Relay relay(participant);
  Loop loop(*fabric, {.wait = Wait::block});
  loop.add(participant).add(relay);
  if (!loop.run_until([&] { return relay.relays() == std::size(kNames); }, kFailoverMs)) return 1;
  parent.send_line(std::to_string(relay.port()));
  static_cast<void>(loop.run_until([] { return false; }, 2 * kFailoverMs));
  return 0;
}

/// Three relays; two of them can go on.
struct Relays {
  explicit Relays(Level level) {
    for (const char* const name : kNames) {
      std::string logs;
      if (level == Level::logged) std::filesystem::create_directory(logs = directory / name);
      processes.push_back(std::make_unique<Process>(
          [=, this](Parent& parent) { return serve_clients(parent, group, name, logs); }));
    }
    for (const auto& process : processes) places.push_back("127.0.0.1:" + process->receive_line());
  }
  OwnDirectory directory;
  std::string group = fresh_group();
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<std::string> places;
};

const ReaderQos kStoredToo{.durability = {.kind = pubsub::Durability::Kind::transient_local}};

class RelayFailover : public testing::TestWithParam<Level> {
 protected:
  [[nodiscard]] static pubsub::TopicQos qos() { return {.level = GetParam()}; }
};

TEST_P(RelayFailover, KeepsWhatItAcknowledgedForNewReaders) {
  const auto all = static_cast<std::uint32_t>(rounds(1'000));
  Relays relays(GetParam());
  {
    RelayClient client({.relays = {relays.places[0]}});
    RelayWriter<Counted> writer(client, "counts", qos());
    ASSERT_TRUE(client.run_until(
        [&] {
          while (writer.written() < all &&
                 writer.write({1, static_cast<std::uint32_t>(writer.written())}) ==
                     WriteResult::written) {
          }
          return writer.written() == all && writer.all_acknowledged();
        },
        kFailoverMs))
        << writer.acknowledged() << " acknowledged; " << writer.why_refused()
        << client.why_disconnected();
    relays.processes[0]->kill();
  }
  for (const std::size_t at : {1U, 2U}) {
    RelayClient client({.relays = {relays.places[at]}});
    RelayReader<Counted> reader(client, "counts", kStoredToo, qos());
    std::vector<std::uint32_t> taken;
    ASSERT_TRUE(client.run_until(
        [&] {
          for (const auto& sample : reader.take()) taken.push_back(sample.data.number);
          return taken.size() >= all || !reader.why_refused().empty();
        },
        kFailoverMs))
        << "relay " << at << " gave " << taken.size() << " of " << all << "; "
        << client.why_disconnected();
    ASSERT_EQ(reader.why_refused(), "");
    ASSERT_EQ(taken.size(), all);
    for (std::uint32_t i = 0; i < all; ++i) ASSERT_EQ(taken[i], i);
    EXPECT_EQ(reader.lost(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, RelayFailover,
                         testing::Values(Level::volatile_storage, Level::logged),
                         [](const auto& one) { return std::string(describe(one.param)); });

/// One client writes and reads; both its relays die, one after the other.
class RelayReaderFailover : public testing::TestWithParam<std::tuple<Level, bool>> {};

TEST_P(RelayReaderFailover, MissesNoSampleThatItDoesNotCountAndGetsNoneTwice) {
  const auto [level, stored] = GetParam();
  const pubsub::TopicQos qos{.level = level};
  const auto all = static_cast<std::uint32_t>(rounds(4'000));
  for (std::uint64_t round = 0; round < rounds(3); ++round) {
    Relays relays(level);
    RelayClient client({.relays = {relays.places[0], relays.places[1]}, .window_samples = 256});
    RelayWriter<Counted> writer(client, "counts", qos);
    RelayReader<Counted> reader(client, "counts", stored ? kStoredToo : ReaderQos{}, qos);
    ASSERT_TRUE(client.run_until([&] { return writer.ready() && reader.ready(); }, kFailoverMs))
        << client.why_disconnected();
    std::vector<std::uint32_t> taken;
    bool killed = false;
    // The last sample is written when the others are acknowledged, and the reader is there.
    ASSERT_TRUE(client.run_until(
        [&] {
          const bool ends = writer.written() >= all && writer.all_acknowledged() && reader.ready();
          while (writer.written() < all + (ends ? 1 : 0) &&
                 writer.write({1, static_cast<std::uint32_t>(writer.written())}) ==
                     WriteResult::written) {
          }
          for (const auto& sample : reader.take()) taken.push_back(sample.data.number);
          if (!killed && writer.acknowledged() > all / 4) {
            relays.processes[0]->kill();
            killed = true;
          }
          return !taken.empty() && taken.back() == all;
        },
        kFailoverMs))
        << client.why_disconnected() << " taken " << taken.size() << " acknowledged "
        << writer.acknowledged() << reader.why_refused() << writer.why_refused();
    EXPECT_EQ(client.relay(), relays.places[1]);
    for (std::size_t i = 1; i < taken.size(); ++i) ASSERT_GT(taken[i], taken[i - 1]);
    EXPECT_EQ(taken.size() + reader.lost(), all + 1);
    EXPECT_EQ(reader.restarts(), 0U);
    if (stored) {
      EXPECT_EQ(reader.lost(), 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, RelayReaderFailover,
                         testing::Values(std::tuple(Level::atomic, false),
                                         std::tuple(Level::volatile_storage, false),
                                         std::tuple(Level::volatile_storage, true)),
                         [](const auto& one) {
                           return std::string(describe(std::get<0>(one.param))) +
                                  (std::get<1>(one.param) ? "_stored" : "_volatile");
                         });

/// No other relay has had the topic: it begins anew, and its earlier samples are gone.
TEST(RelayRestart, CountsWhatATopicThatBeganAnewDeliveredBeforeItsReaderWasBack) {
  auto first = std::make_unique<House>();
  House second;  // another group, with another topic of that name
  RelayClient client({.relays = {first->place(), second.place()}, .retry_ns = 1'000'000});
  first->polled = {&client};
  RelayWriter<Counted> writer(client, "counts", pubsub::TopicQos{});
  RelayReader<Counted> reader(client, "counts");
  ASSERT_TRUE(first->until([&] { return writer.ready() && reader.ready(); }));
  // Nothing of it arrives.
  ASSERT_EQ(writer.write({1, 0}), WriteResult::written);
  const pubsub::Topic<Counted> topic(second.participant, "counts");
  pubsub::DataWriter<Counted> other{pubsub::Publisher(second.participant), topic};
  ASSERT_TRUE(second.until([&] { return other->ready(); }));
  for (std::uint32_t i = 0; i < 5; ++i)
    ASSERT_TRUE(second.until([&] { return other.write({2, i}) == WriteResult::written; }));
  ASSERT_TRUE(second.until([&] { return topic.position() == 5; }));
  first.reset();
  second.polled = {&client};
  std::vector<std::uint32_t> taken;
  ASSERT_TRUE(second.until([&] {
    for (const auto& sample : reader.take()) taken.push_back(sample.data.client);
    return !taken.empty() && writer.all_acknowledged();
  })) << client.why_disconnected();
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(reader.lost(), 5U);
  EXPECT_EQ(reader.restarts(), 1U);
}

}  // namespace
}  // namespace dunlin::test
