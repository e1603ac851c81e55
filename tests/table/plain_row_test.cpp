#include <array>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "support/rounds.hpp"
#include "table/nodes.hpp"
#include "table/sim_group.hpp"

/// Rows of plain members (TAB-T6), copies of tables in expressions, and single entries of stamped
/// columns.
namespace dunlin {
namespace {

using test::contains;
using test::kPatienceMs;
using test::NodeBackend;
using test::run_nodes;
using test::SimGroup;
using test::what_is_thrown_by;

enum class Mode : std::uint8_t { off, on };

struct PlainRow {
  int step = -1;
  std::array<std::timespec, 2> stamps;
  double load;
  Mode mode;
  std::array<char, 16> name;
  std::array<std::array<int, 2>, 3> grid;
};
struct RowOfCells {
  Cell<int> step{-1};
  std::array<Cell<std::timespec>, 2> stamps;
  Cell<double> load;
  Cell<Mode> mode;
  Cell<std::array<char, 16>> name;
  std::array<std::array<Cell<int>, 2>, 3> grid;
};
struct Numbers {
  int step;
  std::array<double, 12> costs;
  bool ready;
};

std::string name_of(const PlainRow& row) { return row.name.data(); }

void fill(PlainRow& row, int number) {
  row.step = number;
  row.stamps[1].tv_nsec = 10L * number;
  row.load = 0.5 * number;
  row.mode = Mode::on;
  std::strcpy(row.name.data(), ("node " + std::to_string(number)).c_str());
  row.grid[2][1] = 100 * number;
}

TEST(PlainRow, HasTheLayoutOfTheRowOfCells) {
  EXPECT_EQ(layout_of<PlainRow>().text(), layout_of<RowOfCells>().text());
  EXPECT_EQ(sizeof(detail::StoredRow<PlainRow>), sizeof(RowOfCells));
  EXPECT_EQ(layout_of<Numbers>().text(),
            "step i32 word @0 x1 =4 /4 +4\ncosts f64 word @8 x12 =8 /8 +96\n"
            "ready bool word @104 x1 =1 /1 +1\nrow 112\n");
  EXPECT_FALSE(Table<RowOfCells>::kOfPlainMembers);
  EXPECT_TRUE(Table<PlainRow>::kOfPlainMembers);
}

TEST(PlainRow, TravelsWholeAndByColumns) {
  SimGroup<PlainRow> group(2);
  group.make_all();
  EXPECT_EQ(group[1][0].step, -1) << "the value that the declaration gives";
  EXPECT_EQ(group[1].mine().step, -1);
  fill(group[0].mine(), 3);
  group[0].push();
  group.settle();
  const PlainRow seen = group[1][0];
  EXPECT_EQ(seen.step, 3);
  EXPECT_EQ(seen.stamps[1].tv_nsec, 30);
  EXPECT_EQ(seen.load, 1.5);
  EXPECT_EQ(seen.mode, Mode::on);
  EXPECT_EQ(name_of(seen), "node 3");
  EXPECT_EQ(seen.grid[2][1], 300);
  EXPECT_EQ(group[1].get(0, &PlainRow::load), 1.5);
  EXPECT_EQ(group[1].get(0, &PlainRow::stamps)[1].tv_nsec, 30);
  EXPECT_EQ(group[1].get(0, entry(&PlainRow::stamps, 1)).tv_nsec, 30);
  EXPECT_EQ(group[1].get(0, entry(&PlainRow::grid, 5)), 300);

  fill(group[0].mine(), 4);
  group[0].push(&PlainRow::load, &PlainRow::name, entry(&PlainRow::grid, 5));
  group[0].to({1}).push(&PlainRow::stamps);
  group.settle();
  EXPECT_EQ(group[1][0].load, 2);
  EXPECT_EQ(name_of(group[1][0]), "node 4");
  EXPECT_EQ(group[1][0].grid[2][1], 400);
  EXPECT_EQ(group[1][0].stamps[1].tv_nsec, 40);
  EXPECT_EQ(group[1][0].step, 3) << "was not pushed";
}

TEST(PlainRow, ShowsNothingBeforeThePush) {
  SimGroup<Numbers> group(2);
  group.make_all();
  int fired = 0;
  group[0].when(all(&Numbers::step).over({0}) >= 1).transition([&] { ++fired; });
  group[0].mine().step = 1;
  group[0].mine().costs[3] = 2;
  group[0].poll();
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(group[0][0].step, 0);
  EXPECT_EQ(group[0].snapshot()[0].step, 0);
  EXPECT_EQ(std::as_const(group[0]).mine().step, 1);
  group[0].push(&Numbers::step);
  group[0].poll();
  group.settle();
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(group[0][0].step, 1);
  EXPECT_EQ(group[1][0].step, 1);
  EXPECT_EQ(group[0][0].costs[3], 0);
  group[0].push(entry(&Numbers::costs, 3));
  group.settle();
  EXPECT_EQ(group[1].get(0, entry(&Numbers::costs, 3)), 2);
}

TEST(PlainRow, TakesPredicatesAndTriggers) {
  SimGroup<Numbers> group(3);
  group.make_all();
  std::array<int, 3> done{};
  for (Rank node = 0; node < 3; ++node) {
    Table<Numbers>& table = group[node];
    auto handle = table.when((all(&Numbers::step) >= 1) && all(&Numbers::costs) < 9.0)
                      .once([&, node](auto& t) {
                        t.mine().ready = true;
                        t.push(&Numbers::ready);
                        ++done.at(node);
                      });
    EXPECT_TRUE(handle.active());
    table
        .when(count(where(&Numbers::ready) == true) == 3U && mine(&Numbers::ready) == true &&
              row(1, &Numbers::step) == 2 && sum(&Numbers::step) == 6)
        .once([&, node] { done.at(node) += 10; });
  }
  for (Rank node = 0; node < 3; ++node) {
    group[node].mine().step = static_cast<int>(node) + 1;
    group[node].push(&Numbers::step);
  }
  group.settle();
  EXPECT_EQ(done, (std::array{11, 11, 11}));
}

/// Peers compare layouts, and these are equal.
TEST(PlainRow, SharesATableWithARowOfCells) {
  sim::World world(sim::profile("ideal"), 2, 1);
  Table<PlainRow> plain(world.fabric(0));
  Table<RowOfCells> cells(world.fabric(1));
  world.attach(0, [&] { return plain.poll(); });
  world.attach(1, [&] { return cells.poll(); });
  fill(plain.mine(), 2);
  plain.push();
  cells.mine().step = 5;
  cells.push();
  world.run_for(5'000'000);
  EXPECT_TRUE(plain.connected());
  EXPECT_EQ(cells[0].step, 2);
  EXPECT_EQ(cells[0].stamps[1].load().tv_nsec, 20);
  EXPECT_EQ(plain[1].step, 5);
  EXPECT_EQ(cells.get(1, &RowOfCells::step), 5);
  EXPECT_EQ(cells.get(0, entry(&RowOfCells::grid, 5)), 200);
}

TEST(PlainRow, OfADeadNodeFreezes) {
  SimGroup<PlainRow> group(2);
  group.make_all();
  fill(group[1].mine(), 7);
  group[1].push();
  group.settle();
  group.world.crash(1);
  EXPECT_TRUE(group.run_until([&] { return !group[0].alive(1); }));
  EXPECT_EQ(group[0][1].grid[2][1], 700);
  EXPECT_EQ(name_of(group[0].snapshot()[1]), "node 7");
  EXPECT_TRUE((any(&PlainRow::step) == 7)(group[0]));
}

TEST(Snapshot, TakesExpressionsLikeATable) {
  SimGroup<RowOfCells> cells(3);
  SimGroup<PlainRow> plain(3);
  cells.make_all();
  plain.make_all();
  for (Rank node = 0; node < 3; ++node) {
    cells[node].mine().step = static_cast<int>(node) + 1;
    cells[node].mine().grid[0][1] = 5;
    cells[node].push();
    fill(plain[node].mine(), static_cast<int>(node) + 1);
    plain[node].push();
  }
  cells.settle();
  plain.settle();
  cells.world.crash(2);
  plain.world.crash(2);
  EXPECT_TRUE(cells.run_until([&] { return !cells[0].alive(2); }));
  EXPECT_TRUE(plain.run_until([&] { return !plain[0].alive(2); }));
  const auto check = [](const auto& snapshot, auto step, auto grid, auto name) {
    EXPECT_TRUE((all(step) >= 1)(snapshot));
    EXPECT_FALSE((all(step) >= 2)(snapshot));
    EXPECT_TRUE((all(step).others() >= 2)(snapshot));
    EXPECT_TRUE((any(step) == 3)(snapshot));
    EXPECT_FALSE((any(step).alive() == 3)(snapshot));
    EXPECT_TRUE((mine(step) == 1 && row(1, step) == 2 && sum(step) == 6)(snapshot));
    EXPECT_TRUE((count(where(step) >= 2) == 2U)(snapshot));
    EXPECT_EQ(max(step).value(snapshot), 3);
    EXPECT_FALSE((all(grid) >= 1)(snapshot)) << "every entry of a column counts";
    EXPECT_TRUE((any(name) == std::array<char, 16>{})(snapshot) ||
                row(0, name).value(snapshot)[0] == 'n');
    const std::string expected = "there is no row 3; the table has rows 0 to 2";
    EXPECT_TRUE(contains(what_is_thrown_by([&] { (row(3, step) == 1)(snapshot); }), expected));
    EXPECT_TRUE(contains(what_is_thrown_by([&] { (all(step).over({3}).alive() == 1)(snapshot); }),
                         expected));
  };
  check(cells[0].snapshot(), &RowOfCells::step, &RowOfCells::grid, &RowOfCells::name);
  check(plain[0].snapshot(), &PlainRow::step, &PlainRow::grid, &PlainRow::name);
}

struct Stamps {
  std::array<Cell<std::array<std::uint64_t, 4>>, 3> stamps;
  std::array<Versioned<int>, 2> versions;
};

TEST(Push, PublishesOneEntryOfAStampedColumn) {
  SimGroup<Stamps> group(2, test::rough_network());
  group.make_all();
  for (std::uint64_t round = 1; round <= 5; ++round) {
    group[0].mine().stamps[0] = {round, round};
    group[0].mine().stamps[1] = {round, 10 * round};
    group[0].mine().versions[1] = static_cast<int>(round);
    group[0].push(entry(&Stamps::stamps, 1));
    group[0].to({1}).push(entry(&Stamps::versions, 1));
    group.settle();
    EXPECT_EQ(group[1][0].stamps[0].load()[0], 0U) << "was not pushed";
    EXPECT_EQ(group[1][0].stamps[1].load()[1], 10 * round);
    EXPECT_EQ(group[1][0].versions[1].load(), static_cast<int>(round));
  }
  group[0].push(&Stamps::stamps);
  group.settle();
  EXPECT_EQ(group[1][0].stamps[0].load()[1], 5U);
  EXPECT_EQ(group[1][0].stamps[2].load()[0], 0U);
}

/// Written as fast as it goes while others read: under the thread sanitizer, too.
struct PlainStress : testing::TestWithParam<std::tuple<NodeBackend, Refresh>> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(backend); }
  const NodeBackend backend = std::get<0>(GetParam());
  const TableOptions options{.refresh = std::get<1>(GetParam())};
  const bool ordered = options.refresh == Refresh::writes;
};

INSTANTIATE_TEST_SUITE_P(On, PlainStress,
                         testing::Combine(testing::ValuesIn(test::backends()),
                                          testing::Values(Refresh::writes, Refresh::reads)),
                         [](const auto& of) {
                           const bool writes = std::get<1>(of.param) == Refresh::writes;
                           return std::get<0>(of.param).name + (writes ? "_writes" : "_reads");
                         });

/// A value that is torn if its parts are not all the same.
struct Whole {
  std::array<std::uint64_t, 8> parts;
  [[nodiscard]] std::uint64_t number() const {
    for (const std::uint64_t part : parts) EXPECT_EQ(part, parts[0]) << "torn";
    return parts[0];
  }
  static Whole of(std::uint64_t number) {
    Whole value;
    value.parts.fill(number);
    return value;
  }
};
struct PlainWitness {
  std::array<Whole, 2> data;
  std::array<std::uint64_t, 3> numbers;
  std::uint64_t count;  // announces the others
};

TEST_P(PlainStress, EveryoneWritesPlainMembersAndReadsThem) {
  const std::uint64_t kSteps = test::rounds(5'000);
  run_nodes<PlainWitness>(backend, 3, options, [&](Table<PlainWitness>& table) {
    std::array<std::uint64_t, 3> before{};
    const auto one_round = [&] {
      PlainWitness& mine = table.mine();
      if (mine.count < kSteps) {
        const std::uint64_t next = mine.count + 1;
        mine = {.data = {Whole::of(next), Whole::of(next)},
                .numbers = {next, next, next},
                .count = next};
        if (next % 2 == 0)
          table.push();
        else
          table.push(&PlainWitness::data, &PlainWitness::numbers, &PlainWitness::count);
      }
      bool seen_all = mine.count == kSteps;
      for (std::size_t i = 0; i < table.size(); ++i) {
        const PlainWitness row = table[i];
        EXPECT_GE(row.count, before.at(i)) << "went back";
        before.at(i) = row.count;
        for (const Whole& value : row.data) EXPECT_GE(value.number(), ordered ? row.count : 0);
        if (ordered) {
          EXPECT_GE(row.numbers[2], row.count) << "announced before it was there";
        }
        seen_all = seen_all && row.count == kSteps;
      }
      return seen_all || testing::Test::HasFailure();
    };
    EXPECT_TRUE(run_until(table, one_round, kPatienceMs, {.wait = Wait::spin}));
  });
}

struct OneByOne {
  std::array<Cell<Whole>, 4> values;
  Cell<std::uint64_t> count;
};

TEST_P(PlainStress, SingleEntriesOfAStampedColumnAreSeenWhole) {
  const std::uint64_t kSteps = test::rounds(20'000);
  run_nodes<OneByOne>(backend, 2, options, [&](Table<OneByOne>& table) {
    if (table.my_row() == 0) {
      for (std::uint64_t n = 1; n <= kSteps; ++n) {
        table.mine().values.at(n % 4) = Whole::of(n);
        table.push(entry(&OneByOne::values, n % 4));
        if (n % 16 == 0) table.push();
        table.mine().count = n;
        table.push(&OneByOne::count);
        if (n % 8 == 0) table.poll();
      }
      return;
    }
    std::array<std::uint64_t, 4> before{};
    EXPECT_TRUE(run_until(
        table,
        [&] {
          const std::uint64_t count = table[0].count;
          for (std::size_t i = 0; i < 4; ++i) {
            const std::uint64_t number = table[0].values.at(i).load().number();
            EXPECT_GE(number, before.at(i)) << "went back";
            if (ordered && count >= 4) {
              EXPECT_GT(number + 4, count) << "announced before it was there";
            }
            before.at(i) = number;
          }
          return count == kSteps || testing::Test::HasFailure();
        },
        kPatienceMs));
  });
}

}  // namespace
}  // namespace dunlin
