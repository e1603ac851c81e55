#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "container/clusters.hpp"
#include "support/errors.hpp"

/// What a call posts under each promise: the table of docs/container.md, by counting.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;

using Map = HashMap<std::uint64_t, std::uint64_t>;
using Fifo = Queue<std::uint64_t>;

constexpr Rank kHolder = 1;
constexpr std::array kPromises{Promise::both, Promise::writes, Promise::reads, Promise::local};

/// Members whose network has atomics of its own, which those of processors do not exclude.
struct Posting : testing::Test {
  explicit Posting(const ContainersOptions& options = {})
      : cluster(sim::profile("ib100"), 3, options) {
    for (Rank rank = 0; rank < cluster.size(); ++rank) {
      maps.push_back(std::make_unique<Map>(
          cluster[rank], MapOptions{.name = "map", .slots = 4'000, .style = Style::one_sided}));
      packed.push_back(std::make_unique<test::CountMap>(
          cluster[rank],
          MapOptions{.name = "packed", .slots = 4'000, .style = Style::one_sided, .packed = true}));
      queues.push_back(std::make_unique<Fifo>(
          cluster[rank],
          QueueOptions{
              .name = "queue", .capacity = 64, .host = kHolder, .style = Style::one_sided}));
    }
    for (Rank rank = 0; rank < cluster.size(); ++rank) {  // all regions are connected then
      EXPECT_EQ(cluster.end_of(maps[rank]->find(key())), Status::ok);
      EXPECT_EQ(cluster.end_of(packed[rank]->find(key())), Status::ok);
      EXPECT_EQ(cluster.end_of(queues[rank]->pop()), Status::empty);
    }
  }
  /// A key that the holder holds, and no other call has used.
  std::uint64_t key() {
    do ++last_key;
    while (maps[0]->home_of(last_key) != kHolder);
    return last_key;
  }
  /// How many operations the call posts that this begins.
  template <class Begin>
  std::uint64_t posted_by(const Begin& begin, Status status = Status::ok) {
    const std::uint64_t before = cluster.world.operations();
    auto call = begin();
    EXPECT_EQ(remote::describe(cluster.end_of(call)), remote::describe(status));
    return cluster.world.operations() - before;
  }
  std::uint64_t pushes(Rank by, Promise promise = Promise::both) {
    return posted_by([&] { return queues[by]->push(7, promise); });
  }
  std::uint64_t pops(Rank by, Promise promise, Status status = Status::ok) {
    return posted_by([&] { return queues[by]->pop(promise); }, status);
  }

  test::SimContainers cluster;
  std::vector<std::unique_ptr<Map>> maps;
  std::vector<std::unique_ptr<test::CountMap>> packed;
  std::vector<std::unique_ptr<Fifo>> queues;
  std::uint64_t last_key = 0;
};

/// C + (W, w), and C + W: as published, but for the second write's being in the batch of the first.
TEST_F(Posting, AnInsertTakesTwoOperationsUnderWritesAndThreeBesideFinds) {
  for (const Promise promise : kPromises) {
    const bool without_finds = promise == Promise::writes || promise == Promise::local;
    const std::uint64_t one = key();
    EXPECT_EQ(posted_by([&] { return maps[0]->insert(one, 1, promise); }), without_finds ? 2U : 3U)
        << name_of(promise);
    EXPECT_EQ(posted_by([&] { return packed[0]->insert(one, 1, promise); }), 2U)
        << name_of(promise);
  }
}

TEST_F(Posting, AFindTakesOneReadUnderAnyPromise) {
  const std::uint64_t one = key();
  EXPECT_EQ(cluster.end_of(maps[0]->insert(one, 1)), Status::ok);
  EXPECT_EQ(cluster.end_of(packed[0]->insert(one, 1)), Status::ok);
  for (const Promise promise : kPromises) {
    EXPECT_EQ(posted_by([&] { return maps[2]->find(one, promise); }), 1U) << name_of(promise);
    EXPECT_EQ(posted_by([&] { return packed[2]->find(one, promise); }), 1U) << name_of(promise);
  }
}

TEST_F(Posting, AChangeOfAKeyReadsAndSwapsAndInSlotsWithStampsWrites) {
  const std::uint64_t one = key();
  EXPECT_EQ(cluster.end_of(maps[0]->insert(one, 1)), Status::ok);
  EXPECT_EQ(cluster.end_of(packed[0]->insert(one, 1)), Status::ok);
  for (const Promise promise : kPromises) {
    EXPECT_EQ(posted_by([&] { return maps[2]->add(one, 1, promise); }), 4U) << name_of(promise);
    EXPECT_EQ(posted_by([&] { return packed[2]->add(one, 1, promise); }), 2U) << name_of(promise);
  }
  EXPECT_EQ(posted_by([&] { return maps[2]->assign(one, 5); }), 4U);
  EXPECT_EQ(posted_by([&] { return packed[2]->assign(one, 5); }), 2U);
  EXPECT_EQ(posted_by([&] { return maps[2]->erase(one); }), 2U);
  EXPECT_EQ(posted_by([&] { return packed[2]->erase(one); }), 2U);
}

TEST_F(Posting, APushTakesTwoOperationsUnderAnyPromise) {
  for (const Promise promise : kPromises) EXPECT_EQ(pushes(0, promise), 2U) << name_of(promise);
  EXPECT_EQ(pushes(0), 2U) << "no look at the ends, as there is room for certain";
}

/// F + R, as published; whoever has popped before.
TEST_F(Posting, APhasalPopTakesTwoOperations) {
  for (int i = 0; i < 20; ++i) pushes(0, Promise::writes);
  for (const Promise promise : {Promise::reads, Promise::local}) {
    EXPECT_EQ(pops(2, Promise::reads), promise == Promise::reads ? 3U : 2U)
        << "member 2 has pushed nothing, so at first it looks at the ends";
    for (int i = 0; i < 4; ++i) EXPECT_EQ(pops(0, promise), 2U) << name_of(promise);
    EXPECT_EQ(pops(2, promise), 2U);
  }
}

/// And the head is where the elements end.
TEST_F(Posting, APhasalPopThatComesTooLateGivesItsTicketBack) {
  for (int i = 0; i < 2; ++i) pushes(0, Promise::writes);
  EXPECT_EQ(pops(2, Promise::reads), 3U);
  EXPECT_EQ(pops(2, Promise::reads), 2U);
  EXPECT_EQ(pops(0, Promise::reads, Status::empty), 3U) << "F, R of the ends, F";
  EXPECT_EQ(pops(0, Promise::reads, Status::empty), 1U) << "it has looked";
  EXPECT_EQ(pushes(0, Promise::writes), 2U);
  EXPECT_EQ(pops(2, Promise::reads), 3U);
  EXPECT_EQ(pops(2, Promise::reads, Status::empty), 1U);
}

/// R + C; where others pop, too, the ends are read in the batch of the first read.
TEST_F(Posting, APopBesidePushesTakesTwoOperationsAloneAndNoMoreRoundTripsThanPublished) {
  for (int i = 0; i < 20; ++i) pushes(0);
  for (const Promise promise : {Promise::both, Promise::writes}) {
    static_cast<void>(pops(0, promise));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(pops(0, promise), 2U) << name_of(promise);
    static_cast<void>(pops(2, promise));
    EXPECT_EQ(pops(0, promise), 3U) << "R, C, which fails, C: the slot was read";
  }
}

TEST_F(Posting, ManyElementsArePushedAndPoppedByAsManyOperationsAsOne) {
  std::array<std::uint64_t, 20> elements{};
  const auto bytes = std::as_bytes(std::span(elements)).data();
  const container::QueueSpec spec{.name = "many",
                                  .element_bytes = 8,
                                  .capacity = 64,
                                  .host = kHolder,
                                  .style = Style::one_sided};
  std::vector<std::unique_ptr<container::QueueCore>> cores;
  for (Rank rank = 0; rank < cluster.size(); ++rank)
    cores.push_back(std::make_unique<container::QueueCore>(cluster[rank], spec));
  const auto push = [&](Promise promise) {
    return remote::Call<container::PoppedElements>(
        cluster[0].progress(), cores[0]->push(bytes, elements.size(), {.promise = promise}));
  };
  const auto pop = [&](Promise promise) {
    return remote::Call<container::PoppedElements>(
        cluster[0].progress(), cores[0]->pop(elements.size(), {.promise = promise}));
  };
  for (const Promise promise : kPromises) {
    const std::uint64_t wraps = promise == Promise::local ? 1 : 0;  // at the ring's end
    const bool first = promise == Promise::both;
    EXPECT_EQ(posted_by([&] { return push(promise); }), 2 + wraps) << name_of(promise);
    EXPECT_EQ(posted_by([&] { return pop(promise); }), 2 + wraps + (first ? 1 : 0))
        << name_of(promise) << ": at first it does not know the ends";
  }
}

/// (R, r) + C, or (R, r) + R + C: where others pop, too, the first read brings slots twice as far
/// as they have moved the head lately, and 8 more; at most 64 of 32 bytes.
TEST_F(Posting, APopFarFromTheHeadThatItKnowsReadsOnceMore) {
  std::vector<std::unique_ptr<Fifo>> long_queues;
  for (Rank rank = 0; rank < cluster.size(); ++rank)
    long_queues.push_back(std::make_unique<Fifo>(
        cluster[rank],
        QueueOptions{.name = "long", .capacity = 512, .host = kHolder, .style = Style::one_sided}));
  const auto pop = [&](Rank by) { return posted_by([&] { return long_queues[by]->pop(); }); };
  for (int i = 0; i < 300; ++i) EXPECT_EQ(cluster.end_of(long_queues[0]->push(7)), Status::ok);
  const auto others_pop = [&](int times) {
    for (int i = 0; i < times; ++i) static_cast<void>(pop(2));
  };
  static_cast<void>(pop(0));
  others_pop(1);
  static_cast<void>(pop(0));  // and learns that others pop, too
  others_pop(5);
  EXPECT_EQ(pop(0), 3U) << "R, r, C";
  others_pop(100);
  EXPECT_EQ(pop(0), 4U) << "R, r, R, C";
  others_pop(60);
  EXPECT_EQ(pop(0), 3U) << "R, r, C";
  others_pop(70);
  EXPECT_EQ(pop(0), 4U) << "R, r, R, C";
}

/// A long value is written to a block with the call's first step, which a word links; the block of
/// the former value is freed behind the last step.
TEST_F(Posting, LongValuesTakeTheirBlockWithTheSteps) {
  using Texts = HashMap<std::uint64_t, std::string>;
  std::vector<std::unique_ptr<Texts>> texts;
  for (Rank rank = 0; rank < cluster.size(); ++rank)
    texts.push_back(std::make_unique<Texts>(cluster[rank], MapOptions{.name = "texts",
                                                                      .slots = 4'000,
                                                                      .style = Style::one_sided,
                                                                      .value_bytes = 1'000,
                                                                      .pool_bytes = 1 << 20}));
  const std::string text(600, 'x');
  // Until the caller holds a slab at the home.
  EXPECT_EQ(cluster.end_of(texts[0]->insert(key(), text)), Status::ok);
  const std::uint64_t one = key();
  EXPECT_EQ(posted_by([&] { return texts[0]->insert(one, text); }), 3U + 2U);
  EXPECT_EQ(posted_by([&] { return texts[2]->find(one); }), 2U) << "R, R";
  EXPECT_EQ(posted_by([&] { return texts[0]->assign(one, text); }), 4U + 3U);
  EXPECT_EQ(posted_by([&] { return texts[0]->assign(one, "short"); }), 4U + 1U);
  EXPECT_EQ(posted_by([&] { return texts[2]->find(one); }), 1U);
  EXPECT_EQ(posted_by([&] { return texts[0]->assign(one, text); }), 4U + 2U);
  EXPECT_EQ(posted_by([&] { return texts[0]->erase(one); }), 2U + 1U);
}

/// M, a request and its reply, and nothing for the holder's own calls.
TEST_F(Posting, ACallByMessageTakesTwoMessages) {
  std::vector<std::unique_ptr<Map>> asked;
  std::vector<std::unique_ptr<Fifo>> asked_queues;
  for (Rank rank = 0; rank < cluster.size(); ++rank) {
    asked.push_back(std::make_unique<Map>(
        cluster[rank], MapOptions{.name = "asked", .slots = 4'000, .style = Style::message}));
    asked_queues.push_back(std::make_unique<Fifo>(
        cluster[rank],
        QueueOptions{
            .name = "asked too", .capacity = 64, .host = kHolder, .style = Style::message}));
  }
  for (Rank rank = 0; rank < cluster.size(); ++rank) {  // all regions are connected then
    EXPECT_EQ(cluster.end_of(asked[rank]->find(key())), Status::ok);
    EXPECT_EQ(cluster.end_of(asked_queues[rank]->pop()), Status::empty);
  }
  for (const Promise promise : kPromises)
    for (const Rank by : {Rank{0}, kHolder}) {
      const std::uint64_t one = key();
      const std::uint64_t posted = by == kHolder ? 0 : 2;
      const auto expect = [&](const char* call, auto begin) {
        EXPECT_EQ(posted_by(begin), posted) << call << ", " << name_of(promise) << ", by " << by;
      };
      expect("insert", [&] { return asked[by]->insert(one, 1, promise); });
      expect("find", [&] { return asked[by]->find(one, promise); });
      expect("assign", [&] { return asked[by]->assign(one, 2, promise); });
      expect("add", [&] { return asked[by]->add(one, 2, promise); });
      expect("erase", [&] { return asked[by]->erase(one, promise); });
      expect("push", [&] { return asked_queues[by]->push(7, promise); });
      expect("pop", [&] { return asked_queues[by]->pop(promise); });
    }
}

/// Where the NIC's atomics are those of processors, a one-sided call on the own part is one of
/// loads, stores and the processor's atomics.
TEST(PostingOnOwnMemory, TakesNoOperation) {
  sim::Profile network = sim::profile("ib100");
  network.native_atomics = false;
  test::SimContainers cluster(network, 2, {});
  std::vector<std::unique_ptr<Map>> maps;
  std::vector<std::unique_ptr<Fifo>> queues;
  for (Rank rank = 0; rank < cluster.size(); ++rank) {
    maps.push_back(std::make_unique<Map>(
        cluster[rank], MapOptions{.name = "map", .slots = 4'000, .style = Style::one_sided}));
    queues.push_back(std::make_unique<Fifo>(
        cluster[rank],
        QueueOptions{.name = "queue", .capacity = 64, .host = kHolder, .style = Style::one_sided}));
  }
  Map& map = *maps[kHolder];
  Fifo& queue = *queues[kHolder];
  std::uint64_t one = 1;
  const auto expect_none = [&](const char* call, auto begin) {
    const std::uint64_t before = cluster.world.operations();
    EXPECT_EQ(remote::describe(cluster.end_of(begin())), "done") << call;
    EXPECT_EQ(cluster.world.operations(), before) << call;
  };
  cluster.world.run_for(1'000'000);  // all announcements are made
  for (const Promise promise : kPromises) {
    do ++one;
    while (map.home_of(one) != kHolder);
    expect_none("insert", [&] { return map.insert(one, 1, promise); });
    expect_none("find", [&] { return map.find(one, promise); });
    expect_none("assign", [&] { return map.assign(one, 2, promise); });
    expect_none("erase", [&] { return map.erase(one, promise); });
    expect_none("push", [&] { return queue.push(7, promise); });
    expect_none("pop", [&] { return queue.pop(promise); });
  }
}

}  // namespace
}  // namespace dunlin
