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

constexpr std::uint64_t kDoorPauseNs = 20'000'000;  // if it could not be opened
constexpr std::uint64_t kLookNs = 100'000;          // a look at the door is a system call
constexpr std::uint64_t kPlanPauseNs = 1'000'000;   // after a plan that came to nothing
constexpr std::uint64_t kFarewellNs = 100'000'000;  // to hear why it was refused

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

void Admission::enter(const View& view, const std::vector<Rank>& ranks, Mail& mail) {
  view_ = view;
  ranks_ = ranks;
  mail_ = &mail;
  alive_ = MemberSet::first(static_cast<std::uint32_t>(ranks.size()));
  attempts_ = 0;
  plan_ = {};
  forming_.reset();
  formed_.reset();
  // Those of the last plan are in by now, or knock again.
  for (const auto& guest : guests_)
    if (guest->planned || !leads()) guest->gone = true;
  for (const auto& [from, letter] : std::exchange(early_, {})) hear(from, letter);
}

std::size_t Admission::poll(bool working, MemberSet alive) {
  alive_ = alive;
  working_ = working;
  std::size_t done = go_on_forming();
  if (!working) return done;
  if (!leads()) {
    door_.reset();
    trouble_.clear();
    return done;
  }
  done += serve_guests();
  if (plan_.id != kNoPlan) return done;
  done += open_door();
  make_plan();
  return done;
}

void Admission::close() {
  door_.reset();
  trouble_.clear();
  guests_.clear();
  forming_.reset();
  formed_.reset();
  plan_ = {};
}

void Admission::collect(Waits& waits) const {
  if (door_) waits.formations.push_back(door_.get());
  if (forming_) waits.formations.push_back(forming_.get());
  if (formed_) waits.fabrics.push_back(formed_.get());
  for (const auto& guest : guests_) waits.fabrics.push_back(guest->fabric.get());
}

// --- the door ------------------------------------------------------------------------------------

std::size_t Admission::open_door() {
  try {
    if (!door_ && mail_->fabric().now_ns() < next_door_ns_) {
      mail_->fabric().wake_at(next_door_ns_);
      return 0;
    }
    const Fabric& inside = mail_->fabric();
    if (door_ && inside.cpu_costs() == nullptr && inside.recent_ns() < next_look_ns_) return 0;
    next_look_ns_ = inside.recent_ns() + kLookNs;
    if (!door_) door_ = place_->open();
    std::unique_ptr<Fabric> fabric = door_->poll();
    trouble_.clear();
    if (!fabric) return 0;
    auto guest = std::make_unique<Guest>();
    guest->fabric = std::move(fabric);
    guest->mail = std::make_unique<Mail>(*guest->fabric);
    guests_.push_back(std::move(guest));
  } catch (const Error& e) {  // at an address that another process has, say
    trouble_ = e.what();
    next_door_ns_ = mail_->fabric().now_ns() + kDoorPauseNs;
  }
  door_.reset();
  return 1;
}

std::size_t Admission::serve_guests() {
  std::size_t done = 0;
  for (const auto& guest : guests_) {
    if (guest->gone) continue;
    done += guest->fabric->poll();
    done += guest->mail->poll([&](Rank, std::span<const std::byte> bytes) {
      if (const std::optional<Letter> letter = decode(bytes)) hear_guest(*guest, *letter);
    });
    const bool over = guest->until_ns != UINT64_MAX && mail_->fabric().now_ns() >= guest->until_ns;
    if (!over && !guest->fabric->failed(1)) continue;
    guest->gone = true;
    ++done;
    if (guest->planned && plan_.id != kNoPlan) drop_plan("'" + guest->name + "' went away");
  }
  std::erase_if(guests_, [](const auto& guest) { return guest->gone; });
  return done;
}

void Admission::hear_guest(Guest& guest, const Letter& letter) {
  switch (letter.kind) {
    case Letter::Kind::hello:
      try {
        check_member_name(letter.name);
      } catch (const Error& e) {
        return refuse(guest, e.what());
      }
      if (letter.text != declaration_)
        return refuse(guest,
                      "it declares other subgroups than the group's members: all must "
                      "declare the same, in the same order");
      guest.name = letter.name;
      return;
    case Letter::Kind::formed:
      if (letter.id == plan_.id) guest.formed = true;
      return;
    case Letter::Kind::failed:
      if (letter.id == plan_.id) drop_plan("'" + guest.name + "': " + letter.text);
      return;
    default:
      return;
  }
}

void Admission::refuse(Guest& guest, const std::string& why) {
  guest.mail->send(1, encode({.kind = Letter::Kind::refused, .text = why}));
  guest.name.clear();
  guest.until_ns = mail_->fabric().now_ns() + kFarewellNs;
  mail_->fabric().wake_at(guest.until_ns);
}

void Admission::tell(Guest& guest, const std::string& news) {
  if (guest.news == news) return;
  guest.news = news;
  guest.mail->send(1, encode({.kind = Letter::Kind::news, .text = news}));
}

// --- the plan ------------------------------------------------------------------------------------

bool Admission::fits(Guest& guest) {
  if (guest.name.empty()) return false;
  const bool taken = std::ranges::find(view_.members, guest.name) != view_.members.end();
  if (taken)
    tell(guest, "view " + std::to_string(view_.number) + " has a member '" + guest.name +
                    "': it must leave or be found dead first, or take another name");
  return !taken;
}

/// The leader's: with all who are at the door and can be members.
void Admission::make_plan() {
  const bool all_alive = alive_ == MemberSet::first(static_cast<std::uint32_t>(ranks_.size()));
  if (guests_.empty() || !all_alive) return;
  if (mail_->fabric().now_ns() < next_plan_ns_) return mail_->fabric().wake_at(next_plan_ns_);
  std::set<std::string> names;
  for (const auto& guest : guests_) {
    const bool room = view_.members.size() + names.size() < kMaxViewMembers;
    guest->planned = room && names.size() < kMaxJoinersAtOnce && fits(*guest) &&
                     names.insert(guest->name).second;
    guest->formed = false;
    if (!room)
      tell(*guest, "the view has as many members as it can (" + std::to_string(kMaxViewMembers) +
                       ", kMaxViewMembers)");
  }
  if (names.empty()) return;
  door_.reset();  // where we meet, nobody knocks (MeetingPlace)
  Plan plan{.id = plan_id(view_.number, view_.me, ++attempts_),
            .fabric = {},
            .address = place_->address(),
            .members = view_.members,
            .joiners = static_cast<std::uint32_t>(names.size())};
  for (const auto& guest : guests_)
    if (guest->planned) plan.members.push_back(guest->name);
  const std::uint64_t unique =
      fnv1a(place_->group() + "/" + view_.members[view_.me] + "/" + std::to_string(view_.number) +
            "/" + std::to_string(attempts_) + "/" + std::to_string(mail_->fabric().now_ns()));
  plan.fabric = place_->group() + "." + hex(unique);
  const std::vector<std::byte> letter = encode({.kind = Letter::Kind::plan, .plan = plan});
  for (std::uint32_t i = 0; i < ranks_.size(); ++i)
    if (i != view_.me) mail_->send(ranks_[i], letter);
  for (const auto& guest : guests_)
    if (guest->planned) guest->mail->send(1, letter);
  have_formed_ = {};
  begin(plan);
}

/// The leader's plan comes to nothing: the next one is made after a while, with who is there then.
void Admission::drop_plan(const std::string& why) {
  const std::vector<std::byte> letter =
      encode({.kind = Letter::Kind::void_plan, .text = why, .id = plan_.id});
  for (std::uint32_t i = 0; i < ranks_.size(); ++i)
    if (i != view_.me) mail_->send(ranks_[i], letter);
  for (const auto& guest : guests_) {
    if (guest->planned) guest->mail->send(1, letter);
    guest->planned = false;
  }
  plan_ = {};
  forming_.reset();
  formed_.reset();
  next_plan_ns_ = mail_->fabric().now_ns() + kPlanPauseNs;
  mail_->fabric().wake_at(next_plan_ns_);
}

// --- forming its fabric --------------------------------------------------------------------------

void Admission::begin(const Plan& plan) {
  plan_ = plan;
  formed_.reset();
  forming_.reset();
  try {
    forming_ = place_->form(plan.fabric, plan.members, view_.members[view_.me], plan.address);
  } catch (const Error& error) {
    heard_failure(error.what());
  }
}

std::size_t Admission::go_on_forming() {
  if (formed_) return formed_->poll();
  if (!forming_) return 0;
  try {
    formed_ = forming_->poll();
    if (!formed_) return 0;
  } catch (const Error& error) {
    heard_failure(error.what());
    return 1;
  }
  forming_.reset();
  report({.kind = Letter::Kind::formed, .id = plan_.id});
  return 1;
}

/// Of the forming.
void Admission::heard_failure(const std::string& text) {
  forming_.reset();
  if (planner(plan_.id) == view_.me) return drop_plan(text);
  report({.kind = Letter::Kind::failed, .text = text, .id = plan_.id});
}

void Admission::report(Letter letter) {
  const std::uint32_t leader = planner(plan_.id);
  if (leader == view_.me) return hear(ranks_[view_.me], letter);
  mail_->send(ranks_[leader], encode(letter));
}

void Admission::hear(Rank from, const Letter& letter) {
  const auto place = std::ranges::find(ranks_, from);
  if (place == ranks_.end()) return;
  const auto member = static_cast<std::uint32_t>(place - ranks_.begin());
  const PlanId id = letter.kind == Letter::Kind::plan ? letter.plan.id : letter.id;
  const std::uint32_t ahead = view_of(id) - static_cast<std::uint32_t>(view_.number);
  if (ahead == 1) early_.emplace_back(from, letter);  // it is in the next view, and we shall be
  if (ahead != 0) return;
  switch (letter.kind) {
    case Letter::Kind::plan:
      // Leaders come in the order of the view; whoever was before is dead, or taken for it.
      if (letter.plan.id <= plan_.id || planner(letter.plan.id) != member) return;
      return begin(letter.plan);
    case Letter::Kind::void_plan:
      if (letter.id != plan_.id || planner(letter.id) != member) return;
      forming_.reset();
      formed_.reset();
      return;
    case Letter::Kind::formed:
      if (letter.id == plan_.id) have_formed_.add(member);
      return;
    case Letter::Kind::failed:
      if (letter.id == plan_.id && planner(plan_.id) == view_.me)
        drop_plan("'" + view_.members[member] + "': " + letter.text);
      return;
    default:
      return;
  }
}

PlanId Admission::ready() const noexcept {
  if (plan_.id == kNoPlan || !formed_ || planner(plan_.id) != view_.me) return kNoPlan;
  if (!(alive_ - have_formed_).empty()) return kNoPlan;
  std::uint32_t formed = 0;
  for (const auto& guest : guests_)
    if (guest->planned && guest->formed && !guest->fabric->failed(1)) ++formed;
  return formed == plan_.joiners ? plan_.id : kNoPlan;
}

Admission::Formed Admission::take(PlanId id) {
  if (plan_.id != id || !formed_) return {};
  return {std::exchange(plan_, {}), std::move(formed_)};
}

}  // namespace dunlin::group
