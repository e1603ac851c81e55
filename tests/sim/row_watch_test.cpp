#include "sim/row_watch.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/sim.hpp>

namespace dunlin::app::sim {
namespace {

Layout two_words() {
  Layout layout;
  for (const char* const name : {"sent", "suspects"}) {
    layout.columns.push_back({.name = name,
                              .kind = ColumnKind::word,
                              .type = EntryType::u64,
                              .offset = layout.row_bytes,
                              .count = 1,
                              .entry_bytes = kWordBytes,
                              .stride_bytes = kWordBytes,
                              .bytes = kWordBytes});
    layout.row_bytes += kWordBytes;
  }
  return layout;
}

struct RowWatchTest : testing::Test {
  /// What the own row says now, as the watch sees it.
  void say(TableCore& in, std::uint64_t sent, std::uint64_t suspects = 0) {
    memory::store(reinterpret_cast<std::uint64_t*>(in.mine())[0], sent);
    memory::store(reinterpret_cast<std::uint64_t*>(in.mine())[1], suspects);
    watch.look(in, view);
  }
  void expect_fault(const std::string& part) const {
    EXPECT_NE(watch.fault().find(part), std::string::npos) << "'" << watch.fault() << "'";
  }

  dunlin::sim::World world{dunlin::sim::profile("ib100"), 2, 1};
  TableCore table{world.fabric(0),
                  two_words(),
                  [](std::byte* row) { std::memset(row, 0, 16); },
                  {.name = "cast:all", .generation = 1}};
  View view{.number = 1, .members = {"node0", "node1"}, .me = 0, .departed = {}};
  RowWatch watch;
};

TEST_F(RowWatchTest, LetsRowsGrow) {
  for (const std::uint64_t sent : {1U, 1U, 5U}) say(table, sent);
  EXPECT_EQ(watch.fault(), "");
}

TEST_F(RowWatchTest, FindsAWordThatGoesBack) {
  say(table, 5);
  say(table, 4);
  expect_fault("node0 saw the row of node0 in table 'cast:all' of view 1 go back from 5 to 4");
}

TEST_F(RowWatchTest, FindsASuspicionThatIsTakenBack) {
  TableCore agreement(world.fabric(0), two_words(), [](std::byte* row) { std::memset(row, 0, 16); },
                      {.name = "view", .generation = 2});
  say(agreement, 0, 0b001);
  say(agreement, 0, 0b011);
  EXPECT_EQ(watch.fault(), "");
  say(agreement, 0, 0b110);
  expect_fault("go back from 3 to 6");
}

TEST_F(RowWatchTest, FindsASecondTableOfTheSameViewWithOtherRows) {
  say(table, 5);
  Layout longer = two_words();
  longer.columns.back().count = 9;
  longer.columns.back().bytes = 9 * kWordBytes;
  longer.row_bytes = 10 * kWordBytes;
  // Elsewhere: one process has no two tables of one name and generation.
  dunlin::sim::World other(dunlin::sim::profile("ib100"), 3, 1);
  TableCore second(other.fabric(0), longer, [](std::byte* row) { std::memset(row, 0, 80); },
                   {.name = "cast:all", .generation = 1});
  watch.look(second, view);
  expect_fault("in table 'cast:all' of view 1 after a table of the same view with other rows");
}

TEST_F(RowWatchTest, FindsThatWhoeverIsGoneGoesOn) {
  say(table, 5);
  view = {.number = 2, .members = {"node1"}, .me = 0, .departed = {"node0"}};
  watch.look(table, view);
  EXPECT_EQ(watch.fault(), "");
  say(table, 6);
  expect_fault("change, and its owner is gone");
}

}  // namespace
}  // namespace dunlin::app::sim
