#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <dunlin/table/cell.hpp>

namespace dunlin {
namespace {

template <std::size_t N>
struct Bytes {
  std::array<std::uint8_t, N> bytes{};
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

template <std::size_t N>
Bytes<N> filled(std::uint8_t first) {
  Bytes<N> value;
  for (std::size_t i = 0; i < N; ++i) value.bytes[i] = static_cast<std::uint8_t>(first + i);
  return value;
}

/// Calls test.operator()<N>() for every size of an entry.
template <class Test>
void for_every_size(Test test) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (test.template operator()<I + 1>(), ...); }
  (std::make_index_sequence<kMaxEntryBytes>{});
}

/// The bytes of an entry, as a broken peer could write them.
template <class T>
std::byte* bytes_of(T& entry) {
  return reinterpret_cast<std::byte*>(&entry);
}
void write_stamp(std::byte* at, std::uint32_t stamp) { std::memcpy(at, &stamp, sizeof stamp); }

/// Gives every line of one slot the same stamp.
template <class T>
void stamp_slot(T& entry, unsigned slot, std::uint32_t stamp) {
  const std::size_t slot_bytes = sizeof(T) / 2;
  std::byte* at = bytes_of(entry) + slot * slot_bytes;
  for (std::size_t line = 0; line < slot_bytes; line += kCacheLineBytes) {
    write_stamp(at + line, stamp);
    write_stamp(at + line + kCacheLineBytes - sizeof stamp, stamp);
  }
}

TEST(Cell, StartsAsTheDefaultOfItsType) {
  for_every_size([]<std::size_t N>() {
    EXPECT_EQ(Cell<Bytes<N>>().load(), Bytes<N>{});
    EXPECT_EQ(Versioned<Bytes<N>>().load(), Bytes<N>{});
  });
  EXPECT_EQ(Cell<double>().load(), 0.0);
}

TEST(Cell, StartsAsTheValueThatItIsGiven) {
  for_every_size([]<std::size_t N>() {
    EXPECT_EQ(Cell<Bytes<N>>(filled<N>(3)).load(), filled<N>(3));
    EXPECT_EQ(Versioned<Bytes<N>>(filled<N>(3)).load(), filled<N>(3));
  });
  struct Row {
    Cell<int> step{7};
  };
  EXPECT_EQ(Row{}.step.load(), 7);
}

TEST(Cell, KeepsValuesOfEverySize) {
  for_every_size([]<std::size_t N>() {
    Cell<Bytes<N>> cell;
    Versioned<Bytes<N>> versioned;
    for (unsigned i = 1; i < 10; ++i) {
      const auto value = filled<N>(static_cast<std::uint8_t>(i * 23));
      cell = value;
      versioned = value;
      ASSERT_EQ(cell.load(), value) << N << " bytes";
      ASSERT_EQ(versioned.load(), value) << N << " bytes";
      ASSERT_EQ(versioned.version(), i);
    }
  });
}

TEST(Cell, TakesAWordOrTwoSlotsOfLines) {
  EXPECT_EQ(sizeof(Cell<Bytes<1>>), 1U);
  EXPECT_EQ(sizeof(Cell<Bytes<3>>), 4U);
  EXPECT_EQ(sizeof(Cell<Bytes<5>>), 8U);
  EXPECT_EQ(alignof(Cell<Bytes<5>>), 8U);
  EXPECT_EQ(sizeof(Cell<Bytes<8>>), 8U);
  EXPECT_EQ(sizeof(Cell<Bytes<9>>), 128U);
  EXPECT_EQ(sizeof(Cell<Bytes<56>>), 128U);
  EXPECT_EQ(sizeof(Cell<Bytes<57>>), 256U);
  EXPECT_EQ(sizeof(Cell<Bytes<64>>), 256U);
  EXPECT_EQ(sizeof(Versioned<Bytes<1>>), 128U);
  EXPECT_EQ(sizeof(Versioned<Bytes<1000>>), 2U * 18U * 64U);
}

TEST(Cell, ReadsAsItsValue) {
  Cell<int> step = 3;
  const int plain = step;
  EXPECT_EQ(plain, 3);
  EXPECT_EQ(step + 1, 4);
  Cell<double> load;
  load = step;
  EXPECT_EQ(load, 3.0);
  Versioned<int> version = 5;
  const int of_version = version;
  EXPECT_EQ(of_version, 5);
  EXPECT_EQ(version + step, 8);
  step = version;
  EXPECT_EQ(step, 5);
}

TEST(Cell, ConvertsToItsValueAndFromItWhateverItsKind) {
  const auto both_ways = []<class Entry, class T>(Entry, T) {
    return std::is_convertible_v<const Entry&, T> && std::is_convertible_v<T, Entry>;
  };
  EXPECT_TRUE(both_ways(Cell<int>(), 0));
  EXPECT_TRUE(both_ways(Cell<Bytes<40>>(), Bytes<40>()));
  EXPECT_TRUE(both_ways(Versioned<int>(), 0));
  EXPECT_TRUE(both_ways(Versioned<Bytes<400>>(), Bytes<400>()));
}

TEST(Cell, CountsLikeItsType) {
  Cell<std::uint8_t> small = std::uint8_t{250};
  small += 10;
  EXPECT_EQ(small, 4);
  ++small;
  EXPECT_EQ(small, 5);
  Cell<double> real;
  real += 0.5;
  EXPECT_EQ(real, 0.5);
}

TEST(Cell, IsAssignedFromAnotherCell) {
  Cell<int> a = 4;
  Cell<int> b;
  b = a;
  EXPECT_EQ(b, 4);
  Cell<Bytes<40>> wide = filled<40>(1);
  Cell<Bytes<40>> copy;
  copy = wide;
  EXPECT_EQ(copy.load(), filled<40>(1));
  copy = *&copy;
  EXPECT_EQ(copy.load(), filled<40>(1));
}

TEST(Versioned, ItsCopyKnowsHowOftenItChanged) {
  Versioned<Bytes<100>> original;
  for (int i = 0; i < 5; ++i) original = filled<100>(static_cast<std::uint8_t>(i));
  const Versioned<Bytes<100>> copy = original;
  EXPECT_EQ(copy.version(), 5U);
  EXPECT_EQ(copy.load(), filled<100>(4));
}

TEST(Versioned, AssignedFromAnotherItHasChangedOnce) {
  Versioned<int> original;
  original = 1;
  original = 2;
  Versioned<int> other;
  other = original;
  EXPECT_EQ(other.load(), 2);
  EXPECT_EQ(other.version(), 1U);
}

TEST(Versioned, GoesOnWhereItsVersionWraps) {
  Versioned<Bytes<100>> entry;
  entry = filled<100>(1);
  entry = filled<100>(2);
  stamp_slot(entry, 1, UINT32_MAX);      // as after 2^32 - 1 stores
  stamp_slot(entry, 0, UINT32_MAX - 1);  // and the one before
  EXPECT_EQ(entry.version(), UINT32_MAX);
  EXPECT_EQ(entry.load(), filled<100>(1));
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto value = filled<100>(static_cast<std::uint8_t>(10 + i));
    entry = value;
    EXPECT_EQ(entry.version(), i);
    EXPECT_EQ(entry.load(), value);
  }
}

TEST(Versioned, WrapsAlsoWhereStampsTurnNegative) {
  Versioned<int> entry;
  stamp_slot(entry, 1, 0x7fffffff);
  stamp_slot(entry, 0, 0x7ffffffe);
  entry = 8;
  EXPECT_EQ(entry.version(), 0x80000000U);
  EXPECT_EQ(entry.load(), 8);
  entry = 9;
  EXPECT_EQ(entry.version(), 0x80000001U);
  EXPECT_EQ(entry.load(), 9);
}

TEST(Versioned, ShowsTheOlderValueWhileTheNewerIsTorn) {
  for (const std::size_t torn_line : {0U, 1U}) {
    Versioned<Bytes<100>> entry;
    entry = filled<100>(1);
    entry = filled<100>(2);  // slot 0, stamp 2
    write_stamp(bytes_of(entry) + torn_line * kCacheLineBytes, 4);
    EXPECT_EQ(entry.load(), filled<100>(1)) << "line " << torn_line;
  }
}

TEST(Versioned, DoesNotMixLinesOfTwoStamps) {
  Versioned<Bytes<100>> entry;
  entry = filled<100>(1);
  entry = filled<100>(2);
  // The first line of the newer slot is whole, but of a later value than the second.
  write_stamp(bytes_of(entry), 4);
  write_stamp(bytes_of(entry) + kCacheLineBytes - 4, 4);
  EXPECT_EQ(entry.load(), filled<100>(1));
}

TEST(Versioned, ReturnsEvenIfNoSlotIsEverWhole) {
  Versioned<Bytes<100>> entry(filled<100>(7));
  write_stamp(bytes_of(entry), 77);
  write_stamp(bytes_of(entry) + sizeof(entry) / 2, 78);
  EXPECT_EQ(entry.load(), Bytes<100>{}) << "the initial value";
}

TEST(Versioned, SurvivesAnyBytes) {
  std::uint64_t state = 1;
  const auto next = [&state] {
    return state = state * 6364136223846793005U + 1442695040888963407U;
  };
  Versioned<Bytes<120>> entry;
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i + 8 <= sizeof entry; i += 8) {
      const std::uint64_t word = next() >> (round % 60);
      std::memcpy(bytes_of(entry) + i, &word, sizeof word);
    }
    static_cast<void>(entry.load());
    entry = filled<120>(9);
    static_cast<void>(entry.version());
  }
}

}  // namespace
}  // namespace dunlin
