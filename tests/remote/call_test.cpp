#include <memory>
#include <utility>
#include <vector>

#include "remote/two_members.hpp"
#include "support/errors.hpp"

namespace dunlin::remote {
namespace {

using test::contains;
using test::what_is_thrown_by;

struct Calls : TwoMembers {
  Words reader = words();
};

/// By REM-1 a call ends exactly once.
TEST_F(Calls, EndsWithAResult) {
  const auto call = reader.call(1);
  EXPECT_FALSE(call.finished());
  EXPECT_EQ(call.status(), Status::under_way);
  EXPECT_EQ(call.result().status, Status::under_way);
  EXPECT_EQ(in_flight(), 1U);
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.ok());
  EXPECT_EQ(call.result().value, 42U);
  EXPECT_EQ(in_flight(), 0U);
  world.run_for(1'000'000);
  EXPECT_EQ(call.result().value, 42U);
}

TEST_F(Calls, ThatHasAResultAlreadyNeedsNoProtocol) {
  const Call<Word> call(*progress[0], Word{.status = Status::ok, .value = 7});
  const Call<Status> failed(*progress[0], Status::out_of_range);
  EXPECT_EQ(in_flight(), 0U);
  EXPECT_TRUE(call.finished());
  EXPECT_EQ(call.result().value, 7U);
  EXPECT_EQ(failed.result(), Status::out_of_range);
  EXPECT_FALSE(failed.ok());
}

TEST_F(Calls, HundredsAreUnderWayAtOnce) {
  const std::uint64_t started = world.now_ns();
  const auto alone = reader.call(1);
  EXPECT_TRUE(until([&] { return alone.finished(); }));
  const std::uint64_t alone_ns = world.now_ns() - started;
  std::vector<Call<Word>> all;
  for (int i = 0; i < 500; ++i) all.push_back(reader.call(1));
  const std::uint64_t before = world.now_ns();
  EXPECT_EQ(in_flight(), 500U);
  EXPECT_TRUE(until([&] { return in_flight() == 0; }));
  for (const auto& one : all) EXPECT_EQ(one.result().value, 42U);
  EXPECT_LT(world.now_ns() - before, 500 * alone_ns / 2) << "one after the other";
}

TEST_F(Calls, AreWaitedForByAStraightProgram) {
  auto first = reader.call(1), second = reader.call(0);
  EXPECT_TRUE(wait_all({&first, &second}));
  EXPECT_EQ(first.result().value + second.result().value, 83U);
  EXPECT_EQ(first.wait(), Status::ok);
  EXPECT_EQ(reader.call(1).wait(), Status::ok);
  EXPECT_EQ(reader.call(1).outcome().value, 42U);
  EXPECT_EQ(first.outcome().value, 42U);
}

TEST_F(Calls, AWaitEndsAtItsDeadlineAndTheCallGoesOn) {
  auto call = reader.call(1), other = reader.call(1);
  EXPECT_EQ(call.wait(10), Status::under_way);
  EXPECT_FALSE(wait_all({&call, &other}, 10));
  EXPECT_EQ(call.outcome(10).status, Status::under_way);
  EXPECT_TRUE(wait_all({&call, &other}));
  EXPECT_TRUE(call.ok() && other.ok());
}

TEST_F(Calls, ADeadlineOfItsOwnEndsOne) {
  world.cut(1, 0);
  const std::uint64_t before = world.now_ns();
  const auto call = reader.call(1, 5'000);
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_EQ(call.status(), Status::timed_out);
  EXPECT_EQ(call.result().value, 0U);
  EXPECT_GE(world.now_ns() - before, 5'000U);
  EXPECT_LT(world.now_ns() - before, 50'000U);
}

/// REM-4 lets a callback destroy its call and start others.
TEST_F(Calls, ACallbackMayDestroyItsCallAndBeginAnother) {
  auto first = std::make_unique<Call<Word>>(reader.call(1));
  std::unique_ptr<Call<Word>> second;
  bool called = false;
  first->then([&] {
    first.reset();
    second = std::make_unique<Call<Word>>(reader.call(1));
    second->then([&] { called = true; });
  });
  EXPECT_TRUE(until([&] { return called; }));
  second->then([&] { called = false; });  // it has ended: at once
  EXPECT_FALSE(called);
}

TEST_F(Calls, TheLastCallbackIsCalledOnce) {
  auto call = reader.call(1);
  int first = 0, last = 0;
  call.then([&] { ++first; });
  call.then([&] {
    ++last;
    EXPECT_EQ(call.result().value, 42U);
  });
  EXPECT_TRUE(until([&] { return last != 0; }));
  world.run_for(1'000'000);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(last, 1);
}

/// The list of calls holds although a callback takes its neighbours out of it.
TEST_F(Calls, ACallbackMayGiveUpTheOthers) {
  std::vector<Call<Word>> all;
  for (int i = 0; i < 5; ++i) all.push_back(reader.call(1));
  int called = 0;
  for (auto& one : all)
    one.then([&] {
      if (++called == 1)
        for (auto& other : all) other.abandon();
    });
  EXPECT_TRUE(until([&] { return called != 0; }));
  world.run_for(1'000'000);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(in_flight(), 0U);
  EXPECT_TRUE(all[0].ok());
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i].status(), Status::abandoned);
}

/// By REM-3 an abandoned call writes and calls nothing later.
TEST_F(Calls, AnAbandonedOneEndsAndCallsNothing) {
  std::uint64_t value = 0;
  Call<Status> call(*progress[0], reader.get_into(1, value));
  bool called = false;
  call.then([&] { called = true; });
  call.abandon();
  EXPECT_EQ(call.status(), Status::abandoned);
  EXPECT_EQ(in_flight(), 0U);
  world.run_for(1'000'000);
  EXPECT_FALSE(called);
  EXPECT_EQ(value, 0U);
  call.abandon();  // for the second time
  EXPECT_EQ(call.status(), Status::abandoned);
}

TEST_F(Calls, ADestroyedOneLeavesItsBuffersAlone) {
  std::uint64_t value = 0;
  { const Call<Status> call(*progress[0], reader.get_into(1, value)); }
  EXPECT_EQ(in_flight(), 0U);
  world.run_for(1'000'000);
  EXPECT_EQ(value, 0U);
}

TEST_F(Calls, MayBeMovedWhileUnderWay) {
  auto first = reader.call(1);
  Call<Word> second(std::move(first));
  auto third = reader.call(0);
  int called = 0;
  second.then([&] { ++called; });
  third = std::move(second);  // the one that it was is given up
  EXPECT_EQ(in_flight(), 1U);
  EXPECT_TRUE(until([&] { return third.finished(); }));
  EXPECT_EQ(third.result().value, 42U);
  EXPECT_EQ(called, 1);
}

TEST_F(Calls, WaitingInACallbackIsAnError) {
  auto first = reader.call(1), second = reader.call(1);
  std::string said;
  first.then([&] { said = what_is_thrown_by([&] { second.wait(); }); });
  EXPECT_TRUE(until([&] { return !said.empty(); }));
  EXPECT_TRUE(contains(said, "use then() or co_await")) << said;
}

/// By REM-2 no call hangs because a member died.
TEST_F(Calls, AFixedListStopsWhenAMemberDies) {
  struct Never {
    Progress& progress;
    Protocol<Status> wait() {
      co_await Until([] { return false; });
      co_return Status::ok;
    }
  } never{*progress[0]};
  world.crash(1);
  const auto call = reader.call(1);
  Call<Status> other(*progress[0], never.wait());
  int called = 0;
  other.then([&] { ++called; });
  EXPECT_TRUE(until([&] { return call.finished() && progress[0]->stopped(); }));
  EXPECT_FALSE(call.ok());
  EXPECT_TRUE(until([&] { return other.finished(); }));
  EXPECT_EQ(other.status(), Status::stopped);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(reader.call(0).status(), Status::stopped);
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(Calls, AreGivenUpWithTheirProgress) {
  auto call = reader.call(1);
  int called = 0;
  call.then([&] { ++called; });
  world.detach_all(0);
  progress[0].reset();
  EXPECT_EQ(call.status(), Status::abandoned);
  EXPECT_EQ(called, 0);
}

// --- coroutines that await calls -----------------------------------------------------------------

Job sum_of_calls(Words words, std::uint64_t& result) {
  auto here = words.call(0);
  const Word first = co_await here;
  const Word second = co_await words.call(1);
  result = first.value + second.value;
}

TEST_F(Calls, ACoroutineAwaitsOneAfterTheOther) {
  std::uint64_t result = 0;
  const Job job = sum_of_calls(reader, result);
  EXPECT_FALSE(job.finished());
  EXPECT_TRUE(until([&] { return job.finished(); }));
  job.check();
  EXPECT_EQ(result, 83U);
}

TEST_F(Calls, ACoroutineThatIsDestroyedAbandonsWhatItAwaits) {
  std::uint64_t result = 0;
  {
    const Job job = sum_of_calls(reader, result);
    EXPECT_EQ(in_flight(), 1U);
  }
  EXPECT_EQ(in_flight(), 0U);
  world.run_for(1'000'000);
  EXPECT_EQ(result, 0U);
}

Job await_that_call(Call<Word>& call, std::uint64_t& result) {
  const Word word = co_await call;
  result = word.value;
}

TEST_F(Calls, ACoroutineMayEndBeforeWhatItAwaits) {
  std::uint64_t result = 0;
  auto call = reader.call(1);
  { const Job job = await_that_call(call, result); }
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_EQ(result, 0U);
}

TEST_F(Calls, WhatACoroutineAwaitsMayEndBeforeIt) {
  std::uint64_t result = 0;
  auto call = std::make_unique<Call<Word>>(reader.call(1));
  {
    const Job job = await_that_call(*call, result);
    call.reset();
    world.run_for(1'000'000);
    EXPECT_FALSE(job.finished());
  }
  EXPECT_EQ(result, 0U);
}

TEST_F(Calls, OneMayBeMovedWhileACoroutineAwaitsIt) {
  std::uint64_t first = 0, second = 0;
  auto call = std::make_unique<Call<Word>>(reader.call(1));
  auto other = std::make_unique<Call<Word>>(reader.call(1));
  const Job job = await_that_call(*call, first);
  const Call<Word> there(std::move(*call));
  call.reset();
  {
    const Job ends_earlier = await_that_call(*other, second);
    const Call<Word> elsewhere(std::move(*other));
    other.reset();
  }
  EXPECT_TRUE(until([&] { return job.finished(); }));
  EXPECT_EQ(first, 42U);
  EXPECT_EQ(second, 0U);
}

TEST_F(Calls, OneCoroutineAwaitsACall) {
  std::uint64_t one = 0, other = 0;
  auto call = reader.call(1);
  const Job job = await_that_call(call, one);
  const Job second = await_that_call(call, other);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { second.check(); }), "another coroutine awaits"));
  EXPECT_TRUE(until([&] { return job.finished(); }));
  EXPECT_EQ(one, 42U);
  EXPECT_EQ(other, 0U);
}

// --- coroutines that await coroutines ------------------------------------------------------------

Job twice_the_sum(Words words, std::uint64_t& result) {
  std::uint64_t one = 0, other = 0;
  co_await sum_of_calls(words, one);
  co_await sum_of_calls(words, other);
  result = one + other;
}

TEST_F(Calls, AJobAwaitsJobs) {
  std::uint64_t result = 0;
  const Job job = twice_the_sum(reader, result);
  EXPECT_FALSE(job.finished());
  EXPECT_TRUE(until([&] { return job.finished(); }));
  job.check();
  EXPECT_EQ(result, 166U);
}

TEST_F(Calls, AJobThatIsDestroyedDestroysTheOneItAwaits) {
  std::uint64_t result = 0;
  {
    const Job job = twice_the_sum(reader, result);
    EXPECT_EQ(in_flight(), 1U);
  }
  EXPECT_EQ(in_flight(), 0U);
  world.run_for(1'000'000);
  EXPECT_EQ(result, 0U);
}

Job await_that_job(const Job& job, bool& resumed) {
  co_await job;
  resumed = true;
}

TEST_F(Calls, AJobMayEndBeforeTheOneItAwaits) {
  std::uint64_t result = 0;
  bool resumed = false;
  const Job job = sum_of_calls(reader, result);
  { const Job ends_earlier = await_that_job(job, resumed); }
  EXPECT_TRUE(until([&] { return job.finished(); }));
  EXPECT_EQ(result, 83U);
  EXPECT_FALSE(resumed);
  const Job later = await_that_job(job, resumed);
  EXPECT_TRUE(later.finished() && resumed);
}

TEST_F(Calls, OneCoroutineAwaitsAJob) {
  std::uint64_t result = 0;
  bool one = false, other = false;
  const Job job = sum_of_calls(reader, result);
  const Job first = await_that_job(job, one);
  const Job second = await_that_job(job, other);
  EXPECT_TRUE(contains(what_is_thrown_by([&] { second.check(); }), "another coroutine awaits"));
  EXPECT_TRUE(until([&] { return job.finished(); }));
  EXPECT_TRUE(one && !other);
}

Job fail_after_a_call(Words words) {
  static_cast<void>(co_await words.call(1));
  throw Error("it failed");
}
Job catch_its_failure(Words words, std::string& text) {
  try {
    co_await fail_after_a_call(words);
  } catch (const Error& error) {
    text = error.what();
  }
}

TEST_F(Calls, AJobThatAwaitsAnotherGetsWhatThatThrows) {
  std::string text;
  const Job job = catch_its_failure(reader, text);
  EXPECT_TRUE(until([&] { return job.finished(); }));
  EXPECT_EQ(text, "it failed");
}

/// A result that cannot be copied moves to the coroutine.
struct Owned {
  Status status = Status::ok;
  std::unique_ptr<std::uint64_t> value = nullptr;
};
struct Owning {
  Progress& progress;
  Protocol<Owned> get() {
    co_await UntilTime(progress.fabric(), progress.fabric().now_ns() + 1'000);
    co_return Owned{Status::ok, std::make_unique<std::uint64_t>(7)};
  }
};
Job await_owned(Owning owning, std::uint64_t& result) {
  const Owned owned = co_await Call<Owned>(owning.progress, owning.get());
  result = *owned.value;
}

TEST_F(Calls, AResultMayBeAnObjectThatIsOwned) {
  Owning owning{*progress[0]};
  std::uint64_t result = 0;
  const Job job = await_owned(owning, result);
  EXPECT_TRUE(until([&] { return job.finished(); }));
  EXPECT_EQ(result, 7U);
  const Owned waited = Call<Owned>(*progress[0], owning.get()).outcome();
  EXPECT_EQ(*waited.value, 7U);
}

}  // namespace
}  // namespace dunlin::remote
