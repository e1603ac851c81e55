#include "doctor/output.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <dunlin/version.hpp>

namespace dunlin::doctor {
namespace {

constexpr std::size_t kMarkWidth = 8;

const char* mark_of(State state) {
  switch (state) {
    case State::good:
      return "ok";
    case State::absent:
      return "-";
    case State::advice:
      return "advice";
    case State::problem:
      break;
  }
  return "PROBLEM";
}

std::size_t widest(const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  return width;
}

void describe(const std::vector<Finding>& findings, std::size_t indent, std::string& text) {
  const std::size_t width = widest(findings);
  for (const Finding& finding : findings) {
    text += fmt::format("{:{}}{:<{}} {:<{}}  {}\n", "", indent, mark_of(finding.state), kMarkWidth,
                        finding.subject, width, finding.text);
    if (!finding.mend.empty()) {
      const char* const what = finding.state == State::good     ? "may help"
                               : finding.state == State::absent ? "to have it"
                                                                : "mend";
      text +=
          fmt::format("{:{}}{}: {}\n", "", indent + kMarkWidth + 1 + width + 2, what, finding.mend);
    }
    describe(finding.parts, indent + kMarkWidth + 1 + width + 2, text);
  }
}

std::string verdict(const Report& report) {
  const std::size_t problems = report.count(State::problem);
  const std::size_t advice = report.count(State::advice);
  if (problems == 0 && advice == 0) return "All is well.\n";
  const auto number = [](std::size_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  };
  return fmt::format("{}, {} of advice.\n", number(problems, "problem", "problems"),
                     number(advice, "piece", "pieces"));
}

nlohmann::ordered_json to_json(const Finding& finding) {
  nlohmann::ordered_json json{
      {"subject", finding.subject}, {"state", name_of(finding.state)}, {"text", finding.text}};
  json["mend"] = finding.mend.empty() ? nlohmann::json() : nlohmann::json(finding.mend);
  json["facts"] = finding.facts;
  if (!finding.parts.empty()) {
    json["parts"] = nlohmann::json::array();
    for (const Finding& part : finding.parts) json["parts"].push_back(to_json(part));
  }
  return json;
}

nlohmann::ordered_json to_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = nlohmann::json::array();
  for (const Finding& finding : findings) json.push_back(to_json(finding));
  return json;
}

}  // namespace

std::string describe(const Report& report) {
  std::string text =
      fmt::format("Dunlin {} on {}, Linux {}\n\nFabrics\n", version(), report.host, report.kernel);
  describe(report.fabrics, 2, text);
  text += "\nMachine\n";
  describe(report.machine, 2, text);
  return text + "\n" + verdict(report);
}

nlohmann::ordered_json to_json(const Report& report) {
  return {{"schema", "dunlin-doctor-1"},
          {"version", version()},
          {"host", report.host},
          {"kernel", report.kernel},
          {"problems", report.count(State::problem)},
          {"advice", report.count(State::advice)},
          {"fabrics", to_json(report.fabrics)},
          {"machine", to_json(report.machine)}};
}

}  // namespace dunlin::doctor
