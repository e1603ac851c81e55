#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "support/rounds.hpp"
#include "table/nodes.hpp"
#include "table/witness.hpp"

/// Tables written as fast as it goes while others read: nothing is seen torn, out
/// of order, or going back, and the thread sanitizer finds no race.
namespace dunlin {
namespace {

using test::Columns;
using test::kPatienceMs;
using test::NodeBackend;
using test::run_nodes;
using test::Witness;
using test::WitnessedRow;
using test::write_step;

struct Stress : testing::TestWithParam<std::tuple<NodeBackend, Refresh>> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(backend); }
  const NodeBackend backend = std::get<0>(GetParam());
  const Refresh refresh = std::get<1>(GetParam());
  const TableOptions options{.refresh = refresh};
  const Columns columns = refresh == Refresh::writes ? Columns::ordered : Columns::unordered;
};

INSTANTIATE_TEST_SUITE_P(On, Stress,
                         testing::Combine(testing::ValuesIn(test::backends()),
                                          testing::Values(Refresh::writes, Refresh::reads)),
                         [](const auto& of) {
                           const bool writes = std::get<1>(of.param) == Refresh::writes;
                           return std::get<0>(of.param).name + (writes ? "_writes" : "_reads");
                         });

TEST_P(Stress, ReadersSeeWholeRowsInOrder) {
  constexpr std::uint64_t kSteps = 20'000;
  run_nodes<WitnessedRow>(backend, 3, options, [&](Table<WitnessedRow>& table) {
    if (table.my_row() == 0) {
      for (std::uint64_t n = 1; n <= kSteps; ++n) {
        ASSERT_NO_FATAL_FAILURE(write_step(table.mine(), n));
        table.push();
        table.poll();
      }
      return;
    }
    Witness witness(columns);
    EXPECT_TRUE(run_until(
        table,
        [&] {
          witness.look(table[0]);
          return witness.has_seen(kSteps) || testing::Test::HasFatalFailure();
        },
        kPatienceMs));
  });
}

TEST_P(Stress, EveryoneWritesAndReads) {
  constexpr std::uint64_t kSteps = 5'000;
  run_nodes<WitnessedRow>(backend, 4, options, [&](Table<WitnessedRow>& table) {
    std::array<Witness, 4> witnesses;
    witnesses.fill(Witness(columns));
    std::uint64_t n = 0;
    const auto one_round = [&] {
      if (n < kSteps) {
        write_step(table.mine(), ++n);
        table.push();
      }
      bool seen_all = n == kSteps;
      for (std::size_t i = 0; i < table.size(); ++i) {
        witnesses[i].look(table[i]);
        seen_all = seen_all && witnesses[i].has_seen(kSteps);
      }
      return seen_all || testing::Test::HasFatalFailure();
    };
    EXPECT_TRUE(run_until(table, one_round, kPatienceMs, {.wait = Wait::spin}));
  });
}

TEST_P(Stress, SnapshotsAreConsistentEntryByEntry) {
  constexpr std::uint64_t kSteps = 10'000;
  run_nodes<WitnessedRow>(backend, 2, options, [&](Table<WitnessedRow>& table) {
    if (table.my_row() == 0) {
      for (std::uint64_t n = 1; n <= kSteps; ++n) {
        ASSERT_NO_FATAL_FAILURE(write_step(table.mine(), n));
        table.push();
      }
      return;
    }
    Witness witness(Columns::unordered);  // a copy takes a while
    EXPECT_TRUE(run_until(
        table,
        [&] {
          witness.look(table.snapshot()[0]);
          return witness.has_seen(kSteps) || testing::Test::HasFatalFailure();
        },
        kPatienceMs));
  });
}

/// Values whose every byte follows from the first one.
template <std::size_t N>
struct Bytes {
  std::array<unsigned char, N> at;

  static Bytes numbered(std::uint64_t n) {
    Bytes value;
    for (std::size_t i = 0; i < N; ++i) value.at[i] = static_cast<unsigned char>(n + i);
    return value;
  }
  [[nodiscard]] bool whole() const {
    for (std::size_t i = 1; i < N; ++i) {
      if (at[i] != static_cast<unsigned char>(at[0] + i)) return false;
    }
    return true;
  }
};

/// The sizes at which the representation changes, and those beside them.
struct Sizes {
  Cell<Bytes<1>> b1;
  Cell<Bytes<2>> b2;
  Cell<Bytes<3>> b3;
  Cell<Bytes<4>> b4;
  Cell<Bytes<7>> b7;
  Cell<Bytes<8>> b8;
  Cell<Bytes<9>> b9;
  Cell<Bytes<16>> b16;
  Cell<Bytes<55>> b55;
  Cell<Bytes<56>> b56;
  Cell<Bytes<57>> b57;
  Cell<Bytes<64>> b64;
  Versioned<Bytes<5>> v5;
  Versioned<Bytes<113>> v113;
  Versioned<Bytes<1000>> v1000;
  Cell<std::uint64_t> count;
};

template <class Visit>
void visit_sizes(auto& row, Visit visit) {
  visit(row.b1), visit(row.b2), visit(row.b3), visit(row.b4), visit(row.b7), visit(row.b8);
  visit(row.b9), visit(row.b16), visit(row.b55), visit(row.b56), visit(row.b57), visit(row.b64);
  visit(row.v5), visit(row.v113), visit(row.v1000);
}

TEST_P(Stress, EntriesOfEverySizeAreSeenWhole) {
  constexpr std::uint64_t kSteps = 20'000;
  run_nodes<Sizes>(backend, 2, options, [&](Table<Sizes>& table) {
    const auto all_whole = [](const Sizes& row) {
      visit_sizes(row, [](const auto& entry) {
        const auto value = entry.load();
        const bool untouched = value.at[0] == 0 && value.at[sizeof(value) - 1] == 0;
        ASSERT_TRUE(untouched || value.whole()) << sizeof(value) << " bytes, torn";
      });
    };
    if (table.my_row() == 0) {
      for (std::uint64_t n = 1; n <= kSteps; ++n) {
        visit_sizes(table.mine(), [&](auto& entry) {
          using Value = typename std::remove_reference_t<decltype(entry)>::value_type;
          entry = Value::numbered(n);
        });
        table.mine().count = n;
        table.push();
      }
      return;
    }
    EXPECT_TRUE(run_until(
        table,
        [&] {
          all_whole(table[0]);
          return table[0].count == kSteps || testing::Test::HasFatalFailure();
        },
        kPatienceMs));
  });
}

struct Feed {
  List<std::uint64_t, 8> events;
  std::array<Cell<std::uint64_t>, 3> read_up_to;  // by row: what this node has read of each
};

TEST_P(Stress, AListThatIsTruncatedWhenAllHaveReadLosesNothing) {
  const std::uint64_t kEvents = test::rounds(2'000);
  run_nodes<Feed>(backend, 3, options, [&](Table<Feed>& table) {
    const std::size_t me = table.my_row();
    const auto one_round = [&] {
      std::uint64_t slowest = kEvents;
      std::uint64_t fastest_end = kEvents;
      for (std::size_t i = 0; i < table.size(); ++i) {
        Cell<std::uint64_t>& mark = table.mine().read_up_to[i];
        mark = table[i].events.visit_from(mark, [&](std::uint64_t index, std::uint64_t value) {
          EXPECT_EQ(index, mark) << "a value was skipped";
          EXPECT_EQ(value, index * 3 + i);
          ++mark;
        });
        slowest = std::min(slowest, table[i].read_up_to[me].load());
        fastest_end = std::min(fastest_end, mark.load());
      }
      List<std::uint64_t, 8>& mine = table.mine().events;
      mine.truncate_before(slowest);
      if (mine.end_index() < kEvents) static_cast<void>(mine.append(mine.end_index() * 3 + me));
      table.push();
      return fastest_end == kEvents && slowest == kEvents;
    };
    EXPECT_TRUE(run_until(table, one_round, kPatienceMs, {.wait = Wait::spin}));
  });
}

}  // namespace
}  // namespace dunlin
