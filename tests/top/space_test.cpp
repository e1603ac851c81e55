#include "top/space.hpp"

#include <array>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <dunlin/dunlin.hpp>

#include "command.hpp"
#include "segment/statistics_page.hpp"
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

json spaces_of(const std::string& group) {
  return json::parse(look_at(group, {"--json"})).at("groups").at(0).at("spaces");
}

/// Rank 0 holds a lock for ever, and the others wait for it one after the other.
int hold_or_wait(const std::string& group, Rank rank, Parent& parent) {
  const auto fabric =
      shm::join({.group = group, .members = 3, .rank = rank, .silence_timeout_ms = 0});
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

TEST(TopSpaces, ShowsPoolsOperationsAndWhoWaitsForALockOfWhom) {
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
    while (spaces_of(group)[0]["locks"].empty() ||
           spaces_of(group)[0]["locks"][0]["waiter_ranks"].size() != (rank == 2 ? 1U : 2U)) {
    }
  }
  const json spaces = spaces_of(group);
  ASSERT_EQ(spaces.size(), 1U);
  const json& space = spaces[0];
  EXPECT_EQ(space["name"], "loads");
  ASSERT_EQ(space["members"].size(), 3U);
  for (Rank rank = 0; rank < 3; ++rank) {
    const json& member = space["members"][rank];
    EXPECT_EQ(member["rank"], rank);
    EXPECT_EQ(member["pool_bytes"], 1 << 16);
    EXPECT_EQ(member["used_bytes"], rank == 0 ? 128 : 0);
    EXPECT_EQ(member["blocks"], rank == 0 ? 1 : 0);
    EXPECT_EQ(member["fragmentation"], 0);
    EXPECT_EQ(member["locks"], rank == 0 ? 1 : 0) << "ended";
    EXPECT_EQ(member["in_flight"], rank == 0 ? 0 : 1);
    EXPECT_TRUE(member["gets_per_s"].is_number());
  }
  ASSERT_EQ(space["locks"].size(), 1U);
  EXPECT_EQ(space["locks"][0]["home_rank"], 0);
  EXPECT_EQ(space["locks"][0]["holder_rank"], 0);
  EXPECT_EQ(space["locks"][0]["waiter_ranks"], (json{2, 1}));

  const std::string text = look_at(group, {});
  EXPECT_NE(text.find("segment space loads"), std::string::npos) << text;
  EXPECT_NE(text.find("held by 0; waiting: 2, 1"), std::string::npos) << text;
}

TEST(TopSpaces, BelievesNoPageThatContradictsItself) {
  alignas(64) std::array<std::uint64_t, sizeof(space_page::Page) / 8 + 1> words{};
  const auto memory = std::as_writable_bytes(std::span(words));
  auto& page = *reinterpret_cast<space_page::Page*>(memory.data());
  EXPECT_FALSE(top::read_space(memory)) << "zeros";
  page.header.magic = space_page::kMagic;
  page.header.version = space_page::kVersion;
  page.header.pool_bytes = 1000;
  page.header.used_bytes = 400;
  page.header.largest_free_bytes = 300;
  ASSERT_TRUE(top::read_space(memory));
  EXPECT_DOUBLE_EQ(top::read_space(memory)->fragmentation(), 0.5);
  EXPECT_FALSE(top::read_space(memory.first(sizeof(space_page::Page) - 1))) << "short";
  page.header.locks = UINT64_MAX;
  page.locks[0].home = UINT64_MAX;
  ASSERT_TRUE(top::read_space(memory));
  EXPECT_EQ(top::read_space(memory)->queued.size(), space_page::kMaxLocks - 1);
  page.header.used_bytes = 1001;
  EXPECT_FALSE(top::read_space(memory)) << "more used than there is";
  page.header.used_bytes = 400;
  page.header.largest_free_bytes = 601;
  EXPECT_FALSE(top::read_space(memory)) << "more free than there is";
  page.header.largest_free_bytes = 300;
  page.header.version = 2;
  EXPECT_FALSE(top::read_space(memory)) << "another version";
}

}  // namespace
}  // namespace dunlin
