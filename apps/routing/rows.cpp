#include "routing/rows.hpp"

#include <algorithm>
#include <numeric>

namespace dunlin::routing {

Plan::Plan(const Topology& topology, const std::vector<LinkEvent>& events)
    : topology_(topology), events_(events), everyone_(topology.size()) {
  std::iota(everyone_.begin(), everyone_.end(), RouterId{0});
  for (const LinkEvent& event : events) {
    std::vector<RouterId> ends;
    for (const Change& change : event.changes) {
      const RouterId tail = topology.arcs[change.arc].tail;
      if (std::find(ends.begin(), ends.end(), tail) == ends.end()) ends.push_back(tail);
    }
    writers_.push_back(std::move(ends));
  }
}

}  // namespace dunlin::routing
