#include <array>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>
#include <dunlin/table/layout.hpp>

#include "table/row_copy.hpp"

/// A layout's text comes from other processes, so nothing that it says is believed unchecked.
namespace dunlin {
namespace {

struct TextRow {
  Cell<int> step;
  Cell<double> cpu_load;
  Cell<std::array<std::int64_t, 4>> stamps;
  std::array<Cell<std::uint16_t>, 3> small;
  Versioned<std::array<double, 30>> config;
  List<std::uint16_t, 10> events;
};

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}
std::string refusal_of(const std::string& text) {
  return refusal([&] { static_cast<void>(Layout::parse(text)); });
}
testing::AssertionResult says(const std::string& what, const std::string& part) {
  if (what.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << what << "' does not say '" << part << "'";
}

TEST(LayoutText, ReadsAsTheManualShows) {
  struct Documented {
    Cell<int> step;
    Cell<double> cpu_load;
    Cell<std::array<std::timespec, 2>> stamps;
  };
  EXPECT_EQ(layout_of<Documented>().text(),
            "step i32 word @0 x1 =4 /4 +4\n"
            "cpu_load f64 word @8 x1 =8 /8 +8\n"
            "stamps bytes((i64*2)*2) stamped @64 x1 =32 /128 +128\n"
            "row 192\n");
}

TEST(LayoutText, IsReadBack) {
  const Layout layout = layout_of<TextRow>();
  EXPECT_EQ(Layout::parse(layout.text()), layout);
}

TEST(LayoutText, IsReadBackWhateverTheMembersAreCalled) {
  struct Awkward {
    Cell<int> row;
    Cell<int> members;
    Cell<int> refresh;
    Cell<int> i32;
  };
  const Layout layout = layout_of<Awkward>();
  EXPECT_EQ(Layout::parse(layout.text()), layout);
}

TEST(LayoutText, NamesTheLineThatItCannotRead) {
  const std::string row = "row 64\n";
  EXPECT_TRUE(says(refusal_of("step\n" + row), "line 'step': a word is missing"));
  EXPECT_TRUE(says(refusal_of("step int word @0 x1 =4 /4 +4\n" + row), "'int' is not known"));
  EXPECT_TRUE(says(refusal_of("step i32 wort @0 x1 =4 /4 +4\n" + row), "'wort' is not known"));
  for (const char* type : {"bytes(", "bytes()", "bytes(i32", "i32(i32)"}) {
    EXPECT_TRUE(says(refusal_of("step " + std::string(type) + " word @0 x1 =4 /4 +4\n" + row),
                     "expected 'bytes' with its fields"));
  }
  EXPECT_TRUE(says(refusal_of("step i32 word 0 x1 =4 /4 +4\n" + row), "expected '@'"));
  EXPECT_TRUE(says(refusal_of("step i32 word @ x1 =4 /4 +4\n" + row), "expected a number"));
  EXPECT_TRUE(says(refusal_of("step i32 word @-1 x1 =4 /4 +4\n" + row), "expected a number"));
  EXPECT_TRUE(says(refusal_of("step i32 word @99999999999999999999999 x1 =4 /4 +4\n" + row),
                   "expected a number"));
  EXPECT_TRUE(says(refusal_of("step i32 word @0 x1 =4 /4\n" + row), "expected '+'"));
  EXPECT_TRUE(says(refusal_of("step i32 word @0 x1 =4 /4 +4 more\n" + row), "more than expected"));
  EXPECT_TRUE(says(refusal_of("step i32 word @0 x1 =4 /4 +4\nrow \n"), "number of bytes"));
  EXPECT_TRUE(says(refusal_of("step i32 word @0 x1 =4 /4 +4\nrow 64 bytes\n"), "number of bytes"));
  EXPECT_TRUE(says(refusal_of("\n"), "a word is missing"));
  EXPECT_TRUE(says(refusal_of(""), "at least one column"));
}

TEST(LayoutText, RefusesColumnsThatCannotBe) {
  const auto column = [](const std::string& rest, const std::string& row = "4096") {
    return refusal_of("a " + rest + "\nrow " + row + "\n");
  };
  EXPECT_EQ(column("i32 word @0 x1 =4 /4 +4"), "accepted");
  EXPECT_TRUE(says(column("i32 word @0 x0 =4 /4 +4"), "column 'a' is empty"));
  EXPECT_TRUE(says(column("bytes word @0 x1 =0 /4 +4"), "is empty"));
  EXPECT_TRUE(says(column("i32 word @4096 x1 =4 /4 +4"), "does not fit in its row of 4096 bytes"));
  EXPECT_TRUE(says(column("i32 word @0 x2 =4 /4 +4"), "does not fit"));
  EXPECT_TRUE(says(column("i32 word @18446744073709551615 x1 =4 /4 +4"), "kMaxRowBytes"));
  EXPECT_TRUE(says(column("i32 word @0 x4611686018427387905 =4 /4 +4"), "kMaxRowBytes"));
  EXPECT_TRUE(says(column("bytes word @0 x1 =5 /4 +4"), "aligned words"));
  EXPECT_TRUE(says(column("i32 word @2 x1 =4 /4 +4"), "aligned words"));
  EXPECT_TRUE(says(column("bytes word @0 x1 =3 /3 +3"), "aligned words"));
  EXPECT_TRUE(says(column("bytes word @0 x1 =16 /16 +16"), "aligned words"));
  EXPECT_TRUE(says(column("f64 word @0 x1 =4 /4 +4"), "which 'f64' does not have"));
  EXPECT_EQ(column("bytes stamped @64 x1 =56 /128 +128"), "accepted");
  EXPECT_TRUE(says(column("bytes stamped @32 x1 =56 /128 +128"), "aligned to a cache line"));
  EXPECT_TRUE(says(column("bytes stamped @64 x1 =57 /128 +128"), "two slots of lines"));
  EXPECT_TRUE(says(column("bytes stamped @64 x1 =9 /64 +64"), "two slots of lines"));
  EXPECT_TRUE(says(column("bytes stamped @64 x1 =9 /0 +0"), "two slots of lines"));
  EXPECT_EQ(column("u64 list @64 x2 =8 /8 +80"), "accepted");
  EXPECT_TRUE(says(column("u64 list @64 x3 =8 /8 +80"), "does not fit"));
  EXPECT_TRUE(says(column("bytes list @64 x1 =9 /8 +80"), "longer than their places"));
  EXPECT_TRUE(says(column("u8 list @64 x1 =1 /4 +80"), "aligned to a cache line"));
  EXPECT_TRUE(says(column("i32 word @0 x1 =4 /4 +4", "16777217"), "kMaxRowBytes"));
}

TEST(LayoutText, RefusesColumnsThatOverlap) {
  EXPECT_TRUE(says(refusal_of("a u64 word @0 x2 =8 /8 +16\nb u64 word @8 x1 =8 /8 +8\nrow 64\n"),
                   "column 'b' overlaps the one before it"));
}

TEST(LayoutText, RefusesTooManyColumnsAndTooLongNames) {
  std::string many;
  for (std::size_t i = 0; i <= kMaxColumns; ++i)
    many += "c u8 word @" + std::to_string(i) + " x1 =1 /1 +1\n";
  EXPECT_TRUE(says(refusal_of(many + "row 64\n"), "33 columns are over kMaxColumns"));
  EXPECT_TRUE(
      says(refusal_of(std::string(kMaxLayoutTextBytes, 'x') + " u8 word @0 x1 =1 /1 +1\nrow 64\n"),
           "names of the columns are too long"));
}

TEST(LayoutText, RefusesNamesThatWouldNotPrint) {
  EXPECT_TRUE(says(refusal_of("a\x1b[31m u8 word @0 x1 =1 /1 +1\nrow 64\n"),
                   "column 'a?[31m' has blanks or control characters"));
  Layout spaced = layout_of<TextRow>();
  spaced.columns[0].name = "two words";
  EXPECT_TRUE(says(refusal([&] { spaced.check(); }), "blanks or control characters"));
}

/// Draws for the two tests below.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t operator()(std::uint64_t below) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33) % below;
  }

 private:
  std::uint64_t state_;
};

std::string mutated(std::string text, Dice& dice) {
  constexpr std::string_view kLetters = "0123456789@x=/+ \nrow word stamped list u8 bytes\x7f";
  for (std::uint64_t i = 0; i < 1 + dice(6); ++i) {
    const std::size_t at = dice(text.size());
    switch (dice(3)) {
      case 0:
        text[at] = kLetters[dice(kLetters.size())];
        break;
      case 1:
        text.erase(at, dice(8));
        break;
      default:
        text.insert(at, 1, kLetters[dice(kLetters.size())]);
    }
    if (text.empty()) text = " ";
  }
  return text;
}

/// Memory for a row of any layout, at an address as in a region.
struct RowMemory {
  explicit RowMemory(std::size_t row_bytes)
      : bytes(row_bytes),
        at(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kCacheLineBytes}))) {}
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;
  ~RowMemory() { ::operator delete (at, std::align_val_t{kCacheLineBytes}); }
  std::size_t bytes;
  std::byte* at;
};

TEST(LayoutText, WhatItAcceptsCanBeCopiedWithoutLeavingTheRow) {
  const std::string original = layout_of<TextRow>().text();
  std::size_t accepted = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Dice dice(seed);
    Layout layout;
    try {
      layout = Layout::parse(mutated(original, dice));
    } catch (const Error&) {
      continue;
    }
    if (layout.row_bytes > 1 << 16) continue;
    ++accepted;
    RowMemory from(layout.row_bytes);
    RowMemory to(layout.row_bytes);
    std::memset(to.at, 0, to.bytes);
    for (std::size_t i = 0; i < from.bytes; ++i) from.at[i] = static_cast<std::byte>(dice(256));
    row_copy::copy_row(layout, to.at, from.at);  // the address sanitizer watches
  }
  EXPECT_GT(accepted, 100U);
}

TEST(LayoutText, AcceptsOnlyWhatItWouldWriteTheSame) {
  const std::string original = layout_of<TextRow>().text();
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Dice dice(seed);
    try {
      const Layout layout = Layout::parse(mutated(original, dice));
      ASSERT_EQ(Layout::parse(layout.text()), layout) << "seed " << seed;
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace dunlin
