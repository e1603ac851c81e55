#include <array>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>
#include <dunlin/remote.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"

namespace dunlin::remote {
namespace {

using test::contains;
using test::what_is_thrown_by;

/// Reads a word of a peer; counts what happens to it.
class Read final : public InFlight {
 public:
  Read(Progress& progress, Rank peer, RegionId region, std::uint64_t timeout_ns = kForever)
      : InFlight(progress), peer_(peer), region_(region) {
    start(timeout_ns);
  }
  ~Read() override { abandon(); }
  [[nodiscard]] Status await_resume() const noexcept { return status(); }
  std::uint64_t value = 0;
  int cleaned = 0;

 private:
  void advance() noexcept override {
    if (completion_.failed()) return end(Status::lost);
    if (!posted_)
      posted_ =
          progress_->fabric().post(read(peer_, region_, 0, &value, 8).notify(completion_)).all();
    if (posted_ && completion_.finished()) end(Status::ok);
  }
  void clean_up() noexcept override { ++cleaned; }
  Rank peer_;
  RegionId region_;
  bool posted_ = false;
};

/// Two simulated members, each with a word that the other can read: 41 and 42.
struct InSimulation : testing::Test {
  InSimulation() : world(sim::profile("ib100"), 2, 1) {
    for (Rank rank = 0; rank < 2; ++rank) {
      progress[rank] = std::make_unique<Progress>(world.fabric(rank));
      boxes[rank] = world.fabric(rank).allocate({.name = "box", .bytes = 64});
      memory::store(*reinterpret_cast<std::uint64_t*>(boxes[rank].memory().data()), 41 + rank);
      world.fabric(rank).announce(boxes[rank]);
      world.attach(rank, [this, rank] { return progress[rank]->poll(); });
    }
    world.run_for(100'000);
  }
  bool until(const std::function<bool()>& condition) {
    return world.run_until(condition, 100'000'000);
  }
  sim::World world;
  std::array<Region, 2> boxes;
  std::array<std::unique_ptr<Progress>, 2> progress;
};

/// By REM-1 an operation ends exactly once.
TEST_F(InSimulation, EndsWithAResult) {
  Read operation(*progress[0], 1, boxes[0].id());
  EXPECT_FALSE(operation.finished());
  EXPECT_EQ(progress[0]->in_flight(), 1U);
  EXPECT_TRUE(until([&] { return operation.finished(); }));
  EXPECT_EQ(operation.status(), Status::ok);
  EXPECT_EQ(operation.value, 42U);
  EXPECT_EQ(operation.cleaned, 1);
  EXPECT_EQ(progress[0]->in_flight(), 0U);
}

TEST_F(InSimulation, HundredsAreUnderWayAtOnce) {
  const std::uint64_t started = world.now_ns();
  Read alone(*progress[0], 1, boxes[0].id());
  EXPECT_TRUE(until([&] { return alone.finished(); }));
  const std::uint64_t alone_ns = world.now_ns() - started;
  std::vector<std::unique_ptr<Read>> all;
  for (int i = 0; i < 500; ++i)
    all.push_back(std::make_unique<Read>(*progress[0], 1, boxes[0].id()));
  const std::uint64_t before = world.now_ns();
  EXPECT_TRUE(until([&] { return progress[0]->in_flight() == 0; }));
  for (const auto& one : all) EXPECT_EQ(one->value, 42U);
  EXPECT_LT(world.now_ns() - before, 500 * alone_ns / 2) << "one after the other";
}

TEST_F(InSimulation, IsWaitedForByAStraightProgram) {
  Read first(*progress[0], 1, boxes[0].id()), second(*progress[0], 0, boxes[0].id());
  EXPECT_TRUE(wait_all({&first, &second}));
  EXPECT_EQ(first.value + second.value, 83U);
}

TEST_F(InSimulation, AWaitEndsAtItsDeadlineAndTheOperationGoesOn) {
  Read operation(*progress[0], 1, boxes[0].id());
  EXPECT_EQ(operation.wait(10), Status::under_way);
  EXPECT_EQ(operation.wait(), Status::ok);
}

TEST_F(InSimulation, ADeadlineOfItsOwnEndsIt) {
  world.cut(1, 0);
  Read operation(*progress[0], 1, boxes[0].id(), 5'000);
  EXPECT_TRUE(until([&] { return operation.finished(); }));
  EXPECT_EQ(operation.status(), Status::timed_out);
}

/// REM-4 lets a callback destroy its operation and start others.
TEST_F(InSimulation, ACallbackMayDestroyItsOperationAndBeginAnother) {
  auto first = std::make_unique<Read>(*progress[0], 1, boxes[0].id());
  std::unique_ptr<Read> second;
  bool called = false;
  first->then([&] {
    first.reset();
    second = std::make_unique<Read>(*progress[0], 1, boxes[0].id());
    second->then([&] { called = true; });
  });
  EXPECT_TRUE(until([&] { return called; }));
  second->then([&] { called = false; });  // it has ended: at once
  EXPECT_FALSE(called);
}

/// By REM-3 an abandoned operation writes and calls nothing later.
TEST_F(InSimulation, AnAbandonedOneEndsAndCallsNothing) {
  Read operation(*progress[0], 1, boxes[0].id());
  bool called = false;
  operation.then([&] { called = true; });
  operation.abandon();
  EXPECT_EQ(operation.status(), Status::abandoned);
  EXPECT_EQ(operation.cleaned, 1);
  world.run_for(1'000'000);
  EXPECT_FALSE(called);
  EXPECT_EQ(operation.value, 0U);
}

TEST_F(InSimulation, WaitingInACallbackIsAnError) {
  Read first(*progress[0], 1, boxes[0].id()), second(*progress[0], 1, boxes[0].id());
  std::string said;
  first.then([&] { said = what_is_thrown_by([&] { second.wait(); }); });
  EXPECT_TRUE(until([&] { return !said.empty(); }));
  EXPECT_TRUE(contains(said, "use then() or co_await")) << said;
}

/// By REM-2 no operation hangs because a member died.
TEST_F(InSimulation, AFixedListStopsWhenAMemberDies) {
  world.crash(1);
  Read operation(*progress[0], 1, boxes[0].id());
  EXPECT_TRUE(until([&] { return operation.finished() && progress[0]->stopped(); }));
  EXPECT_NE(operation.status(), Status::ok);
  Read later(*progress[0], 0, boxes[0].id());
  EXPECT_EQ(later.status(), Status::stopped);
  EXPECT_TRUE(contains(progress[0]->members().why_stopped(), "'node1' has failed"));
}

Job sum(Progress& progress, RegionId box, std::uint64_t& result) {
  Read here(progress, 0, box);
  static_cast<void>(co_await here);
  Read there(progress, 1, box);
  const Status status = co_await there;
  result = status == Status::ok ? here.value + there.value : 0;
}

TEST_F(InSimulation, ACoroutineAwaitsOneAfterTheOther) {
  std::uint64_t result = 0;
  const Job job = sum(*progress[0], boxes[0].id(), result);
  EXPECT_FALSE(job.finished());
  EXPECT_TRUE(until([&] { return job.finished(); }));
  job.check();
  EXPECT_EQ(result, 83U);
}

TEST_F(InSimulation, ACoroutineThatIsDestroyedAbandonsWhatItAwaits) {
  std::uint64_t result = 0;
  {
    const Job job = sum(*progress[0], boxes[0].id(), result);
    EXPECT_EQ(progress[0]->in_flight(), 1U);
  }
  EXPECT_EQ(progress[0]->in_flight(), 0U);
  world.run_for(1'000'000);
  EXPECT_EQ(result, 0U);
}

Job await_that(Read& operation, bool& resumed) {
  static_cast<void>(co_await operation);
  resumed = true;
}

TEST_F(InSimulation, ACoroutineMayEndBeforeWhatItAwaits) {
  bool resumed = false;
  Read operation(*progress[0], 1, boxes[0].id());
  { const Job job = await_that(operation, resumed); }
  EXPECT_TRUE(until([&] { return operation.finished(); }));
  EXPECT_FALSE(resumed);
}

TEST_F(InSimulation, WhatACoroutineAwaitsMayEndBeforeIt) {
  bool resumed = false;
  auto operation = std::make_unique<Read>(*progress[0], 1, boxes[0].id());
  const Job job = await_that(*operation, resumed);
  operation.reset();
  world.run_for(1'000'000);
  EXPECT_FALSE(resumed);
}

TEST_F(InSimulation, OneCoroutineAwaitsAnOperation) {
  bool one = false, other = false;
  Read operation(*progress[0], 1, boxes[0].id());
  const Job job = await_that(operation, one);
  const Job second = await_that(operation, other);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { second.check(); }), "another coroutine awaits"));
  EXPECT_TRUE(until([&] { return job.finished(); }));
  EXPECT_TRUE(one);
  EXPECT_FALSE(other);
}

TEST(InFlightOnShm, HasEndedWhenTheCallReturns) {
  const auto fabric = join({.group = test::fresh_group(), .members = 1});
  Progress progress(*fabric);
  const Region box = fabric->allocate({.name = "box", .bytes = 64});
  fabric->announce(box);
  const Read operation(progress, 0, box.id());
  EXPECT_EQ(operation.status(), Status::ok);
}

}  // namespace
}  // namespace dunlin::remote
