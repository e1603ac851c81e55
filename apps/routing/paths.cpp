#include "routing/paths.hpp"

#include <algorithm>
#include <tuple>

namespace dunlin::routing {

namespace {

constexpr ArcId kNoArc = UINT32_MAX;

/// The least cost at which an arc between these two is no short cut.
Cost least_harmless(Length from, Length to) noexcept {
  if (from == kUnreachable) return 0;
  if (to == kUnreachable) return kNoLink;  // any cost would reach it
  if (to <= from + 1) return 0;            // a link always adds at least its 1
  const Length gap = to - from - 1;        // harmless: cost << kHopBits >= gap
  return (gap + (Length{1} << kHopBits) - 1) >> kHopBits;
}

}  // namespace

Paths::Paths(const Topology& topology, RouterId self)
    : topology_(topology),
      self_(self),
      length_(topology.size(), kUnreachable),
      next_hop_(topology.size(), kNoRouter),
      via_(topology.size(), kNoArc),
      settled_(topology.size()),
      bands_(topology.arcs.size()) {
  heap_.reserve(topology.arcs.size() + 1);
}

bool Paths::comes_later(const Candidate& x, const Candidate& y) noexcept {
  return std::tie(x.length, x.router, x.via) > std::tie(y.length, y.router, y.via);
}

void Paths::compute(std::span<const Cost> costs) {
  std::fill(length_.begin(), length_.end(), kUnreachable);
  std::fill(next_hop_.begin(), next_hop_.end(), kNoRouter);
  std::fill(via_.begin(), via_.end(), kNoArc);
  std::fill(settled_.begin(), settled_.end(), false);
  arcs_examined_ = 0;
  heap_.assign(1, {0, self_, kNoArc});
  length_[self_] = 0;
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), comes_later);
    const Candidate best = heap_.back();
    heap_.pop_back();
    if (!settled_[best.router]) settle(best, costs);
  }
  make_bands(costs);
}

void Paths::settle(const Candidate& best, std::span<const Cost> costs) {
  settled_[best.router] = true;
  via_[best.router] = best.via;
  if (best.via != kNoArc) {
    const RouterId before = topology_.arcs[best.via].tail;
    next_hop_[best.router] = before == self_ ? best.router : next_hop_[before];
  }
  const ArcId end = topology_.first_arc[best.router + 1U];
  for (ArcId arc = topology_.first_arc[best.router]; arc < end; ++arc) {
    ++arcs_examined_;
    if (costs[arc] == kNoLink) continue;
    const RouterId head = topology_.arcs[arc].head;
    const Length length = best.length + length_of_link(costs[arc]);
    if (settled_[head] || length > length_[head]) continue;
    length_[head] = length;
    heap_.push_back({length, head, arc});
    std::push_heap(heap_.begin(), heap_.end(), comes_later);
  }
}

void Paths::make_bands(std::span<const Cost> costs) {
  for (ArcId arc = 0; arc < bands_.size(); ++arc) {
    const auto [tail, head, slot, link] = topology_.arcs[arc];
    bands_[arc] = via_[head] == arc ? Band{costs[arc], costs[arc]}
                                    : Band{least_harmless(length_[tail], length_[head]), kNoLink};
  }
}

}  // namespace dunlin::routing
