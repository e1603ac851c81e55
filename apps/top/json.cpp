#include "top/json.hpp"

#include <algorithm>
#include <array>

#include "top/format.hpp"

namespace dunlin::top {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Milliseconds, exact to the microsecond.
Json ms(std::uint64_t ns) {
  const std::uint64_t us = ns / 1000;
  return static_cast<double>(us) / 1000;
}

/// Null for moments that have not come yet.
Json ms_ago(const Sample& sample, std::uint64_t then_ns) {
  if (then_ns == 0) return nullptr;
  return ms(sample.now_ns - std::min(sample.now_ns, then_ns));
}

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const Bytes& bytes) const { return hex(bytes); }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

Json values_json(const Column& column, const ColumnValues& values) {
  Json entries = Json::array();
  for (const Value& value : values.entries) entries.push_back(std::visit(ToJson{}, value));
  if (column.kind == ColumnKind::list) {
    return {{"begin", values.begin}, {"end", values.end}, {"last", std::move(entries)}};
  }
  return column.count == 1 ? entries.at(0) : entries;
}

Json member_json(const Sample& sample, const Member& m) {
  Json json{{"rank", m.rank}, {"name", m.name}, {"pid", m.pid}};
  json["command"] = m.process ? Json(m.process->command) : Json(nullptr);
  json["process_state"] = m.process ? Json(std::string(1, m.process->state)) : Json(nullptr);
  json["cpu_percent"] = or_null(m.cpu_percent);
  json["waiting"] = m.loop ? Json(m.loop->asleep) : Json(nullptr);
  json["polled_ms_ago"] = m.loop ? ms_ago(sample, m.loop->last_watch_ns) : Json(nullptr);
  json["failed_peers"] = m.loop ? Json(m.loop->failed_peers) : Json::array();
  return json;
}

Json column_json(const Column& column) {
  constexpr std::array<const char*, 3> kKinds{"word", "stamped", "list"};
  return {{"name", column.name},
          {"type", describe(column.type)},
          {"kind", kKinds.at(static_cast<std::size_t>(column.kind))},
          {"count", column.count},
          {"entry_bytes", column.entry_bytes}};
}

Json row_json(const Sample& sample, const Group& group, const Table& table, const Row& row) {
  const Node* owner = table.node(row.rank);
  const TableSample* page = owner != nullptr && owner->counters ? &*owner->counters : nullptr;
  Json json{{"row", row.row}, {"rank", row.rank}};
  const Member* member = group.member(row.rank);
  json["name"] = member == nullptr ? "" : member->name;
  json["pid"] = member == nullptr ? Json(nullptr) : Json(member->pid);
  json["read_from_rank"] = or_null(row.read_from);
  json["age_ms"] = row.age_ns ? ms(*row.age_ns) : Json(nullptr);
  json["pushes"] = page == nullptr ? Json(nullptr) : Json(page->pushes.total);
  json["pushes_per_s"] = page == nullptr ? Json(nullptr) : or_null(page->pushes.per_s);
  json["seen_by"] = Json::array();
  for (const Sighting& s : row.seen) {
    json["seen_by"].push_back({{"rank", s.by},
                               {"state", describe(s.status.state)},
                               {"since_ms_ago", ms_ago(sample, s.status.since_ns)},
                               {"pulled_ms_ago", ms_ago(sample, s.status.refreshed_ns)}});
  }
  json["values"] = Json::object();
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const Column& column = table.layout.columns[i];
    json["values"][column.name] = values_json(column, row.values[i]);
  }
  return json;
}

Json node_json(const Sample& sample, const Node& node) {
  Json json{{"rank", node.rank}};
  if (!node.counters) return json;
  const TableSample& page = *node.counters;
  json["made_ms_ago"] = ms_ago(sample, page.made_ns);
  json["passes"] = page.passes.total;
  json["passes_per_s"] = or_null(page.passes.per_s);
  json["pulls"] = page.pulls.total;
  json["pulls_per_s"] = or_null(page.pulls.per_s);
  json["predicates_registered"] = page.predicates_registered;
  json["predicates"] = Json::array();
  for (const PredicateSample& p : page.predicates) {
    json["predicates"].push_back({{"id", p.id},
                                  {"name", p.name},
                                  {"kind", describe(p.kind)},
                                  {"triggers", p.triggers},
                                  {"evaluations", p.evaluations.total},
                                  {"evaluations_per_s", or_null(p.evaluations.per_s)},
                                  {"firings", p.firings.total},
                                  {"firings_per_s", or_null(p.firings.per_s)}});
  }
  return json;
}

Json multicast_json(const Group& group, const Table& table, std::string_view subgroup) {
  constexpr double kNsPerUs = 1000;
  Json json{{"subgroup", subgroup},
            {"view", table.generation},
            {"slowest_rank", or_null(table.slowest())}};
  json["members"] = Json::array();
  for (const Node& node : table.nodes) {
    if (!node.multicast) continue;
    const MulticastSample& m = *node.multicast;
    Json member{{"rank", node.rank}, {"name", group.name_of(node.rank)}};
    for (const auto& [name, counter] : {std::pair{"messages", &m.messages},
                                        {"bytes", &m.bytes},
                                        {"nulls", &m.nulls},
                                        {"no_room", &m.no_room}}) {
      member[name] = counter->total;
      member[std::string(name) + "_per_s"] = or_null(counter->per_s);
    }
    member["messages_per_batch"] = or_null(m.messages_per_batch());
    member["latency_us"] =
        m.latency_ns ? Json(static_cast<double>(*m.latency_ns) / kNsPerUs) : Json(nullptr);
    member["no_room_percent"] = or_null(m.no_room_percent());
    member["behind"] = table.behind(m);
    json["members"].push_back(std::move(member));
  }
  return json;
}

Json table_json(const Sample& sample, const Group& group, const Table& table) {
  Json json{{"name", table.name},
            {"generation", table.generation},
            {"refresh", table.refresh == Refresh::writes ? "writes" : "reads"},
            {"row_bytes", table.layout.row_bytes}};
  for (const char* part : {"columns", "rows", "nodes"}) json[part] = Json::array();
  for (const Column& column : table.layout.columns) json["columns"].push_back(column_json(column));
  for (const Row& row : table.rows) json["rows"].push_back(row_json(sample, group, table, row));
  for (const Node& node : table.nodes) json["nodes"].push_back(node_json(sample, node));
  if (const auto subgroup = multicast_of(table.name, table.layout))
    json["multicast"] = multicast_json(group, table, *subgroup);
  return json;
}

Json described(const Group& group, const MemberCounter& counter, const std::string& name) {
  Json json{{"name", name}, {"labels", Json::object()}};
  for (const auto& [key, value] : counter.view.split_labels())
    json["labels"][std::string(key)] = value;
  json["rank"] = counter.rank;
  json["member"] = group.name_of(counter.rank);
  return json;
}

Json counter_json(const Group& group, const MemberCounter& counter) {
  constexpr std::array<const char*, 3> kKinds{"total", "level", "event"};
  constexpr std::array<const char*, 3> kUnits{"count", "bytes", "nanoseconds"};
  const CounterView& view = counter.view;
  Json json = described(group, counter, view.name);
  json["kind"] = kKinds.at(static_cast<std::size_t>(view.kind));
  json["unit"] = kUnits.at(static_cast<std::size_t>(view.unit));
  const std::uint64_t value = view.words.front();
  if (view.words.size() > 1)
    json["values"] = view.words;
  else
    json["value"] = value == SharedCounter::kUnknown ? Json(nullptr) : Json(value);
  if (view.kind != CounterKind::level) json["per_s"] = or_null(counter.per_s);
  return json;
}

Json group_json(const Sample& sample, const Group& group) {
  Json json{{"name", group.name},
            {"access", group.access},
            {"fabric", group.fabric},
            {"size", group.size}};
  for (const char* part : {"members", "absent_ranks", "tables"}) json[part] = Json::array();
  for (const Member& member : group.members) json["members"].push_back(member_json(sample, member));
  for (Rank rank = 0; rank < group.size; ++rank) {
    if (group.member(rank) == nullptr) json["absent_ranks"].push_back(rank);
  }
  for (const Table& table : group.tables) {
    json["tables"].push_back(table_json(sample, group, table));
  }
  json["counters"] = Json::array();
  for (const MemberCounter& counter : group.counters)
    if (counter.view.layer() != "table") json["counters"].push_back(counter_json(group, counter));
  for (const CounterBlock& block : blocks_of(group.counters))
    for (const Reckoned& one : reckoned()) {
      if (one.layer != block.layer) continue;
      for (const CounterBlock::Row& row : block.rows) {
        Json reckoned = described(group, *row.any, block.layer + "." + one.name);
        reckoned["kind"] = "reckoned";
        reckoned["value"] = or_null(one.value(row));
        json["counters"].push_back(std::move(reckoned));
      }
    }
  json["locks"] = Json::array();
  for (const LockSample& lock : locks_of(group.counters))
    json["locks"].push_back({{"space", lock.space},
                             {"home_rank", lock.home},
                             {"offset", lock.offset},
                             {"holder_rank", or_null(lock.holder)},
                             {"waiter_ranks", lock.waiters}});
  return json;
}

}  // namespace

Json to_json(const Sample& sample) {
  constexpr double kMsPerS = 1000;
  Json json{{"schema", "dunlin-top-2"}, {"monotonic_ns", sample.now_ns}};
  json["interval_ms"] = sample.interval_s ? Json(*sample.interval_s * kMsPerS) : Json(nullptr);
  for (const char* part : {"groups", "remarks"}) json[part] = Json::array();
  for (const Group& group : sample.groups) json["groups"].push_back(group_json(sample, group));
  for (const std::string& remark : sample.remarks) json["remarks"].push_back(remark);
  return json;
}

}  // namespace dunlin::top
