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

/// To the microsecond.
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
  const StatisticsSample* page = owner != nullptr && owner->page ? &*owner->page : nullptr;
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
  if (!node.page) return json;
  const StatisticsSample& page = *node.page;
  json["made_ms_ago"] = ms_ago(sample, page.created_ns);
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

Json space_json(const Group& group, const Space& space) {
  Json json{{"name", space.name}};
  for (const char* part : {"members", "locks"}) json[part] = Json::array();
  for (const SpaceMember& m : space.members) {
    json["members"].push_back({{"rank", m.rank},
                               {"name", group.name_of(m.rank)},
                               {"pool_bytes", m.pool_bytes},
                               {"used_bytes", m.used_bytes},
                               {"blocks", m.blocks},
                               {"largest_free_bytes", m.largest_free_bytes},
                               {"fragmentation", m.fragmentation()},
                               {"gets", m.gets.total},
                               {"gets_per_s", or_null(m.gets.per_s)},
                               {"puts", m.puts.total},
                               {"puts_per_s", or_null(m.puts.per_s)},
                               {"locks", m.locks.total},
                               {"locks_per_s", or_null(m.locks.per_s)},
                               {"in_flight", m.in_flight}});
  }
  for (const SpaceLock& lock : space.locks()) {
    json["locks"].push_back({{"home_rank", lock.home},
                             {"offset", lock.offset},
                             {"holder_rank", or_null(lock.holder)},
                             {"waiter_ranks", lock.waiters}});
  }
  return json;
}

void add_counter(Json& to, const char* name, const Counter& counter) {
  to[name] = counter.total;
  to[std::string(name) + "_per_s"] = or_null(counter.per_s);
}

Json part_json(const StoreMember::Part& part) {
  Json json{{"keys", part.keys},
            {"value_bytes", part.value_bytes},
            {"main_slots", part.main_slots},
            {"main_slots_used", part.main_slots_used},
            {"indirect_headers", part.indirect_headers},
            {"indirect_headers_free", part.indirect_headers_free},
            {"memory_bytes", part.memory_bytes},
            {"used_bytes", part.used_bytes},
            {"held_bytes", part.held_bytes}};
  json["limit_bytes"] = part.limit_bytes == 0 ? Json(nullptr) : Json(part.limit_bytes);
  add_counter(json, "evictions", part.evictions);
  json["locked_chains"] = part.locked_chains;
  return json;
}

Json store_json(const Group& group, const StoreSample& store) {
  Json json{{"name", store.name}};
  json["members"] = Json::array();
  for (const StoreMember& m : store.members) {
    Json member{{"rank", m.rank}, {"name", group.name_of(m.rank)}};
    member["part"] = m.part ? part_json(*m.part) : Json(nullptr);
    add_counter(member, "gets", m.gets);
    add_counter(member, "puts", m.puts);
    add_counter(member, "erases", m.erases);
    add_counter(member, "others", m.others);
    member["cache_slots"] = m.cache_slots;
    add_counter(member, "cache_hits", m.cache_hits);
    add_counter(member, "cache_misses", m.cache_misses);
    add_counter(member, "cache_stale", m.cache_stale);
    member["hit_percent"] = or_null(m.hit_percent());
    add_counter(member, "lock_waits", m.lock_waits);
    add_counter(member, "waits_for_room", m.waits_for_room);
    member["in_flight"] = m.in_flight;
    json["members"].push_back(std::move(member));
  }
  return json;
}

Json containers_json(const Group& group, const ContainersSample& containers) {
  Json json{{"channel", containers.name}};
  for (const char* part : {"members", "containers"}) json[part] = Json::array();
  for (const ContainersMember& m : containers.members)
    json["members"].push_back({{"rank", m.rank},
                               {"name", group.name_of(m.rank)},
                               {"in_flight", m.in_flight},
                               {"containers_not_shown", m.not_shown}});
  for (const auto& [member, container] : containers.lines()) {
    Json line{{"kind", container->kind},
              {"name", container->name},
              {"rank", member->rank},
              {"entries", or_null(container->entries)},
              {"capacity", or_null(container->capacity)}};
    add_counter(line, "one_sided", container->one_sided);
    add_counter(line, "by_message", container->by_message);
    add_counter(line, "local", container->local);
    add_counter(line, "served", container->served);
    json["containers"].push_back(std::move(line));
  }
  return json;
}

Json relay_json(const Group& group, const RelaySample& relay, const RelayMember& m) {
  Json json{{"address", relay.name},
            {"rank", m.rank},
            {"name", group.name_of(m.rank)},
            {"encrypted", m.is_encrypted},
            {"clients", m.clients},
            {"most_clients", m.most_clients},
            {"blocked_clients", m.blocked_clients},
            {"waiting_bytes", m.waiting_bytes},
            {"most_waiting_bytes", m.most_waiting_bytes}};
  add_counter(json, "accepted", m.accepted);
  add_counter(json, "rejected", m.rejected);
  add_counter(json, "damaged", m.damaged);
  add_counter(json, "dropped", m.dropped);
  add_counter(json, "resumed", m.resumed);
  add_counter(json, "published", m.published);
  add_counter(json, "published_bytes", m.published_bytes);
  add_counter(json, "repeated", m.repeated);
  add_counter(json, "delivered", m.delivered);
  add_counter(json, "delivered_bytes", m.delivered_bytes);
  add_counter(json, "skipped", m.skipped);
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
  json["spaces"] = Json::array();
  for (const Space& space : group.spaces) json["spaces"].push_back(space_json(group, space));
  json["stores"] = Json::array();
  for (const StoreSample& store : group.stores) json["stores"].push_back(store_json(group, store));
  json["containers"] = Json::array();
  for (const ContainersSample& containers : group.containers)
    json["containers"].push_back(containers_json(group, containers));
  json["relays"] = Json::array();
  for (const RelaySample& relay : group.relays)
    for (const RelayMember& member : relay.members)
      json["relays"].push_back(relay_json(group, relay, member));
  return json;
}

}  // namespace

Json to_json(const Sample& sample) {
  constexpr double kMsPerS = 1000;
  Json json{{"schema", "dunlin-top-1"}, {"monotonic_ns", sample.now_ns}};
  json["interval_ms"] = sample.interval_s ? Json(*sample.interval_s * kMsPerS) : Json(nullptr);
  for (const char* part : {"groups", "remarks"}) json[part] = Json::array();
  for (const Group& group : sample.groups) json["groups"].push_back(group_json(sample, group));
  for (const std::string& remark : sample.remarks) json["remarks"].push_back(remark);
  return json;
}

}  // namespace dunlin::top
