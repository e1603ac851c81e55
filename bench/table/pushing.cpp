#include <fmt/format.h>

#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kNodes = 16;

struct Row {
  Cell<std::uint64_t> a;
};

std::vector<std::uint32_t> first_rows(std::uint32_t count) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 1; i <= count; ++i) rows.push_back(i);
  return rows;
}

/// What a push costs its caller: to `peers` of 15, with and without waiting until it is placed.
std::vector<Result> push_to(const Effort& effort, std::uint32_t peers) {
  const Batches plan = effort.plan(200, 500);
  const std::string group = fresh_group();
  Team team({.processes = 1, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto fabrics = join_many(group, kNodes, 0, kNodes);
    const auto tables = tables_of<Row>(fabrics);
    connect(me, tables);
    Table<Row>& table = *tables[0];
    auto some = table.to(first_rows(peers));
    std::uint64_t next = 0;
    const auto push = [&] {
      table.mine().a = ++next;
      if (peers == kNodes - 1) {
        (void)table.push(&Row::a);
      } else {
        (void)some.push(&Row::a);
      }
    };
    Completion placed;
    const auto push_and_wait = [&] {
      table.mine().a = ++next;
      if (peers == kNodes - 1) {
        (void)table.push(placed, &Row::a);
      } else {
        (void)some.push(placed, &Row::a);
      }
      while (!placed.finished()) table.poll();
    };
    alternate(
        me, effort.rounds,
        {[&] { return bare::fan_out(plan, me.arena(), sizeof(Row), peers); },
         [&] { return batch_ns(plan, push); }, [&] { return batch_ns(plan, push_and_wait); }});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {1U, 2U}) {
    results.push_back(
        {.name = "push",
         .params = {{"peers", double(peers)}, {"completion", series == 1 ? "no" : "placed at all"}},
         .unit = "ns"});
    compare(results.back(), team.series(series), "bare stores", team.series(0));
  }
  return results;
}

}  // namespace

Experiment pushing() {
  return {.name = "push",
          .title = fmt::format("what a push costs its caller, by the peers it goes to ({} nodes)",
                               kNodes),
          .fabric = "shm",
          .x = "peers",
          .run = [](const Effort& effort) {
            std::vector<Result> results;
            for (const std::uint32_t peers : {1U, 4U, kNodes - 1}) {
              for (Result& result : push_to(effort, peers)) results.push_back(std::move(result));
            }
            return results;
          }};
}

}  // namespace dunlin::bench
