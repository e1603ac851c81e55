#include "kmers/report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

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

/// Counts of kMostBars and more are one bar; heights are logarithmic.
std::string histogram_svg(const Counted& counted) {
  std::vector<std::uint64_t> bars(kMostBars + 1);
  for (const auto& [count, kmers] : counted.histogram)
    bars[std::min<std::uint64_t>(count, kMostBars)] += kmers;
  const double highest =
      std::log10(1.0 + static_cast<double>(*std::max_element(bars.begin(), bars.end())));
  const double width = double{kWidth} / static_cast<double>(kMostBars);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">", kWidth, kHeight + 20);
  for (std::size_t count = 1; count <= kMostBars; ++count) {
    const double height =
        highest > 0 ? kHeight * std::log10(1.0 + static_cast<double>(bars[count])) / highest : 0;
    const double x = static_cast<double>(count - 1) * width;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{} k-mers occur "
        "{}{} times</title></rect>",
        x, kHeight - height, width * 0.8, height, bars[count], count,
        count == kMostBars ? " or more" : "");
    if (count % 10 == 0 || count == 1)
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>", x, kHeight + 15, count);
  }
  return svg + "</svg>";
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
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>dunlin kmers</title>"
      "<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 "
      "1em}}svg{{width:100%}}rect{{fill:#2a6f97}}text{{font-size:11px}}td,th{{text-align:right;"
      "padding:.1em .8em}}@media(prefers-color-scheme:dark){{body{{background:#14181c;color:#dde}}"
      "text{{fill:#dde}}rect{{fill:#61a5c2}}}}</style>"
      "<h1>{}-mers of {} file{}</h1><p>",
      options.k, options.files.size(), options.files.size() == 1 ? "" : "s");
  for (const std::string& file : options.files) page += harmless(file) + "<br>";
  page += fmt::format(
      "</p><p>{} k-mers were read; {} are different{}. Fabric {}; style {}: {}.</p>"
      "<h2>How many k-mers occur so often</h2>{}<h2>Members</h2><table><tr><th>member<th>k-mers "
      "read<th>k-mers held<th>slots<th>load",
      counted.kmers(), distinct(counted), options.filter ? " and occur twice or more" : "",
      harmless(options.fabric.fabric), name_of(counted.style), harmless(counted.why),
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
  return page + "</html>\n";
}

}  // namespace dunlin::kmers
