#include <string>
#include <utility>

#include "assert.hpp"
#include "fabric/core/core.hpp"
#include "fabric/member_list.hpp"
#include "fabric/names.hpp"

/// Members that come while the fabric works (FAB-G1 to FAB-G4).
namespace dunlin {
namespace {

[[nodiscard]] std::string text_of(const Admission& admission) {
  const std::size_t last = admission.first + admission.newcomers.size() - 1;
  return admission.newcomers.size() == 1
             ? "rank " + std::to_string(admission.first)
             : "ranks " + std::to_string(admission.first) + " to " + std::to_string(last);
}

}  // namespace

void FabricCore::check_admission(const Admission& admission) const {
  const std::string fabric = "group '" + group() + "' ";
  if (polling_ || handler_depth_ > 0)
    throw Error(fabric + "cannot admit members in a handler: return from it first");
  if (admission.newcomers.empty()) throw Error(fabric + "is to admit nobody: name a newcomer");
  if (admission.newcomers.size() > kMaxRanks || admission.first > kMaxRanks ||
      admission.first + admission.newcomers.size() > kMaxRanks)
    throw Error(fabric + "cannot admit " + text_of(admission) +
                ": in its life a fabric has ranks 0 to " + std::to_string(kMaxRanks - 1) +
                " (kMaxRanks), and gives none twice");
  if (admission.first < size())
    throw Error(fabric + "cannot admit " + text_of(admission) + ": ranks 0 to " +
                std::to_string(size() - 1) + " are given already, and none is given twice");
  std::size_t living = admission.newcomers.size();
  for (const PeerState& state : states_) living += state.failing ? 0 : 1;
  if (living > fabric_.properties_.max_peers)
    throw Error(fabric + "would have " + std::to_string(living) +
                " members with those it is to "
                "admit; at most " +
                std::to_string(fabric_.properties_.max_peers) + " at a time");
  for (const Admission::Newcomer& newcomer : admission.newcomers) {
    if (!newcomer.name.empty()) check_member_name(newcomer.name);
    if (newcomer.endpoint.size() > kMaxEndpointBytes)
      throw Error(fabric + "cannot admit a member with an endpoint of " +
                  std::to_string(newcomer.endpoint.size()) + " bytes; at most " +
                  std::to_string(kMaxEndpointBytes) + " (kMaxEndpointBytes)");
  }
}

void FabricCore::admit(const Admission& admission) {
  require_own_process();
  check_admission(admission);
  backend_->admit(admission);
  const std::uint32_t before = size();
  const auto after = static_cast<std::uint32_t>(admission.first + admission.newcomers.size());
  states_.resize(after);
  detector_.grow(after);
  fabric_.peers_.resize(after);
  for (Rank rank = before; rank < admission.first; ++rank)
    leave_empty(rank, "it never came: the rank was passed over");
  DUNLIN_ASSERT_ALWAYS(admission.first >= before, "FAB-G1: a rank is given once");
  for (Rank rank = admission.first; rank < after; ++rank)
    fabric_.peers_[rank].name = admission.newcomers[rank - admission.first].name;
}

/// Makes a rank without a member one that has failed before any event.
void FabricCore::leave_empty(Rank rank, std::string why) {
  fabric_.peers_[rank].linked = false;
  fabric_.peers_[rank].failed = true;
  fabric_.peers_[rank].failure = member_text({}, rank) + ": " + std::move(why);
  PeerState& state = states_[rank];
  state.failing = state.parted = state.announced = true;
}

void FabricCore::on_linked(Rank peer) {
  if (states_[peer].failing || linked(peer)) return;
  DUNLIN_ASSERT(!states_[peer].parted && !states_[peer].announced,
                "FAB-G3: a member is linked before its failure is announced, or never");
  fabric_.peers_[peer].linked = true;
  detector_.welcome(peer, recent_ns());
  for (std::uint32_t index = 0; index < regions_.size(); ++index)
    if (regions_[index].number != 0 && can_announce(peer, regions_[index]))
      backend_->announce(peer, {index}, regions_[index]);
  emit({.kind = Event::Kind::peer_linked, .peer = peer, .region = {}, .text = "it has come"});
}

}  // namespace dunlin
