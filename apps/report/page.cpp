#include "report/page.hpp"

namespace dunlin::app {
namespace {

constexpr std::string_view kDataMark = "\"DUNLIN_DATA\"";

/// JSON that cannot end the script element that it stands in.
std::string harmless(std::string_view written) {
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

std::string report_page(std::string_view page, std::string_view json) {
  std::string text(report_template());
  const std::string data =
      "{\"page\":\"" + std::string(page) + "\",\"data\":" + harmless(json) + "}";
  return text.replace(text.find(kDataMark), kDataMark.size(), data);
}

}  // namespace dunlin::app
