#include "store/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/slot_map.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// The slot map and its planner amid joins, drains, deaths and changes of weights.
namespace dunlin::store {
namespace {

using Kind = Decision::Kind;

Decision enter(Rank member, std::uint32_t weight, bool takes = true) {
  return {.kind = Kind::enter,
          .flag = static_cast<std::uint8_t>(takes ? 1 : 0),
          .member = static_cast<std::uint16_t>(member),
          .value = weight};
}
Decision create(std::uint32_t slots, std::uint32_t copies, bool renews = false) {
  return {.kind = Kind::create,
          .flag = static_cast<std::uint8_t>(renews ? 1 : 0),
          .other = static_cast<std::uint16_t>(copies),
          .value = slots};
}

/// Members of a map that do what it says, and what keys they would have: a copy that is made has
/// what its owner has; a new owner of a slot must have all of it.
struct Land {
  explicit Land(PlanLimits its_limits = {}) : limits(its_limits) {}

  void be(std::vector<Rank> ranks) {
    present = std::move(ranks);
    std::ranges::sort(present);
    map.members_are(present);
  }
  void decide(const Decision& decision) { map.decided(encode(std::span(&decision, 1))); }
  /// All of a member's own proposals.
  void act(Rank rank, std::vector<Decision>& proposals) const {
    for (std::uint32_t number = 0; number < map.slots(); ++number) {
      const PlacedSlot& slot = map.slot(number);
      if (const auto duty = duty_of(number, slot, rank)) proposals.push_back(*duty);
    }
  }
  /// Until nothing is left to do; returns how many copies were begun, or nothing if that takes too
  /// long (STO-P6).
  std::optional<std::uint32_t> settle() {
    std::uint32_t copies = 0;
    for (int round = 0; round < 4'000; ++round) {
      std::vector<Decision> proposals = plan(map, limits);
      copies +=
          static_cast<std::uint32_t>(std::ranges::count(proposals, Kind::add, &Decision::kind));
      for (const Rank rank : present) act(rank, proposals);
      if (proposals.empty()) return copies;
      for (const Decision& one : proposals) decide(one);
      check_limits();
    }
    return std::nullopt;
  }
  void check_limits() const {
    std::map<Rank, std::uint32_t> in, out;
    for (std::uint32_t number = 0; number < map.slots(); ++number) {
      const PlacedSlot& slot = map.slot(number);
      if (slot.incoming == kNobody) continue;
      EXPECT_LE(++in[slot.incoming], limits.most_incoming) << "STO-P7";
      EXPECT_LE(++out[slot.owner], limits.most_outgoing) << "STO-P7";
    }
  }
  [[nodiscard]] std::uint32_t held(Rank rank) const {
    std::uint32_t count = 0;
    for (std::uint32_t number = 0; number < map.slots(); ++number)
      count += map.slot(number).has_full_copy(rank) ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::uint32_t owned(Rank rank) const {
    std::uint32_t count = 0;
    for (std::uint32_t number = 0; number < map.slots(); ++number)
      count += map.slot(number).owner == rank ? 1 : 0;
    return count;
  }

  SlotMap map;
  PlanLimits limits;
  std::vector<Rank> present;
};

Land land_of(std::uint32_t members, std::uint32_t slots, std::uint32_t copies,
             PlanLimits limits = {}) {
  Land land(limits);
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < members; ++rank) ranks.push_back(rank);
  land.be(ranks);
  for (const Rank rank : ranks) land.decide(enter(rank, 100));
  land.decide(create(slots, copies));
  return land;
}

TEST(SlotMap, BeginsWithAFairShareForEach) {
  for (const std::uint32_t copies : {1U, 2U, 3U}) {
    Land land = land_of(5, 4096, copies);
    for (Rank rank = 0; rank < 5; ++rank) {
      EXPECT_NEAR(land.owned(rank), 4096 / 5.0, 1) << copies;
      EXPECT_NEAR(land.held(rank), copies * 4096 / 5.0, 1) << copies;
    }
    EXPECT_TRUE(plan(land.map, {}).empty()) << "STO-P6";
  }
}

TEST(SlotMap, SpreadsTheBackupsOfAMemberOverAllOthers) {
  const Land land = land_of(5, 4096, 2);
  std::map<Rank, int> backups;
  for (std::uint32_t number = 0; number < 4096; ++number)
    if (land.map.slot(number).owner == 2) ++backups[land.map.slot(number).backups[0]];
  for (const Rank rank : {0U, 1U, 3U, 4U}) EXPECT_NEAR(backups[rank], 4096 / 20.0, 80) << rank;
}

TEST(SlotMap, GivesSharesByWeight) {
  Land land;
  land.be({0, 1, 2});
  land.decide(enter(0, 100));
  land.decide(enter(1, 300));
  land.decide(create(1024, 1));
  EXPECT_NEAR(land.held(0), 256, 1);
  EXPECT_NEAR(land.held(1), 768, 1);
  EXPECT_EQ(land.held(2), 0U) << "a client holds none";
}

TEST(Plan, AJoinerTakesItsShareAndNothingElseMoves) {
  for (const std::uint32_t copies : {1U, 2U, 3U}) {
    Land land = land_of(4, 1024, copies);
    land.be({0, 1, 2, 3, 9});
    land.decide(enter(9, 100));
    const auto moved = land.settle();
    ASSERT_TRUE(moved) << "STO-P6";
    EXPECT_NEAR(land.held(9), copies * 1024 / 5.0, 1);
    EXPECT_NEAR(land.owned(9), 1024 / 5.0, 1);
    EXPECT_LE(*moved, copies * 1024 / 5 + 5) << "hardly any other slot moves";
  }
}

TEST(Plan, HealsAfterADeathWithOneCopyForEachThatIsGone) {
  for (const std::uint32_t copies : {2U, 3U}) {
    Land land = land_of(6, 1024, copies);
    const std::uint32_t gone = land.held(2);
    land.be({0, 1, 3, 4, 5});
    const auto moved = land.settle();
    ASSERT_TRUE(moved) << "STO-P6";
    EXPECT_GE(*moved, gone);
    EXPECT_LE(*moved, gone + gone / 8) << "hardly anything else moves";
    EXPECT_EQ(summarize(land.map).lost, 0U);
    EXPECT_EQ(summarize(land.map).lacking, 0U) << "STO-P6";
    for (const Rank rank : land.present) EXPECT_NEAR(land.owned(rank), 1024 / 5.0, 1);
  }
}

TEST(Plan, ADrainedMemberHoldsNothing) {
  for (const std::uint32_t copies : {1U, 2U, 3U}) {
    Land land = land_of(4, 512, copies);
    const std::uint32_t gone = land.held(1);
    land.decide(enter(1, 0));
    const auto moved = land.settle();
    ASSERT_TRUE(moved) << "STO-P6";
    EXPECT_EQ(land.held(1), 0U) << "STO-P6";
    EXPECT_LE(*moved, gone + gone / 8);
    EXPECT_EQ(summarize(land.map).lacking, 0U) << "STO-P4";
  }
}

TEST(Plan, ADrainIsRefusedWhereTooFewMembersAreLeft) {
  Land land = land_of(2, 64, 2);
  land.decide(enter(1, 0));
  ASSERT_TRUE(land.settle()) << "STO-P6";
  EXPECT_EQ(land.held(1), 64U) << "STO-P4: no copy goes without another one";
  EXPECT_EQ(land.owned(1), 32U);
  land.be({0, 1, 2});
  land.decide(enter(2, 100));
  land.decide(enter(1, 0));
  ASSERT_TRUE(land.settle()) << "STO-P6";
  EXPECT_EQ(land.held(1), 0U) << "STO-P6";
}

TEST(Plan, ADrainThatIsTakenBackStopsWhatMoves) {
  Land land = land_of(3, 64, 1);
  land.decide(enter(1, 0));
  for (const Decision& one : plan(land.map, land.limits)) land.decide(one);
  EXPECT_GT(summarize(land.map).moving, 0U);
  land.decide(enter(1, 100));
  for (Rank rank : {0U, 2U}) land.decide(enter(rank, 100, false));
  for (const Decision& one : plan(land.map, land.limits)) land.decide(one);
  EXPECT_EQ(summarize(land.map).moving, 0U) << "members without room stop to copy";
  EXPECT_TRUE(plan(land.map, land.limits).empty()) << "STO-P6";
}

TEST(Plan, LostSlotsAreRenewedOnlyIfTheStoreSaysSo) {
  for (const bool renews : {false, true}) {
    Land land;
    land.be({0, 1, 2});
    for (const Rank rank : land.present) land.decide(enter(rank, 7));
    land.decide(create(64, 1, renews));
    land.be({0, 2});
    ASSERT_TRUE(land.settle()) << "STO-P6";
    EXPECT_EQ(summarize(land.map).lost > 0, !renews);
  }
}

TEST(SlotMap, ADecisionForAnotherEpochChangesNothing) {
  Land land = land_of(3, 4, 1);
  const PlacedSlot& slot = land.map.slot(0);
  const auto other = static_cast<std::uint16_t>(slot.owner == 0 ? 1 : 0);
  const Decision add{.kind = Kind::add,
                     .member = other,
                     .slot = 0,
                     .other = static_cast<std::uint16_t>(slot.owner),
                     .epoch = slot.epoch};
  EXPECT_TRUE(land.map.apply(add)) << "STO-P3";
  EXPECT_EQ(slot.epoch, add.epoch + 1) << "STO-P3";
  EXPECT_FALSE(land.map.apply(add)) << "STO-P3: twice";
  Decision full = add;
  full.kind = Kind::full;
  EXPECT_FALSE(land.map.apply(full)) << "STO-P3: too early an epoch";
}

/// docs/formats/store-map.md.
TEST(SlotMap, HasTheBytesThatItsPageDescribes) {
  const Decision add{
      .kind = Kind::add, .member = 3, .slot = 258, .other = 1, .epoch = 7, .value = 0};
  if constexpr (std::endian::native == std::endian::little) {
    const std::array<std::uint8_t, 16> bytes = {3, 0, 3, 0, 2, 1, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0};
    EXPECT_TRUE(std::ranges::equal(encode(std::span(&add, 1)), std::as_bytes(std::span(bytes))));
  }
  Land land = land_of(2, 4, 2);
  land.decide({.kind = Kind::heard, .member = 1, .value = 5});
  const std::vector<std::byte> map = land.map.save();
  ASSERT_EQ(map.size(), 24U + 2 * 12 + 4 * 24);
  const auto at = [&](std::size_t offset) { return std::to_integer<int>(map[offset]); };
  EXPECT_EQ(at(0), 2);
  EXPECT_EQ(at(4), 2);
  EXPECT_EQ(at(8), 4);
  EXPECT_EQ(at(12), 2);
  EXPECT_EQ(at(14), 0);
  EXPECT_EQ(at(16), 5) << "the members, two weights, create, heard";
  EXPECT_EQ(at(36), 1) << "rank of the second member";
  EXPECT_EQ(at(38), 1) << "takes";
  EXPECT_EQ(at(40), 100) << "weight";
  EXPECT_EQ(at(44), 5) << "heard";
  EXPECT_EQ(at(48), 1) << "epoch of slot 0";
  EXPECT_EQ(at(48 + 4) + at(48 + 6), 1) << "owner and backup";
  EXPECT_EQ(at(48 + 8), 0xff) << "nobody";
  EXPECT_EQ(at(48 + 20), 1) << "settled";
}

TEST(SlotMap, RefusesAStateThatIsNone) {
  const Land land = land_of(3, 16, 2);
  const std::vector<std::byte> good = land.map.save();
  SlotMap map;
  EXPECT_TRUE(map.load(good)) << "STO-P1";
  EXPECT_EQ(map.save(), good) << "STO-P1";
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_FALSE(SlotMap().load(std::span(good).first(bytes))) << bytes;
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bad = good;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    SlotMap loaded;
    if (!loaded.load(bad)) continue;
    // What is taken must not make any later step fail.
    static_cast<void>(plan(loaded, {}));
    loaded.members_are(std::array<Rank, 1>{1});
    static_cast<void>(plan(loaded, {}));
  }
}

/// Draws joins, drains, deaths, changes of weights, lost and doubled proposals, from a seed.
class PlanSeed {
 public:
  explicit PlanSeed(std::uint64_t seed)
      : random_(seed),
        copies_(1 + below(kMaxCopies)),
        land_(PlanLimits{1 + below(6), 1 + below(6)}) {}

  void run() {
    std::vector<Rank> ranks;
    for (Rank count = 1 + below(8); count > 0; --count) ranks.push_back(next_rank_++);
    land_.be(ranks);
    for (const Rank rank : ranks)
      if (below(8) != 0 || rank == 0) land_.decide(enter(rank, weight()));
    land_.decide(create(std::uint32_t{1} << (1 + below(8)), copies_));
    known_ = land_.map.save();
    for (std::uint32_t steps = below(60); steps > 0 && !testing::Test::HasFailure(); --steps)
      step();
    ASSERT_TRUE(land_.settle()) << "STO-P6: " << describe();
    check_end();
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  std::uint32_t weight() { return 1 + below(below(2) == 0 ? 4 : 1'000); }
  Rank any() { return land_.present[below(static_cast<std::uint32_t>(land_.present.size()))]; }

  void step() {
    switch (below(10)) {
      case 0:
        come();
        break;
      case 1:
        if (land_.present.size() > 1) die();
        break;
      case 2:
        land_.decide(enter(any(), below(3) == 0 ? 0 : weight(), below(6) != 0));
        break;
      default:
        plan_and_act();
    }
    check_again();
  }
  void come() {
    std::vector<Rank> ranks = land_.present;
    const Rank rank = next_rank_++;
    ranks.push_back(rank);
    land_.be(ranks);
    if (below(6) != 0) land_.decide(enter(rank, weight()));
  }
  void die() {
    std::vector<Rank> ranks = land_.present;
    for (Rank count = 1 + below(2); count > 0 && ranks.size() > 1; --count)
      ranks.erase(ranks.begin() + below(static_cast<std::uint32_t>(ranks.size())));
    const std::vector<PlacedSlot> before = slots();
    land_.be(ranks);
    for (std::uint32_t number = 0; number < before.size(); ++number)
      check_death(before[number], land_.map.slot(number));
  }
  /// STO-P4: a full copy that is left takes over, such as that of a former owner.
  void check_death(const PlacedSlot& before, const PlacedSlot& after) const {
    const auto has_all = [&](Rank rank) {
      return before.has_full_copy(rank) || rank == before.former;
    };
    EXPECT_EQ(after.lost(), std::ranges::none_of(land_.present, has_all)) << "STO-P4";
    EXPECT_TRUE(after.lost() || has_all(after.owner)) << "STO-P4";
  }
  /// Two planners, of which one knows an older map; and members whose proposals come late, twice,
  /// or not at all.
  void plan_and_act() {
    std::vector<Decision> proposals = plan(land_.map, land_.limits);
    if (below(3) == 0) {
      SlotMap older;
      ASSERT_TRUE(older.load(known_)) << "STO-P1";
      for (const Decision& one : plan(older, land_.limits)) proposals.push_back(one);
    }
    if (below(2) == 0) known_ = land_.map.save();
    for (const Rank rank : land_.present)
      if (below(2) == 0) land_.act(rank, proposals);
    std::ranges::shuffle(proposals, random_);
    for (const Decision& one : proposals) {
      for (std::uint32_t times = below(8) == 0 ? below(3) : 1; times > 0; --times) decide(one);
      if (below(50) == 0) break;
    }
  }
  void decide(const Decision& one) {
    const bool concerns_slot = one.kind != Kind::create && one.kind != Kind::enter;
    const PlacedSlot before = concerns_slot ? land_.map.slot(one.slot) : PlacedSlot();
    land_.decide(one);
    if (!concerns_slot) return;
    const PlacedSlot& after = land_.map.slot(one.slot);
    if (after == before) return;
    EXPECT_EQ(before.epoch, one.epoch) << "STO-P3";
    EXPECT_EQ(after.epoch, before.epoch + 1) << "STO-P3";
    EXPECT_GE(after.full_copies(), std::min(before.full_copies(), copies_)) << "STO-P4";
    EXPECT_TRUE(after.owner == before.owner || before.lost() || before.has_full_copy(after.owner) ||
                one.kind == Kind::full)
        << "STO-P4";
    EXPECT_TRUE(before.settled || one.kind == Kind::opened || one.kind == Kind::emptied)
        << "STO-P5";
    EXPECT_FALSE(before.is_emptying(after.incoming) || before.is_emptying(after.owner))
        << "STO-P13";
  }
  [[nodiscard]] std::vector<PlacedSlot> slots() const {
    std::vector<PlacedSlot> all;
    for (std::uint32_t number = 0; number < land_.map.slots(); ++number)
      all.push_back(land_.map.slot(number));
    return all;
  }
  void check_again() {
    SlotMap again;
    ASSERT_TRUE(again.load(land_.map.save())) << "STO-P1";
    ASSERT_EQ(again.save(), land_.map.save()) << "STO-P1";
    ASSERT_EQ(plan(again, land_.limits), plan(land_.map, land_.limits)) << "STO-P1";
  }

  void check_end() {
    std::uint32_t takers = 0;
    std::uint64_t weights = 0;
    for (const Holder& one : land_.map.members()) {
      takers += one.weight > 0 && one.takes ? 1 : 0;
      weights += one.weight;
    }
    for (std::uint32_t number = 0; number < land_.map.slots(); ++number) {
      const PlacedSlot& slot = land_.map.slot(number);
      if (slot.lost()) continue;
      EXPECT_TRUE(slot.settled) << "STO-P6";
      EXPECT_EQ(slot.incoming, kNobody) << "STO-P6";
      EXPECT_TRUE(takers < copies_ || slot.full_copies() == copies_) << "STO-P6";
      for (const Holder& one : land_.map.members())
        EXPECT_FALSE(takers >= copies_ && one.weight == 0 && slot.has_full_copy(one.rank))
            << "STO-P6";
    }
    if (weights > 0) check_shares(weights);
  }
  /// STO-P6: no slot can go from a member to another one that is farther below its share by more
  /// than one slot.
  void check_shares(std::uint64_t weights) const {
    const auto beyond = [&](const Holder& one) {
      return static_cast<std::int64_t>(land_.held(one.rank) * weights) -
             static_cast<std::int64_t>(std::uint64_t{land_.map.slots()} * copies_ * one.weight);
    };
    for (const Holder& from : land_.map.members())
      for (const Holder& to : land_.map.members()) {
        if (!to.takes || to.weight == 0) continue;
        if (beyond(from) - beyond(to) <= static_cast<std::int64_t>(weights)) continue;
        for (std::uint32_t number = 0; number < land_.map.slots(); ++number) {
          const PlacedSlot& slot = land_.map.slot(number);
          EXPECT_FALSE(slot.has_full_copy(from.rank) && !slot.has_full_copy(to.rank))
              << "STO-P6: " << from.rank << " to " << to.rank << describe();
        }
      }
  }
  [[nodiscard]] std::string describe() const {
    std::string text = std::to_string(copies_) + " copies";
    for (const Holder& one : land_.map.members())
      text += "\n" + std::to_string(one.rank) + ": weight " + std::to_string(one.weight) +
              (one.takes ? "" : " (takes none)") + ", has " + std::to_string(land_.held(one.rank)) +
              ", owns " + std::to_string(land_.owned(one.rank));
    return text;
  }

  std::mt19937_64 random_;
  std::uint32_t copies_;
  Land land_;
  std::vector<std::byte> known_;
  Rank next_rank_ = 0;
};

TEST(PlanFromSeeds, EndsWithAllCopiesAndFairShares) {
  test::for_each_seed(test::Seeds(test::rounds(8'000)),
                      [](std::uint64_t seed) { PlanSeed(seed).run(); });
}

}  // namespace
}  // namespace dunlin::store
