#include <array>
#include <memory>
#include <span>
#include <vector>

#include "segment/space.hpp"
#include "segment/spaces.hpp"
#include "support/errors.hpp"

/// Segments with two copies, whose members crash in the simulator.
namespace dunlin {
namespace {

using remote::Status;

class Replicated final : public test::Spaces {
 public:
  explicit Replicated(std::uint32_t members, std::size_t pool_bytes = 1 << 14)
      : world(sim::profile("ib100"), members, 1) {
    for (Rank rank = 0; rank < members; ++rank) {
      nodes_.push_back(std::make_unique<test::GroupMember>(world.fabric(rank)));
      members_.push_back(std::make_unique<SegmentSpace>(nodes_[rank]->progress,
                                                        SpaceOptions{.pool_bytes = pool_bytes}));
      world.attach(rank, [this, rank] { return nodes_[rank]->progress.poll(); });
    }
  }
  ~Replicated() override { members_.clear(); }
  bool until(const std::function<bool()>& condition) override {
    return world.run_until(condition, 1'000'000'000);
  }
  void destroy(Rank rank) { members_[rank].reset(); }
  std::size_t used(Rank rank) { return members_[rank]->use().used; }
  sim::World world;

 private:
  std::vector<std::unique_ptr<test::GroupMember>> nodes_;
};

constexpr std::array kWithCopies{Coherence::write, Coherence::strict, Coherence::version,
                                 Coherence::temporal, Coherence::delta};

SegmentSpec spec_of(Coherence coherence) {
  return {.bytes = 8,
          .coherence = coherence,
          .placement = {0},
          .versions = coherence == Coherence::delta ? 2U : 0U,
          .copies = 2};
}

TEST(SegmentCopies, WhatWasPutOutlivesItsHomeAndThenItsSecondHome) {
  for (const Coherence coherence : kWithCopies) {
    Replicated spaces(5);
    const Key key = spaces.make(1, spec_of(coherence));
    EXPECT_EQ(spaces.put(3, key, 7), Status::ok) << name_of(coherence);
    EXPECT_EQ(spaces.get(4, key), 7U);
    spaces.world.crash(0);
    EXPECT_EQ(spaces.get(3, key), 7U) << name_of(coherence);  // it knew the segment
    EXPECT_EQ(spaces.get(2, key), 7U) << name_of(coherence);  // and it did not
    EXPECT_EQ(spaces.put(2, key, 8), Status::ok);
    EXPECT_EQ(spaces.get(3, key), 8U) << name_of(coherence);
    EXPECT_TRUE(spaces.until([&] { return spaces.used(1) > 0 && spaces.used(2) > 0; }));
    spaces.world.run_for(10'000'000);
    spaces.world.crash(1);
    EXPECT_EQ(spaces.get(4, key), 8U) << name_of(coherence);
    EXPECT_EQ(spaces.put(3, key, 9), Status::ok);
    EXPECT_EQ(spaces.get(2, key), 9U) << name_of(coherence);
    EXPECT_TRUE(spaces[4].lost().empty());
  }
}

/// The search for a segment whose home is gone begins at the member behind that.
TEST(SegmentCopies, AMemberThatFindsTheSecondCopyIsToldOfTheFirst) {
  Replicated spaces(4, 1024);
  std::vector<Key> fillers;
  for (const Rank rank : {2U, 3U})
    fillers.push_back(spaces.make(0, {.bytes = 900, .placement = {rank}}));
  SegmentSpec spec = spec_of(Coherence::write);
  spec.placement = {1};
  const Key key = spaces.make(0, spec);
  EXPECT_EQ(spaces.put(0, key, 7), Status::ok);
  EXPECT_GT(spaces.used(0), 0U) << "the second copy, as no other member has room";
  EXPECT_TRUE(spaces.end_of(spaces[0].release(fillers[0])).ok());
  spaces.world.crash(1);
  EXPECT_TRUE(spaces.until([&] { return spaces.used(2) > 0; }));
  EXPECT_EQ(spaces.get(3, key), 7U);
}

TEST(SegmentCopies, ASecondCopyThatDiesIsMadeAnew) {
  Replicated spaces(4);
  const Key key = spaces.make(2, spec_of(Coherence::strict));
  EXPECT_EQ(spaces.put(3, key, 7), Status::ok);
  spaces.world.crash(1);
  EXPECT_EQ(spaces.put(3, key, 8), Status::ok);
  EXPECT_TRUE(spaces.until([&] { return spaces.used(2) > 0; }));
  spaces.world.run_for(10'000'000);
  spaces.world.crash(0);
  EXPECT_EQ(spaces.get(3, key), 8U);
}

TEST(SegmentCopies, ALockIsHeldOnAcrossTheDeathOfItsHome) {
  Replicated spaces(5);
  const Key key = spaces.make(2, spec_of(Coherence::write));
  EXPECT_EQ(spaces.put(3, key, 1), Status::ok);
  ASSERT_TRUE(spaces.end_of(spaces[3].lock(key)).ok());
  auto waiter = spaces[4].lock(key);
  std::uint64_t unwanted = 0;
  auto put = spaces[2].put(key, bytes_of(unwanted));
  put.abandon();
  spaces.world.run_for(100'000);
  spaces.world.crash(0);
  EXPECT_EQ(spaces.put(3, key, 2), Status::ok);
  EXPECT_FALSE(waiter.finished());
  EXPECT_EQ(spaces[3].unlock(key).status(), Status::ok);
  EXPECT_TRUE(spaces.end_of(waiter).ok());
  EXPECT_EQ(spaces.get(4, key), 2U);
  EXPECT_EQ(spaces[4].unlock(key).status(), Status::ok);
}

TEST(SegmentCopies, AReleaseFreesBothBlocksWhoeverHoldsThem) {
  Replicated spaces(4);
  const Key first = spaces.make(2, spec_of(Coherence::write));
  EXPECT_EQ(spaces.put(3, first, 1), Status::ok);
  EXPECT_TRUE(spaces.end_of(spaces[3].release(first)).ok());
  EXPECT_TRUE(spaces.until([&] { return spaces.used(0) == 0 && spaces.used(1) == 0; }));
  const Key key = spaces.make(2, spec_of(Coherence::write));
  EXPECT_EQ(spaces.put(3, key, 1), Status::ok);
  spaces.world.crash(0);
  EXPECT_EQ(spaces.get(3, key), 1U);
  EXPECT_TRUE(spaces.end_of(spaces[3].release(key)).ok());
  EXPECT_TRUE(spaces.until([&] { return spaces.used(1) == 0 && spaces.used(2) == 0; }));
  std::uint64_t value = 0;
  for (const Rank rank : {1U, 2U, 3U})
    EXPECT_EQ(spaces.end_of(spaces[rank].get(key, bytes_of(value))).status, Status::released);
}

TEST(SegmentCopies, ANameOutlivesItsSegmentsHome) {
  Replicated spaces(6);
  SegmentSpec spec = spec_of(Coherence::strict);
  spec.name = "load";
  Key key = spaces.make(2, spec);
  Rank home = key.home();
  EXPECT_EQ(spaces.put(3, key, 5), Status::ok);
  spaces.world.crash(home);
  const Outcome found = spaces.end_of(spaces[4].find("load"));
  if (found.status == Status::lost) return;  // the name's own member was the one that died
  EXPECT_EQ(found.key, key);
  EXPECT_EQ(spaces.get(5, found.key), 5U);
}

TEST(SegmentCopies, NeedAnotherMemberAndPutsThatExcludeEachOther) {
  Replicated spaces(2, 1024);
  EXPECT_EQ(spaces.end_of(spaces[0].allocate({.bytes = 800, .placement = {0}, .copies = 1})).status,
            Status::ok);
  EXPECT_EQ(spaces.end_of(spaces[0].allocate({.bytes = 800, .placement = {1}, .copies = 2})).status,
            Status::no_room);
  EXPECT_EQ(spaces.used(1), 0U);
  for (const Coherence coherence : {Coherence::null, Coherence::read})
    EXPECT_TRUE(test::contains(
        test::what_is_thrown_by([&] {
          static_cast<void>(spaces[0].allocate({.bytes = 8, .coherence = coherence, .copies = 2}));
        }),
        "exclude each other"));
  EXPECT_TRUE(test::contains(test::what_is_thrown_by([&] {
                               static_cast<void>(spaces[0].allocate({.bytes = 8, .copies = 3}));
                             }),
                             "1 copy"));
}

/// It stays in the group, and answers nothing about segments and locks any more.
TEST(SegmentCopies, AreMadeAnewBesideAMemberThatHasDestroyedItsSpace) {
  Replicated spaces(5);
  const Key key = spaces.make(2, spec_of(Coherence::write));
  EXPECT_EQ(spaces.get(4, key), 0U);
  spaces.world.crash(1);  // which has the second copy
  spaces.destroy(4);
  EXPECT_EQ(spaces.put(3, key, 8), Status::ok);
  EXPECT_TRUE(spaces.until([&] { return spaces.used(2) > 0; }));
  EXPECT_EQ(spaces.put(3, key, 9), Status::ok);
  spaces.world.crash(0);
  EXPECT_EQ(spaces.get(3, key), 9U);
}

TEST(SegmentCopies, AreReleasedThoughAMemberThatKnewThemHasDestroyedItsSpace) {
  Replicated spaces(4);
  const Key key = spaces.make(2, spec_of(Coherence::write));
  EXPECT_EQ(spaces.get(3, key), 0U);
  spaces.destroy(3);
  EXPECT_TRUE(spaces.end_of(spaces[2].release(key)).ok());
  EXPECT_EQ(spaces.used(0), 0U);
}

/// The home has other places in its pool than it says.
TEST(SegmentCopies, AreWhereNoBlockCanBeInNoOpinion) {
  Replicated spaces(3);
  const Key key = spaces.make(2, spec_of(Coherence::write));
  EXPECT_EQ(spaces.put(2, key, 7), Status::ok);
  for (const std::uint64_t offset : {std::uint64_t{1}, ~std::uint64_t{63}}) {
    const SegmentMessage wrong{
        .type = SegmentMessage::Type::resume, .key = key.value, .offset = offset, .copies = 2};
    spaces.world.on(0, [&] {
      EXPECT_EQ(spaces.world.fabric(0).send(2, SpaceOptions().channel,
                                            std::as_bytes(std::span(&wrong, 1))),
                Refusal::none);
    });
    spaces.world.run_for(1'000'000);
    EXPECT_EQ(spaces.get(2, key), 7U);
  }
}

}  // namespace
}  // namespace dunlin
