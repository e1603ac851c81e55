#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/conformance/harness.hpp"

/// Atomics exclude each other, whoever posts them: peers or the owner itself.
namespace dunlin::conformance {

namespace {

constexpr std::uint32_t kNodes = 4;

/// Draws tickets from one counter.
struct Drawer {
  std::uint64_t wanted;
  std::vector<std::uint64_t> tickets{};
  std::uint64_t ticket = 0;
  bool drawing = false;
  Completion done{};

  bool step(Fabric& fabric, Rank owner, const Shared& box) {
    if (drawing && done.finished()) {
      tickets.push_back(ticket);
      drawing = false;
    }
    if (drawing) return false;
    if (tickets.size() == wanted) return true;
    const Operation draw = fetch_add(owner, box.id(fabric.rank()), 8, 1, &ticket);
    drawing = fabric.post(draw.notify(done)).all();
    return false;
  }
};

/// Takes a lock by compare_swap, adds one to a plain counter by read and write, and unlocks.
class Locker {
 public:
  Locker(Fabric& fabric, const Shared& box, std::uint64_t wanted)
      : fabric_(fabric), id_(box.id(fabric.rank())), wanted_(wanted) {}

  bool step() {
    if (!done_.finished()) return false;
    switch (state_) {
      case State::idle:
        if (turns_ == wanted_) return true;
        go(compare_swap(0, id_, kLock, 0, name(), &before_), State::locking);
        break;
      case State::locking:
        if (before_ != 0) {
          state_ = State::idle;
        } else {
          go(read(0, id_, kCounter, &counter_, 8), State::reading);
        }
        break;
      case State::reading:
        if (!adding_) {
          ++counter_;
          adding_ = true;
        }
        go(write(0, id_, kCounter, &counter_, 8), State::writing);
        break;
      case State::writing:
        adding_ = false;
        go(compare_swap(0, id_, kLock, name(), 0, &before_), State::unlocking);
        break;
      case State::unlocking:
        if (before_ != name()) ++stolen;
        ++turns_;
        state_ = State::idle;
        break;
    }
    return false;
  }

  static constexpr std::size_t kLock = 0;
  static constexpr std::size_t kCounter = 64;
  std::uint64_t stolen = 0;

 private:
  enum class State { idle, locking, reading, writing, unlocking };
  [[nodiscard]] std::uint64_t name() const { return fabric_.rank() + 1; }
  /// Stays in the old state, to try again, if the queue is full.
  void go(const Operation& operation, State next) {
    if (fabric_.post(operation.notify(done_, Notify::remotely)).all()) state_ = next;
  }

  Fabric& fabric_;
  RegionId id_;
  std::uint64_t wanted_;
  std::uint64_t turns_ = 0;
  std::uint64_t before_ = 0;
  std::uint64_t counter_ = 0;
  bool adding_ = false;
  State state_ = State::idle;
  Completion done_;
};

}  // namespace

TEST_P(Atomics, EveryTicketIsDrawnOnceAlsoByTheOwner) {
  start(kNodes);
  const Shared box = share("box", 64);
  constexpr std::uint64_t kEach = 600;
  std::array<Drawer, kNodes> drawers{Drawer{kEach}, Drawer{kEach}, Drawer{kEach}, Drawer{kEach}};
  std::vector<Program> programs;
  for (Rank r = 0; r < kNodes; ++r) {
    programs.push_back([&, r] { return drawers[r].step(node(r), 0, box); });
  }
  run("all tickets are drawn", programs);
  EXPECT_EQ(box.load(0, 8), kNodes * kEach);
  std::vector<std::uint64_t> all;
  for (const Drawer& drawer : drawers) {
    EXPECT_TRUE(std::is_sorted(drawer.tickets.begin(), drawer.tickets.end()));
    all.insert(all.end(), drawer.tickets.begin(), drawer.tickets.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<std::uint64_t> expected(kNodes * kEach);
  for (std::uint64_t i = 0; i < expected.size(); ++i) expected[i] = i;
  EXPECT_EQ(all, expected);
}

TEST_P(Atomics, CompareSwapMakesALock) {
  start(kNodes);
  const Shared box = share("box", 128);
  constexpr std::uint64_t kTurns = 60;
  std::vector<std::unique_ptr<Locker>> lockers;
  std::vector<Program> programs;
  for (Rank r = 0; r < kNodes; ++r) {
    lockers.push_back(std::make_unique<Locker>(node(r), box, kTurns));
    programs.push_back([&, r] { return lockers[r]->step(); });
  }
  run("everyone has had the lock", programs);
  EXPECT_EQ(box.load(0, Locker::kCounter), kNodes * kTurns);
  EXPECT_EQ(box.load(0, Locker::kLock), 0U);
  for (const auto& locker : lockers) EXPECT_EQ(locker->stolen, 0U);
}

TEST_P(Atomics, CompareSwapChangesOnlyWhatItExpects) {
  start(2);
  const Shared box = share("box", 64);
  std::uint64_t before = 99;
  post_and_finish(0, compare_swap(1, box.id(0), 16, 0, 7, &before), Notify::locally);
  EXPECT_EQ(before, 0U);
  EXPECT_EQ(box.load(1, 16), 7U);
  post_and_finish(0, compare_swap(1, box.id(0), 16, 0, 8, &before), Notify::locally);
  EXPECT_EQ(before, 7U);
  EXPECT_EQ(box.load(1, 16), 7U);
  post_and_finish(0, compare_swap(1, box.id(0), 16, 7, UINT64_MAX, &before), Notify::locally);
  EXPECT_EQ(before, 7U);
  EXPECT_EQ(box.load(1, 16), UINT64_MAX);
}

TEST_P(Atomics, FetchAddWrapsAround) {
  start(2);
  const Shared box = share("box", 64);
  std::uint64_t before = 0;
  post_and_finish(0, fetch_add(1, box.id(0), 0, 5, &before));
  EXPECT_EQ(before, 0U);
  post_and_finish(0, fetch_add(1, box.id(0), 0, UINT64_MAX, &before));
  EXPECT_EQ(before, 5U);
  EXPECT_EQ(box.load(1, 0), 4U);
}

TEST_P(Atomics, TouchOnlyTheirWord) {
  start(2);
  const Shared box = share("box", 64);
  memory::store(box.word(1, 0), UINT64_MAX);
  memory::store(box.word(1, 16), UINT64_MAX);
  post_and_finish(0, fetch_add(1, box.id(0), 8, UINT64_MAX, nullptr));
  post_and_finish(0, fetch_add(1, box.id(0), 8, 2, nullptr));
  EXPECT_EQ(box.load(1, 0), UINT64_MAX);
  EXPECT_EQ(box.load(1, 8), 1U);
  EXPECT_EQ(box.load(1, 16), UINT64_MAX);
}

TEST_P(Atomics, TheFormerValueIsNotAskedForWithoutAPlaceForIt) {
  start(2);
  const Shared box = share("box", 64);
  post_and_finish(0, fetch_add(1, box.id(0), 0, 3, nullptr));
  post_and_finish(0, compare_swap(1, box.id(0), 0, 3, 4, nullptr));
  EXPECT_EQ(box.load(1, 0), 4U);
}

/// By MIX-B3 processors do all atomics of the mixed fabric, so these exclude each other.
TEST_P(Atomics, OfAPeerAndOfTheOwnersCpuExcludeEachOtherWhereTheFabricSaysSo) {
  start(2);
  if (!node(0).properties().atomics_coherent_with_cpu) {
    GTEST_SKIP() << "this fabric says that its owner must use the fabric";
  }
  const Shared box = share("box", 64);
  constexpr std::uint64_t kEach = 1'500;
  std::uint64_t own = 0;
  Drawer peer{kEach};
  run("both have added", {[&] { return peer.step(node(0), 1, box); },
                          [&] {
                            if (own < kEach) {
                              memory::fetch_add(box.memory(1) + 8, 1);
                              ++own;
                            }
                            return own == kEach;
                          }});
  EXPECT_EQ(box.load(1, 8), 2 * kEach);
}

TEST_P(Atomics, OfOneNodeAreDoneInTheirOrder) {
  start(2);
  const Shared box = share("box", 64);
  constexpr std::uint64_t kSteps = 200;
  std::vector<std::uint64_t> before(kSteps, UINT64_MAX);
  Completion done;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    post(0, compare_swap(1, box.id(0), 0, i, i + 1, &before[i]).notify(done));
  }
  until_finished(done);
  for (std::uint64_t i = 0; i < kSteps; ++i) ASSERT_EQ(before[i], i);
  EXPECT_EQ(box.load(1, 0), kSteps);
}

}  // namespace dunlin::conformance
