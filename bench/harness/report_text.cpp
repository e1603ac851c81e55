#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "bench/harness/report.hpp"

namespace dunlin::bench {
namespace {

using Row = std::vector<std::string>;

std::string spread(const Summary& summary, const std::string& unit) {
  return to_text(summary.p10, unit) + " .. " + to_text(summary.p90, unit);
}

std::string verdict(const Result& result) {
  if (!result.goal) return "";
  const auto reached = result.reached();
  const bool of_ratio = result.goal->on == Goal::On::ratio;
  const std::string bound =
      of_ratio ? to_text(result.goal->bound) : to_text(result.goal->bound, result.unit);
  return fmt::format("{}{} {}: {}", of_ratio ? "ratio " : "",
                     result.better == Better::lower ? "at most" : "at least", bound,
                     !reached   ? "not measured (no limit)"
                     : *reached ? "reached"
                                : "MISSED");
}

std::string published(const Result& result) {
  if (!result.published) return "";
  return fmt::format("{} (x {})", to_text(*result.published, result.unit),
                     to_text(result.value.median / *result.published));
}

Row to_row(const Result& result) {
  Row row;
  for (const auto& [name, value] : result.params) row.push_back(to_text(value));
  row.insert(row.end(),
             {to_text(result.value.median, result.unit), spread(result.value, result.unit),
              result.limit ? to_text(result.limit->median, result.unit) : "", result.limit_name,
              result.ratio ? to_text(result.ratio->median) : "",
              result.ratio
                  ? fmt::format("{} .. {}", to_text(result.ratio->p10), to_text(result.ratio->p90))
                  : "",
              verdict(result), published(result)});
  return row;
}

Row header(const Result& first) {
  Row row;
  for (const auto& [name, value] : first.params) row.push_back(name);
  row.insert(row.end(), {"median", "p10 .. p90", "limit", "(what)", "ratio", "p10 .. p90", "goal",
                         "published"});
  return row;
}

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool empty =
        std::all_of(rows.begin() + 1, rows.end(), [i](const Row& row) { return row[i].empty(); });
    for (const Row& row : rows) widths[i] = empty ? 0 : std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] != 0) line += fmt::format("  {:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string text_report(const Finding& finding) {
  std::string text = fmt::format("{} [{}]: {}\n", finding.experiment->name,
                                 finding.experiment->fabric, finding.experiment->title);
  std::vector<Row> rows;
  std::vector<std::string> notes;
  for (const Result& result : finding.results) {
    if (!rows.empty() && rows.front().size() != to_row(result).size()) {
      text += aligned(rows);
      rows.clear();
    }
    if (rows.empty()) rows.push_back(header(result));
    rows.push_back(to_row(result));
    if (!result.note.empty() && std::ranges::find(notes, result.note) == notes.end()) {
      notes.push_back(result.note);
    }
  }
  if (!rows.empty()) text += aligned(rows);
  for (const std::string& note : notes) text += "  note: " + note + "\n";
  return text;
}

}  // namespace dunlin::bench
