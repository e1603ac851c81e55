#include "fabric/sim/entering.hpp"

#include <algorithm>
#include <utility>

#include "fabric/bytes.hpp"
#include "fabric/entering.hpp"
#include "fabric/sim/simulation.hpp"

namespace dunlin::sim {
namespace {

constexpr Ticks kLeastRoundTrip = 1000 * kTicksPerNs;
constexpr Ticks kPatience = 100'000'000 * kTicksPerNs;

[[nodiscard]] EndpointId endpoint_at(const Simulation& world, std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const EndpointId endpoint = reader.u32();
  if (!reader.good() || !world.network.has_endpoint(endpoint))
    throw Error("a member's endpoint names no simulated fabric");
  return endpoint;
}

}  // namespace

Rank node_at(const Simulation& world, std::span<const std::byte> endpoint) {
  Reader reader(endpoint);
  const Rank node = reader.u32();
  if (!reader.good() || node >= world.nodes.size())
    throw Error("a newcomer's endpoint names no simulated node");
  return node;
}

SimEntry::SimEntry(Simulation& world, Rank node) : world_(world), node_(node) {}

SimEntry::~SimEntry() { give_up(); }

void SimEntry::give_up() {
  if (std::exchange(over_, true)) return;
  awaited_->given_up = true;
  if (endpoint_ != kNoEndpoint) world_.network.leave(endpoint_);
}

std::vector<std::byte> SimEntry::endpoint() const {
  std::vector<std::byte> bytes;
  Writer(bytes).u32(node_);
  return bytes;
}

void SimEntry::begin(const Entry& entry) {
  check(entry);
  const Admission& admission = entry.admission;
  endpoints_.assign(admission.first + admission.newcomers.size(), kNoEndpoint);
  for (const Entry::Member& member : entry.members)
    endpoints_[member.rank] = endpoint_at(world_, member.endpoint);
  const std::shared_ptr<Roster> roster =
      world_.network.roster_of(endpoints_[entry.members.front().rank]);
  for (Rank place = 0; place < admission.newcomers.size(); ++place)
    endpoints_[admission.first + place] = world_.network.add_endpoint(
        roster, admission.first + place, node_at(world_, admission.newcomers[place].endpoint));
  entry_ = entry;
  group_ = roster->name;
  endpoint_ = endpoints_[entry.rank()];
  world_.network.enter(endpoint_);
  for (const Entry::Member& peer : entry.members) meet(peer.rank);
  for (Rank place = 0; place < entry.admission.newcomers.size(); ++place)
    if (place != entry.place) meet(entry.admission.first + place);
  deadline_ = saturating_add(world_.cpu(node_).clock(), kPatience);
  world_.cpu(node_).wake(world_.timeline.now);
}

void SimEntry::meet(Rank peer) {
  awaited_->missing.push_back(peer);
  try_to_meet(peer, world_.timeline.now);
}

/// Tries to meet a peer: both directions must be open at the beginning and at the end of a round
/// trip, and both programs have to answer. `since` is when the NICs began not to reach each other.
void SimEntry::try_to_meet(Rank peer, Ticks since) {
  const Rank there = world_.network.node_of(endpoints_[peer]);
  const bool began_well = world_.network.can_meet(node_, there);
  const Ticks end =
      world_.timeline.now + std::max(world_.network.round_trip(node_, there), kLeastRoundTrip);
  world_.set_timer(end, [this, awaited = awaited_, peer, since, there, began_well] {
    if (awaited->given_up || !awaited->fault.empty()) return;  // `this` may be gone
    const bool open = began_well && world_.network.can_meet(node_, there);
    const Answer answer = open && world_.cpu(node_).computes() ? ask(peer) : Answer::not_yet;
    if (answer == Answer::yes) {
      std::erase(awaited->missing, peer);
    } else if (answer == Answer::never) {
      awaited->fault = member_text(*entry_, peer) + " does not admit it any more";
    } else if (open || world_.timeline.now - since < world_.costs.retry_timeout) {
      return try_to_meet(peer, open ? world_.timeline.now : since);
    } else {
      awaited->fault = member_text(*entry_, peer) + " did not answer within " +
                       std::to_string(to_ns(world_.costs.retry_timeout) / 1000) + " us";
    }
    world_.cpu(node_).wake(world_.timeline.now);
  });
}

/// Asks a peer: a member that has admitted this newcomer takes it in; another newcomer only has to
/// be there.
SimEntry::Answer SimEntry::ask(Rank peer) const {
  const EndpointId endpoint = endpoints_[peer];
  if (!world_.cpu(world_.network.node_of(endpoint)).computes()) return Answer::not_yet;
  if (peer >= entry_->admission.first)
    return world_.network.has_entered(endpoint) ? Answer::yes : Answer::not_yet;
  SimBackend* const member = world_.network.fabric_at(endpoint);
  if (member == nullptr || member->has_given_up(endpoint_)) return Answer::never;
  if (!member->awaits(endpoint_)) return Answer::not_yet;
  member->met(entry_->rank());
  return Answer::yes;
}

std::unique_ptr<Fabric> SimEntry::poll() {
  if (over_) throw Error("the entry into group '" + entry_->group + "' is over: begin it anew");
  if (!world_.begin_poll(node_) || !entry_) return nullptr;
  const std::string why = why_not();
  if (!why.empty()) {
    give_up();
    throw Error("member '" + entry_->admission.newcomers[entry_->place].name +
                "' cannot come into group '" + entry_->group + "': " + why);
  }
  if (!awaited_->missing.empty()) {
    world_.cpu(node_).wake_by(deadline_);
    return nullptr;
  }
  over_ = true;
  awaited_->given_up = true;
  return make_sim_fabric(world_, group_, *entry_, endpoints_);
}

/// Why the newcomer cannot come in; empty as long as it may still do so.
std::string SimEntry::why_not() const {
  const std::vector<Rank>& left = world_.network.left_early(endpoint_);
  if (!left.empty()) return member_text(*entry_, left.front()) + " has left";
  if (!awaited_->fault.empty()) return awaited_->fault;
  if (awaited_->missing.empty() || world_.cpu(node_).clock() < deadline_) return {};
  return "it has not met all within " + std::to_string(to_ns(kPatience) / 1000) +
         " us; missing: " + missing();
}

std::string SimEntry::missing() const {
  std::string all;
  for (const Rank peer : awaited_->missing)
    all += (all.empty() ? "" : ", ") + member_text(*entry_, peer);
  return all;
}

}  // namespace dunlin::sim
