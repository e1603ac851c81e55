#include <algorithm>
#include <string>
#include <utility>

#include "fabric/sim/simulation.hpp"

namespace dunlin::sim {

namespace {

/// The moment after so much further time, as far as the clock reaches.
Ticks moment(Ticks now, std::uint64_t further_ns) {
  return saturating_add(now, ticks_of_ns(further_ns));
}

Profile checked(Profile profile, std::uint32_t nodes) {
  check(profile);
  if (nodes == 0 || nodes > kMaxMembers)
    throw Error("a simulated world has 1 to " + std::to_string(kMaxMembers) +
                " nodes (kMaxMembers), not " + std::to_string(nodes));
  return profile;
}

}  // namespace

struct World::Impl {
  Simulation simulation;

  void check_node(Rank node) const {
    if (node >= simulation.nodes.size())
      throw Error("there is no simulated node " + std::to_string(node) + ": this world has " +
                  std::to_string(simulation.nodes.size()) + ", counted from 0");
  }
  void check_link(Rank from, Rank to) const {
    check_node(from);
    check_node(to);
  }
  void check_idle() const {
    if (simulation.running)
      throw Error("a simulated world cannot be run from within its own events or programs");
  }
};

World::World(sim::Profile profile, std::uint32_t nodes, std::uint64_t seed)
    : impl_(new Impl{Simulation(checked(std::move(profile), nodes), nodes, seed)}) {}
World::~World() = default;

const Profile& World::profile() const noexcept { return impl_->simulation.profile; }

std::uint32_t World::size() const noexcept {
  return static_cast<std::uint32_t>(impl_->simulation.nodes.size());
}

Fabric& World::fabric(Rank node) {
  impl_->check_node(node);
  Fabric* const fabric = impl_->simulation.nodes[node]->fabric.get();
  if (fabric == nullptr)
    throw Error("simulated node " + std::to_string(node) +
                " was added later: it is not in the world's own fabric, so form() one with it");
  return *fabric;
}

Rank World::add_node() { return impl_->simulation.add_node(); }

std::unique_ptr<PendingJoin> World::form(Rank node, const std::string& name,
                                         const std::vector<Rank>& nodes, std::uint64_t timeout_ns) {
  impl_->check_node(node);
  for (const Rank member : nodes) impl_->check_node(member);
  Simulation& simulation = impl_->simulation;
  return std::make_unique<SimPendingJoin>(simulation,
                                          simulation.pending_fabrics.enter(node, name, nodes), node,
                                          ticks_of_ns(timeout_ns));
}

std::shared_ptr<Rendezvous> World::rendezvous(Rank node, const std::string& group) {
  impl_->check_node(node);
  return make_rendezvous(impl_->simulation, node, group);
}

void World::attach(Rank node, std::function<std::size_t()> poll) {
  impl_->check_node(node);
  impl_->simulation.cpu(node).attach(std::move(poll));
}

void World::detach_all(Rank node) {
  impl_->check_node(node);
  impl_->simulation.cpu(node).detach_all();
}

void World::at(std::uint64_t time_ns, std::function<void()> action) {
  impl_->simulation.set_timer(ticks_of_ns(time_ns), std::move(action));
}

void World::on(Rank node, std::function<void()> action) {
  impl_->check_node(node);
  impl_->simulation.cpu(node).run_soon(std::move(action));
}

std::uint64_t World::now_ns() const noexcept { return to_ns(impl_->simulation.timeline.now); }

bool World::run_until(const std::function<bool()>& condition, std::uint64_t limit_ns) {
  impl_->check_idle();
  Simulation& simulation = impl_->simulation;
  const Ticks end = moment(simulation.timeline.now, limit_ns);
  while (!condition()) {
    if (simulation.step(end)) continue;
    // No event is left before `end`, if that is a moment at all.
    if (!simulation.timeline.events.empty() && end != kNever) simulation.timeline.now = end;
    return false;
  }
  return true;
}

void World::run_for(std::uint64_t ns) {
  impl_->check_idle();
  impl_->simulation.catch_up(moment(impl_->simulation.timeline.now, ns));
}

void World::end() {
  impl_->check_idle();
  for (const auto& node : impl_->simulation.nodes) node->cpu.stop();
}

// --- faults --------------------------------------------------------------------------------------

void World::crash(Rank node) {
  impl_->check_node(node);
  impl_->simulation.cpu(node).stop();
  impl_->simulation.network.crash(node);
}

void World::hang(Rank node) {
  impl_->check_node(node);
  impl_->simulation.cpu(node).stop();
  impl_->simulation.network.drop_unsent(node);
  impl_->simulation.network.cpu_changed(node);
}

void World::pause(Rank node, std::uint64_t ns) {
  impl_->check_node(node);
  impl_->simulation.pause(node, ticks_of_ns(ns));
}

void World::slow(Rank node, double factor) {
  impl_->check_node(node);
  if (!(factor > 0)) throw Error("a node can be slowed by a positive factor only");
  impl_->simulation.cpu(node).slow(factor);
}

void World::cut(Rank from, Rank to) {
  impl_->check_link(from, to);
  impl_->simulation.network.cut(from, to);
}

void World::heal(Rank from, Rank to) {
  impl_->check_link(from, to);
  impl_->simulation.network.heal(from, to);
}

void World::slow_link(Rank from, Rank to, double factor) {
  impl_->check_link(from, to);
  if (!(factor > 0)) throw Error("a link can be slowed by a positive factor only");
  impl_->simulation.network.slow_link(from, to, factor);
}

std::uint64_t World::random() { return impl_->simulation.program_random.next(); }

std::uint64_t World::operations() const noexcept { return impl_->simulation.network.posted(); }

std::uint64_t World::digest() const noexcept { return impl_->simulation.timeline.digest.value(); }

}  // namespace dunlin::sim
