#include "routing/record.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "command.hpp"

namespace dunlin::routing {

namespace {

bool is_end(const Topology& topology, const std::optional<LinkEvent>& event, RouterId router) {
  if (!event) return false;
  return std::any_of(event->changes.begin(), event->changes.end(), [&](const Change& change) {
    return topology.arcs[change.arc].tail == router;
  });
}

std::optional<std::uint64_t> median_or_none(std::vector<std::uint64_t> values) {
  if (values.empty()) return {};
  return median(std::move(values));
}

}  // namespace

std::uint64_t median(std::vector<std::uint64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

EventRecord make_record(const Topology& topology, const std::optional<LinkEvent>& event,
                        const std::vector<Outcome>& outcomes, std::uint64_t changed_ns,
                        std::uint64_t run_began_ns) {
  const auto since = [](std::uint64_t time, std::uint64_t zero) {
    return time > zero ? time - zero : 0;
  };
  EventRecord record;
  record.event = event;
  record.at_ns = since(changed_ns, run_began_ns);
  std::vector<std::uint64_t> compute_times;
  for (RouterId r = 0; r < outcomes.size(); ++r) {
    const Outcome& outcome = outcomes[r];
    const bool computed = outcome.computations > 0;
    const Reaction reaction{outcome.computations,
                            computed ? since(outcome.installed_ns, changed_ns) : 0,
                            outcome.compute_ns, since(outcome.settled_ns, changed_ns)};
    record.reactions.push_back(reaction);
    record.all_settled_ns = std::max(record.all_settled_ns, reaction.settled_ns);
    ++(computed ? record.recomputed : record.skipped);
    if (!computed) continue;
    compute_times.push_back(reaction.compute_ns);
    if (!is_end(topology, event, r)) {
      record.first_ns =
          std::min(record.first_ns.value_or(reaction.installed_ns), reaction.installed_ns);
    }
    if (reaction.installed_ns >= record.last_ns.value_or(0)) {
      record.last_ns = reaction.installed_ns;
      record.last_compute_ns = reaction.compute_ns;
    }
  }
  record.median_compute_ns = median_or_none(std::move(compute_times)).value_or(0);
  return record;
}

Summary summarize(const RunRecord& run) {
  Summary summary;
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> last;
  std::vector<std::uint64_t> compute;
  for (const EventRecord& event : run.events) {
    ++summary.events;
    summary.recomputed += event.recomputed;
    summary.skipped += event.skipped;
    if (event.first_ns) first.push_back(*event.first_ns);
    if (!event.last_ns) continue;
    last.push_back(*event.last_ns);
    compute.push_back(event.median_compute_ns);
  }
  if (!last.empty()) summary.longest_last_ns = *std::max_element(last.begin(), last.end());
  summary.median_first_ns = median_or_none(std::move(first));
  summary.median_last_ns = median_or_none(std::move(last));
  summary.median_compute_ns = median_or_none(std::move(compute));
  return summary;
}

void demand_agreement(std::span<const RunRecord> runs) {
  std::uint64_t wrong = 0;
  for (const RunRecord& run : runs) wrong += run.verdict.wrong;
  if (wrong == 0) return;
  throw app::VerificationFailed(
      fmt::format("{} routes differ from the independent computation", wrong));
}

}  // namespace dunlin::routing
