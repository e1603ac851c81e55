#include "group/joins.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "assert.hpp"
#include "fabric/names.hpp"

namespace dunlin::group {
namespace {

constexpr std::uint64_t kListenPauseNs = 20'000'000;  // if the listener could not be opened
constexpr std::uint64_t kLookNs = 100'000;  // because a look at the listener is a system call
constexpr std::uint64_t kPlanPauseNs = 1'000'000;   // after a plan that failed
constexpr std::uint64_t kFarewellNs = 100'000'000;  // for a joiner to hear why it was refused

/// An id has the view, the leader's index in it, and its attempt: later leaders have higher ids.
constexpr int kViewShift = 32;
constexpr int kLeaderShift = 24;
static_assert(kMaxViewMembers <= 1U << (kViewShift - kLeaderShift));

[[nodiscard]] PlanId plan_id(std::uint64_t view, std::uint32_t leader,
                             std::uint32_t attempt) noexcept {
  return view << kViewShift | std::uint64_t{leader} << kLeaderShift |
         (attempt & ((1U << kLeaderShift) - 1));
}
[[nodiscard]] std::uint32_t planner(PlanId id) noexcept {
  return static_cast<std::uint32_t>(id >> kLeaderShift) % (1U << (kViewShift - kLeaderShift));
}
[[nodiscard]] std::uint32_t view_of(PlanId id) noexcept {
  return static_cast<std::uint32_t>(id >> kViewShift);
}

}  // namespace

void Joins::enter(const View& view, const std::vector<Rank>& ranks, ControlChannel& channel) {
  view_ = view;
  ranks_ = ranks;
  channel_ = &channel;
  alive_ = MemberSet::first(static_cast<std::uint32_t>(ranks.size()));
  attempts_ = 0;
  plan_ = {};
  latest_ = kNoPlan;
  admitted_ = linked_ = false;
  endpoints_.assign(ranks.size(), {});
  next_rank_ = channel.fabric().size();
  // Joiners of the last plan are in by now, or connect again.
  for (const auto& joiner : joiners_)
    if (joiner->planned || !leads()) joiner->gone = true;
  for (const auto& [from, message] : std::exchange(early_, {})) receive(from, message);
}

std::size_t Joins::poll(bool working, const MemberSet& alive) {
  alive_ = alive;
  working_ = working;
  std::size_t done = look_at_links();
  if (!working) return done;
  if (!leads()) {
    listener_.reset();
    trouble_.clear();
    return done;
  }
  done += serve_joiners();
  if (plan_.id != kNoPlan) return done;
  done += accept_joiners();
  make_plan();
  return done + (plan_.id != kNoPlan ? 1 : 0);  // the plan's messages leave with the next poll
}

void Joins::close() {
  listener_.reset();
  trouble_.clear();
  joiners_.clear();
  plan_ = {};
}

void Joins::collect(Waits& waits) const {
  if (listener_) waits.pending_joins.push_back(listener_.get());
  for (const auto& joiner : joiners_) waits.fabrics.push_back(joiner->fabric.get());
}

// --- the listener --------------------------------------------------------------------------------

std::size_t Joins::accept_joiners() {
  try {
    if (!listener_ && fabric().now_ns() < next_listen_ns_) {
      fabric().wake_at(next_listen_ns_);
      return 0;
    }
    const Fabric& inside = fabric();
    if (listener_ && inside.cpu_costs() == nullptr && inside.recent_ns() < next_look_ns_) return 0;
    next_look_ns_ = inside.recent_ns() + kLookNs;
    if (!listener_) listener_ = place_->accept();
    std::unique_ptr<Fabric> fabric = listener_->poll();
    trouble_.clear();
    if (!fabric) return 0;
    auto joiner = std::make_unique<PendingJoiner>();
    joiner->fabric = std::move(fabric);
    joiner->channel = std::make_unique<ControlChannel>(
        *joiner->fabric, ControlChannel::Options{.most_bytes = kMaxJoinerBytes});
    joiners_.push_back(std::move(joiner));
  } catch (const Error& e) {  // another process may have the address, say
    trouble_ = e.what();
    next_listen_ns_ = fabric().now_ns() + kListenPauseNs;
  }
  listener_.reset();
  return 1;
}

std::size_t Joins::serve_joiners() {
  std::size_t done = 0;
  for (const auto& joiner : joiners_) {
    if (joiner->gone) continue;
    done += joiner->fabric->poll();
    done += joiner->channel->poll([&](Rank, std::vector<std::byte> bytes) {
      if (const std::optional<ControlMessage> message = decode(std::move(bytes)))
        on_joiner_message(*joiner, *message);
    });
    const bool over = joiner->until_ns != UINT64_MAX && fabric().now_ns() >= joiner->until_ns;
    if (!over && !joiner->fabric->failed(1)) {
      if (joiner->until_ns != UINT64_MAX) fabric().wake_at(joiner->until_ns);
      continue;
    }
    joiner->gone = true;
    ++done;
    if (joiner->planned && plan_.id != kNoPlan) drop_plan("'" + joiner->name + "' went away");
  }
  std::erase_if(joiners_, [](const auto& joiner) { return joiner->gone; });
  return done;
}

void Joins::on_joiner_message(PendingJoiner& joiner, const ControlMessage& message) {
  switch (message.kind) {
    case ControlMessage::Kind::hello:
      try {
        check_member_name(message.name);
      } catch (const Error& e) {
        return refuse(joiner, e.what());
      }
      if (message.text != declaration_)
        return refuse(joiner,
                      "it declares other subgroups than the group's members: all must "
                      "declare the same, in the same order, and use the same release of Dunlin");
      joiner.name = message.name;
      joiner.endpoint = message.bytes;
      return;
    case ControlMessage::Kind::formed:
      if (message.id == plan_.id) joiner.formed = true;
      return;
    case ControlMessage::Kind::failed:
      if (message.id == plan_.id) drop_plan("'" + joiner.name + "': " + message.text);
      return;
    default:
      return;
  }
}

void Joins::refuse(PendingJoiner& joiner, const std::string& why) {
  joiner.channel->send(1, encode({.kind = ControlMessage::Kind::refused, .text = why}));
  joiner.name.clear();
  joiner.until_ns = fabric().now_ns() + kFarewellNs;
}

void Joins::send_news(PendingJoiner& joiner, const std::string& news) {
  if (joiner.news == news) return;
  joiner.news = news;
  joiner.channel->send(1, encode({.kind = ControlMessage::Kind::news, .text = news}));
}

// --- the plan ------------------------------------------------------------------------------------

bool Joins::fits(PendingJoiner& joiner) {
  if (joiner.name.empty()) return false;
  const bool taken = std::ranges::find(view_.members, joiner.name) != view_.members.end();
  if (taken)
    send_news(joiner, "view " + std::to_string(view_.number) + " has a member '" + joiner.name +
                          "': it must leave or be found dead first, or take another name");
  return !taken;
}

/// Makes the leader's plan, with all joiners at the listener that can be members.
void Joins::make_plan() {
  DUNLIN_ASSERT_ALWAYS(leads() && working_ && plan_.id == kNoPlan,
                       "GRP-N2: the leader makes a plan while its view works, and has none");
  const bool all_alive = alive_ == MemberSet::first(static_cast<std::uint32_t>(ranks_.size()));
  if (joiners_.empty() || !all_alive) return;
  if (fabric().now_ns() < next_plan_ns_) return fabric().wake_at(next_plan_ns_);
  std::set<std::string> names;
  for (const auto& joiner : joiners_) {
    const bool room = view_.members.size() + names.size() < kMaxViewMembers;
    joiner->planned = room && names.size() < kMaxJoinersAtOnce && fits(*joiner) &&
                      names.insert(joiner->name).second;
    joiner->formed = false;
    if (!room)
      send_news(*joiner, "the view has as many members as it can (" +
                             std::to_string(kMaxViewMembers) + ", kMaxViewMembers)");
  }
  if (names.empty()) return;
  Plan plan{.id = plan_id(view_.number, view_.me, ++attempts_),
            .admission = {.first = std::max(next_rank_, fabric().size())}};
  for (const auto& joiner : joiners_)
    if (joiner->planned) plan.admission.newcomers.push_back({joiner->name, joiner->endpoint});
  if (plan.admission.first + names.size() > kMaxRanks) return tell_no_rank_is_left();
  listener_.reset();  // until the planned joiners are in, later ones wait
  plan.admission.key = place_->new_key();
  have_admitted_ = have_formed_ = {};
  entering_ = false;
  send_to_members(encode({.kind = ControlMessage::Kind::plan, .plan = plan}));
  begin(plan);
}

void Joins::tell_no_rank_is_left() {
  for (const auto& joiner : joiners_)
    if (joiner->planned)
      send_news(*joiner, "the group's fabric has given all of its " + std::to_string(kMaxRanks) +
                             " ranks (kMaxRanks) in its life: start the group anew");
}

void Joins::send_to_members(const std::vector<std::byte>& message) {
  for (std::uint32_t i = 0; i < ranks_.size(); ++i)
    if (i != view_.me) channel_->send(ranks_[i], message);
}

/// After a while the leader makes another plan, with the joiners that are there then.
void Joins::drop_plan(const std::string& why) {
  const std::vector<std::byte> message =
      encode({.kind = ControlMessage::Kind::void_plan, .text = why, .id = plan_.id});
  send_to_members(message);
  for (const auto& joiner : joiners_) {
    if (!joiner->planned) continue;
    joiner->channel->send(1, message);
    joiner->planned = false;
    joiner->name.clear();  // the joiner says hello again, with another endpoint
  }
  void_plan(why);
  next_plan_ns_ = fabric().now_ns() + kPlanPauseNs;
  fabric().wake_at(next_plan_ns_);
}

/// The plan's ranks are never given again.
void Joins::void_plan(const std::string& why) {
  const Admission admission = std::exchange(plan_, {}).admission;
  if (!std::exchange(admitted_, false)) return;
  for (std::size_t i = 0; i < admission.newcomers.size(); ++i)
    fabric().expel(static_cast<Rank>(admission.first + i),
                   "it was not taken into the group: " + why);
}

// --- letting its joiners in ----------------------------------------------------------------------

void Joins::begin(const Plan& plan) {
  if (plan_.id != kNoPlan) void_plan("another leader has a plan of its own");
  plan_ = plan;
  latest_ = plan.id;
  linked_ = told_failure_ = false;
  try {
    fabric().admit(plan.admission);
    admitted_ = true;
    report({.kind = ControlMessage::Kind::admitted, .id = plan.id, .bytes = fabric().endpoint()});
  } catch (const Error& error) {
    report({.kind = ControlMessage::Kind::failed,
            .text = error.what(),
            .id = plan.id,
            .count = fabric().size()});
  }
}

std::size_t Joins::look_at_links() {
  if (plan_.id == kNoPlan || told_failure_) return 0;
  bool all = true;
  for (std::size_t i = 0; i < plan_.admission.newcomers.size(); ++i) {
    const auto rank = static_cast<Rank>(plan_.admission.first + i);
    if (fabric().failed(rank)) return tell_failure(rank);
    all = all && fabric().linked(rank);
  }
  if (linked_ || !all) return 0;
  linked_ = true;
  report({.kind = ControlMessage::Kind::formed, .id = plan_.id});
  return 1;
}

/// The plan stays: if this member was linked before, the view may have ended with the plan.
std::size_t Joins::tell_failure(Rank joiner) {
  told_failure_ = true;
  report({.kind = ControlMessage::Kind::failed,
          .text = fabric().failure_text(joiner),
          .id = plan_.id,
          .count = fabric().size()});
  return 1;
}

void Joins::report(ControlMessage message) {
  const std::uint32_t leader = planner(plan_.id);
  if (leader == view_.me) return on_report(view_.me, message);
  channel_->send(ranks_[leader], encode(message));
}

void Joins::on_report(std::uint32_t member, const ControlMessage& message) {
  if (message.id != plan_.id || planner(plan_.id) != view_.me) return;
  switch (message.kind) {
    case ControlMessage::Kind::admitted:
      endpoints_[member] = message.bytes;
      have_admitted_.add(member);
      return let_joiners_enter();
    case ControlMessage::Kind::formed:
      return have_formed_.add(member);
    default:
      next_rank_ = std::max<Rank>(next_rank_, std::min<Rank>(message.count, kMaxRanks));
      if (working_) drop_plan("'" + view_.members[member] + "': " + message.text);
  }
}

/// The joiners enter once all members have admitted them.
void Joins::let_joiners_enter() {
  const auto all = MemberSet::first(static_cast<std::uint32_t>(ranks_.size()));
  if (entering_ || have_admitted_ != all) return;
  entering_ = true;
  ControlMessage message{
      .kind = ControlMessage::Kind::enter, .name = fabric().group(), .plan = plan_};
  for (std::uint32_t i = 0; i < ranks_.size(); ++i)
    message.members.push_back({ranks_[i], fabric().member_name(ranks_[i]), endpoints_[i]});
  for (const auto& joiner : joiners_) {
    if (!joiner->planned) continue;
    joiner->channel->send(1, encode(message));
    ++message.count;
  }
}

void Joins::receive(Rank from, const ControlMessage& message) {
  const auto place = std::ranges::find(ranks_, from);
  if (place == ranks_.end()) return;
  const auto member = static_cast<std::uint32_t>(place - ranks_.begin());
  const PlanId id = message.kind == ControlMessage::Kind::plan ? message.plan.id : message.id;
  const std::uint32_t ahead = view_of(id) - static_cast<std::uint32_t>(view_.number);
  if (ahead == 1) early_.emplace_back(from, message);  // from the next view, which we shall enter
  if (ahead != 0) return;
  switch (message.kind) {
    case ControlMessage::Kind::plan:
      // Leaders follow each other in the order of the view; all earlier leaders are dead, or
      // suspected.
      if (message.plan.id <= latest_ || planner(message.plan.id) != member) return;
      return begin(message.plan);
    case ControlMessage::Kind::void_plan:
      if (message.id == plan_.id && planner(message.id) == member) void_plan(message.text);
      return;
    case ControlMessage::Kind::admitted:
    case ControlMessage::Kind::formed:
    case ControlMessage::Kind::failed:
      return on_report(member, message);
    default:
      return;
  }
}

PlanId Joins::ready() const noexcept {
  if (plan_.id == kNoPlan || !linked_ || planner(plan_.id) != view_.me) return kNoPlan;
  if (!(alive_ - have_formed_).empty()) return kNoPlan;
  std::uint32_t formed = 0;
  for (const auto& joiner : joiners_)
    if (joiner->planned && joiner->formed && !joiner->fabric->failed(1)) ++formed;
  return formed == plan_.admission.newcomers.size() ? plan_.id : kNoPlan;
}

std::optional<Admission> Joins::take(PlanId id) {
  if (plan_.id != id || !linked_) return std::nullopt;
  return std::exchange(plan_, {}).admission;
}

}  // namespace dunlin::group
