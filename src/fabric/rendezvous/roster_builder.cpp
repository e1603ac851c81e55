#include "fabric/rendezvous/roster_builder.hpp"

#include <algorithm>
#include <utility>

#include "assert.hpp"
#include "fabric/rendezvous/frame.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::size_t kMaxListed = 12;  // members in one sentence

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string or_nothing(const std::string& terms) { return terms.empty() ? "nothing" : terms; }

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < kMaxListed; ++i)
    text.append(i > 0 ? ", " : "").append(items[i]);
  if (items.size() > kMaxListed) text += " and " + number(items.size() - kMaxListed) + " more";
  return text;
}

}  // namespace

RosterBuilder::RosterBuilder(const Plan& plan, Bytes endpoint_address) : plan_(plan) {
  sit_down({plan.rank, "the host itself", {endpoint_address.begin(), endpoint_address.end()}});
}

RosterBuilder::Verdict RosterBuilder::admit(const JoinRequest& joiner, const std::string& from) {
  if (std::string fault = mismatch(joiner); !fault.empty())
    return {{}, std::move(fault), false, joiner.group != plan_.group};
  const Member* holder = joiner.rank == kAnyRank ? nullptr : holder_of(joiner.rank);
  if (holder != nullptr)
    return {{},
            plan_.group_text() + ": " + plan_.who(joiner.rank) + " is taken by " + holder->from +
                ". Stop that one first, or ask for another",
            true};
  if (complete())
    return {{},
            plan_.group_text() + ": all its " + number(plan_.members()) +
                " places are taken. Is a member started twice, or is this another group's?",
            true};
  const Ticket ticket = next_ticket_;
  sit_down({joiner.rank, from, {joiner.endpoint_address.begin(), joiner.endpoint_address.end()}});
  return {ticket};
}

/// Why the joiner cannot be in this group; empty if it can.
std::string RosterBuilder::mismatch(const JoinRequest& joiner) const {
  const bool joiner_counts = joiner.names_hash == Digest{};
  if (joiner.group != plan_.group)
    return "the host of the rendezvous is of group '" + plan_.group + "', and this member of '" +
           joiner.group + "'. Give them different addresses, or the same group";
  if (joiner_counts != plan_.counted())
    return plan_.group_text() + ": the host joins by " + (plan_.counted() ? "count" : "name") +
           ", and this member by " + (joiner_counts ? "count" : "name") +
           ". All members must do the same";
  if (joiner.members != plan_.members())
    return plan_.group_text() + ": the host expects " + number(plan_.members()) +
           " members, and this member expects " + number(joiner.members) +
           ". All must give the same number";
  if (joiner.names_hash != plan_.names_hash)
    return plan_.group_text() +
           ": this member has another list of member names than the host: " + listed(plan_.names) +
           ". All must give the same names in the same order";
  if (joiner.terms != plan_.terms)
    return plan_.group_text() + ": the host joins by " + or_nothing(plan_.terms) +
           ", and this member by " + or_nothing(joiner.terms) + ". All must join alike";
  return {};
}

const RosterBuilder::Member* RosterBuilder::holder_of(Rank rank) const {
  for (const auto& [ticket, member] : here_)
    if (member.asked_for == rank) return &member;
  return nullptr;
}

std::vector<bool> RosterBuilder::asked_for() const {
  std::vector<bool> ranks(plan_.members(), false);
  for (const auto& [ticket, member] : here_)
    if (member.asked_for != kAnyRank) ranks[member.asked_for] = true;
  return ranks;
}

void RosterBuilder::sit_down(Member member) {
  here_.emplace(next_ticket_++, std::move(member));
  if (complete()) begin_round();
}

void RosterBuilder::left(Ticket ticket) {
  if (!decided_) here_.erase(ticket);
}

void RosterBuilder::begin_round() {
  DUNLIN_ASSERT(!decided_, "RDV-R2: no round begins after the one that is decided");
  ++round_;
  by_rank_.assign(plan_.members(), Ticket{});
  const std::vector<bool> taken = asked_for();
  Rank free = 0;
  for (auto& [ticket, member] : here_) {
    member.rank = member.asked_for;
    if (member.rank == kAnyRank) {
      while (taken[free]) ++free;
      member.rank = free++;
    }
    by_rank_[member.rank] = ticket;
  }
  here_.at(kHost).confirmed_round = round_;
  decide_if_possible();
}

bool RosterBuilder::confirmed(Ticket ticket, std::uint32_t round) {
  Member& member = here_.at(ticket);
  if (round > round_ || round <= member.confirmed_round) return false;
  member.confirmed_round = round;
  decide_if_possible();
  return true;
}

void RosterBuilder::decide_if_possible() {
  decided_ = complete() && std::all_of(here_.begin(), here_.end(), [this](const auto& one) {
               return one.second.confirmed_round == round_;
             });
}

std::string RosterBuilder::progress() const {
  const std::string count = number(here_.size()) + " of " + number(plan_.members());
  if (!complete()) return count + " members have come; missing: " + missing_names();
  std::vector<std::string> silent;
  for (const auto& [ticket, member] : here_)
    if (member.confirmed_round != round_)
      silent.push_back(plan_.who(member.rank) + " from " + member.from);
  return count +
         " members have come, but have not all confirmed that they know the others (stopped, or "
         "slow?): " +
         listed(silent);
}

/// The ranks that are open; members that take any rank are somewhere among these.
std::string RosterBuilder::missing_names() const {
  const std::vector<bool> taken = asked_for();
  std::vector<std::string> open;
  for (Rank rank = 0; rank < plan_.members(); ++rank)
    if (!taken[rank]) open.push_back(plan_.who(rank));
  return missing() == open.size() ? listed(open) : number(missing()) + " more";
}

}  // namespace dunlin::rendezvous
