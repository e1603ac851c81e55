#include "top/table_counters.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace dunlin::top {
namespace {

std::string_view label(const CounterView& view, std::string_view wanted) {
  for (const auto& [key, value] : view.split_labels())
    if (key == wanted) return value;
  return {};
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Nothing if it makes no sense.
std::optional<PredicateSample> read_predicate(const CounterView& view, std::uint64_t passes) {
  constexpr std::size_t kWordsOfOne = 4;  // kind, triggers, first pass, firings
  if (view.words.size() != kWordsOfOne ||
      view.words[0] > static_cast<std::uint64_t>(PredicateKind::transition))
    return std::nullopt;
  PredicateSample predicate{.id = number(label(view, "id")),
                            .name = std::string(label(view, "predicate")),
                            .kind = static_cast<PredicateKind>(view.words[0]),
                            .triggers = view.words[1],
                            .first_pass = view.words[2]};
  predicate.firings.total = view.words[3];
  const bool evaluated = predicate.first_pass <= passes;
  predicate.evaluations.total = evaluated ? passes - predicate.first_pass + 1 : 0;
  return predicate;
}

void read_rows(TableSample& sample, const CounterView& view, const std::vector<Rank>& ranks) {
  const std::string_view name = view.short_name();
  if (!name.starts_with("row_")) return;
  sample.rows.resize(ranks.size());
  for (std::size_t i = 0; i < std::min(ranks.size(), view.words.size()); ++i) {
    RowStatus& row = sample.rows[i];
    row.rank = ranks[i];
    if (name == "row_states")
      row.state = static_cast<RowState>(std::min<std::uint64_t>(view.words[i], UINT8_MAX));
    if (name == "row_since_ns") row.since_ns = view.words[i];
    if (name == "row_refreshed_ns") row.refreshed_ns = view.words[i];
  }
}

}  // namespace

void TableSample::compare(const TableSample& before, double seconds) {
  passes.compare(before.passes.total, seconds);
  pushes.compare(before.pushes.total, seconds);
  pulls.compare(before.pulls.total, seconds);
  for (PredicateSample& p : predicates) {
    // A predicate that was not there before has counted from 0 since then.
    const auto old = std::ranges::find(before.predicates, p.id, &PredicateSample::id);
    const bool is_new = old == before.predicates.end();
    p.evaluations.compare(is_new ? 0 : old->evaluations.total, seconds);
    p.firings.compare(is_new ? 0 : old->firings.total, seconds);
  }
}

std::optional<TableSample> read_table_counters(std::span<const CounterView* const> counters,
                                               const std::vector<Rank>& ranks) {
  if (counters.empty()) return std::nullopt;
  std::optional<TableSample> sample(std::in_place);
  std::vector<const CounterView*> predicates;
  for (const CounterView* const counter : counters) {
    const CounterView& view = *counter;
    const std::string_view name = view.short_name();
    for (const auto& [of, to] : {std::pair{"passes", &sample->passes},
                                 {"pushes", &sample->pushes},
                                 {"pulls", &sample->pulls}})
      if (name == of) to->total = view.words.front();
    if (name == "made_ns") sample->made_ns = view.words.front();
    if (name == "predicates") sample->predicates_registered = view.words.front();
    if (name == "predicate") predicates.push_back(&view);
    read_rows(*sample, view, ranks);
  }
  for (const CounterView* const view : predicates)
    if (auto predicate = read_predicate(*view, sample->passes.total))
      sample->predicates.push_back(std::move(*predicate));
  std::ranges::sort(sample->predicates, {}, &PredicateSample::id);
  return sample;
}

std::string_view describe(PredicateKind kind) {
  switch (kind) {
    case PredicateKind::recurrent:
      return "recurrent";
    case PredicateKind::once:
      return "once";
    case PredicateKind::transition:
      return "transition";
  }
  return "unknown";
}

}  // namespace dunlin::top
