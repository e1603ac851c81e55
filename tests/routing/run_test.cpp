#include "routing/run.hpp"

#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>
#include <dunlin/run.hpp>

#include "networks.hpp"
#include "routing/processes.hpp"
#include "routing/router.hpp"
#include "routing/station.hpp"
#include "signals.hpp"
#include "support/errors.hpp"
#include "support/process.hpp"

namespace {

using namespace dunlin::routing;
using namespace dunlin::routing::testing_support;

Listener ignore() {
  return [](const EventRecord&) {};
}

Verdict judge(const Topology& net, const std::vector<LinkEvent>& events, const Finish& finish) {
  return check(net, costs_after(net, events, events.size()), finish.tables);
}

TEST(SimulatedRun, AgreesWithBoostWhateverHappensToTheLinks) {
  std::mt19937_64 draw(42);
  std::uint64_t skipped = 0;
  std::uint64_t unreachable = 0;
  for (int i = 0; i < 15; ++i) {
    const auto routers = static_cast<std::uint32_t>(2 + draw() % 10);
    const Topology net = random_network(routers, static_cast<std::uint32_t>(draw() % 8), draw);
    const auto events = random_events(net, 25, draw());
    const Plan plan(net, events);
    const Finish finish = run_on_sim(plan, "ib100", draw(), [&](const EventRecord& record) {
      skipped += record.skipped;
      EXPECT_EQ(record.recomputed + record.skipped, routers);
    });
    const Verdict verdict = judge(net, events, finish);
    ASSERT_TRUE(verdict.agrees()) << verdict.differences.front();
    unreachable += verdict.unreachable;
  }
  EXPECT_GT(skipped, 0U);
  EXPECT_GT(unreachable, 0U) << "no loss has ever cut a network in two";
}

TEST(SimulatedRun, IsAFunctionOfItsSeed) {
  const Topology net = hub_ring(9, {});
  const auto events = random_events(net, 12, 5);
  const Plan plan(net, events);
  const auto times = [&](std::uint64_t seed) {
    std::vector<std::uint64_t> all;
    (void)run_on_sim(plan, "ib40-2015", seed, [&](const EventRecord& record) {
      for (const Reaction& r : record.reactions) all.push_back(r.settled_ns);
    });
    return all;
  };
  EXPECT_EQ(times(8), times(8));
  EXPECT_NE(times(8), times(9));
}

TEST(SimulatedRun, LetsEveryoneComputeWhenTheHubChangesALinkOfHubAndRing) {
  const Topology net = hub_ring(8, {});
  const auto events = parse_script("s", "cost hub -> 3 2", net);
  const Plan plan(net, events);
  EventRecord last;
  (void)run_on_sim(plan, "ib100", 1, [&](const EventRecord& record) { last = record; });
  EXPECT_EQ(last.recomputed, 7U);
  EXPECT_EQ(last.reactions[3].computations, 0U) << "the one router that does not need the link";
}

TEST(SimulatedRun, SkipsAChangeThatNobodyUses) {
  const Topology net = hub_ring(8, {});
  const auto events = parse_script("s", "cost 3 4 120\ndown 5 6", net);
  const Plan plan(net, events);
  (void)run_on_sim(plan, "ib100", 1, [&](const EventRecord& record) {
    EXPECT_EQ(record.skipped, record.event ? 8U : 0U);
  });
}

/// Each computation then takes longer than the profile's nodes may be silent.
TEST(SimulatedRun, DoesNotTakeALongComputationForADeath) {
  constexpr std::uint32_t kRouters = 120;
  Topology net = hub_ring(kRouters, {});
  net.links.clear();
  for (RouterId a = 0; a < kRouters; ++a) {
    for (RouterId b = 0; b < a; ++b) net.links.push_back({b, a, kCostUnit, false});
  }
  number_arcs(net);
  const std::vector<LinkEvent> events;
  const Plan plan(net, events);
  const Finish finish = run_on_sim(plan, "ib40-2015", 1, ignore());
  EXPECT_TRUE(judge(net, events, finish).agrees());
}

/// The check must find what the table does to the routers, not only what they do themselves: here a
/// row holds a cost of which the script knows nothing.
TEST(SimulatedRun, IsFoundWrongIfARowHoldsAnotherCost) {
  const Topology net = from_json(kSquare);
  const std::vector<LinkEvent> events;
  const Plan plan(net, events);
  dunlin::sim::World world(dunlin::sim::profile("ideal"), plan.members(), 1);
  std::deque<dunlin::Table<Row>> tables;
  std::deque<Router> routers;
  for (dunlin::Rank rank = 0; rank < plan.members(); ++rank) {
    tables.emplace_back(world.fabric(rank), dunlin::TableOptions{.name = "routing"});
    world.attach(rank, [&table = tables.back()] { return table.poll(); });
    if (rank < plan.routers()) routers.emplace_back(tables.back(), plan);
  }
  tables[2].mine().link_cost[0] = 77 * kCostUnit;  // New York to Bern
  Station station(tables.back(), plan, ignore());
  ASSERT_TRUE(world.run_until([&] { return station.finished(); }, 1'000'000'000));
  const Verdict verdict = judge(net, events, {station.tables()});
  ASSERT_FALSE(verdict.agrees());
  EXPECT_EQ(verdict.differences.front(), "New York to a: its table says 11, Boost.Graph 2.5");
}

/// Both reach the station, so it does not lose any of them.
TEST(SimulatedRun, IsGivenUpIfTwoRoutersNoLongerHearEachOther) {
  const Topology net = from_json(kSquare);
  const auto events = random_events(net, 1'000, 1);
  const Plan plan(net, events);
  dunlin::sim::World world(dunlin::sim::profile("ib100"), plan.members(), 1);
  std::deque<dunlin::Table<Row>> tables;
  std::deque<Router> routers;
  for (dunlin::Rank rank = 0; rank < plan.members(); ++rank) {
    tables.emplace_back(world.fabric(rank), dunlin::TableOptions{.name = "routing"});
    world.attach(rank, [&table = tables.back()] { return table.poll(); });
    if (rank < plan.routers()) routers.emplace_back(tables.back(), plan);
  }
  Station station(tables.back(), plan, [&](const EventRecord& record) {
    if (record.event) return;
    world.cut(1, 2);
    world.cut(2, 1);
  });
  const auto all_ended = [&] {
    return station.finished() && std::all_of(routers.begin(), routers.end(),
                                             [](const Router& r) { return r.finished(); });
  };
  ASSERT_TRUE(world.run_until(all_ended, 60'000'000'000));
  EXPECT_TRUE(dunlin::test::contains(station.failure(), "no longer hears router"));
  for (const Router& router : routers) EXPECT_EQ(router.failure(), station.failure());
}

std::set<pid_t> children() {
  std::set<pid_t> pids;
  std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (pid_t pid = 0; list >> pid;) pids.insert(pid);
  return pids;
}

TEST(Run, PutsEachRouterIntoAProcessAndLeavesNoneBehind) {
  std::mt19937_64 draw(1);
  const Topology net = random_network(7, 6, draw);
  const auto events = random_events(net, 2'000, 2);  // more than the station can tell at once
  const Plan plan(net, events);
  std::size_t told = 0;
  std::size_t processes = 0;
  const Finish finish = run_on_processes(plan, {}, [&](const EventRecord& record) {
    if (told++ == 0) processes = children().size();
    EXPECT_EQ(record.recomputed + record.skipped, net.size());
  });
  EXPECT_EQ(told, events.size() + 1);
  EXPECT_EQ(processes, plan.members());
  EXPECT_TRUE(children().empty());
  EXPECT_TRUE(judge(net, events, finish).agrees());
}

TEST(Run, EndsWithASentenceWhenARouterIsKilled) {
  const Topology net = hub_ring(5, {});
  const auto events = random_events(net, 1'000, 2);
  const Plan plan(net, events);
  std::string said;
  try {
    (void)run_on_processes(plan, {}, [&](const EventRecord& record) {
      if (!record.event) kill(*children().begin(), SIGKILL);
    });
  } catch (const dunlin::Error& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("is lost"), std::string::npos) << said;
  EXPECT_TRUE(children().empty());
}

/// What a run of so many events says that gets a signal when its routers are settled at first.
std::string said_by_run_that_is_stopped(std::uint32_t event_count) {
  const Topology net = hub_ring(5, {});
  const auto events = random_events(net, event_count, 2);
  const Plan plan(net, events);
  return dunlin::test::what_is_thrown_by([&] {
    (void)run_on_processes(plan, {}, [&](const EventRecord& record) {
      if (!record.event) raise(SIGTERM);
    });
  });
}

TEST(Run, EndsWithASentenceOnASignal) {
  EXPECT_EQ(said_by_run_that_is_stopped(10'000), "stopped by SIGTERM");
  EXPECT_TRUE(children().empty());
}

TEST(Run, DoesNotMissASignalBecauseItIsOverSoon) {
  EXPECT_EQ(said_by_run_that_is_stopped(1), "stopped by SIGTERM");
  EXPECT_TRUE(children().empty());
}

/// A router that never joins, so that the group stays half made.
void say_that_it_is_there_and_hang(dunlin::test::Parent* told) {
  static dunlin::test::Parent* line;
  line = told;
  pthread_atfork(nullptr, nullptr, [] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    line->send_line("here");
    while (true) pause();
  });
}

TEST(Run, IsEndedByASignalWhileItsGroupForms) {
  const Topology net = hub_ring(4, {});
  const std::vector<LinkEvent> events;
  const Plan plan(net, events);
  dunlin::test::Process run([&](dunlin::test::Parent& parent) {
    dunlin::app::take_back_signals();
    say_that_it_is_there_and_hang(&parent);
    (void)run_on_processes(plan, {}, ignore());
    return 0;
  });
  for (std::uint32_t member = 0; member < plan.members(); ++member)
    EXPECT_EQ(run.receive_line(), "here");
  run.signal(SIGTERM);
  EXPECT_EQ(run.receive_line(), "error: stopped by SIGTERM");
  EXPECT_EQ(run.receive_all_lines(), "")
      << "which ends when the members, who hold the line, are gone";
  EXPECT_EQ(run.exit_code(), 1);
}

/// The others wait for it until their time is up: an hour here.
TEST(Run, EndsWithTheErrorOfARouterThatCannotJoin) {
  const Topology net = hub_ring(4, {});
  const std::vector<LinkEvent> events;
  const Plan plan(net, events);
  const dunlin::app::Cluster cluster({{.network = "shm", .timeout_ms = 3'600'000}});
  dunlin::test::Process run([&](dunlin::test::Parent& parent) {
    static int count;
    count = 0;
    pthread_atfork([] { ++count; }, nullptr,
                   [] {
                     constexpr rlimit kFewFiles{40, 40};  // sanitizers need some as well
                     if (count == 2) setrlimit(RLIMIT_NOFILE, &kFewFiles);
                   });
    (void)run_on_processes(plan, cluster, ignore());
    parent.send_line("done");
    return 0;
  });
  EXPECT_TRUE(dunlin::test::contains(run.receive_line(), "may have only 40: raise the hard limit"));
  EXPECT_EQ(run.exit_code(), 1);
}

TEST(SignalGuard, LetsASignalThroughThatNobodyAskedFor) {
  dunlin::test::Process unasked([](dunlin::test::Parent&) {
    dunlin::app::take_back_signals();
    dunlin::app::SignalGuard signals;
    raise(SIGHUP);
    return 0;
  });
  EXPECT_EQ(unasked.exit_code(), -SIGHUP);
  dunlin::test::Process asked([](dunlin::test::Parent&) {
    dunlin::app::SignalGuard signals;
    raise(SIGINT);
    raise(SIGTERM);
    return signals.caught() == nullptr ? 1 : 0;
  });
  EXPECT_EQ(asked.exit_code(), 0);
}

TEST(SignalGuard, LeavesAnIgnoredSignalIgnored) {
  dunlin::test::Process process([](dunlin::test::Parent&) {
    signal(SIGHUP, SIG_IGN);
    dunlin::app::SignalGuard signals;
    raise(SIGHUP);
    return signals.caught() == nullptr ? 0 : 1;
  });
  EXPECT_EQ(process.exit_code(), 0);
}

/// The same as threads of one process, so that a sanitizer sees both sides of every access.
TEST(Run, IsFreeOfRacesAsThreads) {
  const Topology net = from_json(kSquare);
  const auto events = random_events(net, 30, 3);
  const Plan plan(net, events);
  const auto join = [&](std::uint32_t rank) {
    return dunlin::join({.group = "routing-test-" + std::to_string(getpid()),
                         .members = plan.members(),
                         .rank = rank,
                         .silence_timeout_ms = 0});
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < plan.routers(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto fabric = join(rank);
      dunlin::Table<Row> table(fabric, {.name = "routing"});
      Router router(table, plan);
      EXPECT_TRUE(dunlin::run_until(
          table, [&] { return router.finished() || !table.alive(plan.station()); }, 60'000));
    });
  }
  const auto fabric = join(plan.station());
  dunlin::Table<Row> table(fabric, {.name = "routing"});
  Station station(table, plan, ignore());
  ASSERT_TRUE(dunlin::run_until(
      table, [&] { return station.finished(); }, 60'000));
  EXPECT_EQ(station.failure(), "");
  EXPECT_TRUE(judge(net, events, {station.tables()}).agrees());
}

TEST(Processes, KeepWhatTheFirstFailingChildSaid) {
  Processes processes;
  const std::string sentence = "there is no such network. This host has:\n  lo\n  eth0";
  processes.start([&] { throw dunlin::Error(sentence); });
  processes.finish(10'000);
  EXPECT_EQ(dunlin::test::what_is_thrown_by([&] { processes.complain(); }), sentence);
  EXPECT_EQ(dunlin::test::what_is_thrown_by([&] { processes.complain(); }), "nothing");
  EXPECT_TRUE(children().empty());
}

TEST(Processes, TellWhatKilledAChildIfNobodyElseDoes) {
  Processes processes;
  processes.start([] { raise(SIGKILL); });
  const std::string said = dunlin::test::what_is_thrown_by([&] {
    while (true) {
      processes.demand_health();
      processes.await_news({});
    }
  });
  EXPECT_EQ(said, "a process of this host was ended by signal 9 (Killed)");
}

TEST(Processes, EndAChildThatDoesNot) {
  {
    Processes processes;
    processes.start([] { pause(); });
    processes.finish(1);
    EXPECT_EQ(children().size(), 1U);
  }
  EXPECT_TRUE(children().empty());
}

}  // namespace
