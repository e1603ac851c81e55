#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/core/core.hpp"
#include "fabric/counters/reader.hpp"
#include "fabric/mapping/observer.hpp"

namespace dunlin::test {

/// The counters of a member of a group on this host, as an observer sees them.
inline std::vector<CounterView> counters_of(const Fabric& fabric) {
  std::vector<CounterView> all;
  for (const mapping::Sighting& sighting : mapping::find_mappings()) {
    if (sighting.info.kind != mapping::MappingKind::published ||
        sighting.info.group != fabric.group() || sighting.info.owner_rank != fabric.rank() ||
        sighting.info.region != counter_page::kRegion)
      continue;
    const mapping::ObservedMapping mapped(sighting);
    CounterPageView page = read_counters(mapped.memory()).value();
    std::ranges::move(page.counters, std::back_inserter(all));
  }
  return all;
}

/// The counters of a member in this process, also where no observer could map them: in the
/// simulator.
inline std::vector<CounterView> own_counters_of(Fabric& fabric) {
  std::vector<CounterView> all;
  for (const std::span<const std::byte> memory : FabricCore::counters_of(fabric).pages()) {
    CounterPageView page = read_counters(memory).value();
    std::ranges::move(page.counters, std::back_inserter(all));
  }
  return all;
}

/// A member's counter of one word, as observers see it; nothing if it is not there. `labels`: all,
/// or the first ones.
inline std::optional<std::uint64_t> counter_of(const Fabric& fabric, std::string_view name,
                                               std::string_view labels = {}) {
  for (const CounterView& view : counters_of(fabric))
    if (view.name == name && view.labels.starts_with(labels)) return view.words.front();
  return std::nullopt;
}

}  // namespace dunlin::test
