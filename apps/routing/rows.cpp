#include "routing/rows.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "fabric/hash.hpp"

namespace dunlin::routing {

namespace {

/// A hash of words and texts, one after the other.
class Hash {
 public:
  void add(std::uint64_t word) noexcept {
    value_ = fnv1a({reinterpret_cast<const char*>(&word), sizeof word}, value_);
  }
  void add(const std::string& text) noexcept {
    add(text.size());
    value_ = fnv1a(text, value_);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = fnv1a({});
};

std::uint64_t hash_of(const Topology& topology, const std::vector<LinkEvent>& events,
                      std::uint32_t hosts) {
  Hash hash;
  hash.add(hosts);
  for (const Site& router : topology.routers) hash.add(router.id);
  for (const Arc& arc : topology.arcs) {
    for (const std::uint64_t word : {arc.tail, arc.head, arc.slot}) hash.add(word);
  }
  for (const Cost cost : topology.arc_costs()) hash.add(cost);
  for (const LinkEvent& event : events) {
    hash.add(event.changes.size());
    for (const Change& change : event.changes) {
      hash.add(change.arc);
      hash.add(change.cost);
    }
  }
  return hash.value() | 1U;
}

}  // namespace

Plan::Plan(const Topology& topology, const std::vector<LinkEvent>& events, std::uint32_t hosts)
    : topology_(topology),
      events_(events),
      hosts_(hosts),
      hash_(hash_of(topology, events, hosts)),
      text_(fmt::format("{}, {} routers, {} links, {} events, {} hosts", topology.name,
                        topology.size(), topology.links.size(), events.size(), hosts)),
      everyone_(topology.size()) {
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

std::string Plan::name_of(std::uint32_t member) const {
  const std::string name = member == station() ? "the station" : topology_.routers[member].label;
  return hosts_ == 1 ? name : fmt::format("{} on host {}", name, host_of(member));
}

}  // namespace dunlin::routing
