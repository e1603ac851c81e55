#include "team/team.hpp"

#include <csignal>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "support/children.hpp"
#include "team/cores.hpp"

namespace dunlin::app {
namespace {

using test::expect_no_child_left;

std::string failure_of(Team& team, const std::function<void(Member&)>& body) {
  try {
    team.run(body);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::atomic_ref<std::uint64_t> word(const Member& me, std::size_t index) {
  return std::atomic_ref(reinterpret_cast<std::uint64_t*>(me.arena().data())[index]);
}

TEST(Team, RunsTheBodyOnceInEachProcess) {
  Team team({.processes = 3});
  team.run([](Member& me) {
    word(me, 0).fetch_add(1);
    me.meet();
    if (me.rank() == 2) me.record(0, static_cast<double>(word(me, 0).load()));
  });
  ASSERT_EQ(team.series(0).size(), 1U);
  EXPECT_EQ(team.series(0)[0], 3);
  expect_no_child_left();
}

TEST(Team, NobodyPassesARendezvousBeforeAllAreThere) {
  constexpr int kExchanges = 200;
  Team team({.processes = 3});
  team.run([](Member& me) {
    for (std::uint64_t i = 1; i <= kExchanges; ++i) {
      word(me, me.rank()).store(i);
      me.meet();
      for (std::uint32_t r = 0; r < me.size(); ++r) {
        if (word(me, r).load() < i) throw std::runtime_error("someone was missing");
      }
      me.meet();
    }
  });
}

TEST(Team, SaysWhichProcessThrewWhat) {
  Team team({.processes = 2});
  const std::string text = failure_of(team, [](Member& me) {
    if (me.rank() == 1) throw std::runtime_error("no more rabbits");
    me.meet();  // in vain: the other one never comes
  });
  EXPECT_NE(text.find("process 1 of 2 failed: no more rabbits"), std::string::npos) << text;
  expect_no_child_left();
}

TEST(Team, SaysWhichProcessCrashed) {
  Team team({.processes = 2});
  const std::string text = failure_of(team, [](Member& me) {
    if (me.rank() == 0) ::raise(SIGKILL);
    me.meet();
  });
  EXPECT_NE(text.find("process 0 of 2 was ended by signal 9"), std::string::npos) << text;
  expect_no_child_left();
}

TEST(Team, EndsProcessesThatHang) {
  Team team({.processes = 2, .timeout = std::chrono::milliseconds(50)});
  const std::string text = failure_of(team, [](Member& me) {
    if (me.rank() == 0) me.meet();
  });
  EXPECT_NE(text.find("1 of 2 processes did not finish within 50 ms"), std::string::npos) << text;
  expect_no_child_left();
}

TEST(Team, PinsOnlyWhereThereAreEnoughCores) {
  const auto cores = static_cast<std::uint32_t>(usable_cores().size());
  EXPECT_TRUE(Team({.processes = 1}).pinned());
  EXPECT_FALSE(Team({.processes = 1, .pin = false}).pinned());
  EXPECT_EQ(Team({.processes = kMaxTeam}).pinned(), kMaxTeam <= cores);

  Team team({.processes = 1});
  team.run([](Member& me) { me.record(0, static_cast<double>(usable_cores().size())); });
  EXPECT_EQ(team.series(0)[0], 1);
}

TEST(Team, RefusesSizesItCannotHave) {
  EXPECT_THROW(Team({.processes = 0}), Error);
  EXPECT_THROW(Team({.processes = kMaxTeam + 1}), Error);
}

TEST(Team, RefusesMoreRoundsThanItHasRoomFor) {
  Team team({.processes = 1});
  const std::string text = failure_of(team, [](Member& me) {
    for (std::uint32_t i = 0; i <= kMaxRounds; ++i) me.record(0, 1);
  });
  EXPECT_NE(text.find("fewer --rounds"), std::string::npos) << text;
}

}  // namespace
}  // namespace dunlin::app
