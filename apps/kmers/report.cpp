#include "kmers/report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "routing/report_template.hpp"

namespace dunlin::kmers {
namespace {

constexpr std::size_t kMostBars = 60;
constexpr int kWidth = 720, kHeight = 240;

std::uint64_t distinct(const Counted& counted) {
  return std::accumulate(counted.histogram.begin(), counted.histogram.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& each) { return sum + each.second; });
}

double load_of(const MemberUse& use) {
  return use.slots == 0 ? 0 : static_cast<double>(use.kmers) / static_cast<double>(use.slots);
}

std::string harmless(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string verdict(const Comparison& comparison) {
  if (comparison.differences == 0)
    return fmt::format("Jellyfish has the same {} k-mers and counts", comparison.kmers);
  return fmt::format("Jellyfish differs in {} k-mers: {}", comparison.differences,
                     comparison.first);
}

/// Both axes of the histogram, around an area of kWidth times kHeight.
constexpr int kLeft = 70, kRight = 20, kTop = 25, kBottom = 45;
/// The vertical axis is logarithmic and begins below 1, so that a bar of 1 can be seen.
constexpr double kLeastShown = 0.5;

double height_of(double kmers, double most) {
  return kmers < 1 ? 0 : kHeight * std::log(kmers / kLeastShown) / std::log(most / kLeastShown);
}

/// Lines across at 1, 10, 100 and so on.
std::string vertical_axis(double most) {
  std::string svg = fmt::format(
      "<text x=\"0\" y=\"{}\">different k-mers, on a logarithmic axis</text>", kTop - 12);
  for (std::uint64_t tick = 1; static_cast<double>(tick) <= most; tick *= 10) {
    const double y = kTop + kHeight - height_of(static_cast<double>(tick), most);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>",
        kLeft, kLeft + kWidth, y, kLeft - 6, y + 4, tick);
  }
  return svg;
}

/// Counts of kMostBars and more are one bar.
std::string histogram_svg(const Counted& counted) {
  std::vector<std::uint64_t> bars(kMostBars + 1);
  for (const auto& [count, kmers] : counted.histogram)
    bars[std::min<std::uint64_t>(count, kMostBars)] += kmers;
  const double most =
      std::max(1.0, static_cast<double>(*std::max_element(bars.begin(), bars.end())));
  const double width = double{kWidth} / static_cast<double>(kMostBars);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">{}", kLeft + kWidth + kRight,
                  kTop + kHeight + kBottom, vertical_axis(most));
  for (std::size_t count = 1; count <= kMostBars; ++count) {
    const double height = height_of(static_cast<double>(bars[count]), most);
    const double x = kLeft + static_cast<double>(count - 1) * width;
    const char* const or_more = count == kMostBars ? " or more" : "";
    svg += fmt::format(
        "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
        "<title>{} k-mers occur {}{} times</title></rect>",
        x + width * 0.1, kTop + kHeight - height, width * 0.8, height, bars[count], count, or_more);
    if (count % 10 == 0 || count == 1)
      svg += fmt::format("<text class=\"count\" x=\"{:.1f}\" y=\"{}\">{}{}</text>", x + width / 2,
                         kTop + kHeight + 16, count, count == kMostBars ? "+" : "");
  }
  return svg + fmt::format(
                   "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
                   "<text class=\"count\" x=\"{3}\" y=\"{4}\">how often a k-mer occurs "
                   "({5}+: {5} times or more)</text></svg>",
                   kLeft, kLeft + kWidth, kTop + kHeight, kLeft + kWidth / 2, kTop + kHeight + 36,
                   kMostBars);
}

}  // namespace

std::string text_report(const CountOptions& options, const Counted& counted,
                        const std::optional<Comparison>& comparison) {
  const double seconds = counted.filter_s + counted.count_s;
  std::string text = fmt::format(
      "{} {}-mers, of which {} are different{}\n"
      "style: {}, as {}\n"
      "time: {:.2f} s filter, {:.2f} s count, {:.2f} s gather; {:.2f} million k-mers/s\n",
      counted.kmers(), options.k, distinct(counted),
      options.filter ? " and occur twice or more" : "", name_of(counted.style),
      counted.why.starts_with("as ") ? counted.why.substr(3) : counted.why, counted.filter_s,
      counted.count_s, counted.gather_s,
      seconds > 0 ? static_cast<double>(counted.kmers()) / seconds / 1e6 : 0);
  for (std::size_t i = 0; i < counted.members.size(); ++i)
    text += fmt::format("member {}: {} k-mers read; {} of {} slots used, load {:.2f}\n", i,
                        counted.members[i].read, counted.members[i].kmers, counted.members[i].slots,
                        load_of(counted.members[i]));
  if (comparison)
    text += fmt::format("{}\njellyfish count with {} threads: {:.2f} s\n", verdict(*comparison),
                        options.processes, comparison->count_s);
  return text;
}

std::string html_report(const CountOptions& options, const Counted& counted,
                        const std::optional<Comparison>& comparison) {
  std::string page = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><title>dunlin kmers</title><style>{}"
      "svg{{width:100%;max-width:56em}}.bar{{fill:var(--cost)}}.tick{{text-anchor:end}}"
      ".count{{text-anchor:middle}}.run>h2{{font-size:18px;margin:24px 0 6px}}"
      "th:nth-child(2),td:nth-child(2){{text-align:right}}</style><header>"
      "<div class=\"brand\">dunlin kmers</div><h1>{}-mers of {} file{}</h1><p class=\"lead\">",
      routing::report_style(), options.k, options.files.size(),
      options.files.size() == 1 ? "" : "s");
  for (const Input& file : options.files) page += harmless(file.name) + "<br>";
  page += fmt::format(
      "</p></header><main><section class=\"run\"><p class=\"facts\">{} k-mers were read; {} are "
      "different{}. Fabric {}; style {}: {}.</p><h2>How many k-mers occur so often</h2>{}"
      "<h2>Members</h2><table><tr><th>member<th>k-mers read<th>k-mers held<th>slots<th>load",
      counted.kmers(), distinct(counted), options.filter ? " and occur twice or more" : "",
      harmless(options.fabric.network), name_of(counted.style), harmless(counted.why),
      histogram_svg(counted));
  for (std::size_t i = 0; i < counted.members.size(); ++i)
    page += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{:.2f}", i, counted.members[i].read,
                        counted.members[i].kmers, counted.members[i].slots,
                        load_of(counted.members[i]));
  page += fmt::format(
      "</table><h2>Where the time went</h2><table><tr><th>filter<th>count<th>gather<tr><td>{:.2f} "
      "s<td>{:.2f} s<td>{:.2f} s</table>",
      counted.filter_s, counted.count_s, counted.gather_s);
  if (comparison)
    page += fmt::format("<h2>Jellyfish</h2><p>{}; it counted for {:.2f} s with {} threads.</p>",
                        harmless(verdict(*comparison)), comparison->count_s, options.processes);
  return page + "</section></main></html>\n";
}

}  // namespace dunlin::kmers
