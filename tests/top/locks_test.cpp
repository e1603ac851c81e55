#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <dunlin/dunlin.hpp>

#include "command.hpp"
#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

using nlohmann::json;
using test::Parent;
using test::Process;

/// What `dunlin top --once` says of a group.
std::string look_at(const std::string& group, std::initializer_list<const char*> options) {
  std::vector<const char*> words{"dunlin", "top", "--once", "--interval", "0.01"};
  words.insert(words.end(), options);
  words.push_back(group.c_str());
  testing::internal::CaptureStdout();
  const app::Status status = app::run(static_cast<int>(words.size()), words.data());
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(status, app::Status::ok);
  return text;
}

json seen_of(const std::string& group) {
  return json::parse(look_at(group, {"--json"})).at("groups").at(0);
}

/// Rank 0 holds a lock for ever, and the others wait for it one after the other.
int hold_or_wait(const std::string& group, Rank rank, Parent& parent) {
  const auto fabric = join({.group = group, .members = 3, .rank = rank, .silence_timeout_ms = 0});
  SegmentSpace space(*fabric, {.name = "loads", .pool_bytes = 1 << 16});
  if (rank == 0) {
    const Outcome made = space.allocate({.bytes = 64, .placement = Placement::here()}).outcome();
    const bool locked = space.lock(made.key).outcome().ok();
    parent.send_line(locked ? std::to_string(made.key.value) : "not locked");
    run(space);
  }
  const Key key{std::stoull(parent.receive_line())};
  auto lock = space.lock(key);
  parent.send_line("waiting");
  run(space);
  return 0;
}

TEST(TopLocks, ShowsPoolsOperationsAndWhoWaitsForALockOfWhom) {
  const std::string group = test::fresh_group();
  std::vector<Process> members;
  for (Rank rank = 0; rank < 3; ++rank)
    members.emplace_back([=](Parent& parent) { return hold_or_wait(group, rank, parent); });
  const std::string key = members[0].receive_line();
  ASSERT_NE(key, "not locked");
  for (const Rank rank : {2U, 1U}) {
    members[rank].send_line(key);
    EXPECT_EQ(members[rank].receive_line(), "waiting");
    // In the queue, and not only about to be.
    json locks;
    do {
      locks = seen_of(group)["locks"];
    } while (locks.empty() || locks[0]["waiter_ranks"].size() != (rank == 2 ? 1U : 2U));
  }
  const json seen = seen_of(group);
  const std::map<std::string, std::vector<std::uint64_t>> expected{
      {"segment.pool_bytes", {1 << 16, 1 << 16, 1 << 16}},
      {"segment.used_bytes", {128, 0, 0}},
      {"segment.blocks", {1, 0, 0}},
      {"segment.locks", {1, 0, 0}},  // that have ended
      {"segment.in_flight", {0, 1, 1}}};
  for (const auto& [name, values] : expected) {
    std::vector<std::uint64_t> found;
    for (const json& counter : seen["counters"])
      if (counter["name"] == name) found.push_back(counter["value"]);
    EXPECT_EQ(found, values) << name;
  }
  ASSERT_EQ(seen["locks"].size(), 1U);
  EXPECT_EQ(seen["locks"][0]["space"], "loads");
  EXPECT_EQ(seen["locks"][0]["home_rank"], 0);
  EXPECT_EQ(seen["locks"][0]["holder_rank"], 0);
  EXPECT_EQ(seen["locks"][0]["waiter_ranks"], (json{2, 1}));

  const std::string text = look_at(group, {});
  EXPECT_NE(text.find("segment:"), std::string::npos) << text;
  EXPECT_NE(text.find("held by 0; waiting: 2, 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace dunlin
