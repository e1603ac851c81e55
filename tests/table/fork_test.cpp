#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <dunlin/join.hpp>
#include <dunlin/table.hpp>

#include "support/errors.hpp"
#include "support/fresh_group.hpp"
#include "support/process.hpp"

/// A member may fork; its child is no member.
namespace dunlin {
namespace {

using test::Parent;
using test::Process;

struct Row {
  Cell<int> step;
  Versioned<long> position;
};

TEST(TableFork, WhatTheChildWritesReachesNeitherItsParentNorItsPeers) {
  const std::string group = test::fresh_group();
  Process member([&](Parent& parent) {
    const auto fabric = join({.group = group, .members = 2, .rank = 1, .timeout_ms = 60'000});
    auto table = std::make_unique<Table<Row>>(*fabric);
    while (!table->connected()) table->poll();
    table->mine().step = 1;
    table->mine().position = 1;
    table->push();
    Process child([&](Parent&) {
      table->mine().step = 9;
      table->mine().position = 9;
      if (table->push().sent != 0) return 1;
      table->poll();
      if (test::what_is_thrown_by([&] {
            const Region region = fabric->allocate({.name = "child", .bytes = 64});
          }).find("forked by a member") == std::string::npos)
        return 2;
      table.reset();
      return 0;
    });
    if (const int code = child.exit_code(); code != 0) {
      parent.send_line("the child saw what it should not: " + std::to_string(code));
      return 1;
    }
    const bool stays = table->mine().step == 1 && (*table)[1].position == 1;
    table->push();
    while (!table->settled()) table->poll();
    parent.send_line(stays ? "unchanged" : "the child has changed it");
    static_cast<void>(parent.receive_line());
    return 0;
  });
  const auto fabric = join({.group = group, .members = 2, .rank = 0, .timeout_ms = 60'000});
  Table<Row> table(*fabric);
  while (table[1].step == 0 && !fabric->failed(1)) table.poll();
  EXPECT_EQ(table[1].step, 1);
  EXPECT_EQ(member.receive_line(), "unchanged");
  for (int polls = 0; polls < 1000; ++polls) table.poll();
  EXPECT_EQ(table[1].step, 1);
  EXPECT_FALSE(fabric->failed(1));
}

}  // namespace
}  // namespace dunlin
