#include "fabric/layout_text.hpp"

#include <string>

#include <gtest/gtest.h>

#include <dunlin/table/layout.hpp>

namespace dunlin {
namespace {

struct Row {
  Cell<int> step;
  Cell<double> load;
};

const std::string kHere = layout_of<Row>().text() + "members 0 1\nrefresh writes\n";

template <class Other>
std::string difference_to() {
  return layout_difference(layout_of<Other>().text() + "members 0 1\nrefresh writes\n", kHere);
}

TEST(LayoutDifference, NamesTheColumnOfAnotherType) {
  struct Other {
    Cell<int> step;
    Cell<float> load;
  };
  EXPECT_EQ(difference_to<Other>(),
            "column 'load' is 'f32 word @4 x1 =4 /4 +4' there and 'f64 word @8 x1 =8 /8 +8' here");
}

TEST(LayoutDifference, NamesTheColumnThatOneSideHasMore) {
  struct More {
    Cell<int> step;
    Cell<double> load;
    Cell<int> city;
  };
  struct Inserted {
    Cell<int> first;
    Cell<int> step;
    Cell<double> load;
  };
  struct Less {
    Cell<double> load;
  };
  EXPECT_EQ(difference_to<More>(), "column 'city' is only there");
  EXPECT_EQ(difference_to<Inserted>(), "column 'first' is only there");
  EXPECT_EQ(difference_to<Less>(), "column 'step' is only here");
}

TEST(LayoutDifference, NamesColumnsThatWereRenamedOrChangedPlaces) {
  struct Renamed {
    Cell<int> round;
    Cell<double> load;
  };
  struct Swapped {
    Cell<double> load;
    Cell<int> step;
  };
  EXPECT_EQ(difference_to<Renamed>(), "column 'round' there is column 'step' here");
  EXPECT_EQ(difference_to<Swapped>(),
            "column 'load' there is where column 'step' is here: their order differs");
}

TEST(LayoutDifference, NamesWhatIsNoColumn) {
  const std::string columns = layout_of<Row>().text();
  EXPECT_EQ(layout_difference(columns + "members 0 1 2\nrefresh writes\n", kHere),
            "'members' is '0 1 2' there and '0 1' here");
  EXPECT_EQ(layout_difference(columns + "members 0 1\nrefresh reads\n", kHere),
            "'refresh' is 'reads' there and 'writes' here");
  EXPECT_EQ(layout_difference("ordered, members 0", "durable, members 0"),
            "'ordered' there is 'durable' here");
  EXPECT_EQ(
      layout_difference("ordered, ring_bytes 4096, slots 0", "ordered, ring_bytes 64, slots 0"),
      "'ring_bytes' is '4096' there and '64' here");
  EXPECT_EQ(layout_difference("ordered", "ordered, without nulls"), "'without nulls' is only here");
  EXPECT_EQ(layout_difference("", kHere), "column 'step' is only here");
  EXPECT_EQ(layout_difference(kHere, ""), "column 'step' is only there");
  EXPECT_EQ(layout_difference(kHere, kHere), "their texts are the same");
}

TEST(LayoutDifference, QuotesWhatAnotherProcessWroteWithCareAndNotAllOfIt) {
  EXPECT_EQ(layout_difference("a \033[2J", "a b"), "'a' is '?[2J' there and 'b' here");
  const std::string said = layout_difference("a " + std::string(5'000, 'x'), "a b");
  EXPECT_LT(said.size(), 200U);
  EXPECT_NE(said.find("xx..' there"), std::string::npos) << said;
}

}  // namespace
}  // namespace dunlin
