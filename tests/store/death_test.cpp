#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/store.hpp>

#include "store/sim_members.hpp"

/// Members that die in the middle of a change, at each moment of it.
namespace dunlin {
namespace {

using remote::Status;
using test::Mortals;

struct CutOff {
  std::string name;
  std::string before, after;  // the value; "-": the key is absent
};

/// What the home sees of "key" in its own part, without waiting for anybody.
std::string seen_at_home(Mortals& mortals) {
  std::string seen = "-";
  mortals.at(0).for_each_local([&](const StoreEntry& entry) {
    const std::string_view key(reinterpret_cast<const char*>(entry.key.data()), entry.key.size());
    if (key != "key") return;
    EXPECT_EQ(seen, "-") << "STO-2: twice";
    seen.assign(reinterpret_cast<const char*>(entry.value.data()), entry.value.size());
  });
  return seen;
}

/// A change of "key" by member 2, looked at from the moment on: whole, or not at all, and never
/// taken back.
void check_under_way(const CutOff& change, std::uint64_t moment, std::uint64_t& early) {
  Mortals mortals(3, 1, moment % 2'000 == 0 ? Mortals::network() : Mortals::shuffling());
  if (change.before != "-") mortals.put(1, "key", change.before);
  EXPECT_EQ(mortals.get(2, "key"), change.before);
  auto op =
      change.after == "-" ? mortals.at(2).erase("key") : mortals.at(2).put("key", change.after);
  mortals.world.run_for(moment);
  const std::string at_home = seen_at_home(mortals);
  EXPECT_TRUE(at_home == change.before || at_home == change.after)
      << "STO-3: " << change.name << " " << moment;
  if (at_home == change.after && !op.finished()) ++early;
  const std::string got = mortals.get(1, "key");
  EXPECT_TRUE(got == change.before || got == change.after)
      << "STO-3: " << change.name << " " << moment;
  EXPECT_TRUE(at_home == change.before || got == change.after)
      << "STO-1: " << change.name << " " << moment;
  mortals.end_of(op);
  EXPECT_EQ(seen_at_home(mortals), change.after);
  EXPECT_EQ(mortals.get(1, "key"), change.after);
}

/// A change of "key" by member 2, cut off at each moment: the others see it whole, or not at all.
void check_all_moments(const CutOff& change, std::uint64_t& completed, std::uint64_t& undone,
                       std::uint64_t& repaired) {
  for (std::uint64_t moment = 0; moment < 240'000; moment += 2'000) {
    Mortals mortals(3);
    if (change.before != "-") mortals.put(1, "key", change.before);
    EXPECT_EQ(mortals.get(2, "key"), change.before);  // member 2 knows the home
    {
      auto op =
          change.after == "-" ? mortals.at(2).erase("key") : mortals.at(2).put("key", change.after);
      mortals.world.run_for(moment);
      mortals.world.crash(2);
      const std::string at_home = seen_at_home(mortals);
      EXPECT_TRUE(at_home == change.before || at_home == change.after)
          << "STO-3: " << change.name << " " << moment;
      const std::string seen = mortals.get(1, "key");  // never waits for the dead member's lock
      EXPECT_TRUE(seen == change.before || seen == change.after)
          << "STO-4: " << change.name << " " << moment;
      EXPECT_TRUE(at_home == change.before || seen == change.after)
          << "STO-1: " << change.name << " " << moment;
      mortals.put(1, "other", "value");
      const std::string left = mortals.get(0, "key");
      EXPECT_TRUE(left == change.before || left == change.after)
          << "STO-4: " << change.name << " " << moment;
      EXPECT_TRUE(seen == change.before || left == change.after)
          << "STO-1: " << change.name << " " << moment;
      ++(left == change.after ? completed : undone);
      mortals.put(1, "key", "next");
      EXPECT_EQ(mortals.get(0, "key"), "next");
      repaired += mortals.at(0).counters().at("repaired_entries");
    }
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<CutOff> all_changes() {
  const std::string small(200, 's'), other(200, 'o'), large(3'000, 'l');
  return {CutOff{"put in place", small, other}, CutOff{"put beyond", small, large},
          CutOff{"insert", "-", small}, CutOff{"erase", small, "-"}};
}

TEST(StoreDeath, AChangeThatIsUnderWayIsSeenWholeOrNot) {
  for (const CutOff& change : all_changes()) {
    std::uint64_t early = 0;
    for (std::uint64_t moment = 0; moment < 120'000; moment += 1'000)
      if (!testing::Test::HasFailure()) check_under_way(change, moment, early);
    EXPECT_GT(early, 0U) << change.name << ": nobody looked at the right moment";
  }
}

TEST(StoreDeath, AChangeThatIsCutOffHasHappenedOrNot) {
  std::uint64_t repaired = 0;
  for (const CutOff& change : all_changes()) {
    std::uint64_t completed = 0, undone = 0;
    check_all_moments(change, completed, undone, repaired);
    EXPECT_GT(completed, 0U) << change.name;
    EXPECT_GT(undone, 0U) << change.name;
  }
  EXPECT_GT(repaired, 0U) << "no moment left anything to repair";
}

TEST(StoreDeath, KeysOfADeadMemberAreLostAtOnceAndTheOthersStay) {
  Mortals mortals(3, 3);
  std::uint64_t lost = 0, kept = 0;
  for (std::uint64_t key = 0; key < 30; ++key) mortals.put(0, std::to_string(key), "value");
  mortals.world.crash(2);
  for (std::uint64_t key = 0; key < 30; ++key) {
    const std::string name = std::to_string(key);
    auto get = mortals.at(0).get(name), erase = mortals.at(1).erase(name);
    mortals.end_of(get), mortals.end_of(erase);
    const bool at_dead = mortals.at(0).home_of(name) == kNoOwner;
    EXPECT_EQ(get.status(), at_dead ? Status::lost : Status::ok);
    EXPECT_EQ(erase.status(), at_dead ? Status::lost : Status::ok);
    ++(at_dead ? lost : kept);
  }
  EXPECT_GT(lost, 0U);
  EXPECT_GT(kept, 0U);
  auto count = mortals.at(0).count();
  EXPECT_EQ(mortals.end_of(count), Status::ok);
  EXPECT_EQ(count.keys(), 0U);
  StoreScan scan(mortals.at(0), {.buckets = 1000});
  StoreCursor cursor = 0;
  int lost_steps = 0, steps = 0;
  do {
    scan.step(cursor);
    mortals.world.run_until([&] { return scan.finished(); }, 1'000'000'000);
    if (scan.status() == Status::lost) ++lost_steps;
    cursor = scan.cursor();
  } while (cursor != 0 && ++steps < 100);
  EXPECT_EQ(lost_steps, 1);
}

}  // namespace
}  // namespace dunlin
