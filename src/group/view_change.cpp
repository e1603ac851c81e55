#include "group/view_change.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/limits.hpp>

#include "assert.hpp"

namespace dunlin::group {

ViewChange::ViewChange(std::uint32_t members, Rank me) : members_(members), me_(me) {
  DUNLIN_ASSERT_ALWAYS(members <= kMaxViewMembers, "a view has at most kMaxViewMembers members");
  DUNLIN_ASSERT_ALWAYS(me < members, "a member's rank is below the number of members");
}

bool ViewChange::step(const Rows& rows, const ViewInput& input) {
  if (state_ >= ViewState::decided) return false;
  bool changed = suspect(rows, input);
  if (input.wants_to_leave && !mine_.leaving) changed = mine_.leaving = true;
  changed |= promise(rows, input);
  changed |= propose(rows, input);
  changed |= accept(rows);
  decide(rows);
  if (state_ >= ViewState::decided) return true;
  if (!enough(alive())) state_ = ViewState::minority;  // GRP-C8
  return changed;
}

bool ViewChange::enough(const MemberSet& some) const noexcept { return is_quorum(some, members_); }

/// GRP-C1, and GRP-C2 for a leader: a suspicion is never taken back.
bool ViewChange::suspect(const Rows& rows, const ViewInput& input) {
  MemberSet suspects = mine_.suspects;
  for (const Rank rank : input.failed)
    if (rank != me_ && rank < members_) suspects.add(rank);
  if (!(all() - suspects).empty() && (all() - suspects).lowest() == me_)
    part_accusers(rows, suspects);
  DUNLIN_ASSERT_ALWAYS((mine_.suspects - suspects).empty(),
                       "GRP-C1: a suspicion is never taken back");
  DUNLIN_ASSERT_ALWAYS(!suspects.has(me_), "GRP-C2: a member does not suspect itself");
  return std::exchange(mine_.suspects, suspects) != suspects;
}

/// A member that suspects us will not follow us. A member that another one suspects cannot go on
/// with it; of two that suspect each other, the older one goes on.
void ViewChange::part_accusers(const Rows& rows, MemberSet& suspects) const {
  for (const Rank accuser : all() - suspects)
    if (accuser != me_ && rows(accuser).suspects.has(me_)) suspects.add(accuser);
  for (const Rank accuser : all() - suspects) {
    if (accuser == me_ || suspects.has(accuser)) continue;
    for (const Rank accused : rows(accuser).suspects) {
      if (accused >= members_ || accused == me_ || suspects.has(accused)) continue;
      const bool mutual = rows(accused).suspects.has(accuser);
      suspects.add(mutual ? std::max(accuser, accused) : accused);
      if (suspects.has(accuser)) break;
    }
  }
}

/// GRP-C3 and GRP-C4: from here on our receipts are final.
bool ViewChange::promise(const Rows& rows, const ViewInput& input) {
  const Rank leads = leader();
  const Ballot ballot = leads + 1;
  if (mine_.promised >= ballot) return false;
  if (leads == me_) {
    const bool wanted = !mine_.suspects.empty() || somebody_leaves(rows) || input.plan != kNoPlan;
    if (!wanted) return false;
  } else if (rows(leads).promised != ballot) {
    return false;
  }
  if (mine_.promised == 0) mine_.received.assign(input.received.begin(), input.received.end());
  DUNLIN_ASSERT_ALWAYS(mine_.received.size() == input.received.size(),
                       "GRP-C4: a member counts the same senders in every step");
  DUNLIN_ASSERT_ALWAYS(state_ <= ViewState::wedged,
                       "GRP-C4: a member promises while it is in the view");
  mine_.promised = ballot;
  state_ = ViewState::wedged;
  return true;
}

bool ViewChange::somebody_leaves(const Rows& rows) const {
  for (const Rank rank : alive())
    if (row(rows, rank).leaving) return true;
  return false;
}

/// GRP-C5: proposes once all members that we do not suspect have promised.
bool ViewChange::propose(const Rows& rows, const ViewInput& input) {
  const Ballot ballot = me_ + 1;
  if (mine_.promised != ballot || mine_.accepted >= ballot) return false;
  const MemberSet here = alive();
  if (!enough(here)) return false;
  Ballot best = 0;
  Decision proposal;
  for (const Rank rank : here) {
    const Row& theirs = row(rows, rank);
    if (theirs.promised != ballot) return false;
    if (theirs.accepted <= best) continue;
    best = theirs.accepted;
    proposal = theirs.proposal;
  }
  if (best == 0) {
    proposal.plan = input.plan;
    proposal.trim = mine_.received;
    for (const Rank rank : here) {
      const Row& theirs = row(rows, rank);
      if (!theirs.leaving) proposal.survivors.add(rank);
      DUNLIN_ASSERT_ALWAYS(theirs.received.size() == proposal.trim.size(),
                           "GRP-C5: rows are read with as many counts as the view has senders");
      for (std::size_t sender = 0; sender < proposal.trim.size(); ++sender)
        proposal.trim[sender] = std::min(proposal.trim[sender], theirs.received[sender]);
    }
  }
  DUNLIN_ASSERT_ALWAYS(mine_.accepted < ballot && ballot == mine_.promised,
                       "GRP-C5: a leader proposes once, in the ballot that it has promised");
  mine_.proposal = std::move(proposal);
  mine_.accepted = ballot;
  return true;
}

/// GRP-C6: a leader has accepted its own proposal already.
bool ViewChange::accept(const Rows& rows) {
  if (mine_.promised == 0 || mine_.accepted >= mine_.promised) return false;
  const Rank led = mine_.promised - 1;
  if (led == me_ || rows(led).accepted != mine_.promised) return false;
  mine_.proposal = rows(led).proposal;
  mine_.accepted = mine_.promised;
  return true;
}

/// GRP-C7: the rows of dead members count, too. A member that knows the decision publishes it for
/// those that cannot see a quorum.
void ViewChange::decide(const Rows& rows) {
  MemberSet uncounted;  // have accepted, and are not counted yet
  for (const Rank rank : all()) {
    const Row& theirs = row(rows, rank);
    if (theirs.ended) return end(theirs);
    if (theirs.accepted != 0) uncounted.add(rank);
  }
  while (!uncounted.empty()) {
    const Ballot ballot = row(rows, uncounted.lowest()).accepted;
    MemberSet accepted;
    for (const Rank rank : uncounted)
      if (row(rows, rank).accepted == ballot) accepted.add(rank);
    if (enough(accepted)) return end(row(rows, accepted.lowest()));
    uncounted = uncounted - accepted;
  }
}

void ViewChange::end(const Row& known) {
  if (&known != &mine_) mine_.proposal = known.proposal;
  DUNLIN_ASSERT_ALWAYS(state_ < ViewState::decided, "GRP-A1: a view is decided once");
  mine_.accepted = std::max(mine_.accepted, known.accepted);
  mine_.ended = true;
  state_ = decision().survivors.has(me_) ? ViewState::decided : ViewState::excluded;
}

}  // namespace dunlin::group
