#include "group/long_text.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>

#include "group/control_channel.hpp"
#include "support/errors.hpp"

/// Control messages that their receiver reads from their sender's memory.
namespace dunlin::group {
namespace {

using Text = std::vector<std::byte>;
constexpr std::uint64_t kLimitNs = 1'000'000'000;

Text text_of(std::size_t bytes, std::uint32_t seed) {
  Text text(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<std::byte>((i * 2'654'435'761U + seed) >> 16U);
  }
  return text;
}

struct Nodes {
  struct Node {
    std::unique_ptr<ControlChannel> channel;
    std::vector<std::pair<Rank, Text>> taken;
    std::vector<std::string> failures;
    Subscription events;
    std::uint64_t polls = 0;
    bool crashed = false;
  };
  sim::World world{sim::profile("ideal"), 3, 1};
  std::array<Node, 3> nodes;

  Nodes() {
    for (Rank rank = 0; rank < nodes.size(); ++rank) {
      Node& node = nodes.at(rank);
      Fabric& fabric = world.fabric(rank);
      node.channel = std::make_unique<ControlChannel>(fabric);
      node.events = fabric.subscribe([&node](const Event& event) {
        if (event.kind == Event::Kind::peer_failed) node.failures.emplace_back(event.text);
      });
      world.attach(rank, [&node, &fabric] {
        ++node.polls;
        std::size_t done = fabric.poll();
        if (node.channel)
          done += node.channel->poll([&node](Rank from, std::span<const std::byte> text) {
            node.taken.emplace_back(from, Text(text.begin(), text.end()));
          });
        return done;
      });
    }
  }
  /// In that order, once the sender's CPU is free.
  void send(Rank from, Rank to, const std::vector<std::size_t>& lengths) {
    world.on(from, [this, from, to, lengths] {
      for (const std::size_t bytes : lengths)
        nodes.at(from).channel->send(to, text_of(bytes, from + 7 * to));
    });
  }
  void crash(Rank rank) {
    nodes.at(rank).crashed = true;
    world.crash(rank);
  }
  void expect_taken(Rank at, const std::vector<std::pair<Rank, std::size_t>>& texts) {
    Node& node = nodes.at(at);
    ASSERT_TRUE(world.run_until([&] { return node.taken.size() == texts.size(); }, kLimitNs));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto& [from, bytes] = texts[i];
      EXPECT_EQ(node.taken[i].first, from);
      EXPECT_TRUE(node.taken[i].second == text_of(bytes, from + 7 * at))
          << "text " << i << " of " << bytes << " bytes";
    }
  }
  /// All memory for texts is given back, and nobody polls on.
  void expect_rest() {
    world.run_for(1'000'000);
    std::array<std::uint64_t, 3> polls{};
    for (std::size_t i = 0; i < nodes.size(); ++i) polls.at(i) = nodes.at(i).polls;
    world.run_for(1'000'000);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = nodes.at(i);
      EXPECT_FALSE(node.channel && !node.crashed && node.channel->pending());
      EXPECT_LE(nodes.at(i).polls, polls.at(i) + 10) << "node " << i;
    }
  }
  /// As many regions as there are left of the node's.
  std::vector<Region> all_regions(Rank rank) {
    std::vector<Region> regions;
    try {
      for (std::uint32_t i = 0; i <= kMaxRegions; ++i)
        regions.push_back(
            world.fabric(rank).allocate({.name = "r" + std::to_string(i), .bytes = 8}));
      ADD_FAILURE() << "there is no limit";
    } catch (const Error&) {
    }
    return regions;
  }
};

struct LongText : testing::Test, Nodes {};

TEST_F(LongText, ComesInOrderWithOthers) {
  send(0, 1, {10, kLongTextBytes + 1, 20, kWindowBytes, kLongTextBytes, kWindowBytes + 1, 30});
  expect_taken(1, {{0, 10},
                   {0, kLongTextBytes + 1},
                   {0, 20},
                   {0, kWindowBytes},
                   {0, kLongTextBytes},
                   {0, kWindowBytes + 1},
                   {0, 30}});
  expect_rest();
}

TEST_F(LongText, OfSeveralWindowsIsWhole) {
  send(0, 1, {3 * kWindowBytes + 12'345});
  expect_taken(1, {{0, 3 * kWindowBytes + 12'345}});
  expect_rest();
}

TEST_F(LongText, GoesBothWaysAndToSeveralAtOnce) {
  send(0, 1, {100'001});
  send(0, 2, {200'002});
  send(1, 0, {300'003});
  expect_taken(1, {{0, 100'001}});
  expect_taken(2, {{0, 200'002}});
  expect_taken(0, {{1, 300'003}});
  expect_rest();
}

TEST_F(LongText, GivesItsMemoryBack) {
  const std::size_t before_sender = all_regions(0).size();
  const std::size_t before_receiver = all_regions(1).size();
  for (int i = 0; i < 3; ++i) {
    send(0, 1, {100'000});
    expect_taken(1, {{0, 100'000}});
    nodes[1].taken.clear();
  }
  expect_rest();
  EXPECT_EQ(all_regions(0).size(), before_sender);
  EXPECT_EQ(all_regions(1).size(), before_receiver);
}

TEST_F(LongText, ComesInFragmentsIfTheSenderHasNoMemoryForIt) {
  const std::vector<Region> regions = all_regions(0);
  send(0, 1, {100'000, 10});
  expect_taken(1, {{0, 100'000}, {0, 10}});
  expect_rest();
}

TEST_F(LongText, ComesInFragmentsIfTheReceiverHasNoMemoryForIt) {
  std::vector<Region> regions = all_regions(1);
  send(0, 1, {100'000, 10});
  expect_taken(1, {{0, 100'000}, {0, 10}});
  regions.clear();
  nodes[1].taken.clear();
  send(0, 1, {200'000});
  expect_taken(1, {{0, 200'000}});
  expect_rest();
}

/// One of the two fails so long after the text was offered. `whole`: whether it had come by then.
void expect_dropped(Rank fails, std::uint64_t after_ns, bool& whole) {
  SCOPED_TRACE(std::to_string(after_ns) + " ns after the offer");
  Nodes all;
  all.send(0, 1, {2 * kWindowBytes});
  ASSERT_TRUE(all.world.run_until([&] { return all.nodes[1].channel->pending(); }, kLimitNs));
  all.world.run_for(after_ns);
  whole = !all.nodes[1].taken.empty();
  all.crash(fails);
  const Rank left = 1 - fails;
  ASSERT_TRUE(all.world.run_until([&] { return !all.nodes.at(left).failures.empty(); }, kLimitNs));
  all.send(left, 2, {100'000});
  all.expect_taken(2, {{left, 100'000}});
  all.expect_rest();
}

void expect_dropped_at_any_moment(Rank fails) {
  constexpr std::uint64_t kStepNs = 250, kLongestNs = 1'000'000;
  std::uint64_t ns = 0;
  for (bool whole = false; !whole && ns < kLongestNs; ns += kStepNs)
    ASSERT_NO_FATAL_FAILURE(expect_dropped(fails, ns, whole));
  EXPECT_GT(ns, 10 * kStepNs) << "some moments lie in the transfer";
  EXPECT_LT(ns, kLongestNs) << "and the last one behind it";
}

TEST(LongTexts, AreDroppedIfTheirSenderFailsAtAnyMoment) { expect_dropped_at_any_moment(0); }

TEST(LongTexts, AreDroppedIfTheirReceiverFailsAtAnyMoment) { expect_dropped_at_any_moment(1); }

TEST_F(LongText, IsDroppedIfItsSenderStops) {
  send(0, 1, {2 * kWindowBytes});
  ASSERT_TRUE(world.run_until([&] { return nodes[1].channel->pending(); }, kLimitNs));
  world.on(0, [this] { nodes[0].channel.reset(); });
  ASSERT_TRUE(world.run_until([&] { return !nodes[1].channel->pending(); }, kLimitNs));
  EXPECT_TRUE(nodes[1].taken.empty());
  expect_rest();
}

TEST_F(LongText, MayBeLeftByItsReceiver) {
  send(0, 1, {2 * kWindowBytes});
  ASSERT_TRUE(world.run_until([&] { return nodes[1].channel->pending(); }, kLimitNs));
  world.on(1, [this] { nodes[1].channel.reset(); });
  send(0, 2, {100'000});
  expect_taken(2, {{0, 100'000}});
  EXPECT_TRUE(nodes[0].channel->pending());
  world.on(0, [this] { nodes[0].channel->forget(1); });  // it is in no view any more
  expect_rest();
}

/// The receiver may hear of the next text of a sender that has dropped one, before it has noticed.
TEST_F(LongText, TakesThePlaceOfOneThatItsSenderDropped) {
  send(0, 1, {2 * kWindowBytes});
  ASSERT_TRUE(world.run_until([&] { return nodes[1].channel->pending(); }, kLimitNs));
  world.on(0, [this] {
    nodes[0].channel->forget(1);
    nodes[0].channel->send(1, text_of(100'000, 7));
  });
  expect_taken(1, {{0, 100'000}});
  expect_rest();
}

TEST_F(LongText, GoesToManyAFewAtATime) {
  constexpr Rank kMany = 40;
  sim::World wide(sim::profile("ideal"), kMany, 1);
  std::vector<std::unique_ptr<ControlChannel>> channels;
  std::uint32_t taken_by = 0;
  for (Rank rank = 0; rank < kMany; ++rank) {
    channels.push_back(std::make_unique<ControlChannel>(wide.fabric(rank)));
    wide.attach(rank, [&, rank] {
      return wide.fabric(rank).poll() + channels[rank]->poll([&](Rank, const Text& text) {
        taken_by += text.size() == 70'000;
      });
    });
  }
  wide.on(0, [&] {
    for (Rank rank = 1; rank < kMany; ++rank) channels[0]->send(rank, Text(70'000));
  });
  EXPECT_TRUE(wide.run_until([&] { return taken_by == kMany - 1; }, kLimitNs));
}

/// What a peer may send that is no offer of ours.
struct OfferOfAPeer : testing::Test {
  sim::World world{sim::profile("ideal"), 2, 1};
  ControlChannel channel{world.fabric(0), {.most_bytes = 1'000'000}};
  std::size_t taken = 0;
  OfferOfAPeer() {
    world.attach(0, [this] {
      return world.fabric(0).poll() +
             channel.poll([this](Rank, std::span<const std::byte>) { ++taken; });
    });
    world.attach(1, [this] { return world.fabric(1).poll(); });
  }
  void send(const LongTextMessage& message) {
    world.on(1, [this, message] {
      EXPECT_EQ(world.fabric(1).send(0, kGroupChannel, std::as_bytes(std::span(&message, 1))),
                Refusal::none);
    });
    world.run_for(1'000'000);
  }
};

using enum LongTextMessage::Kind;

TEST_F(OfferOfAPeer, OfMoreThanIsPossibleExpelsIt) {
  send({.kind = ready, .generation = 1, .bytes = 1'000'001, .total = 1'000'001});
  EXPECT_TRUE(test::contains(world.fabric(0).failure_text(1), "more than the 1000000 bytes"));
  EXPECT_FALSE(channel.pending());
}

TEST_F(OfferOfAPeer, ThatCannotBeIsRefused) {
  send({.kind = ready, .generation = 1, .bytes = 0, .total = 0});
  send({.kind = ready, .generation = 1, .bytes = 100, .total = 200});
  send({.kind = ready, .generation = 1, .bytes = 200, .total = 100});
  send({.kind = LongTextMessage::Kind::taken, .generation = 1, .bytes = 100});
  send({.kind = refused, .generation = 1});
  send({.kind = static_cast<LongTextMessage::Kind>(9), .generation = 1});
  EXPECT_FALSE(channel.pending());
  EXPECT_FALSE(world.fabric(0).failed(1));
}

TEST_F(OfferOfAPeer, IsNotReadBeyondTheWindow) {
  const Region window =
      world.fabric(1).allocate({.name = "text:63:1", .bytes = 8, .generation = 1});
  world.fabric(1).announce(window);
  send({.kind = ready, .generation = 1, .bytes = 500'000, .total = 500'000});
  EXPECT_EQ(taken, 0U);
  EXPECT_FALSE(channel.pending());
}

}  // namespace
}  // namespace dunlin::group
