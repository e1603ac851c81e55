#include <array>
#include <vector>

#include "fabric/conformance/expect_error.hpp"
#include "fabric/conformance/harness.hpp"

/// expel(): a peer that has failed as seen from here, whatever it does.
namespace dunlin::conformance {

namespace {

using Kind = Event::Kind;

constexpr const char* kWhy = "the others went on without it";

}  // namespace

/// FAB-X3 promises one `peer_failed` for an expelled peer.
TEST_P(Expulsion, CountsAtOnceAndIsToldOnceInTheNextPoll) {
  start(3);
  node(0).expel(2, kWhy);
  EXPECT_TRUE(node(0).failed(2));
  EXPECT_EQ(node(0).failure_text(2), kWhy);
  EXPECT_EQ(seen(0, Kind::peer_failed, 2), 0U) << "handlers run in poll() only";
  node(0).poll();
  EXPECT_EQ(seen(0, Kind::peer_failed, 2), 1U);
  EXPECT_EQ(text_of(0, Kind::peer_failed, 2), kWhy);
  node(0).expel(2, "again");
  let_time_pass();
  EXPECT_EQ(seen(0, Kind::peer_failed, 2), 1U);
  EXPECT_EQ(node(0).failure_text(2), kWhy);
  EXPECT_FALSE(node(0).failed(1));
  EXPECT_FALSE(node(1).failed(2)) << "it is one member's view of another";
}

TEST_P(Expulsion, IsNoticedByThePeer) {
  start(3);
  node(0).expel(2, kWhy);
  until("the peer is told", [&] { return seen(2, Kind::peer_failed, 0) > 0; });
  let_time_pass();
  EXPECT_EQ(seen(2, Kind::peer_failed, 0), 1U);
  EXPECT_FALSE(node(2).failed(1));
  EXPECT_FALSE(node(1).failed(0));
}

/// FAB-X2 promises what this test checks.
TEST_P(Expulsion, FailsWhatIsUnderWayAndWhatIsPostedLater) {
  start(3);
  const Shared box = share("box", 1 << 16);
  std::vector<std::byte> bytes(1 << 15);
  Completion before;
  const std::array<Operation, 2> batch{
      put(2, box.id(0), 64, bytes.data(), bytes.size()).notify(before, Notify::remotely),
      read(2, box.id(0), 64, bytes.data(), bytes.size()).notify(before)};
  EXPECT_TRUE(node(0).post(batch).all());
  node(0).expel(2, kWhy);
  EXPECT_FALSE(node(0).connected(2, box.id(0)));
  until_finished(before, "what was under way is finished");
  const std::uint64_t one = 1;
  Completion after;
  ASSERT_TRUE(node(0).post(write(2, box.id(0), 0, &one, 8).notify(after)).all());
  EXPECT_EQ(node(0).send(2, 0, {}), Refusal::none);
  until_finished(after);
  EXPECT_TRUE(after.failed());
  EXPECT_EQ(after.failed_peer(), 2U);
  post_and_finish(0, write(1, box.id(0), 0, &one, 8));
  let_time_pass();
  EXPECT_EQ(box.load(1, 0), 1U);
  EXPECT_EQ(box.load(2, 0), 0U);
}

TEST_P(Expulsion, KeepsLaterRegionsFromThePeerAndThePeersFromUs) {
  start(3);
  node(0).expel(2, kWhy);
  std::vector<RegionId> late;
  for (Rank r = 0; r < 3; ++r) {
    late.push_back(group().allocate(r, {.name = "late", .bytes = 64}).id());
    node(r).announce(group().allocate(r, {.name = "other", .bytes = 64}));
  }
  for (Rank r = 0; r < 3; ++r) {
    const Region& region = group().allocate(r, {.name = "latest", .bytes = 64});
    late[r] = region.id();
    node(r).announce(region);
  }
  until("the others are connected", [&] {
    return node(0).connected(1, late[0]) && node(1).connected(0, late[1]) &&
           node(1).connected(2, late[1]) && node(2).connected(1, late[2]);
  });
  let_time_pass();
  EXPECT_FALSE(node(0).connected(2, late[0]));
  EXPECT_FALSE(node(2).connected(0, late[2]));
  EXPECT_EQ(seen(0, Kind::region_connected, 2), 0U);
  EXPECT_EQ(seen(2, Kind::region_connected, 0), 0U);
}

TEST_P(Expulsion, IgnoresWhatThePeerHasSaidAndSays) {
  start(3);
  std::vector<Rank> heard;
  const Shared box = share("box", 64);
  const std::uint64_t one = 1;
  for (const Rank from : {1U, 2U}) {
    send(from, 0, 0, {});
    post(from, write(0, box.id(from), 8 * from, &one, 8));
  }
  until("they have spoken", [&] { return box.load(0, 8) == 1 && box.load(0, 16) == 1; });
  node(0).expel(2, kWhy);
  node(0).receive(0, [&](Rank from, std::span<const std::byte>) { heard.push_back(from); });
  EXPECT_NE(node(2).send(0, 0, {}), Refusal::unknown_peer);
  until("the other one is heard", [&] { return !heard.empty(); });
  until("the peer is told", [&] { return node(2).failed(0); });
  let_time_pass();
  EXPECT_EQ(heard, std::vector<Rank>{1});
}

TEST_P(Expulsion, MayBeDoneByAHandlerOfThePeersOwnMessage) {
  start(3);
  std::vector<Rank> heard;
  node(0).receive(0, [&](Rank from, std::span<const std::byte> message) {
    heard.push_back(from);
    if (from == 2) node(0).expel(2, kWhy);
    EXPECT_EQ(message.size(), 8U);
    EXPECT_EQ(message[0], std::byte{7}) << "it can still be read";
  });
  const std::array<std::byte, 8> word{std::byte{7}};
  for (int i = 0; i < 3; ++i) send(2, 0, 0, word);
  until("it is told", [&] { return seen(0, Kind::peer_failed, 2) > 0; });
  send(1, 0, 0, word);
  until("the other one is heard", [&] { return heard.size() > 1; });
  let_time_pass();
  EXPECT_EQ(heard, (std::vector<Rank>{2, 1}));
  EXPECT_EQ(seen(0, Kind::peer_failed, 2), 1U);
}

TEST_P(Expulsion, MayBeDoneByAHandlerOfAnyEvent) {
  start(4);
  std::vector<Rank> failed;
  const Subscription watcher = node(0).subscribe([&](const Event& e) {
    if (e.kind == Kind::region_connected && e.peer == 2) node(0).expel(2, kWhy);
    if (e.kind == Kind::peer_failed) failed.push_back(e.peer);
    if (e.kind == Kind::peer_failed && e.peer == 2) node(0).expel(3, kWhy);
  });
  for (const char* const name : {"one", "two", "three"})
    for (Rank r = 0; r < 4; ++r) node(r).announce(group().allocate(r, {.name = name, .bytes = 64}));
  until("both are told", [&] { return failed.size() == 2; });
  let_time_pass();
  EXPECT_EQ(failed, (std::vector<Rank>{2, 3}));
  EXPECT_EQ(seen(0, Kind::region_connected, 2), 1U);
  EXPECT_FALSE(node(0).failed(1));
}

TEST_P(Expulsion, OfAPeerThatHasJustDiedIsToldOnce) {
  start(3);
  group().kill(2);
  node(0).expel(2, kWhy);
  until("the other one notices", [&] { return node(1).failed(2); });
  until("it is told", [&] { return seen(0, Kind::peer_failed, 2) > 0; });
  let_time_pass();
  EXPECT_EQ(seen(0, Kind::peer_failed, 2), 1U);
  EXPECT_EQ(node(0).failure_text(2), kWhy);
}

TEST_P(Expulsion, ChangesNothingForThoseWhoFailedBeforeNorForOneself) {
  start(3);
  group().kill(2);
  until("the death is noticed", [&] { return node(0).failed(2); });
  const std::string text = node(0).failure_text(2);
  node(0).expel(2, kWhy);
  node(0).expel(0, kWhy);
  let_time_pass();
  EXPECT_EQ(node(0).failure_text(2), text);
  EXPECT_EQ(seen(0, Kind::peer_failed, 2), 1U);
  EXPECT_FALSE(node(0).failed(0));
  expect_error([&] { node(0).expel(3, kWhy); }, "no member of rank 3");
}

}  // namespace dunlin::conformance
