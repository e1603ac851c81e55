#include <array>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "multicast/cast_group.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Views of a subgroup in the simulator: the promises of docs/multicast.md (MC-O1 to MC-O6) under
/// what a network and processors may do, over many seeds.
namespace dunlin::multicast {
namespace {

using test::CastGroup;
using test::Plan;
using test::rough_network;

SubgroupViewOptions among(std::vector<Rank> members, std::vector<std::uint32_t> senders,
                          Mode mode = Mode::ordered) {
  return {.name = "test",
          .generation = 1,
          .members = std::move(members),
          .senders = std::move(senders),
          .mode = mode,
          .ring_bytes = 4096};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void expect_all_is_well(CastGroup& group, const Plan& plan) {
  group.make_all();
  group.work(plan);
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
  group.expect_silence();
}

TEST(SubgroupView, DeliversAloneWhatItSends) {
  CastGroup group(1, sim::profile("ideal"), 1, among({0}, {0}));
  expect_all_is_well(group, {.longest_bytes = 10'000});
}

TEST(SubgroupView, DeliversEverywhereInOneOrder) {
  CastGroup group(3, sim::profile("ideal"), 1, among({0, 1, 2}, {0, 1, 2}));
  expect_all_is_well(group, {});
}

/// How long a lone message takes until all have delivered it.
std::uint64_t ns_of_one(std::uint32_t members, std::size_t sender) {
  SubgroupViewOptions options = among({}, {});
  for (std::uint32_t i = 0; i < members; ++i) {
    options.members.push_back(i);
    options.senders.push_back(i);
  }
  CastGroup group(members, sim::profile("ideal"), 1, options);
  group.make_all();
  group.world.run_for(100'000);
  group.auditor.sent(sender, {std::byte{1}});
  const std::uint64_t start = group.world.now_ns();
  group.world.on(static_cast<Rank>(sender), [&] {
    const std::array message{std::byte{1}};
    EXPECT_EQ(group[sender].send(message), SendResult::sent);
  });
  for (std::size_t member = 0; member < members; ++member) {
    EXPECT_TRUE(group.world.run_until([&] { return group.auditor.has_all(member); }, 100'000));
  }
  return group.world.now_ns() - start;
}

TEST(SubgroupView, DeliversALoneMessageInTwoHops) {
  EXPECT_LE(ns_of_one(3, 0), 2'200);  // there, and the receipts back
  EXPECT_LE(ns_of_one(2, 0), 2'200);
  EXPECT_LE(ns_of_one(2, 1), 2'200);  // a null goes back, too, and needs no receipt
}

TEST(SubgroupView, DeliversALoneMessageInThreeHopsIfReceiptsWaitForNulls) {
  EXPECT_LE(ns_of_one(3, 1), 3'300);
  EXPECT_LE(ns_of_one(3, 2), 3'300);
}

TEST(SubgroupView, DoesNotWaitForWhoHasNothingToSend) {
  CastGroup group(4, sim::profile("ideal"), 1, among({0, 1, 2, 3}, {0, 1, 2, 3}));
  group.make_all();
  group.work({});
  group.quit(0);
  group.quit(2);
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
  EXPECT_GT(group[0].counters().nulls, 0);
  group.expect_silence();
}

TEST(SubgroupView, WaitsForWhoHasNothingToSendWithoutNulls) {
  SubgroupViewOptions options = among({0, 1}, {0, 1});
  options.switches.nulls = false;
  CastGroup group(2, sim::profile("ideal"), 1, options);
  group.make_all();
  group.world.on(1, [&] {
    group.auditor.sent(1, {});
    ASSERT_EQ(group[1].send({}), SendResult::sent);
  });
  group.world.run_for(1'000'000);
  EXPECT_FALSE(group.auditor.has_all(0));
  group.world.on(0, [&] {
    group.auditor.sent(0, {});
    ASSERT_EQ(group[0].send({}), SendResult::sent);
  });
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
}

TEST(SubgroupView, SaysThatThereIsNoRoomAndForgetsNothing) {
  CastGroup group(2, sim::profile("ideal"), 1, among({0, 1}, {0}));
  group.make(0);  // and nobody else yet
  std::uint64_t accepted = 0;
  const test::Bytes message(100);
  while (group[0].send(message) == SendResult::sent) {
    group.auditor.sent(0, message);
    ASSERT_LT(++accepted, 1'000);
  }
  EXPECT_GT(accepted, 30);
  EXPECT_EQ(group[0].prepare(100).data(), nullptr);
  group.world.run_for(1'000'000);
  EXPECT_EQ(group[0].send(message), SendResult::no_room);
  group.make(1);
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
  EXPECT_EQ(group[0].send(message), SendResult::sent);
}

TEST(SubgroupView, KeepsToItsWindow) {
  SubgroupViewOptions options = among({0, 1}, {0});
  options.window_messages = 3;
  CastGroup group(2, sim::profile("ideal"), 1, options);
  group.make_all();
  for (int i = 0; i < 3; ++i) {
    group.auditor.sent(0, {});
    ASSERT_EQ(group[0].send({}), SendResult::sent);
  }
  EXPECT_EQ(group[0].send({}), SendResult::no_room);
  ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
  group.world.run_for(1'000'000);
  EXPECT_EQ(group[0].send({}), SendResult::sent);
}

TEST(SubgroupView, SendsOnlyTheBytesUsed) {
  SubgroupViewOptions options = among({0, 1}, {0});
  options.ring_bytes = 65536;
  for (const bool used_only : {true, false}) {
    options.switches.used_bytes_only = used_only;
    options.switches.slot_bytes = 10'240;
    CastGroup group(2, sim::profile("ideal"), 1, options);
    group.make_all();
    group.world.run_for(100'000);
    for (int i = 0; i < 5; ++i) {
      group.auditor.sent(0, test::Bytes(100));
      ASSERT_EQ(group[0].send(test::Bytes(100)), SendResult::sent);
    }
    ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
    group.world.run_for(100'000);
    std::uint64_t more = 0;
    while (group[0].send(test::Bytes(100)) == SendResult::sent) ++more;
    EXPECT_EQ(more, used_only ? (65'536 - 5 * 112) / 112 : 6) << "5 small ones are not yet free";
  }
}

/// Sends messages of so many bytes from the first of three members, each when all have the one
/// before. Returns how many writes there were beside those of the lines.
std::uint64_t puts_of(std::size_t bytes, std::uint32_t messages,
                      const SubgroupViewOptions& options) {
  CastGroup group(3, sim::profile("ideal"), 1, options);
  group.make_all();
  group.world.run_for(100'000);
  for (std::uint32_t i = 0; i < messages; ++i) {
    const test::Bytes message(bytes, static_cast<std::byte>(i));
    group.auditor.sent(0, message);
    group.world.on(0, [&] { EXPECT_EQ(group[0].send(message), SendResult::sent); });
    for (std::size_t member = 0; member < 3; ++member)
      EXPECT_TRUE(group.world.run_until([&] { return group.auditor.has_all(member); }, 1'000'000));
  }
  return group[0].counters().puts;
}

TEST(SubgroupView, SendsASmallMessageInTheLineThatAnnouncesIt) {
  const SubgroupViewOptions options = among({0, 1, 2}, {0, 1, 2});
  EXPECT_EQ(puts_of(8, 1'000, options), 0) << "the records' 16 bytes divide the ring";
  EXPECT_EQ(puts_of(16, 1'000, options), 5 * 4) << "five times two runs to two peers, at the end";
  EXPECT_EQ(puts_of(17, 100, options), 100 * 2);
}

TEST(SubgroupView, SendsASmallMessageByItselfIfLinesCarryNothing) {
  SubgroupViewOptions options = among({0, 1, 2}, {0, 1, 2}, Mode::unordered);
  EXPECT_EQ(puts_of(8, 100, options), 100 * 2);
  options.mode = Mode::ordered;
  options.switches.one_cache_line = false;
  EXPECT_EQ(puts_of(8, 100, options), 100 * 2);
}

TEST(SubgroupView, SplitsWhatIsLargerAndPutsItTogetherAgain) {
  for (const Mode mode : {Mode::ordered, Mode::unordered}) {
    CastGroup group(3, sim::profile("ideal"), 1, among({0, 1, 2}, {0, 1}, mode));
    expect_all_is_well(group, {.messages = 20, .longest_bytes = 30'000});
  }
}

TEST(SubgroupView, HandsUpInBatches) {
  CastGroup group(2, sim::profile("ideal"), 1, among({0, 1}, {0}));
  expect_all_is_well(group, {.messages = 500, .most_bytes = 8, .burst = 50});
  const Counters& counters = group[1].counters();
  EXPECT_LT(counters.deliver_batches, counters.messages_delivered / 4);
  EXPECT_LT(group[0].counters().puts, 500 / 4);
}

TEST(SubgroupView, HandlesOneAtATimeIfItMust) {
  SubgroupViewOptions options = among({0, 1}, {0});
  options.switches.batch_send = options.switches.batch_deliver = false;
  options.switches.batch_receive = options.switches.one_cache_line = false;
  CastGroup group(2, sim::profile("ideal"), 1, options);
  expect_all_is_well(group, {.messages = 100, .most_bytes = 8});
  EXPECT_EQ(group[1].counters().deliver_batches, 100);
  EXPECT_EQ(group[1].counters().receive_batches, 100);
  EXPECT_GE(group[0].counters().puts, 100);
}

TEST(SubgroupView, DeliversWithoutUpcallMessageByMessage) {
  for (const Mode mode : {Mode::ordered, Mode::unordered}) {
    CastGroup group(2, sim::profile("ideal"), 1, among({0, 1}, {0, 1}, mode));
    group.polling_delivery = true;
    group.make(0, false);
    group.make(1, false);
    group.work({.messages = 300, .longest_bytes = 6'000});
    ASSERT_NO_FATAL_FAILURE(group.run_to_the_end());
    group.expect_silence();
  }
}

TEST(SubgroupView, SendsFromWithinAnUpcall) {
  sim::World world(sim::profile("ideal"), 2, 1);
  std::array<std::unique_ptr<SubgroupView>, 2> views;
  std::array<std::vector<std::string>, 2> got;
  for (Rank rank = 0; rank < 2; ++rank) {
    views[rank] = std::make_unique<SubgroupView>(
        world.fabric(rank), among({0, 1}, {0, 1}), [&, rank](std::span<const Delivery> batch) {
          for (const Delivery& delivery : batch) {
            got[rank].emplace_back(reinterpret_cast<const char*>(delivery.message.data()),
                                   delivery.message.size());
            if (rank == 1 && got[rank].back() == "ping") {
              EXPECT_EQ(views[rank]->send(bytes_of("pong")), SendResult::sent);
            }
          }
          EXPECT_EQ(views[rank]->poll(), 0) << "within an upcall";
        });
    world.attach(rank, [&, rank] { return views[rank]->poll(); });
  }
  world.on(0, [&] { ASSERT_EQ(views[0]->send(bytes_of("ping")), SendResult::sent); });
  const std::vector<std::string> all{"ping", "pong"};
  EXPECT_TRUE(world.run_until([&] { return got[0] == all && got[1] == all; }, 1'000'000));
}

TEST(SubgroupView, CountsABatchAsDeliveredThatThrew) {
  sim::World world(sim::profile("ideal"), 1, 1);
  std::size_t calls = 0;
  SubgroupView view(world.fabric(0), among({0}, {0}), [&](auto) {
    if (++calls == 1) throw std::runtime_error("no");
  });
  ASSERT_EQ(view.send({}), SendResult::sent);
  EXPECT_THROW(while (view.poll() > 0){}, std::runtime_error);
  ASSERT_EQ(view.send({}), SendResult::sent);
  while (view.poll() > 0) {
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(view.counters().messages_delivered, 2);
}

TEST(SubgroupView, SaysWhatIsWrongWithItsOptions) {
  sim::World world(sim::profile("ideal"), 3, 1);
  const auto refusal = [&](const SubgroupViewOptions& options) {
    return test::what_is_thrown_by([&] { const SubgroupView view(world.fabric(0), options); });
  };
  EXPECT_TRUE(
      test::contains(refusal(among({1, 2}, {0})), "rank 0) is not among its members (1 2)"));
  EXPECT_TRUE(test::contains(refusal(among({0, 1}, {1, 0})), "ascending indices below 2"));
  EXPECT_TRUE(test::contains(refusal(among({0, 1}, {2})), "ascending indices below 2"));
  SubgroupViewOptions options = among({0, 1}, {0});
  options.ring_bytes = 5'000;
  EXPECT_TRUE(test::contains(refusal(options), "ring_bytes is 5000; give a power of two"));
  {
    constexpr Rank kMost = kMaxRegionBytes / kMaxRingBytes;
    std::vector<Rank> members(kMost + 1);
    std::iota(members.begin(), members.end(), 0);
    SubgroupViewOptions wide = among(members, members);
    wide.ring_bytes = kMaxRingBytes;
    EXPECT_TRUE(test::contains(refusal(wide),
                               "ring_bytes is 1073741824 for each of 65 senders; all "
                               "rings together may have at most 68719476736 bytes "
                               "(kMaxRegionBytes)"));
  }
  options.ring_bytes = 4096;
  options.switches.used_bytes_only = false;
  options.switches.slot_bytes = 2048;
  EXPECT_TRUE(test::contains(refusal(options), "slot_bytes is 2048"));
  options = among({0, 1}, {0});
  options.mode = static_cast<multicast::Mode>(77);
  EXPECT_TRUE(test::contains(refusal(options), "mode is 77; give one of multicast::Mode"));
  options = among({0, 1}, {0});
  options.name = std::string(60, 'n');
  EXPECT_TRUE(test::contains(refusal(options), "kMaxSubgroupNameBytes"));

  SubgroupView view(world.fabric(0), among({0, 1}, {1}));
  EXPECT_EQ(view.send({}), SendResult::not_a_sender);
  EXPECT_EQ(view.prepare(1).data(), nullptr);
}

TEST(SubgroupView, TellsAPeerWithOtherOptions) {
  sim::World world(sim::profile("ideal"), 2, 1);
  SubgroupViewOptions options = among({0, 1}, {0});
  SubgroupView view(world.fabric(0), options);
  options.window_messages = 5;
  SubgroupView other(world.fabric(1), options);
  world.attach(0, [&] { return view.poll(); });
  world.attach(1, [&] { return other.poll(); });
  world.run_for(1'000'000);
  EXPECT_FALSE(view.connected());
  EXPECT_TRUE(test::contains(test::what_is_thrown_by([&] { view.check(); }),
                             "'window_messages' is '5' there"));
}

TEST(SubgroupView, DoesNothingWithoutSenders) {
  CastGroup group(2, sim::profile("ideal"), 1, among({0, 1}, {}));
  group.make_all();
  group.expect_silence();
  EXPECT_TRUE(group[0].finish({}).again.empty());
}

/// A group, a network and a workload drawn from a seed.
struct Drawn {
  explicit Drawn(std::uint64_t seed) : random(seed), profile(draw_profile()) {
    nodes = static_cast<std::uint32_t>(1 + random() % 5);
    for (Rank rank = 0; rank < nodes; ++rank)
      if (random() % 4 > 0) options.members.push_back(rank);
    if (options.members.empty()) options.members.push_back(0);
    if (random() % 2 == 0) std::ranges::reverse(options.members);
    for (std::uint32_t i = 0; i < options.members.size(); ++i)
      if (random() % 3 > 0) options.senders.push_back(i);
    if (options.senders.empty()) options.senders.push_back(0);
    options.name = "drawn";
    options.generation = 1;
    options.mode = random() % 3 == 0 ? Mode::unordered : Mode::ordered;
    options.ring_bytes = std::size_t{1024} << random() % 5;
    options.window_messages = std::array{0U, 0U, 1U, 2U, 5U, 40U}[random() % 6];
    if (random() % 3 == 0) {
      options.switches.batch_receive = random() % 2 == 0;
      options.switches.batch_send = random() % 2 == 0;
      options.switches.batch_deliver = random() % 2 == 0;
      options.switches.used_bytes_only = random() % 2 == 0;
      options.switches.one_cache_line = random() % 2 == 0;
      options.switches.slot_bytes = 64;
    }
    plan.messages = static_cast<std::uint32_t>(1 + random() % 60);
    plan.most_bytes = random() % 4 == 0 ? random() % 3 : random() % (options.ring_bytes / 4 - 8);
    plan.in_place = random() % 2 == 0;
    if (!plan.in_place && random() % 2 == 0) plan.longest_bytes = 3 * options.ring_bytes;
    plan.burst = static_cast<std::uint32_t>(1 + random() % 20);
    plan.gap_ns = std::array{0U, 100U, 3'000U, 50'000U}[random() % 4];
  }

  sim::Profile draw_profile() {
    sim::Profile drawn = rough_network();
    switch (random() % 5) {
      case 0:
        return sim::profile("ideal");
      case 1:
        return sim::profile("ib100");
      case 2:
        drawn.queue_slots = 4;
        return drawn;
      case 3:
        drawn.max_inline_bytes = 8;  // the line goes from a copy
        return drawn;
      default:
        return drawn;
    }
  }

  /// Nodes that stop for a while, or are slow.
  void disturb(CastGroup& group) {
    for (std::uint64_t times = random() % 6; times > 0; --times) {
      const auto node = static_cast<Rank>(random() % nodes);
      const std::uint64_t ns = random() % 200'000;
      group.world.at(random() % 300'000, [&group, node, ns] { group.world.pause(node, ns); });
    }
    if (random() % 3 == 0) {
      group.world.slow(static_cast<Rank>(random() % nodes), 1 + static_cast<double>(random() % 20));
    }
    silence(group, random());
  }
  /// Senders that begin to speak when others have spoken for long (MC-B7).
  void silence(CastGroup& group, std::uint64_t seed) const {
    std::mt19937_64 silent(seed);
    if (silent() % 2 == 0) return;
    for (const std::uint32_t sender : options.senders)
      if (silent() % 2 == 0) group.speaks_from(sender, silent() % 1'000'000);
  }

  std::mt19937_64 random;
  sim::Profile profile;
  std::uint32_t nodes = 0;
  SubgroupViewOptions options;
  Plan plan;
};

TEST(SubgroupView, KeepsItsPromisesUnderWhateverASeedDraws) {
  test::for_each_seed(test::Seeds(test::rounds(400)), [&](std::uint64_t seed) {
    Drawn drawn(seed);
    CastGroup group(drawn.nodes, drawn.profile, seed, drawn.options);
    drawn.disturb(group);
    ASSERT_NO_FATAL_FAILURE(expect_all_is_well(group, drawn.plan)) << "seed " << seed;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  });
}

/// The view ends at some moment, for each survivor at its own; the others may crash, or go on.
void end_the_view(std::uint64_t seed) {
  Drawn drawn(seed);
  const SubgroupViewOptions& options = drawn.options;
  CastGroup group(drawn.nodes, drawn.profile, seed, options);
  drawn.disturb(group);
  const bool upcall = drawn.random() % 4 > 0;
  group.polling_delivery = !upcall;
  for (std::size_t member = 0; member < options.members.size(); ++member) {
    const std::uint64_t when = drawn.random() % 3 == 0 ? drawn.random() % 20'000 : 0;
    if (when == 0) {
      group.make(member, upcall);
    } else {
      group.world.at(when, [&group, member, upcall] { group.make(member, upcall); });
    }
  }
  group.world.run_for(20'001);
  group.work(drawn.plan);

  std::vector<std::size_t> survivors;
  std::size_t wedged = 0;
  const std::uint64_t end = group.world.now_ns() + drawn.random() % 200'000;
  for (std::size_t member = 0; member < options.members.size(); ++member) {
    const Rank node = options.members[member];
    const bool survives = drawn.random() % 3 > 0;
    if (!survives && drawn.random() % 2 == 0) {
      group.world.at(end - drawn.random() % (end - 20'000),
                     [&group, node] { group.world.crash(node); });
    }
    if (!survives) continue;
    survivors.push_back(member);
    group.world.at(end + drawn.random() % 10'000, [&, node, member] {
      group.world.on(node, [&, member] {
        group.quit(member);
        group[member].wedge();
        ++wedged;
      });
    });
  }
  if (survivors.empty()) return;
  ASSERT_TRUE(group.world.run_until([&] { return wedged == survivors.size(); }, 100'000'000));
  group.world.run_for(drawn.random() % 50'000);  // what is final stays final

  std::vector<std::uint64_t> trim(options.senders.size(), UINT64_MAX);
  for (const std::size_t member : survivors) {
    for (std::size_t s = 0; s < trim.size(); ++s)
      trim[s] = std::min(trim[s], group[member].received()[s]);
  }
  std::vector<std::uint64_t> counted;  // of each sender, by the first
  for (const std::size_t member : survivors) {
    const SubgroupView::Remains remains = group[member].finish(trim);
    while (const std::optional<Delivery> next = group[member].next())
      ASSERT_NO_FATAL_FAILURE(group.auditor.delivered(member, *next));
    const auto ahead = [&](std::size_t spec) {
      return options.mode == Mode::ordered ? 0 : remains.ahead[spec];
    };
    for (std::size_t s = 0; s < trim.size(); ++s) {
      const std::size_t sender = options.senders[s];
      const std::uint64_t mine = group.auditor.count(member, sender) - ahead(s);
      if (member == survivors.front()) counted.push_back(mine);
      ASSERT_EQ(mine, counted[s]) << "members " << member << " and " << survivors.front();
      if (sender != member) continue;
      // The sender has the rest, whole and in order.
      const auto& sent = group.auditor.sent_by(member);
      ASSERT_EQ(mine + remains.again.size(), sent.size());
      for (std::size_t i = 0; i < remains.again.size(); ++i)
        ASSERT_EQ(remains.again[i], sent[mine + i]);
    }
    EXPECT_THROW(static_cast<void>(group[member].finish(trim)), Error);
    EXPECT_EQ(group[member].prepare(0).data(), nullptr);
  }
  if (options.mode == Mode::unordered) return;
  for (std::size_t member = 0; member < options.members.size(); ++member) {
    // MC-O3: what anybody delivered, also one that is no more, the survivors have.
    ASSERT_NO_FATAL_FAILURE(group.auditor.expect_prefix(member, survivors.front()));
  }
}

TEST(SubgroupView, EndsAtAnyMomentWithTheSameMessagesForAllSurvivors) {
  test::for_each_seed(test::Seeds(test::rounds(1'500)), [&](std::uint64_t seed) {
    ASSERT_NO_FATAL_FAILURE(end_the_view(seed)) << "seed " << seed;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  });
}

}  // namespace
}  // namespace dunlin::multicast
