#include "routing/report.hpp"

#include <string_view>

#include "routing/json_output.hpp"
#include "routing/report_template.hpp"

namespace dunlin::routing {

namespace {

constexpr std::string_view kDataMark = "\"DUNLIN_DATA\"";

/// JSON that cannot end the script element that it stands in.
std::string harmless(const std::string& written) {
  std::string text;
  for (const char c : written) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string html_report(std::span<const RunRecord> runs) {
  std::string page(report_template());
  const auto mark = page.find(kDataMark);
  return page.replace(mark, kDataMark.size(), harmless(to_json(runs, -1)));
}

}  // namespace dunlin::routing
