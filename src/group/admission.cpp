#include "group/admission.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "fabric/hash.hpp"
#include "fabric/names.hpp"

namespace dunlin::group {
namespace {

constexpr std::uint64_t kListenPauseNs = 20'000'000;  // if it could not be opened
constexpr std::uint64_t kLookNs = 100'000;            // a look at the listener is a system call
constexpr std::uint64_t kPlanPauseNs = 1'000'000;     // after a plan that came to nothing
constexpr std::uint64_t kFarewellNs = 100'000'000;    // to hear why it was refused

/// The view, the leader's place in it, and which attempt of it: later leaders have higher ones.
constexpr int kViewShift = 32;
constexpr int kLeaderShift = 26;
static_assert(kMaxViewMembers <= 1U << (kViewShift - kLeaderShift));

[[nodiscard]] PlanId plan_id(std::uint64_t view, std::uint32_t leader,
                             std::uint32_t attempt) noexcept {
  return view << kViewShift | std::uint64_t{leader} << kLeaderShift |
         (attempt & ((1U << kLeaderShift) - 1));
}
[[nodiscard]] std::uint32_t planner(PlanId id) noexcept {
  return static_cast<std::uint32_t>(id >> kLeaderShift) % (1U << (kViewShift - kLeaderShift));
}
/// Its lower half.
[[nodiscard]] std::uint32_t view_of(PlanId id) noexcept {
  return static_cast<std::uint32_t>(id >> kViewShift);
}

[[nodiscard]] std::string hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  char* const end = std::to_chars(digits.data(), digits.data() + 16, number, 16).ptr;
  return std::string(digits.data(), end);
}

}  // namespace

void Admission::enter(const View& view, const std::vector<Rank>& ranks, ControlChannel& channel) {
  view_ = view;
  ranks_ = ranks;
  channel_ = &channel;
  alive_ = MemberSet::first(static_cast<std::uint32_t>(ranks.size()));
  attempts_ = 0;
  plan_ = {};
  forming_.reset();
  formed_.reset();
  // Those of the last plan are in by now, or connect again.
  for (const auto& joiner : joiners_)
    if (joiner->planned || !leads()) joiner->gone = true;
  for (const auto& [from, message] : std::exchange(early_, {})) receive(from, message);
}

std::size_t Admission::poll(bool working, MemberSet alive) {
  alive_ = alive;
  working_ = working;
  std::size_t done = go_on_forming();
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
  return done;
}

void Admission::close() {
  listener_.reset();
  trouble_.clear();
  joiners_.clear();
  forming_.reset();
  formed_.reset();
  plan_ = {};
}

void Admission::collect(Waits& waits) const {
  if (listener_) waits.pending_joins.push_back(listener_.get());
  if (forming_) waits.pending_joins.push_back(forming_.get());
  if (formed_) waits.fabrics.push_back(formed_.get());
  for (const auto& joiner : joiners_) waits.fabrics.push_back(joiner->fabric.get());
}

// --- the listener
// ------------------------------------------------------------------------------------

std::size_t Admission::accept_joiners() {
  try {
    if (!listener_ && channel_->fabric().now_ns() < next_listen_ns_) {
      channel_->fabric().wake_at(next_listen_ns_);
      return 0;
    }
    const Fabric& inside = channel_->fabric();
    if (listener_ && inside.cpu_costs() == nullptr && inside.recent_ns() < next_look_ns_) return 0;
    next_look_ns_ = inside.recent_ns() + kLookNs;
    if (!listener_) listener_ = place_->accept();
    std::unique_ptr<Fabric> fabric = listener_->poll();
    trouble_.clear();
    if (!fabric) return 0;
    auto joiner = std::make_unique<PendingJoiner>();
    joiner->fabric = std::move(fabric);
    joiner->channel = std::make_unique<ControlChannel>(*joiner->fabric);
    joiners_.push_back(std::move(joiner));
  } catch (const Error& e) {  // at an address that another process has, say
    trouble_ = e.what();
    next_listen_ns_ = channel_->fabric().now_ns() + kListenPauseNs;
  }
  listener_.reset();
  return 1;
}

std::size_t Admission::serve_joiners() {
  std::size_t done = 0;
  for (const auto& joiner : joiners_) {
    if (joiner->gone) continue;
    done += joiner->fabric->poll();
    done += joiner->channel->poll([&](Rank, std::span<const std::byte> bytes) {
      if (const std::optional<ControlMessage> message = decode(bytes))
        on_joiner_message(*joiner, *message);
    });
    const bool over =
        joiner->until_ns != UINT64_MAX && channel_->fabric().now_ns() >= joiner->until_ns;
    if (!over && !joiner->fabric->failed(1)) continue;
    joiner->gone = true;
    ++done;
    if (joiner->planned && plan_.id != kNoPlan) drop_plan("'" + joiner->name + "' went away");
  }
  std::erase_if(joiners_, [](const auto& joiner) { return joiner->gone; });
  return done;
}

void Admission::on_joiner_message(PendingJoiner& joiner, const ControlMessage& message) {
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
                      "declare the same, in the same order");
      joiner.name = message.name;
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

void Admission::refuse(PendingJoiner& joiner, const std::string& why) {
  joiner.channel->send(1, encode({.kind = ControlMessage::Kind::refused, .text = why}));
  joiner.name.clear();
  joiner.until_ns = channel_->fabric().now_ns() + kFarewellNs;
  channel_->fabric().wake_at(joiner.until_ns);
}

void Admission::send_news(PendingJoiner& joiner, const std::string& news) {
  if (joiner.news == news) return;
  joiner.news = news;
  joiner.channel->send(1, encode({.kind = ControlMessage::Kind::news, .text = news}));
}

// --- the plan ------------------------------------------------------------------------------------

bool Admission::fits(PendingJoiner& joiner) {
  if (joiner.name.empty()) return false;
  const bool taken = std::ranges::find(view_.members, joiner.name) != view_.members.end();
  if (taken)
    send_news(joiner, "view " + std::to_string(view_.number) + " has a member '" + joiner.name +
                          "': it must leave or be found dead first, or take another name");
  return !taken;
}

/// The leader's: with all who are at the listener and can be members.
void Admission::make_plan() {
  const bool all_alive = alive_ == MemberSet::first(static_cast<std::uint32_t>(ranks_.size()));
  if (joiners_.empty() || !all_alive) return;
  if (channel_->fabric().now_ns() < next_plan_ns_) return channel_->fabric().wake_at(next_plan_ns_);
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
  listener_.reset();  // where we meet, nobody connects (Rendezvous)
  Plan plan{.id = plan_id(view_.number, view_.me, ++attempts_),
            .fabric = {},
            .address = place_->address(),
            .members = view_.members,
            .joiners = static_cast<std::uint32_t>(names.size())};
  for (const auto& joiner : joiners_)
    if (joiner->planned) plan.members.push_back(joiner->name);
  const std::uint64_t unique =
      fnv1a(place_->group() + "/" + view_.members[view_.me] + "/" + std::to_string(view_.number) +
            "/" + std::to_string(attempts_) + "/" + std::to_string(channel_->fabric().now_ns()));
  plan.fabric = place_->group() + "." + hex(unique);
  const std::vector<std::byte> message = encode({.kind = ControlMessage::Kind::plan, .plan = plan});
  for (std::uint32_t i = 0; i < ranks_.size(); ++i)
    if (i != view_.me) channel_->send(ranks_[i], message);
  for (const auto& joiner : joiners_)
    if (joiner->planned) joiner->channel->send(1, message);
  have_formed_ = {};
  begin(plan);
}

/// The leader's plan comes to nothing: the next one is made after a while, with who is there then.
void Admission::drop_plan(const std::string& why) {
  const std::vector<std::byte> message =
      encode({.kind = ControlMessage::Kind::void_plan, .text = why, .id = plan_.id});
  for (std::uint32_t i = 0; i < ranks_.size(); ++i)
    if (i != view_.me) channel_->send(ranks_[i], message);
  for (const auto& joiner : joiners_) {
    if (joiner->planned) joiner->channel->send(1, message);
    joiner->planned = false;
  }
  plan_ = {};
  forming_.reset();
  formed_.reset();
  next_plan_ns_ = channel_->fabric().now_ns() + kPlanPauseNs;
  channel_->fabric().wake_at(next_plan_ns_);
}

// --- forming its fabric --------------------------------------------------------------------------

void Admission::begin(const Plan& plan) {
  plan_ = plan;
  formed_.reset();
  forming_.reset();
  try {
    forming_ = place_->form(plan.fabric, plan.members, view_.members[view_.me], plan.address);
  } catch (const Error& error) {
    on_failure(error.what());
  }
}

std::size_t Admission::go_on_forming() {
  if (formed_) return formed_->poll();
  if (!forming_) return 0;
  try {
    formed_ = forming_->poll();
    if (!formed_) return 0;
  } catch (const Error& error) {
    on_failure(error.what());
    return 1;
  }
  forming_.reset();
  report({.kind = ControlMessage::Kind::formed, .id = plan_.id});
  return 1;
}

/// Of the forming.
void Admission::on_failure(const std::string& text) {
  forming_.reset();
  if (planner(plan_.id) == view_.me) return drop_plan(text);
  report({.kind = ControlMessage::Kind::failed, .text = text, .id = plan_.id});
}

void Admission::report(ControlMessage message) {
  const std::uint32_t leader = planner(plan_.id);
  if (leader == view_.me) return receive(ranks_[view_.me], message);
  channel_->send(ranks_[leader], encode(message));
}

void Admission::receive(Rank from, const ControlMessage& message) {
  const auto place = std::ranges::find(ranks_, from);
  if (place == ranks_.end()) return;
  const auto member = static_cast<std::uint32_t>(place - ranks_.begin());
  const PlanId id = message.kind == ControlMessage::Kind::plan ? message.plan.id : message.id;
  const std::uint32_t ahead = view_of(id) - static_cast<std::uint32_t>(view_.number);
  if (ahead == 1) early_.emplace_back(from, message);  // it is in the next view, and we shall be
  if (ahead != 0) return;
  switch (message.kind) {
    case ControlMessage::Kind::plan:
      // Leaders come in the order of the view; whoever was before is dead, or taken for it.
      if (message.plan.id <= plan_.id || planner(message.plan.id) != member) return;
      return begin(message.plan);
    case ControlMessage::Kind::void_plan:
      if (message.id != plan_.id || planner(message.id) != member) return;
      forming_.reset();
      formed_.reset();
      return;
    case ControlMessage::Kind::formed:
      if (message.id == plan_.id) have_formed_.add(member);
      return;
    case ControlMessage::Kind::failed:
      if (message.id == plan_.id && planner(plan_.id) == view_.me)
        drop_plan("'" + view_.members[member] + "': " + message.text);
      return;
    default:
      return;
  }
}

PlanId Admission::ready() const noexcept {
  if (plan_.id == kNoPlan || !formed_ || planner(plan_.id) != view_.me) return kNoPlan;
  if (!(alive_ - have_formed_).empty()) return kNoPlan;
  std::uint32_t formed = 0;
  for (const auto& joiner : joiners_)
    if (joiner->planned && joiner->formed && !joiner->fabric->failed(1)) ++formed;
  return formed == plan_.joiners ? plan_.id : kNoPlan;
}

Admission::Formed Admission::take(PlanId id) {
  if (plan_.id != id || !formed_) return {};
  return {std::exchange(plan_, {}), std::move(formed_)};
}

}  // namespace dunlin::group
