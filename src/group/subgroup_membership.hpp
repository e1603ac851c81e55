#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/group/subgroup_participant.hpp>

#include "group/subgroup_message.hpp"

namespace dunlin::group {

/// One subgroup that came at run time, as this member has it and wants it.
struct Membership {
  std::string name;
  SubgroupParticipant* participant = nullptr;  // null: detached
  SubgroupJoin join = {};
  std::uint32_t attempt = 0;
  bool wants_in = true;
  /// The leader is not told yet that this member wants out: the others lack what was sent here.
  bool hands_over = false;
  bool waits = false;   // an earlier membership of this name has to end first
  bool parted = false;  // this membership is over

  std::uint64_t generation = 0;  // 0: it has not begun yet
  Subgroup subgroup = {};        // as of that generation
  bool wedged = false;
  std::vector<std::uint64_t> counts = {};  // receipts, once it is wedged
  std::vector<SubgroupEnd> ends = {};      // came with the generation

  /// The search for a state, in this generation:
  bool lacks_state = false;
  std::vector<Rank> whom = {};
  std::size_t asks = 0;  // index of the next member to ask
  bool asked = false;
  std::string refusal = {};  // the reason of a member that has the state and refused

  /// A change that this member has accepted, but not carried out (GRP-D9).
  std::optional<SubgroupChange> accepted = {};
  std::vector<Rank> accepted_members = {};  // members by that change

  /// What the leader is told about the wish of this member.
  [[nodiscard]] bool stays() const noexcept { return wants_in || hands_over; }
  /// Wants out now. Returns whether the leader has not been told so.
  [[nodiscard]] bool go_at_once() noexcept {
    const bool stayed = stays();
    wants_in = hands_over = false;
    return stayed;
  }
  [[nodiscard]] bool works() const noexcept {
    return generation != 0 && !wedged && !parted && participant != nullptr;
  }
  /// Wedges the subgroup: the receipts do not change any more.
  void wedge() noexcept {
    if (generation == 0 || wedged) return;
    wedged = true;
    if (participant == nullptr) return;
    participant->wedge();
    const auto received = participant->received();
    counts.assign(received.begin(), received.end());
  }
};

}  // namespace dunlin::group
