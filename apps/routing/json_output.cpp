#include "routing/json_output.hpp"

#include <nlohmann/json.hpp>

#include "routing/map.hpp"

namespace dunlin::routing {

namespace {

using Json = nlohmann::ordered_json;

Json time_or_null(const std::optional<std::uint64_t>& ns) { return ns ? Json(*ns) : Json(nullptr); }
Json cost_or_null(Cost cost) { return cost == kNoLink ? Json(nullptr) : Json(to_double(cost)); }

std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::cost:
      return "cost";
    case EventKind::down:
      return "down";
    case EventKind::up:
      break;
  }
  return "up";
}

Json routers_of(const Topology& topology) {
  const Map map = draw_map(topology);
  Json list = Json::array();
  for (RouterId r = 0; r < topology.size(); ++r) {
    list.push_back({{"id", topology.routers[r].id},
                    {"label", topology.routers[r].label},
                    {"x", map.points[r].x},
                    {"y", map.points[r].y}});
  }
  return list;
}

Json links_of(const Topology& topology) {
  Json list = Json::array();
  for (const Link& link : topology.links) {
    list.push_back(
        {{"a", link.a}, {"b", link.b}, {"cost", to_double(link.cost)}, {"one_way", link.one_way}});
  }
  return list;
}

Json event_of(const Topology& topology, const EventRecord& record) {
  Json json;
  if (record.event) {
    json["kind"] = name_of(record.event->kind);
    json["link"] = record.event->link;
    json["text"] = describe(topology, *record.event);
    json["before"] = cost_or_null(record.event->before);
    json["after"] = cost_or_null(record.event->after);
    json["one_direction"] = record.event->one_direction;
  } else {
    json["kind"] = "start";
  }
  json["at_ns"] = record.at_ns;
  json["first_ns"] = time_or_null(record.first_ns);
  json["last_ns"] = time_or_null(record.last_ns);
  json["last_compute_ns"] = record.last_compute_ns;
  json["median_compute_ns"] = record.median_compute_ns;
  json["all_settled_ns"] = record.all_settled_ns;
  json["recomputed"] = record.recomputed;
  json["skipped"] = record.skipped;
  Json installed = Json::array();  // by column: half the size, and as easy to read
  Json compute = Json::array();
  Json computations = Json::array();
  for (const Reaction& r : record.reactions) {
    installed.push_back(r.computations > 0 ? Json(r.installed_ns) : Json(nullptr));
    compute.push_back(r.compute_ns);
    computations.push_back(r.computations);
  }
  json["routers"] = {{"installed_ns", std::move(installed)},
                     {"compute_ns", std::move(compute)},
                     {"computations", std::move(computations)}};
  return json;
}

Json summary_of(const RunRecord& run) {
  const Summary summary = summarize(run);
  return {{"events", summary.events},
          {"recomputed", summary.recomputed},
          {"skipped", summary.skipped},
          {"median_first_ns", time_or_null(summary.median_first_ns)},
          {"median_last_ns", time_or_null(summary.median_last_ns)},
          {"longest_last_ns", time_or_null(summary.longest_last_ns)},
          {"median_compute_ns", time_or_null(summary.median_compute_ns)}};
}

Json run_of(const RunRecord& run) {
  const Topology& topology = run.topology;
  Json json = {{"name", topology.name},
               {"source", topology.source},
               {"cost", topology.cost_text},
               {"geographic", topology.geographic},
               {"aspect", draw_map(topology).aspect},
               {"notes", topology.notes},
               {"fabric", run.fabric}};
  json["profile"] = run.profile.empty() ? Json(nullptr) : Json(run.profile);
  json["network"] = run.network.empty() ? Json(nullptr) : Json(run.network);
  json["hosts"] = run.hosts;
  json["seed"] = run.seed ? Json(*run.seed) : Json(nullptr);
  json["routers"] = routers_of(topology);
  json["links"] = links_of(topology);
  json["start"] = event_of(topology, run.start);
  json["events"] = Json::array();
  for (const EventRecord& event : run.events) json["events"].push_back(event_of(topology, event));
  json["summary"] = summary_of(run);
  json["check"] = {{"by", "Boost.Graph"},
                   {"agrees", run.verdict.agrees()},
                   {"compared", run.verdict.compared},
                   {"unreachable", run.verdict.unreachable},
                   {"wrong", run.verdict.wrong},
                   {"differences", run.verdict.differences}};
  return json;
}

}  // namespace

std::string to_json(std::span<const RunRecord> runs, int indent) {
  Json json = {{"format", "dunlin-routing"}, {"version", 1}, {"runs", Json::array()}};
  for (const RunRecord& run : runs) json["runs"].push_back(run_of(run));
  // GraphML's names may hold bytes that are not UTF-8; JSON may not.
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dunlin::routing
