#include "group/views.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "assert.hpp"
#include "scoped_flag.hpp"

namespace dunlin {
namespace {

/// An exception of other code must not stop us half-way: it comes out of poll() at the end.
template <class Call>
void keep(std::exception_ptr& thrown, Call call) noexcept {
  try {
    call();
  } catch (...) {
    if (!thrown) thrown = std::current_exception();
  }
}
void rethrow(const std::exception_ptr& thrown) {
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

Group::State::State(GroupOptions options, Fabric& on)
    : fabric(on),
      scope(group::scope_of(options)),
      name(options.rendezvous ? options.rendezvous->group() : on.group()),
      subgroups(std::move(options.subgroups)),
      participants(subgroups.specs().size()),
      member_events(on),
      rendezvous_(std::move(options.rendezvous)) {
  if (scope.further()) name += "/" + scope.name;
  if (rendezvous_)
    joins_ = std::make_unique<group::Joins>(rendezvous_, subgroups.fingerprint(true));
}

Group::State::State(Fabric& on, GroupOptions options) : State(options, on) {
  ranks = group::first_ranks(on, options);
  if (ranks.size() > kMaxViewMembers)
    throw Error("group '" + name + "': " + std::to_string(ranks.size()) + " members; at most " +
                std::to_string(kMaxViewMembers) + " (kMaxViewMembers) can be in one view");
  if (rendezvous_ && on.group() != name)
    throw Error("group '" + on.group() + "': its rendezvous is that of group '" + name +
                "'; give both the same name");
  view.me = static_cast<std::uint32_t>(std::ranges::find(ranks, on.rank()) - ranks.begin());
  for (const Rank rank : ranks) view.members.push_back(group::name_on(on, rank));
  view.number = 1;
  founders = static_cast<std::uint32_t>(ranks.size());
  open_channel(std::make_unique<group::ControlChannel>(
      fabric, group::ControlChannel::Options{.channel = scope.channel}));
  declaration_.emplace(fabric, scope.region("group:subgroups"), ranks,
                       subgroups.description(rendezvous_ != nullptr));
  member_events.enter(view, ranks);
  enter();
}

Group::State::State(group::GroupJoiner::Arrival arrival, GroupOptions options)
    : State(std::move(options), *arrival.fabric) {
  owned = std::move(arrival.fabric);
  view = std::move(arrival.view);
  ranks = std::move(arrival.ranks);
  founders = arrival.founders;
  open_channel(std::move(arrival.channel));
  early_ = std::move(arrival.messages);
  for (const std::byte had : arrival.had_members) had_members_.push_back(had != std::byte{0});
  came_in_ = true;
  member_events.enter(view, ranks);
  expel_others(ranks, "view " + std::to_string(view.number) + " goes on without it");
  enter();
}

void Group::State::open_channel(std::unique_ptr<group::ControlChannel> channel) {
  channel_ = std::move(channel);
  channel_->flag_arrivals(attends_);
  changing = std::make_unique<group::ChangingSubgroups>(*channel_, scope, subgroups.specs().size());
}

/// A view is entered, works, is wedged, and leads to the next one; it may end here at any time.
void Group::State::go_to(Stage next) noexcept {
  DUNLIN_ASSERT_ALWAYS(
      next == Stage::ended || (stage_ == Stage::entered && next == Stage::working) ||
          (stage_ == Stage::working && next == Stage::wedged) ||
          (stage_ == Stage::wedged && next == Stage::entered),
      "GRP-V1: a view is entered, works, and is wedged before the next one is entered");
  stage_ = next;
}

/// The view whose members are in `view` and `ranks`.
void Group::State::enter() {
  DUNLIN_ASSERT_ALWAYS(ranks.size() == view.members.size(), "each member of a view has a rank");
  DUNLIN_ASSERT_ALWAYS(view.me < ranks.size() && ranks[view.me] == fabric.rank(),
                       "GRP-V1: a member is in the view that it enters");
  view.ranks = ranks;
  in_view_ = subgroups.in_view(view, ranks, scope);
  had_members_.resize(in_view_.size());
  for (std::size_t i = 0; i < in_view_.size(); ++i) {
    in_view_[i].subgroup.had_members = had_members_[i];
    if (!in_view_[i].subgroup.members.empty()) had_members_[i] = true;
  }
  agreement_ = std::make_unique<group::ViewAgreement>(
      fabric, group::ViewAgreement::Options{.table = scope.region("view"),
                                            .view = view.number,
                                            .members = ranks,
                                            .counts = group::Subgroups::counts(in_view_),
                                            .text = subgroups.fingerprint(rendezvous_ != nullptr)});
  if (joins_) joins_->enter(view, ranks, *channel_);
  changing->enter(view, ranks);
  begun_ = 0;
}

/// By sender, over all subgroups.
std::vector<std::uint64_t> Group::State::received() {
  std::vector<std::uint64_t> counts(group::Subgroups::counts(in_view_), group::kNoOpinion);
  each_participant([&](SubgroupParticipant& participant, const group::Subgroups::InView& in_view) {
    const std::span<const std::uint64_t> theirs = participant.received();
    DUNLIN_ASSERT_ALWAYS(theirs.size() <= in_view.subgroup.senders.size(),
                         "a SubgroupParticipant counts the senders of its subgroup, and no others");
    std::copy(theirs.begin(), theirs.end(),
              counts.begin() + static_cast<std::ptrdiff_t>(in_view.first_count));
  });
  return counts;
}

void Group::State::announce() {
  go_to(Stage::working);
  std::exception_ptr thrown;
  if (const std::shared_ptr<const ViewHandler> kept = handler) keep(thrown, [&] { (*kept)(view); });
  if (std::exchange(came_in_, false)) transfer_.begin(participants);
  if (joins_) transfer_.enter(view, in_view_, *channel_);
  for (; begun_ < in_view_.size(); ++begun_) {
    if (!in_view_[begun_].ours) continue;
    in_view_[begun_].subgroup.lacks_state = transfer_.lacks(begun_);
    begin(participants[begun_], in_view_[begun_].subgroup);
  }
  changing->start();
  attends_ = true;
  for (auto& [from, message] : std::exchange(early_, {})) receive(from, std::move(message));
  rethrow(thrown);
}

/// A participant that is missing or cannot begin ends the group here: it could do nothing later.
void Group::State::begin(SubgroupParticipant* participant, const Subgroup& subgroup) {
  try {
    if (participant == nullptr)
      throw Error(
          "subgroup '" + subgroup.name +
          "' has no participant here: make its Multicast, or attach another one, before the first "
          "poll()");
    participant->begin(fabric, subgroup);
  } catch (const std::exception& error) {
    stop("its participant of subgroup '" + subgroup.name + "' could not begin view " +
             std::to_string(view.number) + ": " + error.what(),
         true);
    throw;
  } catch (...) {
    stop("its participant of subgroup '" + subgroup.name + "' could not begin view " +
             std::to_string(view.number),
         true);
    throw;
  }
}

void Group::State::step() {
  const std::vector<std::uint64_t> counts = received();
  agreement_->step({.failed = {},
                    .wants_to_leave = handed_over_,
                    .received = counts,
                    .plan = joins_ ? joins_->ready() : group::kNoPlan});
  if (state() == group::ViewState::working) return;
  wedge();
  switch (state()) {
    case group::ViewState::decided: {
      if (!has_all(counts))
        return stop(
            "view " + std::to_string(view.number) +
                " ended with more messages than this member has, so a member's row says what "
                "cannot be; start it anew",
            true);
      const std::exception_ptr thrown = finish();
      go_on();
      return rethrow(thrown);
    }
    case group::ViewState::excluded: {
      const std::exception_ptr thrown = has_all(counts) ? finish() : nullptr;
      stop("view " + std::to_string(view.number + 1) +
               " goes on without this member: the others could not reach it, or thought so; start "
               "it anew",
           true);
      return rethrow(thrown);
    }
    case group::ViewState::minority:
      return stop(too_few(), true);
    default:
      return;
  }
}

void Group::State::wedge() {
  if (stage_ != Stage::working) return;
  go_to(Stage::wedged);
  if (joins_) joins_->wedge();
  changing->wedge();
  for (std::size_t i = 0; i < begun_; ++i)
    if (in_view_[i].ours && participants[i] != nullptr) participants[i]->wedge();
}

std::string Group::State::too_few() const {
  return "too few members of view " + std::to_string(view.number) + " are left to go on (of " +
         std::to_string(view.members.size()) +
         ", more than half must be reached); what is left stops, so that there are never two "
         "groups: if the others have gone on, start this member anew" +
         perhaps_other_subgroups();
}

/// Founders that declare other subgroups are refused and leave, perhaps before we read why.
std::string Group::State::perhaps_other_subgroups() const {
  if (!declaration_) return {};
  if (!declaration_->refusal().empty())
    return "; members must declare the same subgroups: " + declaration_->refusal();
  std::string silent;
  const group::MemberSet& same = declaration_->same();
  for (Rank place = 0; place < ranks.size(); ++place)
    if (place != view.me && !same.has(place))
      silent += (silent.empty() ? "'" : ", '") + view.members[place] + "'";
  if (silent.empty()) return {};
  return "; of " + silent + " nothing was heard: see there why, such as other subgroups than here";
}

/// Whether these counts cover the trim. Those of a member that was heard before the view ended do;
/// those of others may not.
bool Group::State::has_all(const std::vector<std::uint64_t>& counts) const noexcept {
  const std::vector<std::uint64_t>& trim = agreement_->change().decision().trim;
  return std::equal(trim.begin(), trim.end(), counts.begin(), counts.end(),
                    [](std::uint64_t least, std::uint64_t here) { return least <= here; });
}

/// Returns what the upcalls of the last deliveries threw.
std::exception_ptr Group::State::finish() {
  DUNLIN_ASSERT_ALWAYS(stage_ == Stage::wedged,
                       "GRP-V1: a view's parts are wedged before they finish");
  std::exception_ptr thrown;
  const group::Decision& decision = agreement_->change().decision();
  std::vector<Rank> staying;
  each_participant([&](SubgroupParticipant& participant, const group::Subgroups::InView& in_view) {
    staying.clear();
    for (std::uint32_t i = 0; i < ranks.size(); ++i)
      if (decision.survivors.has(i) &&
          std::ranges::find(in_view.subgroup.members, ranks[i]) != in_view.subgroup.members.end())
        staying.push_back(ranks[i]);
    keep(thrown, [&] {
      participant.finish(
          std::span(decision.trim).subspan(in_view.first_count, in_view.subgroup.senders.size()),
          staying);
    });
  });
  return thrown;
}

void Group::State::go_on() {
  const group::Decision decision = agreement_->change().decision();
  View next{.number = view.number + 1};
  std::vector<Rank> next_ranks, left;
  for (std::uint32_t place = 0; place < ranks.size(); ++place) {
    if (!decision.survivors.has(place)) {
      next.departed.push_back(view.members[place]);
      if (!agreement_->has_left(place)) continue;
      left.push_back(ranks[place]);
      next.left.push_back(view.members[place]);
      continue;
    }
    if (place == view.me) next.me = static_cast<std::uint32_t>(next_ranks.size());
    next.members.push_back(view.members[place]);
    next_ranks.push_back(ranks[place]);
  }
  past_.push_back(std::move(agreement_));
  declaration_.reset();
  if (decision.plan != group::kNoPlan) {
    const std::optional<Admission> admission = joins_ ? joins_->take(decision.plan) : std::nullopt;
    if (!admission)
      return stop("view " + std::to_string(next.number) +
                      " begins with joiners that this member has not met; start it anew",
                  true);
    for (const Admission::Newcomer& newcomer : admission->newcomers) {
      next_ranks.push_back(static_cast<Rank>(admission->first + next.joined.size()));
      next.joined.push_back(newcomer.name);
      next.members.push_back(newcomer.name);
    }
  }
  member_events.enter(next, next_ranks);
  expel_others(next_ranks, "view " + std::to_string(next.number) + " goes on without it", left);
  for (const Rank rank : ranks)
    if (std::ranges::find(next_ranks, rank) == next_ranks.end()) channel_->forget(rank);
  ranks = std::move(next_ranks);
  view = std::move(next);
  go_to(Stage::entered);
  enter();
  if (!view.joined.empty()) welcome();
}

/// All members of the view say the same to the joiners, as any member may fail.
void Group::State::welcome() {
  group::ControlMessage message{.kind = group::ControlMessage::Kind::welcome,
                                .view = view.number,
                                .count = static_cast<std::uint32_t>(view.joined.size()),
                                .ranks = ranks,
                                .founders = founders};
  for (const group::Subgroups::InView& in_view : in_view_)
    message.bytes.push_back(static_cast<std::byte>(in_view.subgroup.had_members));
  for (std::size_t i = ranks.size() - view.joined.size(); i < ranks.size(); ++i)
    channel_->send(ranks[i], encode(message));
}

void Group::State::stop(const std::string& how, bool is_wrong) {
  wedge();  // what a layer above sends now would go nowhere
  go_to(Stage::ended);
  wrong = is_wrong && !leaving_;
  why = "group '" + name + "', member '" + view.members[view.me] +
        "': " + (leaving_ ? "it has left the group" : how);
  member_events.end(why);
  if (joins_) joins_->close();
  for (const Rank rank : ranks) channel_->forget(rank);  // it is not polled any more
  if (!agreement_) return;
  // A member that knows a decision publishes it before it leaves.
  const bool decided =
      state() == group::ViewState::decided || state() == group::ViewState::excluded;
  if (decided) past_.push_back(std::move(agreement_));
  agreement_.reset();
}

void Group::State::leave() {
  leaving_ = true;
  if (agreement_) hand_over();
}

/// What was sent here comes first: in the view without this member nobody sends it again.
void Group::State::hand_over() {
  bool all = changing->hand_over();
  each_participant([&](SubgroupParticipant& participant, const group::Subgroups::InView&) {
    all &= participant.hand_over(true);
  });
  if (!all || handed_over_) return;
  handed_over_ = true;
  agreement_->ask_to_step();
}

void Group::State::each_table(const std::function<void(const TableCore&)>& look) const {
  for (const auto& past : past_) look(past->table());
  if (agreement_) look(agreement_->table());
}

void Group::State::part_from_all() {
  ranks.clear();
  expel_others({fabric.rank()}, "we are in no view any more");
}

/// A peer that is not in the view at hand must reach none of the memory that comes now, and must
/// not be waited for. A member that leaves a further group stays in the fabric (GRP-F2).
void Group::State::expel_others(const std::vector<Rank>& stay, const std::string& reason,
                                const std::vector<Rank>& left) {
  if (scope.further()) return;
  for (const Rank rank : left) fabric.expel(rank, reason, Parting::left);
  for (Rank rank = 0; rank < fabric.size(); ++rank)
    if (rank != fabric.rank() && std::ranges::find(stay, rank) == stay.end())
      fabric.expel(rank, reason);
}

std::size_t Group::State::poll_past() {
  std::size_t done = 0;
  for (const auto& past : past_) done += past->poll();
  std::erase_if(past_, [this](const auto& past) {
    if (stopped()) return past->known_to_all();
    return past->settled();
  });
  return done;
}

std::size_t Group::State::poll() {
  if (polling_ && fabric.is_forked())
    throw Error("group '" + name +
                "': this process was forked amid a poll() of its parent, and is no member: join "
                "after the fork");
  const bool by_another_thread = polling_ && polled_by_ != std::this_thread::get_id();
  DUNLIN_ASSERT_ALWAYS(!by_another_thread,
                       "FAB-T1: one thread at a time polls a group; another one does");
  if (polling_)
    throw Error("group '" + name +
                "': poll() was called in one of its own upcalls; return from it");
  const ScopedFlag polling(polling_);
  polled_by_ = std::this_thread::get_id();
  std::size_t done = past_.empty() ? 0 : poll_past();
  if (stopped()) {
    if (past_.empty() && !ranks.empty()) part_from_all();
    done += fabric.poll();
  } else {
    done += poll_view();
  }
  member_events.tell();
  return done;
}

std::size_t Group::State::poll_view() {
  if (stage_ == Stage::entered) announce();
  if (leaving_) hand_over();  // also subgroups that were joined since
  std::size_t done = agreement_->poll();
  if (attends_) done += poll_control();
  if (stopped()) return done + 1;
  if (agreement_->due()) {
    step();
    ++done;
  }
  if (stage_ == Stage::working) {
    done += poll_participants();
    if (!leaving_ || handed_over_) return done;
    hand_over();  // this poll may have brought the last that they waited for
    return done + (handed_over_ ? 1 : 0);
  }
  return stage_ == Stage::wedged ? done : done + 1;
}

std::size_t Group::State::poll_participants() {
  const auto works = [&](std::size_t i) { return in_view_[i].ours && participants[i] != nullptr; };
  std::exception_ptr thrown;
  const std::size_t done =
      turns_.poll([&] { return in_view_.size(); },
                  [&](std::size_t i) { return works(i) && participants[i]->rests(); },
                  [&](std::size_t i) {
                    std::size_t found = works(i) ? 1 : 0;  // if it throws
                    if (works(i)) keep(thrown, [&] { found = participants[i]->poll(); });
                    return found;
                  });
  rethrow(thrown);
  return done;
}

/// The rare work: control messages, joiners, and subgroups that come and go at run time.
std::size_t Group::State::poll_control() {
  std::size_t done = channel_->poll([this](Rank from, std::vector<std::byte> bytes) {
    if (std::optional<group::ControlMessage> message = group::decode(std::move(bytes)))
      receive(from, std::move(*message));
  });
  if (joins_) {
    done += joins_->poll(stage_ == Stage::working, agreement_->change().alive());
    if (stage_ == Stage::working && joins_->ready() != group::kNoPlan) agreement_->ask_to_step();
    if (stage_ == Stage::wedged) return done;
    done += transfer_.poll(participants);
    if (!transfer_.lost().empty()) {
      stop("all members that had the state of subgroup '" + transfer_.lost() +
               "' are gone, and this member had not been given it yet; start the group anew",
           true);
      return done;
    }
  }
  if (changing->active()) done += poll_changing();
  attends_ = joins_ || changing->active() || channel_->pending();
  return done;
}

std::size_t Group::State::poll_changing() {
  const std::size_t done = changing->poll();
  if (done > 0) turns_.stay_busy();
  return done;
}

void Group::State::receive(Rank from, group::ControlMessage message) {
  using Kind = group::ControlMessage::Kind;
  if (message.kind == Kind::subgroups)
    changing->receive(from, std::move(message));
  else if (!joins_)
    return;
  else if (message.kind == Kind::want || message.kind == Kind::state)
    transfer_.receive(from, std::move(message));
  else
    joins_->receive(from, message);
}

Waits Group::State::waits() const {
  Waits waits;
  if (joins_) joins_->collect(waits);
  return waits;
}

}  // namespace dunlin
