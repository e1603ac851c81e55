#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <unistd.h>

#include <dunlin/error.hpp>

#include "bench/harness/report.hpp"
#include "command.hpp"
#include "process/program.hpp"

namespace dunlin::bench {
namespace {

constexpr double kLogarithmicFrom = 30;  // largest to smallest, where a linear axis hides too much
constexpr std::chrono::milliseconds kPlotTimeout{30'000};

std::string literal(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

const double* number(const Result& result, const std::string& x) {
  for (const auto& [name, value] : result.params) {
    if (name == x) return std::get_if<double>(&value);
  }
  return nullptr;
}

void widen(std::pair<double, double>& range, double value) {
  if (value <= 0) return;
  range.first = range.first == 0 ? value : std::min(range.first, value);
  range.second = std::max(range.second, value);
}

bool logarithmic(const std::pair<double, double>& range) {
  return range.first > 0 && range.second / range.first >= kLogarithmicFrom;
}

/// Data blocks and the list of what to draw, gathered curve by curve.
struct Drawing {
  std::string data;
  std::string curves;
  std::size_t blocks = 0;

  void add(const std::string& rows, const std::string& how) {
    data += fmt::format("$d{} << EOD\n{}EOD\n", blocks, rows);
    curves += fmt::format("{}$d{} {}", blocks == 0 ? "plot " : ", \\\n  ", blocks, how);
    ++blocks;
  }
};

std::string axes(const Finding& finding, const std::string& x) {
  std::pair<double, double> xs;
  std::pair<double, double> ys;
  for (const Result& result : finding.results) {
    if (const double* at = number(result, x)) widen(xs, *at);
    widen(ys, result.value.p10);
    widen(ys, result.value.p90);
    if (result.limit) widen(ys, result.limit->median);
    if (result.published) widen(ys, *result.published);
  }
  return fmt::format("set xlabel {}\n{}{}", literal(x), logarithmic(xs) ? "set logscale x 2\n" : "",
                     logarithmic(ys) ? "set logscale y\n" : "set yrange [0:*]\n");
}

Drawing lines(const Finding& finding, const std::string& x) {
  std::map<std::string, std::vector<const Result*>> groups;
  for (const Result& result : finding.results) {
    if (number(result, x) != nullptr) groups[to_text(result.params, x)].push_back(&result);
  }
  Drawing drawing;
  int color = 1;
  for (const auto& [name, results] : groups) {
    std::string values;
    std::string limits;
    std::string papers;
    for (const Result* r : results) {
      const double at = *number(*r, x);
      values += fmt::format("{} {} {} {}\n", at, r->value.median, r->value.p10, r->value.p90);
      if (r->limit) limits += fmt::format("{} {}\n", at, r->limit->median);
      if (r->published) papers += fmt::format("{} {}\n", at, *r->published);
    }
    const std::string title = name.empty() ? "Dunlin" : name;
    drawing.add(values, fmt::format("with yerrorlines lw 2 pt 7 ps 0.5 lc {} title {}", color,
                                    literal(title)));
    if (!limits.empty()) {
      drawing.add(limits, fmt::format("with lines dt 2 lc {} title {}", color,
                                      literal(title + ": " + results.front()->limit_name)));
    }
    if (!papers.empty()) {
      drawing.add(papers, fmt::format("with points pt 4 lc {} title {}", color,
                                      literal(title + ": published")));
    }
    ++color;
  }
  return drawing;
}

Drawing bars(const Finding& finding) {
  std::string values;
  std::string limits;
  for (const Result& result : finding.results) {
    const std::string name =
        to_text(result.params);  // double quotes, which data needs, are not in it
    values += fmt::format("\"{}\" {}\n", name, result.value.median);
    limits += fmt::format("\"{}\" {}\n", name, result.limit ? result.limit->median : 0.0);
  }
  Drawing drawing;
  drawing.add(values, "using 2:xtic(1) title 'Dunlin'");
  drawing.add(limits, "using 2 title 'limit'");
  return drawing;
}

}  // namespace

std::string plot_script(const Finding& finding, const std::string& svg_file) {
  const std::string& x = finding.experiment->x;
  const bool along_x = !x.empty() && std::ranges::any_of(finding.results, [&](const Result& r) {
    return number(r, x) != nullptr;
  });
  const Drawing drawing = along_x ? lines(finding, x) : bars(finding);
  const std::string style =
      along_x ? axes(finding, x)
              : "set style data histograms\nset style fill solid 0.8\nset yrange [0:*]\n"
                "set xtics rotate by -20\n";
  return fmt::format(
      "set terminal svg noenhanced size 860,480 font 'sans-serif,13' background 'white'\n"
      "set output {}\nset title {}\nset ylabel {}\nset grid\nset key outside bottom center\n"
      "set datafile separator whitespace\n{}{}{}\n",
      literal(svg_file), literal(finding.experiment->title), literal(finding.results.front().unit),
      style, drawing.data, drawing.curves);
}

void prepare_plots(const std::string& folder) {
  if (!process::program_exists("gnuplot")) {
    throw Error(
        "bench: pictures are drawn by gnuplot, which is not installed; "
        "install the package gnuplot-nox or leave out --plot");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0)
    error.assign(errno, std::generic_category());
  if (!error) return;
  throw app::BadInput(
      fmt::format("--plot \"{}\": cannot write there: {}", folder, error.message()));
}

void plot_report(const std::string& folder, std::span<const Finding> findings) {
  for (const Finding& finding : findings) {
    if (finding.results.empty()) continue;
    const std::string file =
        folder + "/" + finding.experiment->name + "-" + finding.experiment->fabric + ".svg";
    const process::Outcome drawn = process::run(
        {.command = {"gnuplot"}, .input = plot_script(finding, file), .timeout = kPlotTimeout});
    if (!drawn.status.well()) {
      throw Error("bench: gnuplot could not draw " + file + ": " + drawn.output);
    }
  }
}

}  // namespace dunlin::bench
