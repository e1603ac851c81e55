#include <array>
#include <utility>
#include <vector>

#include "remote/two_members.hpp"
#include "support/cluster.hpp"

namespace dunlin::remote {
namespace {

struct Protocols : TwoMembers {
  using TwoMembers::TwoMembers;
  Words reader = words();
};

/// Each function is a protocol, and waits for what the test sets.
struct Steps {
  Progress& progress;
  RegionId box;
  bool open = false;
  std::vector<int> log = {};
  Words words{progress, box};

  /// Waits at the depth 0 of protocols that await one another.
  Protocol<Status> nested(int depth) {
    const Leaving leaving(log, depth);
    Status status = Status::ok;
    if (depth > 0)
      status = co_await nested(depth - 1);
    else
      co_await Until([this] { return open; });
    log.push_back(10 + depth);
    co_return status;
  }
  Protocol<Word> sum(Rank first, Rank second) {
    const Word one = co_await words.get(first);
    if (one.status != Status::ok) co_return one;
    const Word other = co_await words.get(second);
    co_return Word{other.status, one.value + other.value};
  }
  Protocol<Status> detached(int who) {
    const Leaving leaving(log, who);
    co_await Until([this] { return open; });
    log.push_back(10 + who);
    co_return Status::ok;
  }
};

TEST_F(Protocols, AwaitOthers) {
  Steps steps{*progress[0], boxes[0].id()};
  const Call<Word> call(*progress[0], steps.sum(0, 1));
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.ok());
  EXPECT_EQ(call.result().value, 83U);
}

TEST_F(Protocols, AwaitOthersToAnyDepth) {
  Steps steps{*progress[0], boxes[0].id()};
  const Call<Status> call(*progress[0], steps.nested(3));
  EXPECT_EQ(in_flight(), 1U);
  world.run_for(10'000);
  EXPECT_FALSE(call.finished());
  steps.open = true;
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_EQ(steps.log, (std::vector{10, 0, 11, 1, 12, 2, 13, 3}));
}

/// By REM-3 what a given-up protocol holds is given back: the innermost first.
TEST_F(Protocols, GivenUpOnesAreDestroyedFromTheInside) {
  Steps steps{*progress[0], boxes[0].id()};
  {
    Call<Status> call(*progress[0], steps.nested(3));
    call.abandon();
    EXPECT_EQ(steps.log, (std::vector{0, 1, 2, 3}));
  }
  const Call<Status> late(*progress[0], steps.nested(1), 5'000);
  EXPECT_TRUE(until([&] { return late.finished(); }));
  EXPECT_EQ(late.status(), Status::timed_out);
  EXPECT_EQ(steps.log, (std::vector{0, 1, 2, 3, 0, 1}));
}

TEST_F(Protocols, OnesThatHaveNotBegunHoldNothing) {
  Steps steps{*progress[0], boxes[0].id()};
  { const auto never = steps.nested(2); }
  EXPECT_TRUE(steps.log.empty());
}

// --- what they await -----------------------------------------------------------------------------

struct AwaitingCalls {
  Progress& progress;
  Call<Word>& call;
  Protocol<Word> get() { co_return co_await call; }
  Protocol<Word> get_below() {
    const Word got = co_await get();
    co_await UntilTime(progress.fabric(), progress.fabric().now_ns() + 100);
    co_return got;
  }
};

TEST_F(Protocols, AwaitACall) {
  auto awaited = reader.call(1);
  AwaitingCalls awaiting{*progress[0], awaited};
  const Call<Word> call(*progress[0], awaiting.get()), below(*progress[0], awaiting.get_below());
  EXPECT_FALSE(call.finished());
  EXPECT_TRUE(until([&] { return call.finished() && below.finished(); }));
  EXPECT_EQ(call.result().value, 42U);
  EXPECT_EQ(below.result().value, 42U);
  const Call<Word> later(*progress[0], awaiting.get());  // has ended at once
  EXPECT_EQ(later.result().value, 42U);
}

TEST_F(Protocols, OnesThatAwaitACallMayGoFirst) {
  auto awaited = reader.call(1);
  AwaitingCalls awaiting{*progress[0], awaited};
  { const Call<Word> call(*progress[0], awaiting.get_below()); }
  EXPECT_TRUE(until([&] { return awaited.finished(); }));
  EXPECT_EQ(awaited.result().value, 42U);
}

TEST_F(Protocols, SeeThatTheCallThatTheyAwaitIsGivenUp) {
  auto awaited = reader.call(1);
  AwaitingCalls awaiting{*progress[0], awaited};
  const Call<Word> call(*progress[0], awaiting.get());
  awaited.abandon();
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_EQ(call.status(), Status::abandoned);
}

struct Pausing {
  Progress& progress;
  int asked = 0;
  Protocol<Status> pause(std::uint64_t ns) {
    const std::uint64_t until_ns = progress.fabric().now_ns() + ns;
    co_await UntilTime(progress.fabric(), until_ns);
    co_return progress.fabric().now_ns() >= until_ns ? Status::ok : Status::conflict;
  }
  Protocol<Status> third_question() {
    co_await Until([this] { return ++asked == 3; });
    co_return Status::ok;
  }
};

TEST_F(Protocols, PauseUntilATime) {
  Pausing pausing{*progress[0]};
  const std::uint64_t before = world.now_ns();
  const Call<Status> call(*progress[0], pausing.pause(20'000));
  const Call<Status> none(*progress[0], pausing.pause(0));
  EXPECT_TRUE(none.ok());
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.ok());
  EXPECT_LT(world.now_ns() - before, 40'000U);
}

TEST_F(Protocols, AskAConditionOnceInEachPoll) {
  Pausing pausing{*progress[0]};
  const Call<Status> call(*progress[0], pausing.third_question());
  EXPECT_EQ(pausing.asked, 1);
  progress[0]->poll();
  EXPECT_EQ(pausing.asked, 2);
  progress[0]->poll();
  EXPECT_TRUE(call.ok());
  progress[0]->poll();
  EXPECT_EQ(pausing.asked, 3);
}

// --- posting -------------------------------------------------------------------------------------

/// Says what the test sets, and counts what it is told.
struct Scripted {
  Status now_is = Status::ok;
  Status refused_is = Status::ok;
  int asked = 0, refused_count = 0, posted_count = 0, taken_count = 0;
};
struct ScriptedGate {
  Scripted* script;
  [[nodiscard]] Status now() const noexcept {
    ++script->asked;
    return script->now_is;
  }
  [[nodiscard]] Status refused() const noexcept {
    ++script->refused_count;
    return script->refused_is;
  }
  void posted() const noexcept { ++script->posted_count; }
  void taken() const noexcept { ++script->taken_count; }
};
struct Writer {
  Progress& progress;
  RegionId box;
  Scripted script = {};

  Protocol<Status> write_one(Rank to, std::uint64_t at, const std::uint64_t& from) {
    co_return co_await post(progress.fabric(), write(to, box, at, &from, 8), ScriptedGate{&script});
  }
  Protocol<Status> write_all(std::span<const std::uint64_t> from) {
    Batch<16, ScriptedGate> batch(progress.fabric(), ScriptedGate{&script});
    for (std::size_t i = 0; i < from.size(); ++i) batch.add(write(1, box, 8 * i, &from[i], 8));
    co_return co_await batch;
  }
};

TEST_F(Protocols, PostWhenTheGateSaysSo) {
  Writer writer{*progress[0], boxes[0].id()};
  writer.script.now_is = Status::under_way;
  const std::uint64_t value = 7;
  const Call<Status> call(*progress[0], writer.write_one(1, 0, value));
  world.run_for(100'000);
  EXPECT_FALSE(call.finished());
  EXPECT_EQ(writer.script.posted_count, 0);
  EXPECT_EQ(memory::load(word(1)), 42U);
  writer.script.now_is = Status::ok;
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.ok());
  EXPECT_EQ(memory::load(word(1)), 7U);
  EXPECT_EQ(writer.script.posted_count, 1);
  EXPECT_EQ(writer.script.taken_count, 1);
}

TEST_F(Protocols, EndWhenTheGateSaysNever) {
  Writer writer{*progress[0], boxes[0].id()};
  writer.script.now_is = Status::conflict;
  const std::uint64_t value = 7;
  const Call<Status> call(*progress[0], writer.write_one(1, 0, value));
  EXPECT_EQ(call.status(), Status::conflict);
  writer.script.now_is = Status::under_way;
  const Call<Status> later(*progress[0], writer.write_one(1, 0, value));
  EXPECT_FALSE(later.finished());
  writer.script.now_is = Status::lost;
  EXPECT_TRUE(until([&] { return later.finished(); }));
  EXPECT_EQ(later.status(), Status::lost);
  world.run_for(100'000);
  EXPECT_EQ(memory::load(word(1)), 42U);
}

TEST_F(Protocols, EndWhenTheFabricRefusesForEver) {
  Writer writer{*progress[0], boxes[0].id()};
  const std::uint64_t value = 7;
  const Call<Status> call(*progress[0], writer.write_one(1, 4096, value));
  EXPECT_EQ(call.status(), Status::out_of_range);
  EXPECT_EQ(writer.script.refused_count, 0);
}

/// By REM-2 what waits for a member's memory ends when its gate says that there will be none.
TEST_F(Protocols, AskTheGateWhatAMissingRegionMeans) {
  const Region own = world.fabric(0).allocate({.name = "nowhere else", .bytes = 64});
  world.fabric(0).announce(own);
  Writer writer{*progress[0], own.id()};
  const std::uint64_t value = 7;
  const Call<Status> call(*progress[0], writer.write_one(1, 0, value));
  world.run_for(10'000);
  EXPECT_FALSE(call.finished());
  EXPECT_GT(writer.script.refused_count, 0);
  writer.script.refused_is = Status::lost;
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_EQ(call.status(), Status::lost);
}

TEST_F(Protocols, PostABatchInOneGo) {
  Writer writer{*progress[0], boxes[0].id()};
  const std::array<std::uint64_t, 3> values{1, 2, 3};
  const Call<Status> call(*progress[0], writer.write_all(values));
  EXPECT_EQ(writer.script.posted_count, 1);
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.ok());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(memory::load(word(1, i)), values[i]);
}

TEST_F(Protocols, ABatchWithoutOperationsHasEnded) {
  Writer writer{*progress[0], boxes[0].id()};
  const Call<Status> call(*progress[0], writer.write_all({}));
  EXPECT_TRUE(call.ok());
  EXPECT_EQ(in_flight(), 0U);
}

struct NarrowProtocols : Protocols {
  NarrowProtocols() : Protocols(test::narrow_profile()) {}
};

TEST_F(NarrowProtocols, PostTheRestOfABatchWhenThereIsRoom) {
  Writer writer{*progress[0], boxes[0].id()};
  const std::array<std::uint64_t, 9> values{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Call<Status> call(*progress[0], writer.write_all(values));
  EXPECT_EQ(writer.script.posted_count, 1) << "of a part";
  EXPECT_GT(writer.script.refused_count, 0);
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.ok());
  EXPECT_EQ(writer.script.posted_count, 1);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(memory::load(word(1, i)), values[i]);
}

TEST_F(NarrowProtocols, GivenUpInTheMiddleOfABatchPostNothingMore) {
  Writer writer{*progress[0], boxes[0].id()};
  const std::array<std::uint64_t, 9> values{1, 2, 3, 4, 5, 6, 7, 8, 9};
  { const Call<Status> call(*progress[0], writer.write_all(values)); }
  world.run_for(1'000'000);
  EXPECT_EQ(memory::load(word(1, 8)), 0U);
  EXPECT_EQ(writer.script.posted_count, 1) << "of a part";
}

TEST_F(Protocols, EndAsLostWithAFailedMember) {
  Writer writer{*progress[0], boxes[0].id()};
  world.cut(0, 1);
  const std::uint64_t value = 7;
  const Call<Status> call(*progress[0], writer.write_one(1, 0, value));
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.status() == Status::lost || call.status() == Status::stopped);
}

// --- protocols that nobody waits for -------------------------------------------------------------

TEST_F(Protocols, RunWithoutACall) {
  Steps steps{*progress[0], boxes[0].id()};
  Runs runs(*progress[0]);
  EXPECT_TRUE(runs.empty());
  ProtocolState* first = nullptr;
  EXPECT_TRUE(runs.start(steps.detached(1), first));
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(runs.start(steps.detached(2)));
  EXPECT_TRUE(runs.start(steps.detached(3)));
  EXPECT_EQ(runs.size(), 3U);
  EXPECT_EQ(in_flight(), 0U) << "the layer advances them";
  EXPECT_EQ(runs.advance(), 0U);
  steps.open = true;
  runs.advance(*first);
  EXPECT_EQ(steps.log, (std::vector{11, 1}));
  EXPECT_EQ(runs.size(), 2U);
  EXPECT_GE(runs.advance(), 2U);
  EXPECT_TRUE(runs.empty());
  EXPECT_EQ(steps.log, (std::vector{11, 1, 12, 2, 13, 3}));
  ProtocolState* last = first;
  EXPECT_TRUE(runs.start(steps.detached(4), last));
  EXPECT_EQ(last, nullptr) << "it has ended at once";
}

TEST_F(Protocols, AreGivenUpWithTheirRuns) {
  Steps steps{*progress[0], boxes[0].id()};
  {
    Runs runs(*progress[0]);
    EXPECT_TRUE(runs.start(steps.detached(1)));
    EXPECT_TRUE(runs.start(steps.nested(1)));
    runs.end_all(Status::abandoned);
    EXPECT_TRUE(runs.empty());
    EXPECT_EQ(steps.log, (std::vector{1, 0, 1}));
    EXPECT_TRUE(runs.start(steps.detached(2)));
  }
  EXPECT_EQ(steps.log, (std::vector{1, 0, 1, 2}));
}

TEST_F(Protocols, EndWithAStoppedMember) {
  Steps steps{*progress[0], boxes[0].id()};
  Runs runs(*progress[0]);
  EXPECT_TRUE(runs.start(steps.detached(1)));
  EXPECT_EQ(runs.advance(true), 1U);
  EXPECT_TRUE(runs.empty());
  EXPECT_EQ(steps.log, (std::vector{1}));
}

/// A destructor hands what it cannot do itself to a protocol that nobody waits for.
struct HandingOver {
  Progress& progress;
  RegionId box;
  std::uint64_t before = 0;
  Runs runs{progress};

  Protocol<Status> hold() {
    struct Held {
      HandingOver& layer;
      ~Held() { layer.runs.start(layer.give_back()); }
    } const held{*this};
    co_await Until([] { return false; });
    co_return Status::ok;
  }
  Protocol<Status> give_back() {
    co_return co_await post(progress.fabric(), fetch_add(1, box, 0, 100, &before));
  }
};

TEST_F(Protocols, AreContinuedByOthersWhenTheyAreGivenUp) {
  HandingOver layer{*progress[0], boxes[0].id()};
  { const Call<Status> call(*progress[0], layer.hold()); }
  EXPECT_EQ(layer.runs.size(), 1U);
  EXPECT_TRUE(until([&] {
    layer.runs.advance();
    return layer.runs.empty();
  }));
  EXPECT_EQ(memory::load(word(1)), 142U);
  EXPECT_EQ(layer.before, 42U);
}

}  // namespace
}  // namespace dunlin::remote
