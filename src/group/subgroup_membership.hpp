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
  SubgroupParticipant* participant = nullptr;  // null: it was detached
  SubgroupJoin join = {};
  std::uint32_t attempt = 0;
  bool wants_in = true;
  /// The leader is not told yet that this member wants out: the others lack what was sent here.
  bool hands_over = false;
  bool waits = false;   // for an earlier membership of this name to end
  bool parted = false;  // it is over

  std::uint64_t generation = 0;  // 0: not in it yet
  Subgroup subgroup = {};        // of that generation
  bool wedged = false;
  std::vector<std::uint64_t> counts = {};  // received, once it is wedged
  std::vector<SubgroupEnd> ends = {};      // that came with the generation

  /// For a state, in this generation.
  bool lacks_state = false;
  std::vector<Rank> whom = {};
  std::size_t asks = 0;  // an index into these
  bool asked = false;
  std::string refusal = {};  // of one that was asked, and has it

  /// A change of it that this member has accepted, and not carried out (GRP-D9).
  std::optional<SubgroupChange> accepted = {};
  std::vector<Rank> accepted_members = {};  // by that change

  /// What the leader is told.
  [[nodiscard]] bool stays() const noexcept { return wants_in || hands_over; }
  /// This member wants out now. Returns whether the leader has not been told so.
  [[nodiscard]] bool go_at_once() noexcept {
    const bool stayed = stays();
    wants_in = hands_over = false;
    return stayed;
  }
  [[nodiscard]] bool works() const noexcept {
    return generation != 0 && !wedged && !parted && participant != nullptr;
  }
  /// The receipts do not change any more.
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
