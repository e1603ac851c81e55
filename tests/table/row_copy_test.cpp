#include "table/row_copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/table/layout.hpp>

namespace dunlin {
namespace {

using Config = std::array<std::uint64_t, 20>;  // three lines

struct CopiedRow {
  Cell<int> step;
  std::array<Cell<std::uint8_t>, 5> small;
  Versioned<Config> config;
  std::array<Versioned<int>, 2> pair;
  List<std::uint64_t, 4> events;
};
const Layout kLayout = layout_of<CopiedRow>();

Config config(std::uint64_t n) {
  Config c;
  c.fill(n);
  return c;
}

/// The copy itself goes by bytes, as from a region.
void copy(CopiedRow& to, const CopiedRow& from) {
  row_copy::copy_row(kLayout, reinterpret_cast<std::byte*>(&to),
                     reinterpret_cast<const std::byte*>(&from));
}
std::byte* slot_of(Versioned<Config>& entry, unsigned slot) {
  return reinterpret_cast<std::byte*>(&entry) + slot * sizeof(entry) / 2;
}
/// As if the owner were in the middle of writing the slot's second line.
void tear(Versioned<Config>& entry, unsigned slot, std::uint32_t stamp) {
  std::memcpy(slot_of(entry, slot), &stamp, sizeof stamp);
  std::memcpy(slot_of(entry, slot) + 60, &stamp, sizeof stamp);
  std::memcpy(slot_of(entry, slot) + 64, &stamp, sizeof stamp);
}

TEST(RowCopy, TakesEverything) {
  CopiedRow from;
  from.step = 3;
  from.small[4] = std::uint8_t{200};
  from.config = config(1);
  from.config = config(2);
  from.pair[1] = 9;
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(from.events.append(i * 10));
  from.events.truncate_before(2);
  EXPECT_TRUE(from.events.append(40));

  CopiedRow to;
  copy(to, from);
  EXPECT_EQ(to.step, 3);
  EXPECT_EQ(to.small[4], 200);
  EXPECT_EQ(to.config.load(), config(2));
  EXPECT_EQ(to.config.version(), 2U);
  EXPECT_EQ(to.pair[0].load(), 0);
  EXPECT_EQ(to.pair[1].load(), 9);
  EXPECT_EQ(to.pair[1].version(), 1U);
  EXPECT_EQ(to.events.begin_index(), 2U);
  EXPECT_EQ(to.events.end_index(), 5U);
  for (std::uint64_t i = 2; i < 5; ++i) EXPECT_EQ(to.events.at(i), i * 10);
}

TEST(RowCopy, TakesTheOlderValueWhileTheNewerIsTorn) {
  CopiedRow from;
  from.config = config(1);
  from.config = config(2);
  tear(from.config, 0, 4);  // the slot of 2 is being written over
  CopiedRow to;
  copy(to, from);
  EXPECT_EQ(to.config.load(), config(1));
  EXPECT_EQ(to.config.version(), 1U);
}

void place_fetched(Versioned<Config>& to, const Versioned<Config>& from) {
  const Column column{"config", ColumnKind::stamped, EntryType::bytes, 0,
                      1,        sizeof(Config),      sizeof(from),     sizeof(from)};
  row_copy::place_stamped(column, reinterpret_cast<std::byte*>(&to),
                          reinterpret_cast<const std::byte*>(&from));
}

/// The lines of a fetched row were read at different times: the older slot may have been read
/// before it was written last, and the newer one while it was.
TEST(RowCopy, OfAFetchedRowDoesNotGoBack) {
  Versioned<Config> fetched;
  fetched = config(1);
  Versioned<Config> kept = fetched;
  kept = config(2);     // as of an earlier fetch
  tear(fetched, 0, 2);  // in the later one, only 1 is whole
  place_fetched(kept, fetched);
  EXPECT_EQ(kept.load(), config(2));
  EXPECT_EQ(kept.version(), 2U);
  fetched = config(2);
  fetched = config(3);
  place_fetched(kept, fetched);
  EXPECT_EQ(kept.load(), config(3));
  EXPECT_EQ(kept.version(), 3U);
}

/// The row into which a fetched one is placed is read meanwhile, as an observer does.
TEST(RowCopy, OfAFetchedRowIsWholeToEachReader) {
  Versioned<Config> fetched;
  Versioned<Config> watched;
  std::atomic<bool> over = false;
  std::thread reader([&] {
    std::uint64_t newest = 0;
    while (!over) {
      const Config seen = watched.load();
      ASSERT_TRUE(std::ranges::all_of(seen, [&](std::uint64_t n) { return n == seen[0]; }));
      ASSERT_GE(seen[0], newest);
      newest = seen[0];
    }
  });
  for (std::uint64_t n = 1; n <= 300'000; ++n) {
    fetched = config(n);
    place_fetched(watched, fetched);
  }
  over = true;
  reader.join();
}

TEST(RowCopy, LeavesWhatIsNowhereWhole) {
  CopiedRow from;
  from.config = config(1);
  tear(from.config, 0, 70);
  tear(from.config, 1, 71);
  CopiedRow to;
  to.config = config(8);
  to.config = config(9);
  copy(to, from);
  EXPECT_EQ(to.config.load(), config(9));
  EXPECT_EQ(to.config.version(), 2U);
}

TEST(RowCopy, CanBeRepeatedIntoTheSameRow) {
  CopiedRow from;
  CopiedRow to;
  for (std::uint64_t i = 1; i < 100; ++i) {
    from.config = config(i);
    if (i % 3 == 0) continue;
    if (!from.events.append(i)) from.events.truncate_before(from.events.end_index() - 1);
    copy(to, from);
    ASSERT_EQ(to.config.load(), config(i));
    ASSERT_EQ(to.config.version(), i);
    ASSERT_EQ(to.events.begin_index(), from.events.begin_index());
    ASSERT_EQ(to.events.end_index(), from.events.end_index());
  }
}

TEST(RowCopy, BoundsAFetchedListByTheGuardsAroundIt) {
  CopiedRow from;
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(from.events.append(i));
  CopiedRow to;
  const Column& list = kLayout.columns.back();
  // Before the values were fetched there were 3; afterwards the first one was truncated.
  row_copy::place_list(list, reinterpret_cast<std::byte*>(&to),
                       reinterpret_cast<const std::byte*>(&from), {3, 1});
  EXPECT_EQ(to.events.begin_index(), 1U);
  EXPECT_EQ(to.events.end_index(), 3U);
  EXPECT_EQ(to.events.at(2), 2U);
  // All that there was has been truncated meanwhile.
  row_copy::place_list(list, reinterpret_cast<std::byte*>(&to),
                       reinterpret_cast<const std::byte*>(&from), {4, 9});
  EXPECT_TRUE(to.events.empty());
  EXPECT_EQ(to.events.end_index(), 4U);
}

}  // namespace
}  // namespace dunlin
