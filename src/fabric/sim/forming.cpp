#include "fabric/sim/forming.hpp"

#include <algorithm>
#include <utility>

#include "fabric/sim/simulation.hpp"

namespace dunlin::sim {

namespace {

/// The least time between two attempts to meet.
constexpr Ticks kLeastRoundTrip = 1000 * kTicksPerNs;

Rank rank_among(const std::vector<Rank>& nodes, Rank node) {
  return static_cast<Rank>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
}

std::string list(const std::vector<Rank>& nodes) {
  std::string text;
  for (const Rank node : nodes) text += (text.empty() ? "" : ", ") + std::to_string(node);
  return text;
}

void check_list(Rank node, const std::string& name, const std::vector<Rank>& nodes) {
  const std::string fabric = "the simulated fabric '" + name + "' of nodes " + list(nodes);
  if (nodes.size() > kMaxMembers)
    throw Error(fabric + " would have more than " + std::to_string(kMaxMembers) +
                " members (kMaxMembers)");
  std::vector<Rank> sorted = nodes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw Error(fabric + " would have a node twice");
  if (!std::binary_search(sorted.begin(), sorted.end(), node))
    throw Error(fabric + " is formed by its own nodes: " + std::to_string(node) +
                " is not among them");
}

bool came_to_nothing(const Forming& forming) {
  return std::any_of(forming.members.begin(), forming.members.end(),
                     [](const Forming::Member& member) { return member.given_up; });
}

bool all_begun(const Forming& forming) {
  return std::all_of(forming.members.begin(), forming.members.end(),
                     [](const Forming::Member& member) { return member.begun; });
}

}  // namespace

std::shared_ptr<Forming> PendingFabrics::enter(Rank node, const std::string& name,
                                               const std::vector<Rank>& nodes) {
  check_list(node, name, nodes);
  const Rank rank = rank_among(nodes, node);
  std::erase_if(open_, [](const auto& one) { return all_begun(*one) || came_to_nothing(*one); });
  auto found =
      std::find_if(open_.begin(), open_.end(), [&](const auto& one) { return one->name == name; });
  if (found != open_.end() && (*found)->nodes != nodes)
    throw Error("node " + std::to_string(node) + " would form the simulated fabric '" + name +
                "' of nodes " + list(nodes) + ", but others are forming it of nodes " +
                list((*found)->nodes) + ": all must give the same list");
  if (found != open_.end() && (*found)->members[rank].begun)
    throw Error("node " + std::to_string(node) + " is forming the simulated fabric '" + name +
                "' already");
  if (found == open_.end()) {
    const auto made = std::make_shared<Forming>();
    made->name = name;
    made->nodes = nodes;
    made->roster = world_.network.add_endpoints(name, nodes);
    made->members.resize(nodes.size());
    for (Forming::Member& member : made->members) member.has_met.resize(nodes.size());
    open_.push_back(made);
    found = open_.end() - 1;
  }
  std::shared_ptr<Forming> forming = *found;
  connect_nodes(forming, rank);
  return forming;
}

void PendingFabrics::connect_nodes(const std::shared_ptr<Forming>& forming, Rank rank) {
  Forming::Member& own = forming->members[rank];
  own.begun = true;
  own.has_met[rank] = true;
  for (Rank other = 0; other < forming->members.size(); ++other)
    if (other != rank && forming->members[other].begun)
      try_to_meet(forming, rank, other, world_.timeline.now);
}

/// Tries to meet: both directions must be open at the beginning and at the end of a round trip, and
/// both programs have to answer. `since` is when the NICs began not to reach each other.
void PendingFabrics::try_to_meet(const std::shared_ptr<Forming>& forming, Rank one, Rank other,
                                 Ticks since) {
  const Rank here = forming->nodes[one];
  const Rank there = forming->nodes[other];
  const bool began_well = world_.network.can_meet(here, there);
  const Ticks end =
      world_.timeline.now + std::max(world_.network.round_trip(here, there), kLeastRoundTrip);
  world_.set_timer(end, [this, forming, one, other, since, here, there, began_well] {
    std::vector<Forming::Member>& members = forming->members;
    if (members[one].given_up || members[other].given_up) return;
    const bool open = began_well && world_.network.can_meet(here, there);
    if (open && world_.cpu(here).computes() && world_.cpu(there).computes()) {
      members[one].has_met[other] = members[other].has_met[one] = true;
    } else if (open || world_.timeline.now - since < world_.costs.retry_timeout) {
      return try_to_meet(forming, one, other, open ? world_.timeline.now : since);
    } else {
      const std::string within = " was not answered within " +
                                 std::to_string(to_ns(world_.costs.retry_timeout) / 1000) + " us";
      members[one].fault = "a call to " + forming->who(other) + within;
      members[other].fault = "a call to " + forming->who(one) + within;
    }
    world_.cpu(here).wake(world_.timeline.now);
    world_.cpu(there).wake(world_.timeline.now);
  });
}

// --- one member ----------------------------------------------------------------------------------

SimPendingJoin::SimPendingJoin(Simulation& world, std::shared_ptr<Forming> forming, Rank node,
                               Ticks patience)
    : world_(world),
      forming_(std::move(forming)),
      rank_(rank_among(forming_->nodes, node)),
      patience_(patience),
      deadline_(saturating_add(world.cpu(node).clock(), patience)) {
  world.cpu(node).wake(world.timeline.now);
}

SimPendingJoin::~SimPendingJoin() { give_up(); }

void SimPendingJoin::give_up() {
  if (std::exchange(over_, true)) return;
  forming_->members[rank_].given_up = true;
  world_.network.leave(forming_->roster->endpoints[rank_]);
}

std::unique_ptr<Fabric> SimPendingJoin::poll() {
  if (over_) throw Error("the forming of group '" + forming_->name + "' is over: begin it anew");
  const Rank node = forming_->nodes[rank_];
  if (!world_.begin_poll(node)) return nullptr;
  const std::string why = why_not();
  if (!why.empty()) {
    give_up();
    throw Error("group '" + forming_->name + "' cannot be formed: " + why);
  }
  if (!missing().empty()) {
    world_.cpu(node).wake_by(deadline_);
    return nullptr;
  }
  over_ = true;
  return make_sim_fabric(world_, forming_->roster, rank_, Begins::later);
}

/// Why the fabric cannot be formed; empty as long as it may still be.
std::string SimPendingJoin::why_not() const {
  const std::vector<Rank>& left = world_.network.left_early(forming_->roster->endpoints[rank_]);
  if (!left.empty()) return forming_->who(left.front()) + " has given up";
  const std::string& fault = forming_->members[rank_].fault;
  if (!fault.empty()) return fault;
  const std::string absent = missing();
  if (absent.empty() || world_.cpu(forming_->nodes[rank_]).clock() < deadline_) return {};
  return "it is not complete within " + std::to_string(to_ns(patience_) / 1000) +
         " us; missing: " + absent;
}

std::string SimPendingJoin::missing() const {
  std::string all;
  for (Rank peer = 0; peer < forming_->nodes.size(); ++peer)
    if (!forming_->members[rank_].has_met[peer])
      all += (all.empty() ? "" : ", ") + forming_->who(peer);
  return all;
}

}  // namespace dunlin::sim
