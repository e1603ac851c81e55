#include "relay/peers.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pubsub/participants.hpp"
#include "relay/topics.hpp"

/// What relays tell each other, and the topics that they are in.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;
using relay::RelayPeers;
using relay::RelayTopic;
using relay::RelayTopics;

/// Relay 0 does not look while relay 1 dies and comes back: for it, the names are the same.
TEST(RelayPeers, TellARelayThatHasStartedAnewAllTopicsAgain) {
  Participants all(3, 1, 1);
  std::array<std::unique_ptr<RelayPeers>, 4> peers;
  bool looks = true;
  for (const Rank rank : {0U, 1U, 3U})
    all.nodes[rank].work = [&, rank]() -> std::size_t {
      if (!peers[rank]) peers[rank] = std::make_unique<RelayPeers>(*all.nodes[rank].group);
      return rank != 0 || looks ? peers[rank]->poll() : 0;
    };
  ASSERT_TRUE(all.until([&] { return peers[0] && peers[1] && peers[0]->count() == 2; }));
  all.world.on(0, [&] { peers[0]->tell({.name = "of 0"}, {.uses = true}); });
  all.world.on(1, [&] { peers[1]->tell({.name = "of 1"}, {.uses = true}); });
  ASSERT_TRUE(all.until([&] {
    return peers[1]->used_by_others().size() == 1 && peers[0]->used_by_others().size() == 1;
  }));
  looks = false;
  all.crash(1);
  all.come(3, "node1");
  ASSERT_TRUE(all.until([&] { return peers[3] && peers[3]->count() == 2; }));
  looks = true;
  EXPECT_TRUE(all.until([&] { return peers[3]->used_by_others().size() == 1; }));
  EXPECT_TRUE(peers[0]->used_by_others().empty())
      << "that relay uses none, since it is another one";
}

/// Two of three relays have no directory for logs.
TEST(RelayPeers, AreQuietAlsoIfTwoOfThemCannotBeInATopic) {
  auto disks = Participants::make_disks(1, 1);
  Participants all(3, 1, 0, &disks);
  std::array<std::unique_ptr<RelayTopics>, 3> topics;
  std::shared_ptr<RelayTopic> topic;
  std::size_t done = 0;
  for (Rank rank = 0; rank < 3; ++rank)
    all.nodes[rank].work = [&, rank]() -> std::size_t {
      if (!topics[rank]) topics[rank] = std::make_unique<RelayTopics>(all[rank]);
      const std::size_t looked = topics[rank]->look();
      done += looked;
      return looked;
    };
  ASSERT_TRUE(all.until([&] {
    for (const auto& one : topics)
      if (!one || one->peers().count() != 3) return false;
    return true;
  }));
  std::string why;
  all.world.on(0, [&] {
    topic = topics[0]->find(
        {.topic = "kept", .qos = TopicQos{.level = Level::logged, .ring_bytes = 65'536}}, why);
  });
  ASSERT_TRUE(all.until([&] { return topic && topic->topic().joined() && topic->is_safe(); }))
      << why;
  all.run_for(20'000'000);
  done = 0;
  all.run_for(20'000'000);
  EXPECT_EQ(done, 0U);
  topic.reset();
  for (auto& one : topics) one.reset();
}

struct Waiting final : relay::ClientEndpoint {
  void on_delivered(std::uint64_t) override {}
  void on_sample(const RawSample&, const SampleInfo&) override {}
  void wake() override { ++woken; }
  int woken = 0;
};

/// An endpoint of another client looks for its topic when the first one's has just come.
TEST(RelayTopics, WakeWhoAwaitsATopicAlsoIfAnotherLookedThroughAllBefore) {
  Participants all(1);
  RelayTopics topics(all[0]);
  Waiting endpoint;
  std::string why;
  topics.await("later", endpoint);
  ASSERT_TRUE(all.until([&] { return topics.peers().joined(); }));
  for (int i = 0; i < 3; ++i) static_cast<void>(topics.look());
  EXPECT_EQ(topics.find({.topic = "never"}, why), nullptr);
  EXPECT_EQ(endpoint.woken, 0);
  const Topic<Count> later(all[0], "later");
  ASSERT_TRUE(all.until([&] { return later.joined(); }));
  EXPECT_EQ(topics.find({.topic = "never"}, why), nullptr);
  static_cast<void>(topics.look());
  EXPECT_EQ(endpoint.woken, 1);
}

}  // namespace
}  // namespace dunlin::test
