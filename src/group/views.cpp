#include "group/views.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "assert.hpp"
#include "fault_injection.hpp"
#include "scoped_flag.hpp"

namespace dunlin {
namespace {

/// While others are busy, a part that rests is polled once in so many polls.
constexpr std::size_t kRestsFor = 8;

/// A member of a fabric without names is called by its rank.
[[nodiscard]] std::string name_on(const Fabric& fabric, Rank rank) {
  const std::string& name = fabric.member_name(rank);
  return name.empty() ? std::to_string(rank) : name;
}

/// What others' code throws must not leave us half-way: it comes out of poll() when we are done.
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

Group::State::State(GroupOptions options, Fabric& at_home)
    : home(at_home),
      name(options.rendezvous ? options.rendezvous->group() : at_home.group()),
      subgroups(std::move(options.subgroups)),
      participants(subgroups.specs().size()),
      fabric_(&at_home),
      rendezvous_(std::move(options.rendezvous)) {
  if (rendezvous_)
    admission_ = std::make_unique<group::Admission>(rendezvous_,
                                                    subgroups.fingerprint(rendezvous_ != nullptr));
}

Group::State::State(Fabric& fabric, GroupOptions options) : State(std::move(options), fabric) {
  if (fabric.size() > kMaxViewMembers)
    throw Error("group '" + name + "': " + std::to_string(fabric.size()) + " members; at most " +
                std::to_string(kMaxViewMembers) + " (kMaxViewMembers) can be in one view");
  if (rendezvous_ && fabric.group() != name)
    throw Error("group '" + fabric.group() + "': its rendezvous is that of group '" + name +
                "'; give both the same name");
  view.me = fabric.rank();
  for (Rank rank = 0; rank < fabric.size(); ++rank) {
    view.members.push_back(name_on(fabric, rank));
    ranks.push_back(rank);
  }
  view.number = 1;
  declaration_.emplace(home, subgroups.description(rendezvous_ != nullptr));
  enter();
}

Group::State::State(group::GroupJoiner::Arrival arrival, GroupOptions options)
    : State(std::move(options), *arrival.fabric) {
  owned_.push_back(std::move(arrival.fabric));
  view = std::move(arrival.view);
  ranks = std::move(arrival.ranks);
  channel_ = std::move(arrival.channel);
  early_ = std::move(arrival.messages);
  for (const std::byte had : arrival.had_members) had_members_.push_back(had != std::byte{0});
  came_in_ = true;
  expel_others(*fabric_, ranks, "view " + std::to_string(view.number) + " goes on without it");
  enter();
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
  DUNLIN_ASSERT_ALWAYS(view.me < ranks.size() && ranks[view.me] == fabric_->rank(),
                       "GRP-V1: a member is in the view that it enters");
  places_ = subgroups.in_view(view, ranks);
  had_members_.resize(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    places_[i].subgroup.had_members = had_members_[i];
    if (!places_[i].subgroup.members.empty()) had_members_[i] = true;
  }
  agreement_ = std::make_unique<group::ViewAgreement>(
      *fabric_,
      group::ViewAgreement::Options{.view = view.number,
                                    .members = ranks,
                                    .counts = group::Subgroups::counts(places_),
                                    .text = subgroups.fingerprint(rendezvous_ != nullptr)});
  if (admission_ && !channel_) channel_ = std::make_unique<group::ControlChannel>(*fabric_);
  if (admission_) admission_->enter(view, ranks, *channel_);
  begun_ = 0;
}

/// By sender, over all subgroups.
std::vector<std::uint64_t> Group::State::received() {
  std::vector<std::uint64_t> counts(group::Subgroups::counts(places_), group::kNoOpinion);
  each_participant([&](SubgroupParticipant& participant, const group::Subgroups::Place& place) {
    const std::span<const std::uint64_t> theirs = participant.received();
    DUNLIN_ASSERT_ALWAYS(theirs.size() <= place.subgroup.senders.size(),
                         "a SubgroupPart counts the senders of its subgroup, and no others");
    std::copy(theirs.begin(), theirs.end(),
              counts.begin() + static_cast<std::ptrdiff_t>(place.first_count));
  });
  return counts;
}

void Group::State::announce() {
  go_to(Stage::working);
  std::exception_ptr thrown;
  if (const std::shared_ptr<const ViewHandler> kept = handler) keep(thrown, [&] { (*kept)(view); });
  if (std::exchange(came_in_, false)) transfer_.begin(participants);
  if (admission_) transfer_.enter(view, places_, *channel_);
  for (; begun_ < places_.size(); ++begun_) {
    if (!places_[begun_].ours) continue;
    places_[begun_].subgroup.lacks_state = transfer_.lacks(begun_);
    begin(participants[begun_], places_[begun_].subgroup);
  }
  for (auto& [from, message] : std::exchange(early_, {})) receive(from, std::move(message));
  rethrow(thrown);
}

/// A part that is not there, or could not begin, could do nothing that is asked of it later.
void Group::State::begin(SubgroupParticipant* participant, const Subgroup& subgroup) {
  try {
    if (participant == nullptr)
      throw Error(
          "subgroup '" + subgroup.name +
          "' has no participant here: make its Multicast, or attach another one, before the first "
          "poll()");
    participant->begin(*fabric_, subgroup);
  } catch (const std::exception& error) {
    stop("its participant of subgroup '" + subgroup.name + "' could not begin view " +
             std::to_string(view.number) + ": " + error.what(),
         true);
    throw;
  }
}

void Group::State::step() {
  const std::vector<std::uint64_t> counts = received();
  agreement_->step({.failed = {},
                    .wants_to_leave = leaving_,
                    .received = counts,
                    .plan = admission_ ? admission_->ready() : group::kNoPlan});
  if (state() == group::ViewState::working) return;
  wedge();
  switch (state()) {
    case group::ViewState::decided: {
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
  if (stage_ != Stage::working || is_injected(FaultInjection::promise_does_not_wedge)) return;
  go_to(Stage::wedged);
  for (std::size_t i = 0; i < begun_; ++i)
    if (places_[i].ours && participants[i] != nullptr) participants[i]->wedge();
}

std::string Group::State::too_few() const {
  return "too few members of view " + std::to_string(view.number) + " are left to go on (of " +
         std::to_string(view.members.size()) +
         ", more than half must be reached); what is left stops, so that there are never two "
         "groups: if the others have gone on, start this member anew" +
         perhaps_other_subgroups();
}

/// Founders that declare others are refused, and gone at once; perhaps before they could be read.
std::string Group::State::perhaps_other_subgroups() const {
  if (!declaration_) return {};
  if (!declaration_->refusal().empty())
    return "; members must declare the same subgroups: " + declaration_->refusal();
  std::string silent;
  const group::MemberSet same = declaration_->same();
  for (Rank place = 0; place < ranks.size(); ++place)
    if (place != view.me && !same.has(place))
      silent += (silent.empty() ? "'" : ", '") + view.members[place] + "'";
  if (silent.empty()) return {};
  return "; of " + silent + " nothing was heard: see there why, such as other subgroups than here";
}

/// Whoever was heard before the view ended has what counts of it; others may not.
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
  const std::vector<std::uint64_t>& trim = agreement_->change().decision().trim;
  each_participant([&](SubgroupParticipant& participant, const group::Subgroups::Place& place) {
    keep(thrown, [&] {
      participant.finish(std::span(trim).subspan(place.first_count, place.subgroup.senders.size()));
    });
  });
  return thrown;
}

void Group::State::go_on() {
  const group::Decision decision = agreement_->change().decision();
  const bool stays = view.me == 0 && is_injected(FaultInjection::number_stays);
  View next{.number = view.number + (stays ? 0 : 1)};
  const std::string why_expelled = "view " + std::to_string(next.number) + " goes on without it";
  std::vector<Rank> staying, next_ranks;  // here, and where the next view is
  for (std::uint32_t place = 0; place < ranks.size(); ++place) {
    if (!decision.survivors.has(place)) {
      next.departed.push_back(view.members[place]);
      continue;
    }
    if (place == view.me) next.me = static_cast<std::uint32_t>(next_ranks.size());
    next.members.push_back(view.members[place]);
    staying.push_back(ranks[place]);
    // A plan lists the members of this view in their order: in its fabric that is their rank.
    next_ranks.push_back(decision.plan == group::kNoPlan ? ranks[place] : place);
  }
  past_.push_back({std::move(agreement_), fabric_});
  declaration_.reset();
  expel_others(*fabric_, staying, why_expelled);
  if (decision.plan != group::kNoPlan) {
    const auto old = static_cast<Rank>(ranks.size());
    if (!change_fabric(decision.plan, next.joined))
      return stop("view " + std::to_string(next.number) +
                      " begins on a fabric that this member has not; start it anew",
                  true);
    for (Rank i = 0; i < next.joined.size(); ++i) {
      next.members.push_back(next.joined[i]);
      next_ranks.push_back(old + i);
    }
    expel_others(*fabric_, next_ranks, why_expelled);
  }
  ranks = std::move(next_ranks);
  view = std::move(next);
  expel_from_past(why_expelled);
  go_to(Stage::entered);
  enter();
  if (decision.plan != group::kNoPlan) welcome();
}

/// From the fabrics of earlier views, too, on which somebody may still have to hear of their ends.
void Group::State::expel_from_past(const std::string& reason) {
  for (const Past& past : past_) {
    if (past.fabric == fabric_) continue;
    std::vector<Rank> stay;
    for (Rank rank = 0; rank < past.fabric->size(); ++rank)
      if (std::ranges::find(view.members, name_on(*past.fabric, rank)) != view.members.end())
        stay.push_back(rank);
    expel_others(*past.fabric, stay, reason);
  }
}

/// To that of the plan. False if it is not here, which GRP-N4 excludes.
bool Group::State::change_fabric(group::PlanId plan, std::vector<std::string>& joined) {
  group::Admission::Formed formed =
      admission_ ? admission_->take(plan) : group::Admission::Formed{};
  if (!formed.fabric) return false;
  joined.assign(formed.plan.members.end() - formed.plan.joiners, formed.plan.members.end());
  channel_.reset();
  owned_.push_back(std::move(formed.fabric));
  fabric_ = owned_.back().get();
  return true;
}

/// All members of the view say the same to those that came in, as any may fail.
void Group::State::welcome() {
  group::ControlMessage message{.kind = group::ControlMessage::Kind::welcome,
                                .view = view.number,
                                .count = static_cast<std::uint32_t>(view.joined.size()),
                                .ranks = ranks};
  for (const group::Subgroups::Place& place : places_)
    message.bytes.push_back(static_cast<std::byte>(place.subgroup.had_members));
  for (std::size_t i = ranks.size() - view.joined.size(); i < ranks.size(); ++i)
    channel_->send(ranks[i], encode(message));
}

void Group::State::stop(const std::string& how, bool is_wrong) {
  wedge();  // what a layer above sends now would go nowhere
  go_to(Stage::ended);
  wrong = is_wrong && !leaving_;
  why = "group '" + name + "', member '" + view.members[view.me] +
        "': " + (leaving_ ? "it has left the group" : how);
  if (admission_) admission_->close();
  if (!agreement_) return;
  // Who has a decision to tell tells it before it goes.
  const bool decided =
      state() == group::ViewState::decided || state() == group::ViewState::excluded;
  if (decided) past_.push_back({std::move(agreement_), fabric_});
  agreement_.reset();
}

void Group::State::leave() {
  leaving_ = true;
  if (agreement_) agreement_->ask_to_step();
}

void Group::State::each_table(const std::function<void(const TableCore&)>& look) const {
  for (const Past& past : past_) look(past.agreement->table());
  if (agreement_) look(agreement_->table());
}

void Group::State::part_from_all() {
  ranks.clear();
  channel_.reset();
  expel_others(*fabric_, {fabric_->rank()}, "we are in no view any more");
}

/// Who is not in the view at hand must reach none of the memory that comes now, and must not be
/// waited for.
void Group::State::expel_others(Fabric& from, const std::vector<Rank>& stay,
                                const std::string& reason) {
  if (is_injected(FaultInjection::dead_are_not_expelled)) return;
  for (Rank rank = 0; rank < from.size(); ++rank)
    if (rank != from.rank() && std::ranges::find(stay, rank) == stay.end())
      from.expel(rank, reason);
}

std::size_t Group::State::poll_past() {
  std::size_t done = 0;
  for (const Past& past : past_) done += past.agreement->poll();
  const std::size_t before = past_.size();
  std::erase_if(past_, [this](const Past& past) {
    if (stopped())
      return past.agreement->known_to_all() || is_injected(FaultInjection::leaver_tells_nobody);
    // What was sent on a fabric that we leave may be lost with the connection.
    return past.fabric == fabric_ ? past.agreement->settled() : past.agreement->known_to_all();
  });
  if (past_.size() != before) retire_fabrics();
  return done;
}

/// Those of views that nobody has to hear of any more, and whose messages were taken.
void Group::State::retire_fabrics() {
  const auto in_use = [this](Fabric& fabric) {
    if (&fabric == fabric_) return true;
    if (std::ranges::any_of(past_, [&](const Past& past) { return past.fabric == &fabric; }))
      return true;
    return std::ranges::any_of(participants, [&](const SubgroupParticipant* participant) {
      return participant != nullptr && participant->uses(fabric);
    });
  };
  std::erase_if(owned_,
                [&](const auto& fabric) { return fabric.get() != &home && !in_use(*fabric); });
  if (!in_use(home)) expel_others(home, {home.rank()}, "later views have another fabric");
}

std::size_t Group::State::poll() {
  if (polling_)
    throw Error("group '" + name +
                "': poll() was called in one of its own upcalls; return from it");
  const ScopedFlag polling(polling_);
  std::size_t done = past_.empty() ? 0 : poll_past();
  if (owned_.size() > 1 && done == 0) [[unlikely]]
    retire_fabrics();
  if (stopped()) {
    if (past_.empty() && !ranks.empty()) part_from_all();
    return done + fabric_->poll();
  }
  done += poll_view();
  if (done == 0 && fabric_ != &home) done += home.poll();
  return done;
}

std::size_t Group::State::poll_view() {
  if (stage_ == Stage::entered) announce();
  std::size_t done = agreement_->poll();
  if (admission_) done += poll_newcomers();
  if (stopped()) return done + 1;
  if (agreement_->due()) {
    step();
    ++done;
  }
  if (stage_ == Stage::working) return done + poll_participants();
  return stage_ == Stage::wedged ? done : done + 1;
}

/// Those that rest are looked at in turn while others have work to do: so they cost these little.
std::size_t Group::State::poll_participants() {
  const bool in_turn = std::exchange(participants_busy_, false);
  ++polls_of_participants_;
  std::size_t done = 0;
  bool passed_over = false;
  std::size_t place = 0;
  std::exception_ptr thrown;
  each_participant([&](SubgroupParticipant& participant, const auto&) {
    if (in_turn && (++place + polls_of_participants_) % kRestsFor != 0 && participant.rests())
      passed_over = true;
    else
      keep(thrown, [&] { done += participant.poll(); });
  });
  rethrow(thrown);
  participants_busy_ = done > 0;
  if (passed_over && done == 0)
    each_participant(
        [&](SubgroupParticipant& participant, const auto&) { done += participant.poll(); });
  return done;
}

std::size_t Group::State::poll_newcomers() {
  std::size_t done = channel_->poll([this](Rank from, std::span<const std::byte> bytes) {
    if (std::optional<group::ControlMessage> message = group::decode(bytes))
      receive(from, std::move(*message));
  });
  done += admission_->poll(stage_ == Stage::working, agreement_->change().alive());
  if (stage_ == Stage::working && admission_->ready() != group::kNoPlan) agreement_->ask_to_step();
  if (stage_ == Stage::wedged) return done;
  done += transfer_.poll(participants);
  if (!transfer_.lost().empty())
    stop("all who had the state of subgroup '" + transfer_.lost() +
             "' are gone, and this member had not been given it yet; start the group anew",
         true);
  return done;
}

void Group::State::receive(Rank from, group::ControlMessage message) {
  using Kind = group::ControlMessage::Kind;
  if (message.kind == Kind::want || message.kind == Kind::state)
    transfer_.receive(from, std::move(message));
  else
    admission_->receive(from, message);
}

Waits Group::State::waits() const {
  Waits waits;
  if (fabric_ != &home) waits.fabrics.push_back(fabric_);
  for (const Past& past : past_)
    if (past.fabric != &home &&
        std::ranges::find(waits.fabrics, past.fabric) == waits.fabrics.end())
      waits.fabrics.push_back(past.fabric);
  if (admission_) admission_->collect(waits);
  return waits;
}

}  // namespace dunlin
