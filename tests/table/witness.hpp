#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include <dunlin/table/cell.hpp>

/// A row of everything that there is, its writer, and a reader who notices whatever a reader must
/// not see.
namespace dunlin::test {

using Block = std::array<std::uint64_t, 20>;  // three lines

inline Block block(std::uint64_t n) {
  Block b;
  b.fill(n);
  return b;
}

/// Each column is published after the one before it.
struct WitnessedRow {
  Cell<std::uint64_t> first;
  std::array<Cell<std::uint64_t>, 20> many;
  Cell<std::uint64_t> second;
  Versioned<Block> versioned;
  Cell<std::array<std::uint64_t, 8>> wide;
  Cell<std::uint64_t> third;
  List<Block, 4> list;
  Cell<std::uint64_t> last;
};

/// Step n of the writer; steps are numbered from 1 without a gap.
inline void write_step(WitnessedRow& row, std::uint64_t n) {
  row.first = n;
  for (auto& entry : row.many) entry = n;
  row.second = n;
  row.versioned = block(n);
  std::array<std::uint64_t, 8> wide;
  wide.fill(n);
  row.wide = wide;
  row.third = n;
  row.list.truncate_before(row.list.end_index() - std::min<std::uint64_t>(3, row.list.size()));
  ASSERT_TRUE(row.list.append(block(row.list.end_index())));
  row.last = n;
}

/// Whether columns come in order (TAB-T3), as they do when they are pushed but not when they are
/// pulled.
enum class Columns : std::uint8_t { ordered, unordered };

/// What one reader has seen of one row so far; each look must find it consistent and no older.
class Witness {
 public:
  explicit Witness(Columns columns = Columns::ordered) : columns_(columns) {}

  void look(const WitnessedRow& row) {
    const std::uint64_t last = row.last.load();
    const std::uint64_t end = row.list.end_index();
    const std::uint64_t third = row.third.load();
    const auto wide = row.wide.load();
    const Block versioned = row.versioned.load();
    const std::uint64_t second = row.second.load();
    std::uint64_t least = UINT64_MAX;
    for (const auto& entry : row.many) least = std::min(least, entry.load());
    const std::uint64_t first = row.first.load();

    for (const std::uint64_t word : versioned) ASSERT_EQ(word, versioned[0]) << "torn";
    for (const std::uint64_t word : wide) ASSERT_EQ(word, wide[0]) << "torn";
    row.list.visit_from(0, [](std::uint64_t i, const Block& b) { ASSERT_EQ(b, block(i)); });
    if (columns_ == Columns::ordered) {
      ASSERT_LE(last, end);  // one value was appended with each step
      ASSERT_LE(last, third);
      ASSERT_LE(third, wide[0]);
      ASSERT_LE(wide[0], versioned[0]);
      ASSERT_LE(versioned[0], second);
      ASSERT_LE(second, least);
      ASSERT_LE(least, first);
    }

    ASSERT_GE(last, last_);
    ASSERT_GE(versioned[0], versioned_) << "a versioned cell went back";
    ASSERT_GE(wide[0], wide_) << "a wide cell went back";
    ASSERT_GE(end, end_);
    ASSERT_GE(row.versioned.version(), version_);
    last_ = last;
    versioned_ = versioned[0];
    wide_ = wide[0];
    end_ = end;
    version_ = row.versioned.version();
  }

  /// Whether all columns have come to step n.
  [[nodiscard]] bool has_seen(std::uint64_t n) const noexcept {
    return last_ == n && versioned_ == n && wide_ == n && end_ == n;
  }

 private:
  Columns columns_;
  std::uint64_t last_ = 0;
  std::uint64_t versioned_ = 0;
  std::uint64_t wide_ = 0;
  std::uint64_t end_ = 0;
  std::uint32_t version_ = 0;
};

}  // namespace dunlin::test
