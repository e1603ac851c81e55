#include "fabric/sim/simulation.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::sim {

namespace {

std::uint64_t trace_of(const Flight& f) noexcept {
  return std::uint64_t{f.from} << 48 ^ std::uint64_t{f.to} << 32 ^ f.offset << 8 ^
         static_cast<std::uint64_t>(f.kind);
}

/// Marks the world as running, for as long as this object lives; also if a program throws.
class Running {
 public:
  explicit Running(Simulation& world) noexcept
      : world_(world), before_(std::exchange(world.running, true)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { world_.running = before_; }

 private:
  Simulation& world_;
  bool before_;
};

/// The least time of a round: the poll cost, but never so little that time would stand still.
Ticks least_round(const Profile& profile) {
  return std::max(ticks(profile.cpu.poll_ns), kTicksPerNs);
}

}  // namespace

Node::Node(Simulation& world, Rank node) : cpu(world.timeline, node, least_round(world.profile)) {}

Simulation::Simulation(Profile with_profile, std::uint32_t count, std::uint64_t seed)
    : profile(std::move(with_profile)),
      costs(profile),
      network_random(scramble(seed ^ 0x6e65'7477)),
      program_random(scramble(seed ^ 0x7072'6f67)),
      network(*this),
      pending_fabrics(*this),
      listeners(*this) {
  std::vector<Rank> all;
  while (all.size() < count) all.push_back(add_node());
  const std::shared_ptr<Roster> roster = network.add_endpoints("sim", all);
  for (const Rank node : all)
    nodes[node]->fabric = make_sim_fabric(*this, roster, node, Begins::with_the_world);
}

Rank Simulation::add_node() {
  const auto node = static_cast<Rank>(nodes.size());
  nodes.push_back(std::make_unique<Node>(*this, node));
  network.add_node();
  return node;
}

bool Simulation::begin_poll(Rank node) {
  Cpu& processor = cpu(node);
  const double cost = profile.cpu.poll_ns;
  catch_up(saturating_add(processor.clock(), std::max(processor.cost(cost), kTicksPerNs)));
  if (processor.stopped()) return false;
  processor.spend(cost);
  return true;
}

bool Simulation::step(Ticks until) {
  if (timeline.events.empty() || timeline.events.next_time() > until) return false;
  const Occurrence next = timeline.events.pop();
  timeline.now = next.time;
  timeline.digest.fold(next.time);
  const Running within(*this);
  happen(next);
  return true;
}

void Simulation::happen(const Occurrence& occurrence) {
  const Happening what = occurrence.kind();
  const auto node = static_cast<Rank>(occurrence.subject);
  switch (what) {
    case Happening::arrive:
    case Happening::step:
    case Happening::fetch:
    case Happening::acknowledge:
      timeline.digest.fold(trace_of(*occurrence.flight) ^ static_cast<std::uint64_t>(what) << 56);
      return network.on_flight(what, *occurrence.flight);
    default:
      timeline.digest.fold(occurrence.subject ^ static_cast<std::uint64_t>(what) << 56);
  }
  switch (what) {
    case Happening::round:
      return run_round(node);
    case Happening::wake:
      return cpu(node).on_wake();
    case Happening::resume:
      return network.cpu_changed(node);
    case Happening::transmit:
      return network.on_transmit(node);
    case Happening::retry:
      return network.on_retry(occurrence.subject);
    case Happening::silence:
      return network.on_silence(occurrence.subject);
    default:
      return run_timer(occurrence.subject);
  }
}

/// Runs a round. To peers, a round that lasts longer than they are patient is a pause.
void Simulation::run_round(Rank node) {
  Cpu& processor = cpu(node);
  processor.on_round();
  if (costs.silence_timeout == 0 || processor.clock() - timeline.now <= costs.silence_timeout)
    return;
  processor.busy_until(processor.clock());
  network.cpu_changed(node);
  timeline.schedule(processor.clock(), Happening::resume, node);
}

void Simulation::catch_up(Ticks until) {
  if (running) return;
  while (step(until)) {
  }
  if (until != kNever) timeline.now = std::max(timeline.now, until);
}

void Simulation::pause(Rank node, Ticks duration) {
  network.delay_unsent(node, cpu(node).pause(duration));
  network.cpu_changed(node);
  timeline.schedule(saturating_add(timeline.now, duration), Happening::resume, node);
}

void Simulation::set_timer(Ticks at, std::function<void()> action) {
  if (free_timers_.empty()) {
    free_timers_.push_back(timers_.size());
    timers_.emplace_back();
  }
  const std::uint64_t slot = free_timers_.back();
  free_timers_.pop_back();
  timers_[slot] = std::move(action);
  timeline.schedule(at, Happening::timer, slot);
}

void Simulation::run_timer(std::uint64_t slot) {
  const auto action = std::exchange(timers_[slot], nullptr);
  free_timers_.push_back(slot);
  action();
}

}  // namespace dunlin::sim
