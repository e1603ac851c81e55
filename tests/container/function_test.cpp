#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "container/clusters.hpp"
#include "container/hub.hpp"
#include "container/texts.hpp"
#include "fabric/hash.hpp"
#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/process.hpp"
#include "support/published.hpp"

/// Functions that members call at each other.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

struct Functions : test::OnContainers {
  /// A function at each member; `f(rank, arguments...)`.
  template <class Signature, class F>
  std::vector<std::unique_ptr<Function<Signature>>> functions(const FunctionOptions& options,
                                                              const F& f) {
    std::vector<std::unique_ptr<Function<Signature>>> all;
    for (Rank rank = 0; rank < cluster->size(); ++rank)
      all.push_back(std::make_unique<Function<Signature>>(
          (*cluster)[rank], options,
          [f, rank](const auto&... arguments) { return f(rank, arguments...); }));
    return all;
  }
  std::string member(Rank rank) {
    const std::string& name = (*cluster)[0].fabric().member_name(rank);
    return "member " + std::to_string(rank) + (name.empty() ? "" : " '" + name + "'");
  }
  template <class Made, class... A>
  auto call(Rank by, Rank at, Made& made, const A&... arguments) {
    auto one = (*cluster)[by].at(at, *made.at(by), arguments...);
    cluster->end_of(one);
    return one;
  }
};

DUNLIN_RUN_ON(test::container_cases({Style::one_sided}), Functions);

TEST_P(Functions, RunAtTheMemberThatIsCalledAndReturnWhatTheyMake) {
  start(3);
  const auto add = functions<std::uint64_t(std::uint64_t, std::uint32_t)>(
      {.name = "add"},
      [](Rank rank, std::uint64_t a, std::uint32_t b) { return 1'000 * rank + a + b; });
  const auto join = functions<std::string(std::string, std::vector<int>, char)>(
      {.name = "join"},
      [](Rank rank, const std::string& text, const std::vector<int>& all, char c) {
        return text + std::to_string(std::accumulate(all.begin(), all.end(), 0)) + c +
               std::to_string(rank);
      });
  std::vector<std::uint32_t> told(3);
  const auto tell = functions<void()>({.name = "tell"}, [&](Rank rank) { ++told.at(rank); });
  for (const Rank by : {0U, 1U, 2U})
    for (const Rank at : {0U, 1U, 2U}) {
      const auto sum = call(by, at, add, std::uint64_t{40}, 2U);
      EXPECT_EQ(sum.describe(), "done");
      EXPECT_EQ(sum.result().value(), 1'000 * at + 42);
      const auto text = call(by, at, join, std::string("sum "), std::vector<int>{1, 2, 3}, '@');
      EXPECT_EQ(text.result().value(), "sum 6@" + std::to_string(at));
      EXPECT_TRUE(call(by, at, tell).ok());
    }
  EXPECT_EQ(told, std::vector<std::uint32_t>(3, 3));
}

/// CON-F2, and CON-F4: more calls than there are buffers.
TEST_P(Functions, TakeAndReturnWhatNoMessageHasRoomFor) {
  start(2);
  const auto twice = functions<std::string(std::string)>(
      {.name = "twice", .bytes = 100'000, .buffers = 2},
      [](Rank, const std::string& text) { return text + text; });
  using Line = std::array<std::uint64_t, 60>;
  const auto reversed = functions<Line(Line)>({.name = "reversed"}, [](Rank, const Line& line) {
    Line back = line;
    std::reverse(back.begin(), back.end());
    return back;
  });
  for (const std::size_t length : {0U, 1U, 107U, 108U, 219U, 220U, 221U, 5'000U, 49'998U}) {
    std::vector<remote::Call<Returned<std::string>>> calls;
    for (std::size_t i = 0; i < 7; ++i)
      calls.push_back((*cluster)[0].at(1, *twice[0], test::text_of(i, length)));
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(cluster->end_of(calls.at(i)), Status::ok) << calls.at(i).describe();
      EXPECT_EQ(calls.at(i).result().value(), test::text_of(i, length) + test::text_of(i, length));
    }
  }
  Line line{};
  std::iota(line.begin(), line.end(), 7);
  EXPECT_EQ(call(1, 0, reversed, line).result().value().front(), 66U);
}

TEST_P(Functions, ThatThrowEndTheCallWithTheirSentence) {
  start(2);
  const auto check = functions<int(int)>({.name = "check"}, [](Rank, int what) {
    if (what == 1) throw std::runtime_error("no disk 'sdx'");
    if (what == 2) throw 7;
    if (what == 3) throw std::runtime_error(std::string(1'000, 'x'));
    return what;
  });
  for (const Rank at : {0U, 1U}) {
    const std::string who = "function 'check' at " + member(at) + ": ";
    const auto threw = call(0, at, check, 1);
    EXPECT_EQ(threw.status(), Status::threw);
    EXPECT_EQ(threw.describe(), who + "no disk 'sdx'");
    EXPECT_EQ(call(0, at, check, 2).describe(), who + "it has thrown what is no std::exception");
    EXPECT_EQ(call(0, at, check, 3).describe(), who + std::string(kMessageContentBytes, 'x'));
    EXPECT_EQ(call(0, at, check, 4).result().value(), 4);
  }
}

/// CON-F3.
TEST_P(Functions, DoLocalWorkOnly) {
  start(2);
  const auto counters = make<Counter>(CounterOptions{.name = "counter"});
  const auto maps =
      make<HashMap<std::uint64_t, std::uint64_t>>(MapOptions{.name = "m", .slots = 9});
  const auto queues = make<Queue<int>>(QueueOptions{.name = "q", .capacity = 4, .host = 0});
  const auto teams = make<Collectives>(CollectivesOptions{.name = "team"});
  const auto other = functions<int()>({.name = "other"}, [](Rank) { return 1; });
  std::vector<Queue<int>::Pop> waiting;  // for what nobody pushes
  for (const auto& queue : queues) waiting.push_back(queue->pop_wait());
  std::string told;
  const auto violate =
      functions<void(int, bool)>({.name = "violate"}, [&](Rank rank, int what, bool hides) {
        const auto work = [&] {
          if (what == 0) static_cast<void>(counters[rank]->add(1));
          if (what == 1) static_cast<void>(maps[rank]->find(1));
          if (what == 2) static_cast<void>(maps[rank]->insert(1, 1));
          if (what == 3) static_cast<void>(queues[rank]->push(1));
          if (what == 4) static_cast<void>(queues[rank]->pop());
          if (what == 5) static_cast<void>(teams[rank]->barrier());
          if (what == 6) static_cast<void>((*cluster)[rank].at(1 - rank, *other[rank]));
          if (what == 7) static_cast<void>((*cluster)[rank].at(rank, *other[rank]));
          if (what == 8) static_cast<void>(maps[rank]->for_each([](auto, auto) {}));
          if (what == 9) waiting[rank].wait();
        };
        if (!hides) return work();
        told = what_is_thrown_by(work);
      });
  for (const Rank at : {0U, 1U})
    for (int what = 0; what <= 9; ++what)
      for (const bool hides : {false, true}) {
        told.clear();
        const auto refused = call(0, at, violate, what, hides);
        EXPECT_EQ(refused.status(), Status::not_allowed) << what;
        EXPECT_TRUE(contains(refused.describe(), "a function does local work only"));
        EXPECT_EQ(contains(told, "can neither begin a call nor wait for one"), hides) << what;
      }
  EXPECT_TRUE(call(0, 1, violate, 10, true).ok()) << "a call of before is not held against it";
  EXPECT_EQ(cluster->end_of(counters[1]->add(1)), Status::ok);
  EXPECT_EQ(maps[0]->local_use().ready + maps[1]->local_use().ready, 0U);
}

TEST_P(Functions, SayWhichMemberLacksThemOrHasOthers) {
  start(3);
  const FunctionOptions options{.name = "load"};
  const auto load = [](std::uint64_t which) { return which; };
  Function<std::uint64_t(std::uint64_t)> here((*cluster)[0], options, load);
  auto waits = (*cluster)[0].at(1, here, 5);
  cluster->pass(200);
  EXPECT_FALSE(waits.finished());
  EXPECT_TRUE(contains(here.describe(), member(1) + " has not made it yet"));
  std::optional<Function<std::uint64_t(std::uint64_t)>> there(std::in_place, (*cluster)[1], options,
                                                              load);
  EXPECT_EQ(cluster->end_of(waits), Status::ok);

  const Function<std::uint64_t(std::uint32_t)> differs((*cluster)[2], options, load);
  EXPECT_EQ(cluster->end_of((*cluster)[0].at(2, here, 5)), Status::refused);
  const std::string& why = (*cluster)[0].why_refused();
  EXPECT_TRUE(contains(why, "'arguments' is '4' there and '8' here")) << why;

  there.reset();
  EXPECT_EQ(cluster->end_of((*cluster)[0].at(1, here, 5)), Status::lost);
  EXPECT_TRUE(contains(here.describe(), member(1) + " is gone, or has it no more; "));
  EXPECT_TRUE(contains(here.describe(), "has another one of this name"));
}

TEST_P(Functions, SendNoMoreThanTheOptionSays) {
  start(2);
  int runs = 0;
  const auto repeat = functions<std::string(std::string, std::uint32_t)>(
      {.name = "repeat", .bytes = 1'000}, [&](Rank, const std::string& text, std::uint32_t times) {
        ++runs;
        std::string all;
        for (std::uint32_t i = 0; i < times; ++i) all += text;
        return all;
      });
  EXPECT_EQ(call(0, 1, repeat, std::string(992, 'x'), 1U).status(), Status::ok);
  EXPECT_EQ(call(0, 1, repeat, std::string(993, 'x'), 1U).status(), Status::too_long);
  EXPECT_EQ(runs, 1);
  const auto result = call(0, 1, repeat, std::string(100, 'x'), 11U);
  EXPECT_EQ(result.status(), Status::too_long);
  EXPECT_TRUE(contains(result.describe(), "its result has 1100 bytes; give the option bytes more"));
  EXPECT_EQ(call(1, 1, repeat, std::string(100, 'x'), 11U).describe(), result.describe());
}

TEST(FunctionsMisused, ThrowErrorsThatSayWhatToDo) {
  test::SimContainers cluster(sim::profile("ib100"), 2);
  const auto nothing = [] {};
  const auto error_of = [&](const FunctionOptions& options) {
    return what_is_thrown_by([&] { const Function<void()> one(cluster[0], options, nothing); });
  };
  EXPECT_TRUE(contains(error_of({.name = ""}), "function '': its name must have 1 to"));
  EXPECT_TRUE(contains(error_of({.name = "f", .bytes = kMaxFunctionBytes + 1}),
                       "function 'f': the option bytes is at most"));
  EXPECT_TRUE(contains(error_of({.name = "f", .buffers = 0}), "the option buffers is 1 to 64"));
  EXPECT_TRUE(contains(error_of({.name = "f", .buffers = 65}), "kMaxFunctionBuffers"));
  Function<void()> here(cluster[0], {.name = "f"}, nothing);
  EXPECT_TRUE(contains(error_of({.name = "f"}), "has one of this name already"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(cluster[0].at(2, here)); }),
                       "function 'f': the group has no member 2, only 0 to 1"));
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(cluster[1].at(0, here)); }),
                       "function 'f': it was made with another Containers"));
}

TEST(FunctionsMisused, CannotSendWhatMeansNothingElsewhere) {
  static_assert(container::Sendable<std::string> && container::Sendable<std::array<int, 3>>);
  static_assert(!container::Sendable<const char*> && !container::Sendable<std::string_view>);
  static_assert(!container::Sendable<std::span<const int>>);
  static_assert(!container::Sendable<const int> && !container::Sendable<int&>);
  static_assert(!container::Sendable<std::map<int, int>>);
}

/// A function whose home dies, or that this process asks of itself, ends with a sentence, too.
TEST(FunctionsOfAGroup, EndLostWhenTheMemberDies) {
  sim::World world(sim::profile("ib100"), 3, 1);
  std::vector<std::unique_ptr<test::ContainerMember>> members;
  std::vector<std::unique_ptr<Function<std::string(std::string)>>> echo;
  for (Rank rank = 0; rank < 3; ++rank) {
    members.push_back(std::make_unique<test::ContainerMember>(world.fabric(rank)));
    echo.push_back(std::make_unique<Function<std::string(std::string)>>(
        members[rank]->containers, FunctionOptions{.name = "echo", .bytes = 5'000},
        [](const std::string& text) { return text; }));
    world.attach(rank, [&, rank] { return members[rank]->containers.poll(); });
  }
  world.run_for(100'000);
  world.crash(1);
  auto lost = members[0]->containers.at(1, *echo[0], std::string(3'000, 'x'));
  auto waits = members[0]->containers.at(1, *echo[0], std::string("y"));
  ASSERT_TRUE(world.run_until([&] { return lost.finished() && waits.finished(); }, 10'000'000'000));
  EXPECT_EQ(lost.status(), Status::lost);
  EXPECT_EQ(waits.status(), Status::lost);
  EXPECT_TRUE(contains(lost.describe(), "function 'echo' at member 1")) << lost.describe();
  auto goes_on = members[0]->containers.at(2, *echo[0], std::string(3'000, 'z'));
  ASSERT_TRUE(world.run_until([&] { return goes_on.finished(); }, 10'000'000'000));
  EXPECT_TRUE(goes_on.ok());
  for (Rank rank = 0; rank < 3; ++rank) world.detach_all(rank);
}

/// A process is killed in the middle of a function: its caller's calls end, and say so.
TEST(FunctionsOfProcesses, EndWhenTheCalledProcessIsKilled) {
  for (const std::string network : {"Shm", "Tcp"}) {
    const test::NodeBackend& backend = test::backend_of(network);
    const std::string group = test::fresh_group();
    using Texts = Function<std::string(std::uint64_t, std::string)>;
    const FunctionOptions options{.name = "number", .bytes = 20'000};
    Process called([&](Parent& parent) -> int {
      const auto fabric = backend.join({.group = group, .nodes = 2, .rank = 1});
      Containers containers(*fabric);
      const Texts here(containers, options, [&](std::uint64_t number, const std::string& text) {
        if (number == 1) throw std::runtime_error("not the first");
        if (number == 9) {
          parent.send_line("in the function");
          static_cast<void>(parent.receive_line());  // which never comes
        }
        return text + std::to_string(number);
      });
      for (;;) containers.poll();
    });
    Process caller([&](Parent& parent) {
      const auto fabric = backend.join({.group = group, .nodes = 2, .rank = 0});
      Containers containers(*fabric);
      Texts here(containers, options, [](std::uint64_t, const std::string&) { return ""; });
      for (const std::size_t length : {10U, 19'000U}) {
        const std::string text(length, 'x');
        if (containers.at(1, here, 2, text).outcome().value() != text + "2") return 1;
        if (containers.at(1, here, 1, text).outcome().status != Status::threw) return 2;
      }
      auto stuck = containers.at(1, here, 9, "");
      auto behind = containers.at(1, here, 3, std::string(19'000, 'y'));
      remote::wait_all({&stuck, &behind});
      parent.send_line(stuck.describe());
      const auto has_ended = [](Status status) {
        return status == Status::lost || status == Status::stopped;
      };
      return has_ended(stuck.status()) && has_ended(behind.status()) ? 0 : 3;
    });
    EXPECT_EQ(called.receive_line(), "in the function") << network;
    called.kill();
    const std::string sentence = caller.receive_line();
    EXPECT_TRUE(contains(sentence, "function 'number' at member 1") ||
                contains(sentence, "no member any more"))
        << network << sentence;
    EXPECT_EQ(caller.exit_code(), 0) << network;
  }
}

TEST(FunctionsOnShm, CountTheirCalls) {
  test::RealContainers cluster(test::backend_of("Shm"), 2);
  const auto twice = [](int value) { return 2 * value; };
  Function<int(int)> here(cluster[0], {.name = "twice"}, twice);
  Function<int(int)> there(cluster[1], {.name = "twice"}, twice);
  for (const Rank at : {1U, 1U, 0U})
    EXPECT_EQ(cluster.end_of(cluster[0].at(at, here, 1)), Status::ok);
  const auto seen = [&](Rank rank, const std::string& name) {
    return test::counter_of(cluster[rank].fabric(), "container." + name,
                            "container=twice\nkind=function\n");
  };
  EXPECT_EQ(seen(0, "by_message"), 2U);
  EXPECT_EQ(seen(0, "local"), 1U);
  EXPECT_EQ(seen(1, "served"), 2U);
}

/// Calls are numbered from 1 on again, so the late reply has the number of the call that waits.
TEST(FunctionsOfFormerContainers, AnswerNoCallOfLaterOnes) {
  sim::World world(sim::profile("ib100"), 2, 1);
  std::optional<Containers> here(std::in_place, world.fabric(0));
  Containers there(world.fabric(1));
  world.attach(0, [&] { return here->poll(); });
  world.attach(1, [&] { return there.poll(); });
  const auto one = [] { return 1; };
  const auto two = [] { return 2; };
  const FunctionOptions of_one{.name = "one"}, of_two{.name = "two"};
  Function<int()> one_there(there, of_one, one), two_there(there, of_two, two);
  {
    Function<int()> former(*here, of_one, one);
    world.run_for(1'000'000);
    here->at(1, former).abandon();
  }
  here.reset();
  here.emplace(world.fabric(0));
  Function<int()> later(*here, of_two, two);
  const auto call = here->at(1, later);
  EXPECT_TRUE(world.run_until([&] { return call.finished(); }, 1'000'000'000));
  EXPECT_EQ(call.result().value(), 2);
}

/// CON-A2.
TEST(FunctionsOfAHostilePeer, EndWhateverStatusTheReplyHas) {
  for (const int status : {0, int{remote::kStatuses}, 255}) {
    test::SimContainers cluster(sim::profile("ib100"), 2);
    const auto nothing = [] {};
    Function<void()> here(cluster[0], {.name = "f"}, nothing);
    Function<void()> there(cluster[1], {.name = "f"}, nothing);
    cluster.world.run_for(1'000'000);
    cluster.world.detach_all(1);
    const auto call = cluster[0].at(1, here);
    const container::MessageHead reply{.container = fnv1a("function:f\n1"),
                                       .call = std::uint64_t{1} << 32,
                                       .kind = container::MessageKind::reply,
                                       .status = static_cast<std::uint8_t>(status)};
    ASSERT_EQ(cluster[1].fabric().send(0, ContainersOptions().channel,
                                       std::as_bytes(std::span(&reply, 1))),
              Refusal::none);
    EXPECT_TRUE(cluster.until([&] { return call.finished(); }));
    EXPECT_EQ(call.status(), Status::refused);
  }
}

}  // namespace
}  // namespace dunlin
