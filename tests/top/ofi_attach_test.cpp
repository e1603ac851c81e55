#include <csignal>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/dunlin.hpp>
#include <dunlin/join.hpp>

#include "fabric/mapping/observer.hpp"
#include "support/process.hpp"
#include "top/observe.hpp"

/// Members of networks show what those of shared memory show.
namespace dunlin {
namespace {

using test::Parent;
using test::Process;
using top::observe;
using top::observe_checked;

constexpr std::uint32_t kMembers = 3;

struct LoadRow {
  Cell<int> step;
};

/// Three processes whose table is complete everywhere when the constructor is done.
class NetworkGroup {
 public:
  NetworkGroup() {
    for (Rank rank = 0; rank < kMembers; ++rank) {
      members_.emplace_back([this, rank](Parent& parent) { return run_member(parent, rank); });
    }
    for (Process& member : members_) EXPECT_EQ(member.receive_line(), "complete");
  }
  Process& operator[](std::size_t i) { return members_[i]; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] top::Group look() const {
    return observe_checked({.group = name_, .fabric = "ofi"}).groups.at(0);
  }

 private:
  int run_member(Parent& parent, Rank rank) const {
    const auto fabric = join({.network = "ofi",
                              .group = name_,
                              .members = kMembers,
                              .rank = rank,
                              .rendezvous = "unix:" + name_,
                              .secret = "a secret of the tests of top"});
    Table<LoadRow> table(fabric, {.name = "load"});
    table.when(all(&LoadRow::step) >= 1, "all there").once([&] { parent.send_line("complete"); });
    table.mine().step = 10 + static_cast<int>(rank);
    table.push();
    run(table, {.wait = Wait::block});
    return 0;
  }

  static int fresh_number() {
    static int count = 0;
    return count++;
  }

  std::string name_ =
      "test-top-ofi-" + std::to_string(getpid()) + "-" + std::to_string(fresh_number());
  std::vector<Process> members_;
};

TEST(TopOfi, ShowsAGroupOfANetwork) {
  NetworkGroup group;
  const top::Group seen = group.look();
  EXPECT_EQ(seen.fabric, "ofi");
  EXPECT_EQ(seen.size, kMembers);
  ASSERT_EQ(seen.members.size(), kMembers);
  ASSERT_EQ(seen.tables.size(), 1U);
  for (Rank rank = 0; rank < kMembers; ++rank) {
    EXPECT_EQ(seen.members[rank].pid, group[rank].pid());
    ASSERT_TRUE(seen.members[rank].loop);
    EXPECT_NE(seen.members[rank].loop->last_watch_ns, 0U);
    const top::Row& row = seen.tables[0].rows.at(rank);
    EXPECT_EQ(row.read_from, rank);
    EXPECT_EQ(std::get<std::int64_t>(row.values.at(0).entries.at(0)), 10 + rank);
    for (const top::Sighting& sighting : row.seen) {
      EXPECT_EQ(sighting.status.state, sighting.by == rank ? RowState::own : RowState::connected);
    }
  }
}

TEST(TopOfi, SeesThatAMemberSleeps) {
  NetworkGroup group;
  while (!group.look().members.at(1).loop->asleep) {
  }
}

TEST(TopOfi, ShowsTheRowOfAKilledMemberAndWhoMissesIt) {
  NetworkGroup group;
  group[2].kill();
  top::Group seen;
  do {
    seen = group.look();
  } while (seen.members.at(0).loop->failed_peers.empty());
  EXPECT_EQ(seen.members.size(), 2U);
  EXPECT_EQ(seen.members[0].loop->failed_peers, std::vector<Rank>{2});
  EXPECT_EQ(seen.tables[0].rows.at(2).read_from, 0U);
}

/// Its memory has no name, so there is nothing that anybody would have to remove.
TEST(TopOfi, FindsNothingOfAGroupThatWasKilled) {
  NetworkGroup group;
  for (Rank rank = 0; rank < kMembers; ++rank) group[rank].kill();
  for (const mapping::Sighting& sighting : mapping::find_mappings()) {
    EXPECT_NE(sighting.info.group, group.name());
  }
}

TEST(TopOfi, LooksAtTheFabricThatWasAskedFor) {
  NetworkGroup group;
  EXPECT_TRUE(observe({.group = group.name(), .fabric = "shm"}).groups.empty());
  EXPECT_FALSE(observe({.group = group.name()}).groups.empty());
}

}  // namespace
}  // namespace dunlin
