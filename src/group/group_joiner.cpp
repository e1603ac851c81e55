#include "group/group_joiner.hpp"

#include <algorithm>
#include <utility>

namespace dunlin::group {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kPauseNs = 500'000;  // between two connects

}  // namespace

GroupJoiner::GroupJoiner(std::shared_ptr<Rendezvous> place, std::string name,
                         std::string declaration, std::uint32_t timeout_ms)
    : place_(std::move(place)),
      name_(std::move(name)),
      declaration_(std::move(declaration)),
      timeout_ms_(timeout_ms),
      deadline_ns_(place_->now_ns() + timeout_ms * kNsPerMs) {}

std::optional<GroupJoiner::Arrival> GroupJoiner::poll() {
  if (place_->now_ns() >= deadline_ns_)
    throw Error("group '" + place_->group() + "', member '" + name_ +
                "': could not come in within " + std::to_string(timeout_ms_) + " ms: " + news_);
  place_->wake_at(deadline_ns_);
  if (leader_) poll_leader();
  if (entering_) go_on_entering();
  if (formed_) return wait_for_welcome();
  if (!leader_) connect();
  return std::nullopt;
}

void GroupJoiner::collect(Waits& waits) const {
  if (connecting_) waits.pending_joins.push_back(connecting_.get());
  if (entering_) waits.pending_joins.push_back(entry_.get());
  if (leader_) waits.fabrics.push_back(leader_.get());
  if (formed_) waits.fabrics.push_back(formed_.get());
}

void GroupJoiner::start_anew(const std::string& why) {
  news_ = why;
  connecting_.reset();
  forget_plan();
  leader_channel_.reset();
  leader_.reset();
  welcome_.reset();
  messages_.clear();
  resume_ns_ = place_->now_ns() + kPauseNs;
  place_->wake_at(resume_ns_);
}

void GroupJoiner::forget_plan() {
  channel_.reset();
  formed_.reset();
  entry_.reset();
  entering_ = false;
  plan_ = kNoPlan;
}

void GroupJoiner::connect() {
  if (place_->now_ns() < resume_ns_) return place_->wake_at(resume_ns_);
  try {
    if (!connecting_) connecting_ = place_->connect();
    leader_ = connecting_->poll();
  } catch (const Error& error) {
    return start_anew(error.what());
  }
  if (!leader_) return;
  connecting_.reset();
  news_ = "its leader has not answered";
  leader_channel_ = std::make_unique<ControlChannel>(*leader_);
  say_hello();
}

/// Says hello, anew for each plan: an entry serves once.
void GroupJoiner::say_hello() {
  entry_ = place_->enter();
  send({.kind = ControlMessage::Kind::hello,
        .name = name_,
        .text = declaration_,
        .bytes = entry_->endpoint()});
}

void GroupJoiner::send(ControlMessage message) {
  if (!leader_channel_) return;
  leader_channel_->send(0, encode(message));
  place_->wake_at(place_->now_ns());  // the next poll sends it
}

void GroupJoiner::poll_leader() {
  leader_->poll();
  std::vector<ControlMessage> received;
  leader_channel_->poll([&](Rank, std::vector<std::byte> bytes) {
    if (std::optional<ControlMessage> message = decode(std::move(bytes)))
      received.push_back(std::move(*message));
  });
  for (const ControlMessage& message : received) on_leader_message(message);
  if (!leader_->failed(0)) return;
  if (!formed_) return start_anew("its leader was lost: " + leader_->failure_text(0));
  leader_channel_.reset();  // the next view has begun, perhaps with this member
  leader_.reset();
}

void GroupJoiner::on_leader_message(const ControlMessage& message) {
  switch (message.kind) {
    case ControlMessage::Kind::refused:
      throw Error("group '" + place_->group() + "' refuses the member '" + name_ +
                  "': " + message.text);
    case ControlMessage::Kind::news:
      news_ = message.text;
      return;
    case ControlMessage::Kind::enter:
      return enter(message);
    case ControlMessage::Kind::void_plan:
      news_ = message.text;
      forget_plan();
      return say_hello();
    default:
      return;
  }
}

void GroupJoiner::enter(const ControlMessage& message) {
  if (plan_ != kNoPlan || !entry_) return;
  plan_ = message.plan.id;
  members_.clear();
  for (const Entry::Member& member : message.members) members_.push_back(member.rank);
  try {
    entry_->begin({.group = message.name,
                   .members = message.members,
                   .admission = message.plan.admission,
                   .place = message.count});
    entering_ = true;
  } catch (const Error& error) {
    news_ = error.what();
    send({.kind = ControlMessage::Kind::failed, .text = error.what(), .id = plan_});
  }
}

void GroupJoiner::go_on_entering() {
  try {
    formed_ = entry_->poll();
    if (!formed_) return;
    channel_ = std::make_unique<ControlChannel>(*formed_);
    news_ = "its members have not agreed on a view with this one";
    send({.kind = ControlMessage::Kind::formed, .id = plan_});
  } catch (const Error& error) {
    news_ = error.what();
    send({.kind = ControlMessage::Kind::failed, .text = error.what(), .id = plan_});
  }
  entering_ = false;
  entry_.reset();
  if (!formed_ && !leader_) start_anew(news_);
}

/// Each member of the next view sends the same welcome.
std::optional<GroupJoiner::Arrival> GroupJoiner::wait_for_welcome() {
  formed_->poll();
  channel_->poll([&](Rank from, std::vector<std::byte> bytes) {
    std::optional<ControlMessage> message = decode(std::move(bytes));
    if (!message) return;
    if (message->kind != ControlMessage::Kind::welcome)
      messages_.emplace_back(from, std::move(*message));
    else if (!welcome_ && is_welcome(*message))
      welcome_ = std::move(message);
  });
  if (welcome_) return arrive();
  const auto is_gone = [this](Rank rank) { return formed_->failed(rank); };
  if (std::ranges::all_of(members_, is_gone))
    start_anew("the members who had planned a view with it are gone");
  return std::nullopt;
}

bool GroupJoiner::is_welcome(const ControlMessage& message) const {
  const auto fits = [&](Rank rank) { return rank < formed_->size(); };
  return message.count <= message.ranks.size() && message.founders <= formed_->size() &&
         std::ranges::all_of(message.ranks, fits) &&
         std::ranges::find(message.ranks, formed_->rank()) != message.ranks.end();
}

GroupJoiner::Arrival GroupJoiner::arrive() {
  Arrival arrival{.view = {.number = welcome_->view},
                  .ranks = welcome_->ranks,
                  .founders = welcome_->founders,
                  .fabric = std::move(formed_),
                  .had_members = welcome_->bytes,
                  .channel = std::move(channel_),
                  .messages = std::move(messages_)};
  View& view = arrival.view;
  for (const Rank rank : arrival.ranks) {
    if (rank == arrival.fabric->rank()) view.me = static_cast<std::uint32_t>(view.members.size());
    view.members.push_back(name_on(*arrival.fabric, rank));
  }
  view.joined.assign(view.members.end() - welcome_->count, view.members.end());
  return arrival;
}

}  // namespace dunlin::group
