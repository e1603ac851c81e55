#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "group/member_set.hpp"

/// How the members of a view agree on the next one, and on which of the old view's messages count:
/// one decision, after which the view is over. Pure: rows go in, changes of the own row and the
/// state come out. docs/group.md gives the rules GRP-C1 to GRP-C8 and why they suffice; its model
/// is tests/group/view_change.pml.
namespace dunlin::group {

/// Names a fabric that all members have formed with those that want to come in: unique for each
/// attempt of each leader.
using PlanId = std::uint64_t;
inline constexpr PlanId kNoPlan = 0;  // the next view uses the fabric at hand

/// How the view ends, and who goes on.
struct Decision {
  MemberSet survivors;              // of this view; first in the next one, in this order
  PlanId plan = kNoPlan;            // the plan whose joiners follow them
  std::vector<std::uint64_t> trim;  // by sender: how many of its messages count
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// A ballot is led by one member, of rank `ballot - 1`, and later ones by higher ranks; 0: none.
using Ballot = std::uint32_t;

/// A member's row. Every column only grows; a reader that sees a column sees the columns before it.
struct Row {
  MemberSet suspects;
  bool leaving = false;
  std::vector<std::uint64_t> received;  // by sender; final once something is promised
  Ballot promised = 0;
  Decision proposal = {};  // the proposal of the accepted ballot
  Ballot accepted = 0;
  bool ended = false;  // the proposal is decided
};

/// The facts that a member knows by itself.
struct ViewInput {
  MemberSet failed;  // by the fabric
  bool wants_to_leave = false;
  std::span<const std::uint64_t> received;  // by sender, so far
  PlanId plan = kNoPlan;                    // made by us, and formed by all live members
};

enum class ViewState {
  working,   // the view goes on
  wedged,    // it will end: nothing of it may be sent, received or delivered any more
  decided,   // it has ended; we are in the next one
  excluded,  // it has ended, and we are not in the next one
  minority,  // too few are left to decide: they must stop
};

class ViewChange {
 public:
  ViewChange(std::uint32_t members, Rank me);

  /// Another member's row as we see it now.
  using Rows = std::function<const Row&(Rank)>;
  /// To be called when anything has changed. True: publish our row, which has changed, and call
  /// again.
  bool step(const Rows& rows, const ViewInput& input);

  [[nodiscard]] const Row& mine() const noexcept { return mine_; }
  [[nodiscard]] ViewState state() const noexcept { return state_; }
  /// The decision. Requires that the view has ended.
  [[nodiscard]] const Decision& decision() const noexcept { return mine_.proposal; }
  /// The member that we follow: the lowest rank that we do not suspect.
  [[nodiscard]] Rank leader() const noexcept { return alive().lowest(); }
  /// The members that we do not suspect.
  [[nodiscard]] MemberSet alive() const noexcept { return all() - mine_.suspects; }

 private:
  [[nodiscard]] MemberSet all() const noexcept { return MemberSet::first(members_); }
  [[nodiscard]] const Row& row(const Rows& rows, Rank rank) const {
    return rank == me_ ? mine_ : rows(rank);
  }

  [[nodiscard]] bool enough(const MemberSet& some) const noexcept;
  bool suspect(const Rows& rows, const ViewInput& input);
  void part_accusers(const Rows& rows, MemberSet& suspects) const;
  bool promise(const Rows& rows, const ViewInput& input);
  bool propose(const Rows& rows, const ViewInput& input);
  bool accept(const Rows& rows);
  void decide(const Rows& rows);
  void end(const Row& known);
  [[nodiscard]] bool somebody_leaves(const Rows& rows) const;

  std::uint32_t members_;
  Rank me_;
  Row mine_;
  ViewState state_ = ViewState::working;
};

}  // namespace dunlin::group
