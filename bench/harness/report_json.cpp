#include <utility>

#include <nlohmann/json.hpp>

#include "bench/harness/report.hpp"
#include "report/page.hpp"

namespace dunlin::bench {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Summary& summary) {
  return {{"rounds", summary.rounds}, {"min", summary.min}, {"p10", summary.p10},
          {"median", summary.median}, {"p90", summary.p90}, {"max", summary.max}};
}

Json to_json(const Params& params) {
  Json object = Json::object();
  for (const auto& [name, value] : params) {
    std::visit([&, &key = name](const auto& v) { object[key] = v; }, value);
  }
  return object;
}

Json to_json(const Goal& goal, const Result& result) {
  const auto reached = result.reached();
  return {{"on", goal.on == Goal::On::ratio ? "ratio" : "value"},
          {result.better == Better::lower ? "at_most" : "at_least", goal.bound},
          {"reached", reached ? Json(*reached) : Json(nullptr)}};
}

Json to_json(const Result& result, const Experiment& experiment) {
  Json object = {{"name", experiment.name},
                 {"fabric", experiment.fabric},
                 {"params", to_json(result.params)},
                 {"value", result.value.median},
                 {"unit", result.unit},
                 {"limit", nullptr},
                 {"ratio", nullptr},
                 {"limit_name", result.limit_name},
                 {"better", result.better == Better::lower ? "lower" : "higher"}};
  if (result.limit) object["limit"] = result.limit->median;
  if (result.ratio) object["ratio"] = result.ratio->median;
  if (result.goal) object["goal"] = to_json(*result.goal, result);
  if (result.published) object["published"] = *result.published;
  if (!result.note.empty()) object["note"] = result.note;
  object["value_spread"] = to_json(result.value);
  if (result.limit) object["limit_spread"] = to_json(*result.limit);
  if (result.ratio) object["ratio_spread"] = to_json(*result.ratio);
  return object;
}

}  // namespace

std::string json_report(std::span<const Finding> findings) {
  Json array = Json::array();
  for (const Finding& finding : findings) {
    for (const Result& result : finding.results) {
      array.push_back(to_json(result, *finding.experiment));
    }
  }
  return array.dump(2) + "\n";
}

std::string html_report(std::span<const Finding> findings) {
  Json page = Json::array();
  for (const Finding& finding : findings) {
    if (finding.results.empty()) continue;
    const Experiment& of = *finding.experiment;
    Json results = Json::array();
    for (const Result& result : finding.results) {
      Json one = to_json(result, of);
      one["setting"] = to_text(result.params);
      one["group"] = to_text(result.params, of.x);
      one["text"] = to_text(result.value.median, result.unit);
      results.push_back(std::move(one));
    }
    page.push_back({{"name", of.name},
                    {"fabric", of.fabric},
                    {"title", of.title},
                    {"x", of.x},
                    {"results", std::move(results)}});
  }
  return app::report_page("bench", page.dump());
}

}  // namespace dunlin::bench
