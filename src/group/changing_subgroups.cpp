#include "group/changing_subgroups.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/limits.hpp>

namespace dunlin::group {

ChangingSubgroups::ChangingSubgroups(ControlChannel& channel, Scope scope, std::size_t declared)
    : channel_(channel), fabric_(channel.fabric()), scope_(std::move(scope)), declared_(declared) {}

// --- what the leader is told ---------------------------------------------------------------------

std::optional<Rank> ChangingSubgroups::place_of(Rank rank) const {
  const auto found = std::ranges::find(ranks_, rank);
  if (found == ranks_.end()) return std::nullopt;
  return static_cast<Rank>(found - ranks_.begin());
}

MemberSet ChangingSubgroups::places_of(const std::vector<Rank>& ranks) const {
  MemberSet places;
  for (const Rank rank : ranks)
    if (const std::optional<Rank> place = place_of(rank)) places.add(*place);
  return places;
}

void ChangingSubgroups::send(const MemberSet& to, SubgroupMessage message) {
  if (to.has(view_.me)) local_.push_back(message);
  std::vector<Rank> others;
  for (const Rank place : to)
    if (place != view_.me && place < ranks_.size()) others.push_back(ranks_[place]);
  if (others.empty()) return;
  std::vector<std::byte> bytes = encode(ControlMessage{.kind = ControlMessage::Kind::subgroups,
                                                       .view = view_.number,
                                                       .bytes = encode(std::move(message))});
  for (std::size_t i = 1; i < others.size(); ++i) channel_.send(others[i], bytes);
  channel_.send(others.front(), std::move(bytes));
}

/// Sends this member's state and wishes for one subgroup: at once, or with all others in its first
/// report.
void ChangingSubgroups::send_to_leader_of(Membership& membership) {
  if (!works_) return;
  if (!reported_) return report();
  send_leader({.kind = Kind::request, .reports = {report_of(membership, false)}});
}

SubgroupReport ChangingSubgroups::report_of(const Membership& membership, bool whole) const {
  SubgroupReport report{.name = membership.name,
                        .attempt = membership.attempt,
                        .wants_in = membership.stays(),
                        .sends = membership.join.sends,
                        .options = membership.join.options,
                        .label = membership.join.label,
                        .founders = membership.join.founders};
  if (!whole || membership.generation == 0) return report;
  report.generation = membership.generation;
  report.members = places_of(membership.subgroup.members);
  report.received = membership.counts;
  report.ends = membership.ends;
  report.lacks_state = membership.lacks_state;
  return report;
}

/// GRP-D9: the leader of this view must know of each change that may have been decided before.
SubgroupReport ChangingSubgroups::report_accepted(const Membership& membership) const {
  const SubgroupChange& change = *membership.accepted;
  return {.name = membership.name,
          .attempt = membership.attempt,
          .removes = (change.members | change.anew).empty(),
          .accepted = true,
          .options = change.options,
          .label = change.label,
          .generation = change.generation,
          .members = places_of(membership.accepted_members),
          .ends = change.ends};
}

void ChangingSubgroups::report() {
  reported_ = true;
  SubgroupMessage message{.kind = Kind::report};
  for (const auto& membership : memberships_) {
    if (membership->parted || membership->waits) continue;
    if (membership->accepted) message.reports.push_back(report_accepted(*membership));
    message.reports.push_back(report_of(*membership, true));
  }
  for (const std::string& name : removals_)
    message.reports.push_back({.name = name, .removes = true});
  send_leader(message);
}

// --- from view to view ---------------------------------------------------------------------------

void ChangingSubgroups::enter(const View& view, const std::vector<Rank>& ranks) {
  wedge();
  view_ = view;
  ranks_ = ranks;
  reported_ = false;
  local_.clear();
  proposals_.clear();
  requests_.clear();
  if (view.me == 0) leader_.enter(view.number, view.members, kMaxSubgroups - declared_);
}

/// GRP-D1: a member without subgroups reports nothing.
void ChangingSubgroups::start() {
  works_ = true;
  if (!memberships_.empty() || !removals_.empty() || !infos_.empty()) report();
}

void ChangingSubgroups::wedge() noexcept {
  works_ = false;
  for (const auto& membership : memberships_)
    if (!membership->parted) membership->wedge();
}

void ChangingSubgroups::receive(Rank from, ControlMessage message) {
  if (message.view >= view_.number) held_.emplace_back(from, std::move(message));
}

/// Messages of a later view wait for it.
std::size_t ChangingSubgroups::handle_held() {
  std::size_t done = 0;
  for (std::size_t left = held_.size(); left > 0; --left) {
    auto [from, message] = std::move(held_.front());
    held_.pop_front();
    if (message.view > view_.number) {
      held_.emplace_back(from, std::move(message));
      continue;
    }
    ++done;
    const std::optional<Rank> place = place_of(from);
    if (message.view != view_.number || !place) continue;
    if (const std::optional<SubgroupMessage> inner = decode_subgroup(std::move(message.bytes))) {
      handle(*place, *inner);
      post_from_leader();
    }
  }
  while (!local_.empty()) {
    const SubgroupMessage message = std::move(local_.front());
    local_.pop_front();
    handle(view_.me, message);
    post_from_leader();
    ++done;
  }
  return done;
}

void ChangingSubgroups::post_from_leader() {
  if (view_.me != 0) return;
  for (const SubgroupLeader::Outgoing& outgoing : leader_.take())
    send(outgoing.to, outgoing.message);
}

void ChangingSubgroups::handle(Rank place, const SubgroupMessage& message) {
  switch (message.kind) {
    case Kind::report:
    case Kind::request:
    case Kind::wedged:
    case Kind::parted:
    case Kind::accepted:
      if (view_.me == 0) leader_.receive(place, message);
      return;
    case Kind::want:
      return requests_.push_back({.place = place, .message = message});
    case Kind::state:
      return take_state(place, message);
    default:
      if (place == 0) do_as_the_leader_says(message);
  }
}

void ChangingSubgroups::do_as_the_leader_says(const SubgroupMessage& message) {
  if (message.kind == Kind::ask && !reported_) report();
  if (message.kind == Kind::wedge) wedge_one(message);
  if (message.kind == Kind::refused) refused(message);
  if (message.kind == Kind::propose) accept(message);
  if (message.kind == Kind::decide) carry_out(message.generation);
}

// --- changes -------------------------------------------------------------------------------------

void ChangingSubgroups::wedge_one(const SubgroupMessage& message) {
  Membership* const membership = find(message.name);
  if (membership == nullptr || membership->generation != message.generation) return;
  membership->wedge();
  send_leader({.kind = Kind::wedged,
               .name = message.name,
               .generation = message.generation,
               .good = !membership->lacks_state,
               .received = membership->counts});
}

/// GRP-D9: accepts a change, which changes nothing yet. Members that are in no earlier generation
/// only count for the quorum.
void ChangingSubgroups::accept(const SubgroupMessage& message) {
  for (const SubgroupChange& change : message.changes) {
    Membership* const membership = find(change.name);
    if (membership == nullptr || membership->generation == 0 ||
        membership->generation >= change.generation)
      continue;
    membership->accepted = change;
    membership->accepted_members.clear();
    for (const Rank place : change.members)
      if (place < ranks_.size()) membership->accepted_members.push_back(ranks_[place]);
  }
  proposals_.push_back(message);
  send_leader({.kind = Kind::accepted, .generation = message.generation});
}

void ChangingSubgroups::carry_out(std::uint64_t proposal) {
  const auto found = std::ranges::find(proposals_, proposal, &SubgroupMessage::generation);
  if (found == proposals_.end()) return;
  const SubgroupMessage message = std::move(*found);
  proposals_.erase(found);
  apply_all(message);
}

void ChangingSubgroups::apply_all(const SubgroupMessage& message) {
  for (const SubgroupChange& change : message.changes) apply(change);
  if (!message.good) return;
  forget_those_of_earlier_views();
  std::erase_if(removals_, [this](const std::string& name) { return !infos_.contains(name); });
}

void ChangingSubgroups::apply(const SubgroupChange& change) {
  Membership* membership = find(change.name);
  const bool in = change.members.has(view_.me);
  if (membership != nullptr && membership->generation >= change.generation) return;
  const bool concerned = membership != nullptr && membership->generation != 0;
  if (concerned) end(*membership, change);
  note(change);
  membership = find(change.name);
  if (in && membership == nullptr) {  // a membership that has ended asked for it
    memberships_.push_back(std::make_unique<Membership>(
        Membership{.name = change.name, .attempt = ++attempts_, .wants_in = false}));
    membership = memberships_.back().get();
    send_to_leader_of(*membership);
  }
  if (in) return begin(*membership, change);
  if (membership == nullptr || !concerned) return;
  if (change.anew.has(view_.me) && membership->wants_in)
    ask_anew(*membership);
  else
    part(*membership, membership->wants_in ? "subgroup '" + change.name + "' was removed" : "");
  // This comes last, so that the next change has all members that asked again (GRP-D7).
  send_leader({.kind = Kind::parted, .name = change.name, .generation = change.generation});
}

/// GRP-D5: ends a generation; messages that count are delivered.
void ChangingSubgroups::end(Membership& membership, const SubgroupChange& change) {
  membership.wedge();
  membership.accepted.reset();
  if (membership.participant == nullptr) return;
  const auto end = std::ranges::find(change.ends, membership.generation, &SubgroupEnd::generation);
  const bool fits = end != change.ends.end() && end->trim.size() == membership.counts.size() &&
                    std::ranges::equal(end->trim, membership.counts, std::less_equal());
  std::vector<Rank> staying;  // members with the state or without it
  for (const Rank rank : membership.subgroup.members)
    if (const auto place = place_of(rank); place && change.members.has(*place))
      staying.push_back(rank);
  if (fits)
    keep([&] { membership.participant->finish(end->trim, staying); });
  else
    give_up(membership, "the leader's change of subgroup '" + membership.name +
                            "' does not fit what this member has of it");
}

void ChangingSubgroups::begin(Membership& membership, const SubgroupChange& change) {
  const bool comes = membership.generation == 0;
  Subgroup subgroup{.name = scope_.subgroup(membership.name),
                    .view = view_.number,
                    .change = change.generation & ((std::uint64_t{1} << Subgroup::kChangeBits) - 1),
                    .had_members = change.had_members};
  membership.whom.clear();
  for (const Rank place : change.members) {
    if (place >= ranks_.size()) continue;
    if (change.senders.has(place))
      subgroup.senders.push_back(static_cast<std::uint32_t>(subgroup.members.size()));
    subgroup.members.push_back(ranks_[place]);
    if (place != view_.me) membership.whom.push_back(ranks_[place]);
  }
  std::stable_partition(membership.whom.begin(), membership.whom.end(), [&](Rank rank) {
    const std::optional<Rank> place = place_of(rank);
    return place && change.stay.has(*place);
  });
  membership.asks = 0;
  membership.asked = false;
  membership.refusal.clear();
  membership.generation = change.generation;
  membership.wedged = false;
  membership.counts.assign(subgroup.senders.size(), 0);
  membership.ends = change.ends;
  if (comes)
    membership.lacks_state = membership.participant != nullptr && !change.stay.empty() &&
                             membership.participant->wants_state();
  subgroup.lacks_state = membership.lacks_state;
  membership.subgroup = std::move(subgroup);
  if (membership.participant == nullptr) return;
  std::string why;
  try {
    membership.participant->begin(fabric_, membership.subgroup);
    return;
  } catch (const std::exception& error) {
    why = std::string(": ") + error.what();
    keep([] { throw; });
  } catch (...) {
    keep([] { throw; });
  }
  SubgroupParticipant* const participant = std::exchange(membership.participant, nullptr);
  give_up(membership, "");
  keep([&] { participant->left("it could not begin subgroup '" + membership.name + "'" + why); });
}

/// This member leaves and the others go on, because its participant can do nothing more.
void ChangingSubgroups::give_up(Membership& membership, const std::string& why) noexcept {
  membership.wedge();
  SubgroupParticipant* const participant = std::exchange(membership.participant, nullptr);
  if (membership.go_at_once()) send_to_leader_of(membership);
  if (participant != nullptr) keep([&] { participant->left(why); });
}

void ChangingSubgroups::refused(const SubgroupMessage& message) {
  if (message.attempt == 0) std::erase(removals_, message.name);
  Membership* const membership = find(message.name);
  if (membership == nullptr || membership->attempt != message.attempt) return;
  if (membership->generation == 0) part(*membership, message.text);
}

/// GRP-D7: asks to join again, because the subgroup has ended with the members that had its state.
void ChangingSubgroups::ask_anew(Membership& membership) {
  if (!membership.participant->can_begin_anew())
    return part(membership, "all who had the state of subgroup '" + membership.name +
                                "' are gone, and this member had not been given it yet; join it "
                                "anew");
  membership.attempt = ++attempts_;
  membership.generation = 0;
  membership.subgroup = {};
  membership.wedged = membership.lacks_state = false;
  membership.counts.clear();
  membership.ends.clear();
  send_to_leader_of(membership);
}

void ChangingSubgroups::part(Membership& membership, const std::string& why) {
  membership.parted = true;
  membership.hands_over = false;
  SubgroupParticipant* const participant = std::exchange(membership.participant, nullptr);
  const bool first = !std::exchange(membership.waits, false);
  const std::string name = membership.name;
  if (participant != nullptr) keep([&] { participant->left(why); });
  if (!first) return;
  for (const auto& next : memberships_) {
    if (next->name != name || next->parted || !next->waits) continue;
    next->waits = false;
    return send_to_leader_of(*next);
  }
}

void ChangingSubgroups::show(const SubgroupInfo& info) {
  ++changes_;
  if (const auto handler = handler_) keep([&] { (*handler)(info); });
}

void ChangingSubgroups::note(const SubgroupChange& change) {
  SubgroupInfo info{.name = change.name,
                    .view = view_.number,
                    .change = change.generation & ((std::uint64_t{1} << Subgroup::kChangeBits) - 1),
                    .options = change.options,
                    .label = change.label};
  for (const Rank place : change.members) {
    if (place >= view_.members.size()) continue;
    info.members.push_back(view_.members[place]);
    if (change.senders.has(place)) info.senders.push_back(view_.members[place]);
  }
  if (info.members.empty()) {
    infos_.erase(change.name);
    std::erase(removals_, change.name);
  } else {
    infos_[change.name] = info;
  }
  show(info);
}

/// Forgets subgroups whose members have gone with an earlier view.
void ChangingSubgroups::forget_those_of_earlier_views() {
  std::vector<SubgroupInfo> gone;
  for (const auto& [name, info] : infos_)
    if (info.view < view_.number) gone.push_back(info);
  for (SubgroupInfo& info : gone) {
    infos_.erase(info.name);
    info.view = view_.number;
    info.change = 0;
    info.members.clear();
    info.senders.clear();
    show(info);
  }
}

void ChangingSubgroups::forget_parted() {
  std::erase_if(memberships_, [](const auto& membership) { return membership->parted; });
}

}  // namespace dunlin::group
