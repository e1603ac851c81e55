#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/sim_members.hpp"
#include "support/rounds.hpp"

/// Transactions whose writer dies, at each moment of the commit.
namespace dunlin {
namespace {

using test::Mortals;

/// Between the moments; a sanitizer sees fewer of them.
constexpr std::uint64_t kStep = test::kSanitized ? 4'000 : 1'000;

struct CutOffCounts {
  std::uint64_t completed = 0, undone = 0, repaired = 0;
};

/// A key of each home, of the members 0 to homes - 1.
std::vector<std::string> keys_of_homes(Mortals& mortals, std::uint32_t homes) {
  std::vector<std::string> keys(homes);
  for (std::uint32_t found = 0, i = 0; found < homes; ++i) {
    const std::string key = "key" + std::to_string(i);
    std::string& place = keys.at(mortals.at(0).home_of(key));
    if (place.empty()) place = key, ++found;
  }
  return keys;
}

/// Puts, inserts, and erases one key of each home, by the member of the last rank.
void check_cut_off(const sim::Profile& profile, std::uint32_t homes, std::uint64_t moment,
                   bool with_home, CutOffCounts& counts) {
  const Rank writer = homes + 1;
  Mortals mortals(homes + 2 + (with_home ? 1 : 0), homes, profile);
  const std::vector<std::string> keys = keys_of_homes(mortals, homes);
  const std::vector<std::string> before{"before", "-", "before"};
  const std::vector<std::string> after{std::string(300, 'a'), "after", "-"};
  for (std::uint32_t i = 0; i < homes; ++i) {
    if (before[i] != "-") mortals.put(0, keys[i], before[i]);
    EXPECT_EQ(mortals.get(writer, keys[i]), before[i]);  // the writer knows the homes
  }
  StoreTransaction transaction(mortals.at(writer));
  for (std::uint32_t i = 0; i < homes; ++i)
    after[i] == "-" ? transaction.erase(keys[i]) : transaction.put(keys[i], after[i]);
  transaction.commit();
  mortals.world.run_for(moment);
  mortals.world.crash(writer);
  const std::uint32_t first = with_home ? 1 : 0;  // home 0 dies, too: the one that decides
  if (with_home) mortals.world.crash(0);
  const Rank by = homes;
  const std::vector<std::string> left = mortals.get_at_once(by, {keys.begin() + first, keys.end()});
  const std::vector<std::string> nothing(before.begin() + first, before.begin() + homes);
  const std::vector<std::string> all(after.begin() + first, after.begin() + homes);
  EXPECT_TRUE(left == nothing || left == all) << "STO-8: at " << moment << " of " << homes;
  ++(left == all ? counts.completed : counts.undone);
  for (std::uint32_t i = first; i < homes; ++i) {
    counts.repaired += mortals.at(i).counters().at("repaired_locks");
    mortals.put(by, keys[i], "next");
    EXPECT_EQ(mortals.get(i, keys[i]), "next");
  }
}

void check_all_moments(std::uint32_t homes, bool with_home) {
  CutOffCounts counts;
  for (const sim::Profile& profile : {Mortals::shuffling(), Mortals::network()}) {
    if (test::kSanitized && counts.undone > 0) break;  // one network is enough for it
    for (std::uint64_t moment = 0; moment < 160'000 && !testing::Test::HasFailure();
         moment += kStep)
      check_cut_off(profile, homes, moment, with_home, counts);
  }
  EXPECT_GT(counts.completed, 0U);
  EXPECT_GT(counts.undone, 0U);
  EXPECT_GT(counts.repaired, 0U);
}

TEST(StoreTransactionDeath, ACommitAtOneHomeIsCutOffAsAWhole) { check_all_moments(1, false); }
TEST(StoreTransactionDeath, ACommitAtTwoHomesIsCutOffAsAWhole) { check_all_moments(2, false); }
TEST(StoreTransactionDeath, ACommitAtThreeHomesIsCutOffAsAWhole) { check_all_moments(3, false); }
TEST(StoreTransactionDeath, TheOtherHomesAgreeWithoutTheOneThatDecides) {
  check_all_moments(3, true);
}

}  // namespace
}  // namespace dunlin
