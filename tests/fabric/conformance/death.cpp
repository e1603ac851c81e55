#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"

/// FAB-F3: a failed peer is announced once; nothing to it hangs; everything else goes on.
namespace dunlin::conformance {

namespace {

using Kind = Event::Kind;

/// One of each kind of operation to a peer, on one Completion; the memory they need.
struct Volley {
  alignas(64) std::array<std::byte, 512> source{};
  alignas(64) std::array<std::byte, 512> target{};
  std::uint64_t before = 0;
  Completion done{};

  [[nodiscard]] std::array<Operation, 5> to(Rank peer, RegionId id) {
    return {put(peer, id, 64, source.data(), source.size()).notify(done, Notify::remotely),
            write(peer, id, 64, source.data(), 64).notify(done),
            read(peer, id, 64, target.data(), target.size()).notify(done),
            fetch_add(peer, id, 0, 1, &before).notify(done),
            compare_swap(peer, id, 8, 0, 1, nullptr).notify(done)};
  }
};

}  // namespace

TEST_P(Death, IsAnnouncedOnceToEverySurvivor) {
  start(4);
  group().kill(2);
  for (const Rank r : {0U, 1U, 3U}) {
    until("a survivor is told", [&] { return seen(r, Kind::peer_failed, 2) > 0; });
  }
  let_time_pass();
  for (const Rank r : {0U, 1U, 3U}) {
    EXPECT_EQ(seen(r, Kind::peer_failed, 2), 1U);
    EXPECT_FALSE(text_of(r, Kind::peer_failed, 2).empty());
    EXPECT_EQ(node(r).failure_text(2), text_of(r, Kind::peer_failed, 2));
    for (Rank other = 0; other < 4; ++other) EXPECT_EQ(node(r).failed(other), other == 2);
  }
}

TEST_P(Death, OfSeveralAtOnceIsAnnouncedForEach) {
  start(4);
  group().kill(1);
  group().kill(3);
  for (const Rank dead : {1U, 3U}) {
    for (const Rank r : {0U, 2U}) {
      until("a survivor is told", [&] { return seen(r, Kind::peer_failed, dead) > 0; });
    }
  }
  let_time_pass();
  for (const Rank dead : {1U, 3U}) {
    for (const Rank r : {0U, 2U}) EXPECT_EQ(seen(r, Kind::peer_failed, dead), 1U);
  }
  EXPECT_FALSE(node(0).failed(2));
}

TEST_P(Death, FinishesWhatWasPostedBefore) {
  start(3);
  const Shared box = share("box", 1024);
  std::deque<Volley> volleys;
  bool full = false;
  while (!full && volleys.size() < 50) {
    Volley& volley = volleys.emplace_back();
    full = !node(0).post(volley.to(1, box.id(0))).all();
  }
  group().kill(1);
  for (const Volley& volley : volleys) {
    until_finished(volley.done, "what was posted before the death is finished");
    EXPECT_TRUE(!volley.done.failed() || volley.done.failed_peer() == 1);
  }
}

TEST_P(Death, FinishesWhatIsPostedBeforeItIsNoticed) {
  start(2);
  const Shared box = share("box", 1024);
  Volley volley;
  group().kill(1);
  const auto batch = volley.to(1, box.id(0));
  std::size_t taken = 0;
  until("the batch is taken", [&] {
    taken += node(0).post(std::span(batch).subspan(taken)).accepted;
    return taken == batch.size();
  });
  until_finished(volley.done);
  until("the death is noticed", [&] { return node(0).failed(1); });
}

TEST_P(Death, FailsWhatIsPostedAfter) {
  start(3);
  const Shared box = share("box", 1024);
  group().kill(1);
  until("the death is noticed", [&] { return node(0).failed(1); });
  for (int round = 0; round < 20; ++round) {
    Volley volley;
    const auto batch = volley.to(1, box.id(0));
    std::size_t taken = 0;
    Refusal refusal = Refusal::none;
    until("the batch is taken", [&] {
      const Posted posted = node(0).post(std::span(batch).subspan(taken));
      taken += posted.accepted;
      refusal = posted.refusal;
      return refusal != Refusal::queue_full;
    });
    ASSERT_EQ(refusal, Refusal::none) << describe(refusal);
    until_finished(volley.done);
    EXPECT_EQ(volley.done.failures(), batch.size());
    EXPECT_EQ(volley.done.failed_peer(), 1U);
    volley.done.reset();
    EXPECT_FALSE(volley.done.failed());
  }
}

TEST_P(Death, FailsOperationsToRegionsThatThePeerNeverHad) {
  start(2);
  group().kill(1);
  until("the death is noticed", [&] { return node(0).failed(1); });
  const Region& late = group().allocate(0, {.name = "late", .bytes = 64});
  node(0).announce(late);
  const std::uint64_t one = 1;
  Completion done;
  ASSERT_TRUE(node(0).post(write(1, late.id(), 0, &one, 8).notify(done)).all());
  until_finished(done);
  EXPECT_TRUE(done.failed());
  EXPECT_FALSE(node(0).connected(1, late.id()));
}

TEST_P(Death, DisconnectsThePeersRegions) {
  start(2);
  const Shared box = share("box", 64);
  group().kill(1);
  until("the death is noticed", [&] { return node(0).failed(1); });
  EXPECT_FALSE(node(0).connected(1, box.id(0)));
  EXPECT_TRUE(node(0).connected(0, box.id(0)));
}

TEST_P(Death, LeavesNoRegionOfThePeerToConnectLater) {
  start(3);
  for (const Rank r : {1U, 2U})
    node(r).announce(group().allocate(r, {.name = "late", .bytes = 64}));
  let_time_pass();
  group().kill(1);
  until("the death is noticed", [&] { return node(0).failed(1); });
  const Region& late = group().allocate(0, {.name = "late", .bytes = 64});
  until("the other one's is connected", [&] { return node(0).connected(2, late.id()); });
  let_time_pass();
  EXPECT_EQ(seen(0, Kind::region_connected, 1, late.id()), 0U);
}

TEST_P(Death, IsToldAfterWhatThePeerHasSaid) {
  start(2);
  const Shared box = share("box", 64);
  std::vector<std::uint64_t> order;
  node(0).receive(0, [&](Rank, std::span<const std::byte>) { order.push_back(1); });
  const Subscription end = node(0).subscribe([&](const Event& e) {
    if (e.kind == Kind::peer_failed) order.push_back(2);
  });
  for (int i = 0; i < 3; ++i) send(1, 0, 0, {});
  const std::uint64_t one = 1;
  post(1, write(0, box.id(1), 0, &one, 8));
  until("all has arrived", [&] { return box.load(0, 0) == 1; });
  group().kill(1);
  until("the death is noticed", [&] { return node(0).failed(1); });
  let_time_pass();
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 1, 1, 2}));
}

TEST_P(Death, FailsOnlyItsPartOfASharedCompletion) {
  start(3);
  const Shared box = share("box", 64);
  group().kill(2);
  until("the death is noticed", [&] { return node(0).failed(2); });
  const std::uint64_t one = 1;
  Completion done;
  for (std::uint64_t i = 0; i < 4; ++i) {
    for (const Rank to : {1U, 2U}) {
      post(0, write(to, box.id(0), 8 * i, &one, 8).notify(done, Notify::remotely));
    }
  }
  until_finished(done);
  EXPECT_EQ(done.failures(), 4U);
  EXPECT_EQ(done.failed_peer(), 2U);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(box.load(1, 8 * i), 1U);
}

TEST_P(Death, EndsBackPressure) {
  start(2);
  const std::array<std::byte, 100> message{};
  for (int i = 0; i < 100'000; ++i) {
    if (node(0).send(1, 0, message) != Refusal::none) break;
  }
  group().kill(1);
  until("the death is noticed", [&] { return node(0).failed(1); });
  // A sender that waits for room must not wait for ever.
  until("the way is not full", [&] { return node(0).send(1, 0, message) != Refusal::queue_full; });
  for (int i = 0; i < 1'000; ++i) ASSERT_NE(node(0).send(1, 0, message), Refusal::queue_full);
}

TEST_P(Death, LeavesWhatThePeerWroteReadable) {
  start(3);
  const Shared box = share("box", 4096);
  std::array<std::byte, 3000> source{};
  fill_pattern(source, 8);
  post_and_finish(1, put(0, box.id(1), 64, source.data(), source.size()));
  const std::uint64_t one = 1;
  post_and_finish(1, write(0, box.id(1), 0, &one, 8));
  group().kill(1);
  until("the death is noticed", [&] { return node(0).failed(1) && node(2).failed(1); });
  EXPECT_EQ(box.load(0, 0), 1U);
  EXPECT_TRUE(has_pattern({box.memory(0) + 64, source.size()}, 8));
  std::array<std::byte, 3000> fetched{};
  post_and_finish(2, read(0, box.id(2), 64, fetched.data() + 0, fetched.size()));
  EXPECT_TRUE(has_pattern(fetched, 8));
}

TEST_P(Death, DoesNotDisturbTheOthers) {
  start(4);
  const Shared box = share("box", 64);
  std::uint64_t heard = 0;
  node(3).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  group().kill(1);
  std::uint64_t before = 0;
  for (std::uint64_t round = 1; round <= 100; ++round) {
    post_and_finish(0, write(2, box.id(0), 0, &round, 8));
    post_and_finish(2, fetch_add(3, box.id(2), 8, 1, &before));
    send(0, 3, 0, std::as_bytes(std::span(&round, 1)));
  }
  until("all messages are heard", [&] { return heard == 100; });
  EXPECT_EQ(box.load(2, 0), 100U);
  EXPECT_EQ(before, 99U);
  until("all survivors know",
        [&] { return node(0).failed(1) && node(2).failed(1) && node(3).failed(1); });
  const Shared later = share("later", 64);
  post_and_finish(2, write(3, later.id(2), 0, &heard, 8));
  EXPECT_EQ(later.load(3, 0), 100U);
}

TEST_P(Death, OfAllOthersLeavesAFabricThatWorksAlone) {
  start(3);
  const Shared box = share("box", 64);
  group().kill(1);
  group().kill(2);
  until("all are noticed", [&] { return node(0).failed(1) && node(0).failed(2); });
  const std::uint64_t one = 1;
  post_and_finish(0, write(0, box.id(0), 0, &one, 8));
  EXPECT_EQ(box.load(0, 0), 1U);
}

TEST_P(Death, MayBeHandledByAnythingThatAHandlerMayDo) {
  start(3);
  const Shared box = share("box", 64);
  const Shared doomed = share("doomed", 64);
  std::uint64_t heard = 0;
  node(1).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  const std::uint64_t one = 1;
  Completion done;
  Completion lost;
  int calls = 0;
  int others = 0;
  Subscription other = node(0).subscribe([&](const Event&) { ++others; });
  std::vector<Subscription> more;
  Subscription self = node(0).subscribe([&](const Event& e) {
    if (e.kind != Kind::peer_failed) return;
    ++calls;
    EXPECT_TRUE(node(0).failed(2));
    EXPECT_TRUE(node(0).post(write(1, box.id(0), 0, &one, 8).notify(done)).all());
    EXPECT_TRUE(node(0).post(write(2, box.id(0), 0, &one, 8).notify(lost)).all());
    EXPECT_EQ(node(0).send(1, 0, {}), Refusal::none);
    group().release(0, doomed.id(0));
    for (int i = 0; i < 20; ++i) more.push_back(node(0).subscribe([&](const Event&) {}));
    other = Subscription();
    self = Subscription();
    ++calls;  // its own state is still there
  });
  group().kill(2);
  until("the handler has run", [&] { return calls > 0; });
  until_finished(done);
  until_finished(lost);
  until("the message is heard", [&] { return heard == 1; });
  until("the release is known", [&] { return !node(1).connected(0, doomed.id(1)); });
  let_time_pass();
  EXPECT_EQ(calls, 2);
  EXPECT_LE(others, 1);
  EXPECT_FALSE(done.failed());
  EXPECT_TRUE(lost.failed());
  EXPECT_EQ(box.load(1, 0), 1U);
}

TEST_P(Death, LetsAbandonedOperationsRest) {
  start(2);
  const Shared box = share("box", 1024);
  auto volley = std::make_unique<Volley>();
  const Posted posted = node(0).post(volley->to(1, box.id(0)));
  EXPECT_GT(posted.accepted, 0U);
  group().kill(1);
  node(0).abandon(volley->done);
  volley.reset();
  until("the death is noticed", [&] { return node(0).failed(1); });
  let_time_pass();
}

}  // namespace dunlin::conformance
