#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/table.hpp>

#include "bench/harness/turns.hpp"

/// The tables of a team's members.
namespace dunlin::bench {

/// The rows 1 to `last`.
[[nodiscard]] inline std::vector<std::uint32_t> rows_to(std::uint32_t last) {
  std::vector<std::uint32_t> rows(last);
  std::iota(rows.begin(), rows.end(), 1U);
  return rows;
}

/// From now on this process cannot go on without its peers.
template <class Row>
void need_peers(Member& me, Table<Row>& table) {
  table.on_failure([&me](auto&, std::size_t row, std::string_view why) {
    me.lost(static_cast<std::uint32_t>(row), why);
  });
}

/// Poll until these tables, of whatever rows, are connected at every member of the team. All are
/// polled until then: over a network a peer cannot connect without us.
template <class... Row>
void connect(Member& me, Table<Row>&... tables) {
  (need_peers(me, tables), ...);
  const auto poll = [&] { (tables.poll(), ...); };
  while (!(tables.connected() && ...)) poll();
  me.meet(poll);
}

/// The tables of several nodes in one process, connected.
template <class Row>
std::vector<std::unique_ptr<Table<Row>>> tables_of(
    const std::vector<std::unique_ptr<Fabric>>& fabrics) {
  std::vector<std::unique_ptr<Table<Row>>> tables;
  for (const auto& fabric : fabrics) tables.push_back(std::make_unique<Table<Row>>(*fabric));
  return tables;
}

/// The same for the tables of several nodes in one process.
template <class Row>
void connect(Member& me, const std::vector<std::unique_ptr<Table<Row>>>& tables) {
  for (const auto& table : tables) need_peers(me, *table);
  const auto poll = [&] {
    for (const auto& table : tables) table->poll();
  };
  while (!std::ranges::all_of(tables, [](const auto& t) { return t->connected(); })) poll();
  me.meet(poll);
}

}  // namespace dunlin::bench
