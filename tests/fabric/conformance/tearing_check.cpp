#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>

#include "fabric/conformance/stamped_line.hpp"

/// The tests of the tearing tests: their check accepts every line that the promised orders can
/// yield, and catches every wrong order.
namespace dunlin::conformance {

namespace {

using WordOrder = std::function<std::size_t(std::size_t step)>;
const WordOrder kAscending = [](std::size_t step) { return step; };
const WordOrder kDescending = [](std::size_t step) { return 7 - step; };

struct Verdict {
  std::uint64_t accepted = 0;
  std::uint64_t accepted_but_torn = 0;
};

/// Every way in which one fetch of a line can fall among the word stores of two placements.
class Interleavings {
 public:
  Interleavings(WordOrder writer, WordOrder reader)
      : writer_(std::move(writer)), reader_(std::move(reader)) {
    for (std::size_t step = 0; step <= kStores; ++step) memory_[step] = after(step);
  }
  Verdict all() {
    load_from(0, 0);
    return verdict_;
  }

 private:
  static constexpr std::size_t kStores = 16;

  [[nodiscard]] StampedLine after(std::size_t stores) const {
    StampedLine line;
    line.stamp(1);
    for (std::size_t s = 0; s < stores; ++s) {
      const std::size_t word = writer_(s % 8);
      line.words[word] = StampedLine::word_of(2 + s / 8, word);
    }
    return line;
  }

  void load_from(std::size_t load, std::size_t earliest) {
    if (load == 8) {
      if (fetched_.accepted()) ++verdict_.accepted;
      if (fetched_.accepted() && fetched_.torn()) ++verdict_.accepted_but_torn;
      return;
    }
    for (std::size_t stores = earliest; stores <= kStores; ++stores) {
      const std::size_t word = reader_(load);
      fetched_.words[word] = memory_[stores].words[word];
      load_from(load + 1, stores);
    }
  }

  WordOrder writer_;
  WordOrder reader_;
  std::array<StampedLine, kStores + 1> memory_;
  StampedLine fetched_;
  Verdict verdict_;
};

}  // namespace

TEST(TearingCheck, AcceptsNoTornLineInAnyInterleavingOfThePromisedOrders) {
  const Verdict verdict = Interleavings(kAscending, kDescending).all();
  EXPECT_EQ(verdict.accepted,
            3U);  // one a stamp: nobody stores between the first load and the last
  EXPECT_EQ(verdict.accepted_but_torn, 0U);
}

TEST(TearingCheck, CatchesAReaderInTheWritersOrder) {
  EXPECT_GT(Interleavings(kAscending, kAscending).all().accepted_but_torn, 0U);
}

TEST(TearingCheck, CatchesAWriterInTheReadersOrder) {
  EXPECT_GT(Interleavings(kDescending, kDescending).all().accepted_but_torn, 0U);
}

TEST(TearingCheck, CatchesAWriterThatPlacesTheStampsFirst) {
  const WordOrder ends_first = [](std::size_t step) { return step < 2 ? step * 7 : step - 1; };
  EXPECT_GT(Interleavings(ends_first, kDescending).all().accepted_but_torn, 0U);
}

TEST(TearingCheck, CatchesAWrongWriterInTheAct) {
  StampedLine line;
  std::atomic<bool> caught{false};
  std::jthread writer([&] {
    for (std::uint64_t stamp = 1; !caught; ++stamp) {
      memory::store(line.words[0], stamp);
      memory::store(line.words[7], stamp);
      std::this_thread::yield();
      for (std::size_t i = 1; i < 7; ++i) {
        memory::store(line.words[i], StampedLine::word_of(stamp, i));
      }
    }
  });
  StampedLine fetched;
  while (!caught) {
    memory::fetch(&fetched, &line, sizeof line);
    if (fetched.accepted() && fetched.torn()) caught = true;
  }
  EXPECT_TRUE(caught);
}

}  // namespace dunlin::conformance
