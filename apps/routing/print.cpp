#include "routing/print.hpp"

#include <fmt/format.h>

#include "text.hpp"

namespace dunlin::routing {

namespace {

using app::characters;
using app::padded;
using app::printable;

constexpr std::size_t kEventColumns = 46;

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "–" : fmt::format("{} %", (100 * part + whole / 2) / whole);
}

std::string row(const std::string& number, const std::string& event, const std::string& first,
                const std::string& last, const std::string& compute, const std::string& recomputed,
                const std::string& skipped) {
  // By hand, as fmt pads text that is not ASCII by its own idea of width.
  const auto right = [](const std::string& text, std::size_t columns) {
    const std::size_t width = characters(text);
    return std::string(width < columns ? columns - width : 0, ' ') + text;
  };
  return fmt::format("{} {}{}{}{}{}{}\n", right(number, 5),
                     " " + padded(printable(event, kEventColumns), kEventColumns), right(first, 10),
                     right(last, 10), right(compute, 10), right(recomputed, 12), right(skipped, 9));
}

}  // namespace

std::string show_time(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.1f} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.2f} ms", value / 1e6);
  return fmt::format("{:.2f} s", value / 1e9);
}

std::string show_time(const std::optional<std::uint64_t>& ns) { return ns ? show_time(*ns) : "–"; }

std::string heading(const Topology& topology, const std::string& fabric_text, std::size_t events) {
  std::string text =
      fmt::format("{}: {}, {}; cost: {}; {}; {}\n", topology.name,
                  plural(topology.size(), "router"), plural(topology.links.size(), "link"),
                  topology.cost_text, fabric_text, plural(events, "event"));
  constexpr std::size_t kMostNotes = 5;
  for (std::size_t i = 0; i < std::min(topology.notes.size(), kMostNotes); ++i) {
    text += fmt::format("  note: {}\n", topology.notes[i]);
  }
  if (topology.notes.size() > kMostNotes) {
    text += fmt::format("  note: and {} more of the kind\n", topology.notes.size() - kMostNotes);
  }
  return text;
}

std::string columns() {
  return row("#", "event", "first", "last", "compute", "recomputed", "skipped");
}

std::string event_line(const Topology& topology, const EventRecord& record, std::size_t number) {
  const std::string what =
      record.event ? describe(topology, *record.event) : "start: all install their first routes";
  const bool nobody = record.recomputed == 0;
  return row(std::to_string(number), what, show_time(record.first_ns), show_time(record.last_ns),
             nobody ? "–" : show_time(record.last_compute_ns), std::to_string(record.recomputed),
             std::to_string(record.skipped));
}

std::string conclusion(const RunRecord& run) {
  const Summary summary = summarize(run);
  std::string text;
  if (summary.events > 0) {
    text += row("", "median", show_time(summary.median_first_ns), show_time(summary.median_last_ns),
                show_time(summary.median_compute_ns),
                share(summary.recomputed, summary.recomputed + summary.skipped),
                share(summary.skipped, summary.recomputed + summary.skipped));
  }
  const Verdict& verdict = run.verdict;
  if (verdict.agrees()) {
    text += fmt::format(
        "  All {} agree with Boost.Graph: {} compared{}.\n", plural(run.topology.size(), "router"),
        plural(verdict.compared, "route"),
        verdict.unreachable == 0
            ? ""
            : fmt::format(", {} of them to routers that are cut off", verdict.unreachable));
    return text;
  }
  text += fmt::format("  WRONG: {} of {} differ from Boost.Graph:\n", verdict.wrong,
                      plural(verdict.compared, "route"));
  for (const std::string& difference : verdict.differences) text += "    " + difference + "\n";
  if (verdict.wrong > verdict.differences.size()) {
    text += fmt::format("    and {} more\n", verdict.wrong - verdict.differences.size());
  }
  return text;
}

}  // namespace dunlin::routing
