#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/segment.hpp>

#include "segment/space.hpp"
#include "segment/spaces.hpp"

/// What random histories meet too seldom, step by step in the simulator: slow links, and members
/// that learn of a death at different times.
namespace dunlin {
namespace {

using remote::Status;

constexpr std::uint64_t kLongNs = 1'000'000'000;

/// What is agreed, as far as the test has let this member know.
class ToldMembers final : public remote::Membership {
 public:
  explicit ToldMembers(std::uint32_t members) : present_(members, true) {}
  void tell_death_of(Rank rank) {
    present_.at(rank) = false;
    ++generation_;
  }
  [[nodiscard]] std::uint64_t generation() const noexcept override { return generation_; }
  [[nodiscard]] bool contains(Rank rank) const noexcept override {
    return rank < present_.size() && present_[rank];
  }
  [[nodiscard]] std::uint32_t founders() const noexcept override {
    return static_cast<std::uint32_t>(present_.size());
  }
  [[nodiscard]] const std::string& why_stopped() const noexcept override { return why_stopped_; }

 private:
  std::vector<bool> present_;
  std::uint64_t generation_ = 1;
  std::string why_stopped_;
};

struct Node {
  std::unique_ptr<ToldMembers> members;
  std::unique_ptr<remote::Progress> progress;
  std::unique_ptr<SegmentSpace> space;
};

class SegmentScript : public testing::Test {
 protected:
  void start(std::uint32_t members, const sim::Profile& profile = sim::profile("ib100")) {
    world = std::make_unique<sim::World>(profile, members, 1);
    for (Rank rank = 0; rank < members; ++rank) {
      Node& node = nodes.emplace_back();
      node.members = std::make_unique<ToldMembers>(members);
      node.progress = std::make_unique<remote::Progress>(world->fabric(rank), *node.members);
      node.space =
          std::make_unique<SegmentSpace>(*node.progress, SpaceOptions{.pool_bytes = 1 << 16});
      world->attach(rank, [progress = node.progress.get()] { return progress->poll(); });
    }
  }
  void end() {
    for (Rank rank = 0; rank < nodes.size(); ++rank) world->detach_all(rank);
    for (Node& node : nodes) node.space.reset();
    nodes.clear();
  }
  void TearDown() override { end(); }
  SegmentSpace& at(Rank rank) { return *nodes.at(rank).space; }
  SegmentState& state(Rank rank) { return static_cast<SegmentState&>(SegmentPort::of(at(rank))); }
  static SegmentSpec two_copies() {
    return {.bytes = sizeof words, .coherence = Coherence::write, .placement = {0}, .copies = 2};
  }
  Outcome end_of(SegmentOperation&& operation) {
    EXPECT_TRUE(world->run_until([&] { return operation.finished(); }, kLongNs))
        << operation.describe();
    return operation.result();
  }
  /// A segment at member 0, whose words have this value.
  Key make(const SegmentSpec& spec, Rank by) {
    const Outcome made = end_of(at(0).allocate(spec));
    EXPECT_EQ(remote::describe(made.status), "done");
    words.fill(1);
    EXPECT_EQ(remote::describe(end_of(at(by).put(made.key, bytes_of(words))).status), "done");
    return made.key;
  }
  /// One value, which all words have.
  std::uint64_t get(Rank by, Key key) {
    std::array<std::uint64_t, kWords> got{};
    EXPECT_EQ(remote::describe(end_of(at(by).get(key, bytes_of(got))).status), "done");
    for (const std::uint64_t word : got) EXPECT_EQ(word, got.front()) << "SEG-3: torn";
    return got.front();
  }
  void tell_death_of(Rank dead, Rank rank) {
    nodes.at(rank).members->tell_death_of(dead);
    world->on(rank, [] {});  // it polls
  }

  static constexpr std::size_t kWords = 64;
  std::unique_ptr<sim::World> world;
  std::vector<Node> nodes;
  std::array<std::uint64_t, kWords> words{};
};

/// The lock passes from member to member, the data to a third one over another link.
TEST_F(SegmentScript, AGivenUpPutIsOverBeforeTheLockPasses) {
  start(3);
  const Key key = make({.bytes = sizeof words, .coherence = Coherence::write, .placement = {0}}, 1);
  EXPECT_EQ(get(2, key), 1U);
  ASSERT_TRUE(end_of(at(1).lock(key)).ok());
  std::array<std::uint64_t, kWords> next{};
  next.fill(3);
  auto second = test::begin([&] { return at(2).put(key, bytes_of(next)); });
  world->run_for(100'000);
  ASSERT_FALSE(second->finished());
  world->slow_link(1, 0, 100);
  words.fill(2);
  auto first = test::begin([&] { return at(1).put(key, bytes_of(words)); });
  world->run_for(2'000);
  ASSERT_FALSE(first->finished());
  first.reset();
  ASSERT_EQ(at(1).unlock(key).status(), Status::ok);
  ASSERT_TRUE(world->run_until([&] { return second->finished(); }, kLongNs));
  EXPECT_EQ(remote::describe(second->result().status), "done");
  EXPECT_EQ(get(0, key), 3U) << "SEG-7: not what was put last";
  world->run_for(10'000'000);  // all that is under way has landed
  EXPECT_EQ(get(0, key), 3U) << "SEG-7: the put that was given up came later";
}

/// A put that perhaps is at the second copy, and not yet at the first one, whose member is taken
/// for dead: the link there becomes slow at each moment of the put.
TEST_F(SegmentScript, ASecondCopyIsReadOnceNobodyReadsTheFirst) {
  constexpr std::uint64_t kStepNs = 250;
  bool ends_before = false;
  for (std::uint64_t after_ns = 0; !ends_before; after_ns += kStepNs) {
    SCOPED_TRACE("slow after " + std::to_string(after_ns) + " ns");
    start(5);
    const Key key = make({.bytes = sizeof words,
                          .coherence = Coherence::delta,
                          .placement = {0},
                          .versions = 4,
                          .copies = 2},
                         2);
    for (const Rank reader : {3U, 4U}) EXPECT_EQ(get(reader, key), 1U);
    words.fill(2);
    auto put = test::begin([&] { return at(2).put(key, bytes_of(words)); });
    world->run_for(after_ns);
    ends_before = put->finished();
    world->slow_link(2, 0, 1'000);
    world->run_for(50'000);
    for (const Rank rank : {1U, 3U}) tell_death_of(0, rank);
    std::array<std::uint64_t, kWords> got{};
    auto early = test::begin([&] { return at(3).get(key, bytes_of(got)); });
    world->run_for(50'000);
    const bool was_early = early->finished();
    const std::uint64_t later = get(4, key);
    EXPECT_FALSE(was_early && got.front() > later)
        << "SEG-11: " << got.front() << " was got, and then " << later;
    for (const Rank rank : {2U, 4U}) tell_death_of(0, rank);
    ASSERT_TRUE(world->run_until([&] { return early->finished() && put->finished(); }, kLongNs))
        << early->describe() << put->describe();
    EXPECT_EQ(remote::describe(early->result().status), "done");
    EXPECT_EQ(remote::describe(put->result().status), "done");
    EXPECT_EQ(get(4, key), 2U) << "SEG-13: a put that has ended is lost";
    early.reset();
    put.reset();
    end();
    if (HasFailure()) return;
  }
}

/// The second copy's member dies, and the first one has another copy made: it begins at each moment
/// of a put.
TEST_F(SegmentScript, APutIsInTheCopyThatIsMadeMeanwhile) {
  constexpr std::uint64_t kStepNs = 250;
  bool ends_before = false;
  for (std::uint64_t after_ns = 0; !ends_before; after_ns += kStepNs) {
    SCOPED_TRACE("the second copy dies " + std::to_string(after_ns) + " ns into the put");
    start(4);
    const Key key = make(
        {.bytes = sizeof words, .coherence = Coherence::write, .placement = {0}, .copies = 2}, 2);
    EXPECT_EQ(get(3, key), 1U);
    ASSERT_TRUE(end_of(at(2).lock(key)).ok());
    world->crash(1);
    tell_death_of(1, 2);  // so it puts to one member
    words.fill(2);
    auto put = test::begin([&] { return at(2).put(key, bytes_of(words)); });
    world->run_for(after_ns);
    ends_before = put->finished();
    for (const Rank rank : {0U, 3U}) tell_death_of(1, rank);
    ASSERT_TRUE(world->run_until([&] { return put->finished(); }, kLongNs)) << put->describe();
    EXPECT_EQ(remote::describe(put->result().status), "done");
    world->run_for(1'000'000);  // the copy is complete
    world->crash(0);
    for (const Rank rank : {2U, 3U}) tell_death_of(0, rank);
    EXPECT_EQ(get(3, key), 2U) << "SEG-13: a put that has ended is lost";
    put.reset();
    end();
    if (HasFailure()) return;
  }
}

/// The put finds no room at first, and is not under way when the others are asked.
TEST_F(SegmentScript, APutThatWaitsForRoomReachesTheSecondCopyThatIsMadeMeanwhile) {
  sim::Profile narrow = sim::profile("ib100");
  narrow.queue_slots = 4;
  start(4, narrow);
  const Key key = make(two_copies(), 2);
  const Outcome big =
      end_of(at(0).allocate({.bytes = 8192, .coherence = Coherence::null, .placement = {0}}));
  std::vector<std::uint64_t> junk(1024, 5);
  EXPECT_TRUE(end_of(at(2).put(big.key, std::as_bytes(std::span(junk)))).ok());
  ASSERT_TRUE(end_of(at(2).lock(key)).ok());
  world->crash(1);  // the second copy
  tell_death_of(1, 2);
  world->run_for(1'000);
  std::vector<SegmentOperation> many;
  for (int i = 0; i < 400; ++i) many.push_back(at(2).put(big.key, std::as_bytes(std::span(junk))));
  words.fill(2);
  const SegmentOperation put = at(2).put(key, bytes_of(words));
  for (const Rank rank : {0U, 3U}) tell_death_of(1, rank);
  EXPECT_TRUE(world->run_until([&] { return put.finished(); }, kLongNs));
  EXPECT_TRUE(put.ok()) << put.describe();
  world->run_for(5'000'000);  // another second copy is made
  world->crash(0);
  for (const Rank rank : {2U, 3U}) tell_death_of(0, rank);
  EXPECT_EQ(get(3, key), 2U) << "SEG-13: a put that has ended is lost";
}

/// The primary hears of both at once.
TEST_F(SegmentScript, ASecondCopyWhoseMemberHasGoneIsMadeAgain) {
  start(5);
  const Key key = make(two_copies(), 3);
  world->crash(1);
  for (const Rank rank : {0U, 2U, 3U, 4U}) tell_death_of(1, rank);
  const auto is_complete = [&] {
    const auto& backups = state(2).backups;
    const auto found = backups.find(key.value);
    return found != backups.end() && found->second.complete;
  };
  ASSERT_TRUE(world->run_until(is_complete, kLongNs));
  world->pause(0, 50'000);
  world->run_for(10'000);
  world->crash(2);
  nodes.at(0).members->tell_death_of(2);
  for (const Rank rank : {3U, 4U}) tell_death_of(2, rank);
  world->run_for(5'000'000);
  words.fill(2);
  EXPECT_TRUE(end_of(at(3).put(key, bytes_of(words))).ok());
  EXPECT_EQ(get(4, key), 2U);
}

TEST_F(SegmentScript, TheReleaseOfASegmentThatWasLostWhileItWasCopiedEnds) {
  start(5);
  const Key key = make(two_copies(), 3);
  world->crash(1);
  for (const Rank rank : {0U, 2U, 3U, 4U}) tell_death_of(1, rank);
  ASSERT_TRUE(world->run_until([&] { return state(3).known(key)->paused; }, kLongNs));
  world->crash(0);
  world->run_for(10'000);
  for (const Rank rank : {3U, 2U, 4U}) tell_death_of(0, rank);
  world->run_for(1'000'000);
  EXPECT_EQ(remote::describe(end_of(at(3).release(key)).status),
            remote::describe(remote::Status::lost));
}

/// SEG-4 comes before the age that the caller accepts.
TEST_F(SegmentScript, ACopyIsNotTakenAfterTheDeathOfTheOnlyHome) {
  start(3);
  const Key key =
      end_of(at(0).allocate({.bytes = 64, .coherence = Coherence::write, .placement = {1}})).key;
  std::array<std::uint64_t, 8> got{};
  const auto get_of_any_age = [&] {
    return end_of(at(0).get_no_older(key, bytes_of(got), UINT64_MAX - 1));
  };
  ASSERT_TRUE(get_of_any_age().ok());
  ASSERT_TRUE(get_of_any_age().ok()) << "from the copy";
  world->crash(1);
  for (const Rank rank : {0U, 2U}) tell_death_of(1, rank);
  world->run_for(100'000);
  EXPECT_EQ(remote::describe(get_of_any_age().status), remote::describe(remote::Status::lost));
}

/// The lock of the new home is not entered before the new home is known to have the segment.
TEST_F(SegmentScript, ALockIsNotEnteredWhereTheSegmentMayNotBe) {
  start(5);
  const Key before =
      end_of(at(2).allocate({.bytes = 64, .coherence = Coherence::null, .placement = {2}})).key;
  const Key key = make(two_copies(), 3);
  world->crash(1);
  for (const Rank rank : {0U, 2U, 3U, 4U}) tell_death_of(1, rank);
  ASSERT_TRUE(world->run_until([&] { return state(3).known(key)->paused; }, kLongNs));
  world->crash(0);
  world->run_for(10'000);
  tell_death_of(0, 3);
  world->run_for(10'000);
  const SegmentOperation put = at(3).put(key, bytes_of(words));
  world->run_for(5'000);
  tell_death_of(0, 2);
  world->run_for(20'000);
  EXPECT_TRUE(end_of(at(2).release(before)).ok());
  std::vector<std::uint64_t> others(256, 0x1122334455667788);
  const Key other =
      end_of(at(2).allocate({.bytes = 2048, .coherence = Coherence::null, .placement = {2}})).key;
  EXPECT_TRUE(end_of(at(2).put(other, std::as_bytes(std::span(others)))).ok());
  tell_death_of(0, 4);
  EXPECT_TRUE(world->run_until([&] { return put.finished(); }, kLongNs));
  EXPECT_EQ(put.status(), Status::lost);
  std::vector<std::uint64_t> got(others.size());
  EXPECT_TRUE(end_of(at(2).get(other, std::as_writable_bytes(std::span(got)))).ok());
  EXPECT_EQ(got, others) << "SEG-1: the bytes of another segment";
}

TEST_F(SegmentScript, APutBehindOneThatWasGivenUpLooksAtTheWord) {
  bool has_ended = false;
  for (std::uint64_t after_ns = 500; !has_ended && !HasFailure(); after_ns += 500) {
    SCOPED_TRACE("the first one is given up after " + std::to_string(after_ns) + " ns");
    start(3);
    const Key key =
        make({.bytes = sizeof words, .coherence = Coherence::write, .placement = {0}}, 1);
    EXPECT_TRUE(end_of(at(1).lock(key)).ok());
    SegmentOperation first = at(1).put(key, bytes_of(words));
    std::array<std::uint64_t, kWords> next{};
    next.fill(2);
    const SegmentOperation second = at(1).put(key, bytes_of(next));
    world->run_for(after_ns);
    has_ended = first.finished();
    world->on(1, [&] { first.abandon(); });
    EXPECT_TRUE(world->run_until([&] { return second.finished(); }, kLongNs));
    EXPECT_TRUE(end_of(at(1).unlock(key)).ok());
    EXPECT_EQ(get(2, key), 2U);
    end();
  }
}

/// The put has one copy, and goes on at the same primary.
TEST_F(SegmentScript, APutHappensOnceIfTheMemberOfACopyDiesMeanwhile) {
  for (const bool whole : {true, false})
    for (std::uint64_t after_ns = 0; after_ns < 60'000; after_ns += 2'000) {
      SCOPED_TRACE((whole ? "whole, " : "a range, ") + std::to_string(after_ns) + " ns");
      start(5);
      SegmentSpec spec = two_copies();
      spec.coherence = Coherence::version;
      const Key key = make(spec, 3);  // with version 1
      EXPECT_TRUE(end_of(at(3).lock(key)).ok());
      world->crash(1);
      tell_death_of(1, 3);
      world->run_for(1'000);
      world->slow_link(3, 0, 30);
      words.fill(2);
      auto put = std::make_unique<SegmentOperation>(
          at(3).put(key, bytes_of(words).first(whole ? sizeof words : sizeof words / 2)));
      for (const Rank rank : {0U, 2U, 4U}) tell_death_of(1, rank);
      world->run_until([&] { return state(3).known(key)->paused; }, 1'000'000);
      world->run_for(after_ns);
      world->crash(2);
      for (const Rank rank : {0U, 3U, 4U}) tell_death_of(2, rank);
      EXPECT_TRUE(world->run_until([&] { return put->finished(); }, kLongNs));
      EXPECT_TRUE(put->ok()) << put->describe();
      EXPECT_EQ(put->result().version, 2U) << "SEG-9: it has happened twice";
      put.reset();
      end();
      if (HasFailure()) return;
    }
}

/// The answers of several calls come in one poll; the callback of the first one gives up the rest.
TEST_F(SegmentScript, WhatWasAllocatedForACallThatWasGivenUpIsReleased) {
  start(2);
  std::vector<std::unique_ptr<SegmentOperation>> calls;
  for (int i = 0; i < 20; ++i)
    calls.push_back(test::begin([&] {
      return at(1).allocate({.bytes = 64, .coherence = Coherence::null, .placement = {0}});
    }));
  calls.front()->then([&] { calls.resize(1); });
  world->pause(1, 100'000);
  EXPECT_TRUE(world->run_until([&] { return calls.size() == 1; }, kLongNs));
  world->run_for(1'000'000);
  EXPECT_EQ(at(0).use().blocks, 1U) << "REM-3: a call has left something behind";
}

/// A peer that has failed may send anything.
TEST_F(SegmentScript, MessagesThatNoMemberSendsChangeNothing) {
  start(3);
  const auto send = [&](Rank from, const SegmentMessage& message) {
    world->on(from, [&] { state(from).channel.send(1, message); });
    world->run_for(1'000'000);
  };
  using Type = SegmentMessage::Type;
  const Key single =
      make({.bytes = sizeof words, .coherence = Coherence::write, .placement = {0}}, 1);
  send(0, {.type = Type::resume, .key = single.value, .offset = 1 << 15});
  EXPECT_EQ(get(1, single), 1U) << "what has one copy does not move";

  const Key copied = make(two_copies(), 1);
  send(0, {.type = Type::resume, .key = copied.value, .offset = 1 << 15, .backup = 4'000});
  EXPECT_EQ(get(1, copied), 1U) << "there is no member 4000";

  const std::size_t used = at(1).use().used;
  send(0, {.type = Type::make_backup, .key = Key::of(1, 0, 9).value, .bytes = 8, .copies = 2});
  EXPECT_EQ(at(1).use().used, used) << "a member has no second copy of its own segment";

  std::optional<SegmentOperation> search;
  const std::uint64_t id = state(1).next_id;
  world->on(1, [&] { search.emplace(at(1).find("none")); });
  send(state(1).directory_of("none"),
       {.type = Type::answer, .status = Status::under_way, .id = id});
  EXPECT_EQ(search->status(), Status::unknown) << "REM-1: a call ends with `ok` or a named error";
}

/// A peer that has failed says that a segment's slot has another one, before this process has
/// dropped the first.
TEST(SegmentOfAPeerThatFailed, IsNoneThatTakesTheSlotOfAKnownOne) {
  test::RealCluster<test::Spaces> spaces(test::backend_of("Shm"), 2, {.pool_bytes = 1 << 16});
  const Key key = spaces.make(0, {.bytes = 64, .placement = {0}});
  EXPECT_EQ(spaces.put(1, key, 7), Status::ok);
  EXPECT_EQ(spaces.get(1, key), 7U);  // its memory is known from now on
  const Key other = Key::of(0, key.slot(), key.generation() + 1);
  static_cast<SegmentState&>(SegmentPort::of(spaces[0]))
      .channel.send(1, SegmentMessage{.type = SegmentMessage::Type::answer,
                                      .status = Status::ok,
                                      .key = other.value,
                                      .bytes = 1 << 20});
  spaces.pass(500);
  std::vector<std::uint64_t> words(1 << 17);
  EXPECT_EQ(spaces.end_of(spaces[1].get(other, std::as_writable_bytes(std::span(words)))).status,
            Status::unknown);
  EXPECT_EQ(spaces.get(1, key), 7U);
}

}  // namespace
}  // namespace dunlin
