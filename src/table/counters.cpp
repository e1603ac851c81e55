#include "table/counters.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <dunlin/limits.hpp>
#include <dunlin/table/predicate.hpp>

#include "fabric/core/core.hpp"

namespace dunlin {
namespace {

/// A predicate's words: its kind, how many triggers it has, the pass that evaluates it first, and
/// how often it has fired.
constexpr std::uint32_t kPredicateWords = 4;

std::string labels_of(const std::string& table, std::uint64_t generation) {
  return "table=" + table + "\ngeneration=" + std::to_string(generation);
}

}  // namespace

TableCounters::TableCounters(Fabric& fabric, const std::string& table, std::uint64_t generation,
                             std::size_t rows, std::size_t my_row)
    : pages_(FabricCore::counters_of(fabric)),
      labels_(labels_of(table, generation)),
      my_row_(my_row),
      all_(fabric, labels_),
      states_(
          all_.add_words("table.row_states", static_cast<std::uint32_t>(rows), CounterKind::level)),
      since_ns_(all_.add_words("table.row_since_ns", static_cast<std::uint32_t>(rows),
                               CounterKind::level, CounterUnit::nanoseconds)),
      refreshed_ns_(all_.add_words("table.row_refreshed_ns", static_cast<std::uint32_t>(rows),
                                   CounterKind::level, CounterUnit::nanoseconds)) {
  const std::uint64_t now = fabric.now_ns();
  made_ns_.set(now);
  for (std::size_t row = 0; row < rows; ++row) show_state(row, RowState::waiting, now);
}

void TableCounters::show(Predicate& predicate) {
  predicates_.set(predicates_.value() + 1);
  if (shown_ == kMaxPublishedPredicates) return;
  std::string name = predicate.name.substr(0, kMaxPredicateNameBytes);
  std::ranges::replace(name, '\n', ' ');
  const std::array<std::uint64_t, kPredicateWords> words{
      static_cast<std::uint64_t>(predicate.kind), predicate.first_triggers, predicate.first_pass};
  const CounterPages::Added added =
      pages_.add({.words = kPredicateWords, .kind = static_cast<std::uint8_t>(CounterKind::level)},
                 "table.predicate",
                 labels_ + "\nid=" + std::to_string(predicate.id) + "\npredicate=" + name, words);
  predicate.firings = &added.words[3];
  predicate.shown = added.record;
  ++shown_;
}

void TableCounters::hide(Predicate& predicate) noexcept {
  predicates_.set(predicates_.value() - 1);
  if (predicate.shown == nullptr) return;
  predicate.firings = &predicate.own_firings;
  pages_.remove(*std::exchange(predicate.shown, nullptr));
  --shown_;
}

}  // namespace dunlin
