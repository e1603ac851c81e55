#include "group/joining.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::group {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kPauseNs = 500'000;  // between two knocks

}  // namespace

Joining::Joining(std::shared_ptr<MeetingPlace> place, std::string name, std::string declaration,
                 std::uint32_t timeout_ms)
    : place_(std::move(place)),
      name_(std::move(name)),
      declaration_(std::move(declaration)),
      timeout_ms_(timeout_ms),
      deadline_ns_(place_->now_ns() + timeout_ms * kNsPerMs) {}

std::optional<Joining::Arrival> Joining::poll() {
  if (place_->now_ns() >= deadline_ns_)
    throw Error("group '" + place_->group() + "', member '" + name_ +
                "': could not come in within " + std::to_string(timeout_ms_) + " ms: " + news_);
  place_->wake_at(deadline_ns_);
  if (door_) at_the_door();
  if (forming_) go_on_forming();
  if (formed_) return wait_for_welcome();
  if (!door_) knock();
  return std::nullopt;
}

void Joining::collect(Waits& waits) const {
  if (knocking_) waits.formations.push_back(knocking_.get());
  if (forming_) waits.formations.push_back(forming_.get());
  if (door_) waits.fabrics.push_back(door_.get());
  if (formed_) waits.fabrics.push_back(formed_.get());
}

void Joining::start_anew(const std::string& why) {
  news_ = why;
  knocking_.reset();
  forming_.reset();
  mail_.reset();
  formed_.reset();
  door_mail_.reset();
  door_.reset();
  plan_ = {};
  welcome_.reset();
  letters_.clear();
  resume_ns_ = place_->now_ns() + kPauseNs;
  place_->wake_at(resume_ns_);
}

void Joining::knock() {
  if (place_->now_ns() < resume_ns_) return place_->wake_at(resume_ns_);
  try {
    if (!knocking_) knocking_ = place_->knock();
    door_ = knocking_->poll();
  } catch (const Error& error) {
    return start_anew(error.what());
  }
  if (!door_) return;
  knocking_.reset();
  news_ = "its leader has not answered";
  door_mail_ = std::make_unique<Mail>(*door_);
  say({.kind = Letter::Kind::hello, .name = name_, .text = declaration_});
}

void Joining::say(Letter letter) {
  if (door_mail_) door_mail_->send(0, encode(letter));
}

void Joining::at_the_door() {
  door_->poll();
  std::vector<Letter> heard;
  door_mail_->poll([&](Rank, std::span<const std::byte> bytes) {
    if (std::optional<Letter> letter = decode(bytes)) heard.push_back(std::move(*letter));
  });
  for (const Letter& letter : heard) hear_door(letter);
  if (!door_->failed(0)) return;
  if (!formed_) return start_anew("its leader was lost: " + door_->failure_text(0));
  door_mail_.reset();  // the next view has begun, perhaps with us
  door_.reset();
}

void Joining::hear_door(const Letter& letter) {
  switch (letter.kind) {
    case Letter::Kind::refused:
      throw Error("group '" + place_->group() + "' refuses the member '" + name_ +
                  "': " + letter.text);
    case Letter::Kind::news:
      news_ = letter.text;
      return;
    case Letter::Kind::plan:
      return begin(letter.plan);
    case Letter::Kind::void_plan:
      if (letter.id != plan_.id) return;
      news_ = letter.text;
      forming_.reset();
      mail_.reset();
      formed_.reset();
      plan_ = {};
      return;
    default:
      return;
  }
}

void Joining::begin(const Plan& plan) {
  mail_.reset();
  formed_.reset();
  forming_.reset();
  plan_ = plan;
  try {
    forming_ = place_->form(plan.fabric, plan.members, name_, plan.address);
  } catch (const Error& error) {
    news_ = error.what();
    say({.kind = Letter::Kind::failed, .text = error.what(), .id = plan.id});
  }
}

void Joining::go_on_forming() {
  try {
    formed_ = forming_->poll();
    if (!formed_) return;
    mail_ = std::make_unique<Mail>(*formed_);
    news_ = "its members have not agreed on a view with this one";
    say({.kind = Letter::Kind::formed, .id = plan_.id});
  } catch (const Error& error) {
    news_ = error.what();
    say({.kind = Letter::Kind::failed, .text = error.what(), .id = plan_.id});
  }
  forming_.reset();
  if (!formed_ && !door_) start_anew(news_);
}

/// Each member of the next view says the same.
std::optional<Joining::Arrival> Joining::wait_for_welcome() {
  formed_->poll();
  mail_->poll([&](Rank from, std::span<const std::byte> bytes) {
    std::optional<Letter> letter = decode(bytes);
    if (!letter) return;
    if (letter->kind != Letter::Kind::welcome)
      letters_.emplace_back(from, std::move(*letter));
    else if (!welcome_ && is_welcome(*letter))
      welcome_ = std::move(letter);
  });
  if (welcome_) return arrive();
  const auto old = static_cast<Rank>(plan_.members.size() - plan_.joiners);
  bool any = false;
  for (Rank rank = 0; rank < old; ++rank) any = any || !formed_->failed(rank);
  if (!any) start_anew("the members who had planned a view with it are gone");
  return std::nullopt;
}

bool Joining::is_welcome(const Letter& letter) const {
  const auto fits = [&](Rank rank) { return rank < plan_.members.size(); };
  return letter.count <= letter.ranks.size() && std::ranges::all_of(letter.ranks, fits) &&
         std::ranges::find(letter.ranks, formed_->rank()) != letter.ranks.end();
}

Joining::Arrival Joining::arrive() {
  Arrival arrival{.view = {.number = welcome_->view},
                  .ranks = welcome_->ranks,
                  .fabric = std::move(formed_),
                  .had_members = welcome_->bytes,
                  .mail = std::move(mail_),
                  .letters = std::move(letters_)};
  View& view = arrival.view;
  for (const Rank rank : arrival.ranks) {
    if (rank == arrival.fabric->rank()) view.me = static_cast<std::uint32_t>(view.members.size());
    view.members.push_back(plan_.members[rank]);
  }
  view.joined.assign(view.members.end() - welcome_->count, view.members.end());
  return arrival;
}

}  // namespace dunlin::group
