#include "group/subgroup_leader.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/group.hpp>

#include "assert.hpp"

namespace dunlin::group {
namespace {

using Kind = SubgroupMessage::Kind;

/// Only the part that all have counts. A peer that counts other senders has nothing.
void lower(std::optional<std::vector<std::uint64_t>>& trim,
           const std::vector<std::uint64_t>& received) {
  if (!trim) {
    trim = received;
    return;
  }
  for (std::size_t sender = 0; sender < trim->size(); ++sender)
    (*trim)[sender] =
        std::min((*trim)[sender], sender < received.size() ? received[sender] : std::uint64_t{0});
}

}  // namespace

void SubgroupLeader::enter(std::uint64_t view, std::vector<std::string> members, std::size_t room) {
  view_ = view;
  names_ = std::move(members);
  room_ = room;
  changes_ = 0;
  asked_ = false;
  reported_ = {};
  entries_.clear();
  proposals_.clear();
  outgoing_.clear();
}

std::vector<SubgroupLeader::Outgoing> SubgroupLeader::take() {
  return std::exchange(outgoing_, {});
}

void SubgroupLeader::receive(Rank from, const SubgroupMessage& message) {
  if (message.kind == Kind::report) {
    if (reported_.has(from)) return;
    ask();
    reported_.add(from);
    for (const SubgroupReport& report : message.reports) take_report(from, report);
    if (ready()) establish_all();
  } else if (message.kind == Kind::request && reported_.has(from)) {
    for (const SubgroupReport& report : message.reports) {
      take_wish(from, report);
      if (ready()) advance(report.name);
    }
  } else if (message.kind == Kind::wedged && ready()) {
    take_wedged(from, message);
    advance(message.name);
  } else if (message.kind == Kind::parted && ready()) {
    take_parted(from, message);
    advance(message.name);
  } else if (message.kind == Kind::accepted) {
    take_accepted(from, message);
  }
}

/// GRP-D1: asks for reports; the members of a view in which nothing is asked for report nothing.
void SubgroupLeader::ask() {
  if (std::exchange(asked_, true)) return;
  outgoing_.push_back({.to = all(), .message = {.kind = Kind::ask}});
}

// --- what members have ---------------------------------------------------------------------------

void SubgroupLeader::take_report(Rank from, const SubgroupReport& report) {
  if (report.generation != 0 && has_room_for(report.name)) {
    Entry& entry = entries_[report.name];
    entry.exists = true;
    entry.attempts.resize(names_.size());
    entry.attempts[from] = report.attempt;
    take_membership(from, entry, report);
  }
  if (!report.accepted) take_wish(from, report);
}

/// GRP-D4: takes the latest of the reported generations, and how it says that earlier ones ended. A
/// generation that was accepted counts as one that members have (GRP-D9).
void SubgroupLeader::take_membership(Rank from, Entry& entry, const SubgroupReport& report) {
  if (report.generation > entry.generation) take_latest(entry, report);
  if (report.accepted) return;
  entry.had.insert(report.generation);
  if (report.lacks_state) entry.lacking.add(from);
  if (report.generation < entry.generation) return entry.behind.add(from);
  entry.members.add(from);
  lower(entry.trim, report.received);
}

void SubgroupLeader::take_latest(Entry& entry, const SubgroupReport& report) {
  entry.behind = entry.behind | entry.members;
  entry.generation = report.generation;
  entry.members = {};
  entry.trim.reset();
  entry.ends = report.ends;
  entry.latest_removes = report.removes;
  entry.awaited = report.members;
  entry.options = report.options;
  entry.label = report.label;
}

// --- what members wish ---------------------------------------------------------------------------

void SubgroupLeader::take_wish(Rank from, const SubgroupReport& report) {
  const bool asks = report.wants_in || report.generation != 0 || report.removes;
  if (report.removes && ready() && !has_members(report.name)) return remove_none(from, report);
  if (!entries_.contains(report.name) && !asks)
    return refuse(from, report.name, report.attempt, "");
  if (!has_room_for(report.name))
    return refuse(from, report.name, report.attempt,
                  "subgroup '" + report.name + "' would be one too many (kMaxSubgroups)");
  Entry& entry = entries_[report.name];
  entry.attempts.resize(names_.size());
  if (report.removes)
    entry.removed = true;
  else if (report.wants_in)
    wish_in(from, entry, report);
  else
    wish_out(from, entry, report);
}

bool SubgroupLeader::has_members(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return false;
  const Entry& entry = found->second;
  return entry.undecided || !(entry.members | entry.behind).empty();
}

/// The subgroup has no members; some may wish to be in it.
void SubgroupLeader::remove_none(Rank from, const SubgroupReport& report) {
  refuse(from, report.name, report.attempt, "");
  const auto found = entries_.find(report.name);
  if (found != entries_.end())
    refuse_all_in(report.name, found->second, "subgroup '" + report.name + "' was removed");
}

/// A subgroup that only waits for members to know that it is gone takes no room.
bool SubgroupLeader::has_room_for(const std::string& name) const {
  if (entries_.contains(name) || entries_.size() < room_) return true;
  const auto taken = std::ranges::count_if(entries_, [](const auto& named) {
    const Entry& entry = named.second;
    return !entry.members.empty() || !entry.in.empty() || !entry.behind.empty();
  });
  return static_cast<std::size_t>(taken) < room_;
}

/// GRP-D2: takes a wish; the first member's options are the subgroup's.
void SubgroupLeader::wish_in(Rank from, Entry& entry, const SubgroupReport& report) {
  const MemberSet known = entry.members | entry.behind;
  if (known.empty() && entry.in.empty()) {
    entry.options = report.options;
    entry.label = report.label;
    entry.founders = report.founders;
  }
  if (!known.has(from) && report.options != entry.options)
    return refuse(from, report.name, report.attempt,
                  "its options are not those of subgroup '" + report.name + "': here '" +
                      report.options + "', there '" + entry.options + "'");
  entry.attempts[from] = report.attempt;
  entry.sending = entry.sending - MemberSet::only(from);
  if (report.sends) entry.sending.add(from);
  if (!known.has(from)) entry.in.add(from);
}

void SubgroupLeader::wish_out(Rank from, Entry& entry, const SubgroupReport& report) {
  if ((entry.members | entry.behind).has(from)) {
    entry.out.add(from);
  } else {
    entry.in = entry.in - MemberSet::only(from);
    refuse(from, report.name, report.attempt, "");
  }
}

void SubgroupLeader::refuse(Rank to, const std::string& name, std::uint32_t attempt,
                            const std::string& why) {
  outgoing_.push_back(
      {.to = MemberSet::only(to),
       .message = {.kind = Kind::refused, .name = name, .attempt = attempt, .text = why}});
}

void SubgroupLeader::refuse_all_in(const std::string& name, Entry& entry, const std::string& why) {
  for (const Rank rank : entry.in) refuse(rank, name, entry.attempts[rank], why);
  entry.in = {};
}

// --- changes -------------------------------------------------------------------------------------

/// GRP-D4: begins the view, for all subgroups that a member has.
void SubgroupLeader::establish_all() {
  SubgroupMessage message{.kind = Kind::propose, .good = true};
  Proposal proposal;
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  for (const std::string& name : names) {
    Entry& entry = entries_.at(name);
    const MemberSet should_have = std::exchange(entry.awaited, {});
    const MemberSet left = entry.behind - should_have;  // by the latest change, and do not know it
    // A member that wants in lacked the state then, unless the subgroup was removed.
    if (!entry.latest_removes) entry.anew = (left & entry.lacking) - entry.out;
    entry.out = entry.out | left;
    // A member of the generation that has not begun it has received nothing of it.
    if (!(entry.behind - left).empty() && entry.trim) std::ranges::fill(*entry.trim, 0);
    if ((entry.members | entry.behind).empty()) continue;
    add_change(message, proposal, name);
  }
  propose(std::move(message), std::move(proposal));
  for (const std::string& name : names) advance(name);
}

[[nodiscard]] bool SubgroupLeader::founders_are_here(const Entry& entry,
                                                     const MemberSet& members) const {
  return std::ranges::all_of(entry.founders, [&](const std::string& founder) {
    const auto found = std::ranges::find(names_, founder);
    return found != names_.end() && members.has(static_cast<Rank>(found - names_.begin()));
  });
}

/// GRP-D7: if no member has the state, the subgroup begins anew with those that come in.
MemberSet SubgroupLeader::next_members(const Entry& entry) const {
  if (entry.removed) return {};
  const MemberSet stay = (entry.members | entry.behind) - entry.out;
  if (!(stay - entry.lacking).empty()) return stay | entry.in;
  return founders_are_here(entry, entry.in) ? entry.in : MemberSet();
}

/// GRP-D3: wedges a subgroup that is to change, and changes it once all of its members have said
/// what they received, and all members that the last change took out have said that they know how
/// their generation ended: a change says only how the one before it ended.
void SubgroupLeader::advance(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.undecided) return;
  if (entry.removed) refuse_all_in(name, entry, "subgroup '" + name + "' was removed");
  if (!entry.wedging) {
    const MemberSet next = next_members(entry);
    if (next == entry.members && (entry.sending & next) == entry.senders) {
      entry.removed = false;
      return drop_if_gone(name);
    }
    entry.wedging = true;
    entry.trim.reset();
    entry.awaited = entry.members;
    if (!entry.members.empty())
      outgoing_.push_back(
          {.to = entry.members,
           .message = {.kind = Kind::wedge, .name = name, .generation = entry.generation}});
  }
  if (!(entry.awaited | entry.parting).empty()) return;
  SubgroupMessage message{.kind = Kind::propose};
  Proposal proposal;
  add_change(message, proposal, name);
  propose(std::move(message), std::move(proposal));
}

void SubgroupLeader::add_change(SubgroupMessage& message, Proposal& proposal,
                                const std::string& name) {
  Entry& entry = entries_.at(name);
  DUNLIN_ASSERT_ALWAYS(!entry.undecided, "GRP-D3: a subgroup has one change at a time");
  proposal.names.push_back(name);
  proposal.awaited = proposal.awaited | entry.members | entry.behind;
  message.changes.push_back(change(name, entry));
  entry.undecided = true;
}

void SubgroupLeader::propose(SubgroupMessage message, Proposal proposal) {
  proposal.number = message.generation = view_ << Subgroup::kChangeBits | changes_;
  outgoing_.push_back({.to = all(), .message = std::move(message)});
  proposals_.push_back(std::move(proposal));
}

/// GRP-D9: a leader that the others have replaced finds no quorum; its successor hears of the
/// change from each member that it concerns.
void SubgroupLeader::take_accepted(Rank from, const SubgroupMessage& message) {
  const auto found = std::ranges::find(proposals_, message.generation, &Proposal::number);
  if (found == proposals_.end()) return;
  found->awaited = found->awaited - MemberSet::only(from);
  found->accepted.add(from);
  const auto members = static_cast<std::uint32_t>(names_.size());
  if (!found->awaited.empty() || !is_quorum(found->accepted, members)) return;
  const std::vector<std::string> names = std::move(found->names);
  proposals_.erase(found);
  outgoing_.push_back(
      {.to = all(), .message = {.kind = Kind::decide, .generation = message.generation}});
  for (const std::string& name : names) {
    entries_.at(name).undecided = false;
    advance(name);
  }
}

void SubgroupLeader::take_wedged(Rank from, const SubgroupMessage& message) {
  const auto found = entries_.find(message.name);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (!entry.wedging || message.generation != entry.generation || !entry.awaited.has(from)) return;
  entry.awaited = entry.awaited - MemberSet::only(from);
  lower(entry.trim, message.received);
  if (!message.good) entry.lacking.add(from);
}

void SubgroupLeader::take_parted(Rank from, const SubgroupMessage& message) {
  const auto found = entries_.find(message.name);
  if (found == entries_.end() || message.generation != found->second.generation) return;
  found->second.parting = found->second.parting - MemberSet::only(from);
}

/// Makes the next generation, and says how the present one ends.
SubgroupChange SubgroupLeader::change(const std::string& name, Entry& entry) {
  const MemberSet had = entry.members | entry.behind;
  SubgroupChange change{.name = name,
                        .generation = view_ << Subgroup::kChangeBits | ++changes_,
                        .members = next_members(entry),
                        .had_members = entry.exists,
                        .options = entry.options,
                        .label = entry.label};
  change.stay = (change.members & had) - entry.lacking;
  if (!entry.removed)
    change.anew = entry.anew | ((had & entry.lacking) - entry.out - change.members);
  change.senders = entry.sending & change.members;
  if (entry.trim) change.ends.push_back({entry.generation, *entry.trim});
  for (SubgroupEnd& end : entry.ends)
    if (entry.had.contains(end.generation)) change.ends.push_back(std::move(end));
  entry.ends.clear();
  entry.had.clear();
  entry.generation = change.generation;
  entry.exists = !change.members.empty();
  entry.parting = had - change.members;
  entry.members = change.members;
  entry.senders = change.senders;
  entry.sending = change.senders;
  entry.in = entry.in - change.members;
  entry.out = entry.behind = entry.awaited = entry.lacking = entry.anew = {};
  entry.trim.reset();
  entry.wedging = entry.removed = entry.latest_removes = false;
  return change;
}

void SubgroupLeader::drop_if_gone(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  const MemberSet concerned = entry.members | entry.in | entry.behind | entry.parting;
  if (concerned.empty() && !entry.undecided) entries_.erase(found);
}

}  // namespace dunlin::group
