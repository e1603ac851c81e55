#include "fabric/sim/sim_backend.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/alignment.hpp"
#include "fabric/bytes.hpp"
#include "fabric/entering.hpp"
#include "fabric/sim/entering.hpp"
#include "fabric/sim/simulation.hpp"

namespace dunlin::sim {

namespace {

[[nodiscard]] FabricSetup setup_of(const Simulation& world, const std::string& group, Rank rank) {
  const Profile& profile = world.profile;
  return {.kind = "sim",
          .description = "simulated with profile " + profile.name,
          .group = group,
          .rank = rank,
          .names = {},
          .properties = {.passive_target = true,
                         .ordered_placement = profile.ordered_placement,
                         .native_atomics = profile.native_atomics,
                         // A NIC that does atomics itself does not exclude the CPU's atomics.
                         .atomics_coherent_with_cpu = !profile.native_atomics,
                         .max_inline_bytes = profile.max_inline_bytes,
                         .max_peers = kMaxMembers,
                         .queue_slots = profile.queue_slots},
          .cpu_costs = &profile.cpu};
}

}  // namespace

std::unique_ptr<Fabric> make_sim_fabric(Simulation& world, const std::shared_ptr<Roster>& roster,
                                        Rank rank, Begins when) {
  FabricSetup setup = setup_of(world, roster->name, rank);
  for (const EndpointId endpoint : roster->endpoints)
    setup.names.push_back("node" + std::to_string(world.network.node_of(endpoint)));
  return make_fabric(std::move(setup),
                     std::make_unique<SimBackend>(world, roster->endpoints, rank, when));
}

std::unique_ptr<Fabric> make_sim_fabric(Simulation& world, const std::string& group,
                                        const Entry& entry, Endpoints endpoints) {
  FabricSetup setup = setup_of(world, group, entry.rank());
  take_members(setup, entry);
  return make_fabric(std::move(setup), std::make_unique<SimBackend>(world, std::move(endpoints),
                                                                    entry.rank(), Begins::later));
}

SimBackend::SimBackend(Simulation& world, Endpoints endpoints, Rank rank, Begins when)
    : world_(world),
      node_(world.network.node_of(endpoints[rank])),
      rank_(rank),
      members_(static_cast<std::uint32_t>(endpoints.size())),
      endpoints_(std::move(endpoints)),
      when_(when) {}

void SimBackend::start() {
  if (when_ == Begins::later)
    world_.network.endpoint_late(endpoint_of(rank_), *this);
  else
    world_.network.endpoint(endpoint_of(rank_), *this);
}

SimBackend::~SimBackend() {
  if (when_ == Begins::later) world_.network.leave(endpoint_of(rank_));
}

Rank SimBackend::rank_of(EndpointId endpoint) const noexcept {
  return world_.network.rank_of(endpoint);
}

// --- members that come ---------------------------------------------------------------------------

std::vector<std::byte> SimBackend::endpoint() const {
  std::vector<std::byte> bytes;
  Writer(bytes).u32(endpoint_of(rank_));
  return bytes;
}

void SimBackend::admit(const Admission& admission) {
  std::vector<Rank> nodes;
  nodes.reserve(admission.newcomers.size());
  for (const Admission::Newcomer& newcomer : admission.newcomers)
    nodes.push_back(node_at(world_, newcomer.endpoint));
  members_ = static_cast<std::uint32_t>(admission.first + nodes.size());
  endpoints_.resize(members_, kNoEndpoint);
  for (Rank place = 0; place < nodes.size(); ++place)
    endpoints_[admission.first + place] = world_.network.add_endpoint(
        world_.network.roster_of(endpoint_of(rank_)), admission.first + place, nodes[place]);
  for (Memory& memory : memories_)
    if (!memory.remotes.empty()) memory.remotes.resize(members_);
}

bool SimBackend::awaits(EndpointId newcomer) const noexcept {
  const Rank peer = rank_of(newcomer);
  return knows(newcomer) && !core().linked(peer) && !core().failing(peer) &&
         std::ranges::find(met_, peer) == met_.end();
}

void SimBackend::met(Rank peer) {
  met_.push_back(peer);
  poll_soon();
}

Cpu& SimBackend::cpu() const { return world_.cpu(node_); }

Link& SimBackend::link_to(Rank peer) const {
  return world_.network.link(endpoint_of(rank_), endpoint_of(peer));
}

Link& SimBackend::link_from(Rank peer) const {
  return world_.network.link(endpoint_of(peer), endpoint_of(rank_));
}

void SimBackend::poll_soon() { cpu().wake(world_.timeline.now); }

// --- time ----------------------------------------------------------------------------------------

std::uint64_t SimBackend::now_ns() const noexcept { return to_ns(cpu().clock()); }

void SimBackend::poll_at(std::uint64_t time_ns) noexcept { cpu().wake_by(ticks_of_ns(time_ns)); }

void SimBackend::spend(double ns) noexcept { cpu().spend(ns); }

// --- posting -------------------------------------------------------------------------------------

bool SimBackend::take(Budget& budget, std::uint64_t amount, std::uint64_t capacity) noexcept {
  if (budget.take(amount, capacity, world_.timeline.now)) return true;
  const Ticks more = budget.next_return();
  if (more == kNever) return false;  // it will be told when the time is known
  budget.told();
  world_.timeline.schedule(more, Happening::wake, node_);
  return false;
}

Refusal SimBackend::check(const Operation& operation) const noexcept {
  if (operation.peer >= members_) return Refusal::unknown_peer;
  if (operation.region.index >= memories_.size() || !memories_[operation.region.index].block)
    return Refusal::unknown_region;
  if (!core().linked(operation.peer) || link_to(operation.peer).closed) return Refusal::none;
  const std::vector<Remote>& remotes = memories_[operation.region.index].remotes;
  if (remotes.empty() || remotes[operation.peer].number == 0) return Refusal::not_connected;
  const Remote& remote = remotes[operation.peer];
  const std::size_t there = remote.bytes;
  const std::size_t bytes = extent_of(operation);
  if (operation.offset > there || bytes > there - operation.offset) return Refusal::out_of_bounds;
  switch (operation.kind) {
    case OperationKind::put:
      return Refusal::none;
    case OperationKind::write:
    case OperationKind::read:
      return lies_alike(operation) ? Refusal::none : Refusal::misaligned;
    default:
      return lies_on_words(operation) ? Refusal::none : Refusal::misaligned;
  }
}

Posted SimBackend::post(std::span<const Operation> batch) noexcept {
  const Profile& profile = world_.profile;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (const Refusal refusal = check(batch[i]); refusal != Refusal::none) return {i, refusal};
    if (!core().linked(batch[i].peer)) {  // the peer has not come, or never will
      if (const Refusal why = core().refuse(batch[i]); why != Refusal::none) return {i, why};
      continue;
    }
    Link& link = link_to(batch[i].peer);
    if (!link.closed && !take(link.slots, 1, profile.queue_slots)) return {i, Refusal::queue_full};
    spend(i == 0 ? profile.post_ns : profile.post_batched_ns);
    start(batch[i]);
  }
  return {batch.size(), Refusal::none};
}

void SimBackend::start(const Operation& operation) noexcept {
  if (operation.completion != nullptr) begin(*operation.completion);
  if (link_to(operation.peer).closed) {
    if (operation.completion != nullptr)
      finished(*operation.completion, endpoint_of(operation.peer), true);
    return;
  }
  Flight& flight = world_.network.new_flight(endpoint_of(rank_));
  flight.kind = static_cast<FlightKind>(operation.kind);
  flight.when = operation.when;
  flight.to = endpoint_of(operation.peer);
  flight.region = memories_[operation.region.index].remotes[operation.peer].number;
  flight.offset = operation.offset;
  flight.bytes = extent_of(operation);
  flight.local = static_cast<std::byte*>(operation.local);
  flight.operand = operation.operand;
  flight.desired = operation.desired;
  flight.completion = operation.completion;
  launch(flight);
}

void SimBackend::launch(Flight& flight) noexcept {
  flight.ready = cpu().clock();
  world_.network.post(flight);
}

Refusal SimBackend::send(Rank peer, std::uint32_t channel,
                         std::span<const std::byte> message) noexcept {
  Link& link = link_to(peer);
  if (link.closed) return Refusal::none;  // as an operation without completion
  if (!take(link.message_ring, ring_bytes(message.size()), kMessageRingBytes))
    return Refusal::queue_full;
  spend(world_.profile.post_ns);
  Flight& flight = world_.network.new_flight(endpoint_of(rank_));
  flight.kind = FlightKind::message;
  flight.to = endpoint_of(peer);
  flight.channel = channel;
  flight.bytes = message.size();
  flight.captured = true;
  flight.make_room();
  if (!message.empty()) std::memcpy(flight.data(), message.data(), message.size());
  launch(flight);
  return Refusal::none;
}

void SimBackend::forget(const Completion& completion) noexcept {
  world_.network.abandon(endpoint_of(rank_), completion);
  for (std::size_t i = 0; i < finished_.size(); ++i)
    if (finished_[i].completion == &completion) finished_[i].completion = nullptr;
}

// --- polling -------------------------------------------------------------------------------------

void SimBackend::finished(Completion& completion, EndpointId peer, bool failed) {
  finished_.push_or_grow({&completion, rank_of(peer), failed});
  poll_soon();
}

void SimBackend::lost(EndpointId peer, std::string how) {
  failures_.push_back(
      {.peer = rank_of(peer), .closed = true, .silence_generation = 0, .how = std::move(how)});
  poll_soon();
}

void SimBackend::suspect(EndpointId peer, std::uint32_t silence_generation) {
  const auto silence_us = std::to_string(to_ns(world_.costs.silence_timeout) / 1000);
  if (!knows(peer)) return;
  failures_.push_back({.peer = rank_of(peer),
                       .closed = false,
                       .silence_generation = silence_generation,
                       .how = "nothing was heard of it for " + silence_us + " us"});
  poll_soon();
}

void SimBackend::attend_soon() noexcept { poll_soon(); }

void SimBackend::close(Rank peer) noexcept {
  std::erase(met_, peer);
  world_.network.close(endpoint_of(rank_), endpoint_of(peer));
  poll_soon();
}

std::size_t SimBackend::poll() noexcept {
  // Outside of a run, the world goes on first, and may run this very node's program.
  if (core().polling() || !world_.begin_poll(node_) || !core().begin_poll()) return 0;
  core().set_time(now_ns());
  for (const Rank newcomer : std::exchange(met_, {})) core().on_linked(newcomer);
  // A peer's messages come before the event of its failure.
  if (!inbox_.empty()) handle_inbox();
  if (!failures_.empty()) handle_failures();
  if (core().has_duties()) core().perform_duties();
  if (!finished_.empty()) handle_finished();
  return core().end_poll();
}

void SimBackend::handle_failures() {
  for (const Failure& failure : std::exchange(failures_, {})) {
    const Link& from = link_from(failure.peer);
    const bool heard_since =
        !failure.closed && from.silence_generation != failure.silence_generation;
    const std::uint64_t silent_ns =
        failure.closed ? 0 : static_cast<std::uint64_t>(to_ns(world_.costs.silence_timeout));
    if (!heard_since) core().fail(failure.peer, failure.how, silent_ns);
  }
}

void SimBackend::handle_finished() {
  while (!finished_.empty()) {
    const Finished next = finished_.front();
    finished_.pop();
    if (next.completion == nullptr) continue;
    core().count_handled();
    next.failed ? finish_failed(*next.completion, next.peer) : finish(*next.completion);
  }
}

void SimBackend::handle_inbox() {
  FlightList arrived = inbox_.take_all();
  while (!arrived.empty()) handle(arrived.pop_front());
}

void SimBackend::handle(Flight& flight) {
  const Rank peer = rank_of(flight.from);
  if (!knows(flight.from) || core().expelled(peer)) return world_.network.drop(flight);
  if (flight.kind == FlightKind::message) return take_message(peer, flight);
  core().count_handled();
  switch (flight.kind) {
    case FlightKind::announcement:
      return take_announcement(peer, flight);
    case FlightKind::withdrawal:
      return take_withdrawal(peer, flight);
    case FlightKind::farewell:
      return take_farewell(peer, flight);
    default:
      flight.dead ? world_.network.retire(flight) : world_.network.execute_atomic(flight);
  }
}

void SimBackend::take_message(Rank from, Flight& flight) {
  Link& link = link_from(from);
  if (!link.unheard.empty() || !core().deliver(from, flight.channel, flight.contents()))
    return link.unheard.push_back(flight);
  world_.network.message_handled(flight, cpu().clock());
  core().count_handled();
}

void SimBackend::take_farewell(Rank from, Flight& flight) {
  world_.network.retire(flight);
  core().on_leave(from);
  core().on_end(from, {});
}

void SimBackend::drain(Rank from) {
  if (endpoint_of(from) == kNoEndpoint) return;  // a rank without a member
  FlightList& waiting = link_from(from).unheard;
  while (!waiting.empty()) {
    Flight& first = waiting.front();
    if (!core().deliver(from, first.channel, first.contents())) return;
    world_.network.message_handled(waiting.pop_front(), cpu().clock());
    core().count_handled();
  }
}

}  // namespace dunlin::sim
