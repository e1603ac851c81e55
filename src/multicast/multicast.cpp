#include <utility>

#include <dunlin/error.hpp>
#include <dunlin/multicast.hpp>

#include "fabric/thread_guard.hpp"
#include "multicast/participant.hpp"
#include "multicast/subgroup_view.hpp"

/// What the user of a Multicast asks for. participant_log.cpp has what concerns its log.
namespace dunlin {

using multicast::Counters;
using multicast::Delivery;
using multicast::OpenView;
using multicast::SendResult;

Multicast::Multicast(Group& group, const std::string& subgroup, MulticastOptions options)
    : participant_(std::make_unique<Participant>(group, subgroup, std::move(options))) {
  group.attach(subgroup, *participant_);
}
Multicast::Multicast(Group& group, const std::string& subgroup)
    : Multicast(group, subgroup, MulticastOptions()) {}
Multicast::Multicast(std::unique_ptr<Participant> participant)
    : participant_(std::move(participant)) {}
std::unique_ptr<Multicast> Multicast::join(Group& group, const std::string& subgroup,
                                           MulticastOptions options, SubgroupJoin join) {
  auto participant = std::make_unique<Participant>(group, subgroup, std::move(options));
  participant->join(std::move(join));
  return std::unique_ptr<Multicast>(new Multicast(std::move(participant)));
}
Multicast::~Multicast() = default;

// --- sending -------------------------------------------------------------------------------------

std::span<std::byte> Multicast::prepare(std::size_t bytes) noexcept {
  Participant& own = *participant_;
  DUNLIN_ONE_THREAD(&own.group_.fabric());
  own.fruitless_polls_ = 0;
  std::span<std::byte> room;
  if (own.may_send()) room = own.present().prepare(bytes);
  if (room.data() == nullptr && bytes <= largest_in_place()) [[unlikely]]
    own.note_refused(bytes);
  return room;
}

void Multicast::commit() noexcept {
  DUNLIN_ONE_THREAD(&participant_->group_.fabric());
  if (!participant_->views_.empty()) participant_->present().commit();
}

SendResult Multicast::send(std::span<const std::byte> message) {
  Participant& own = *participant_;
  DUNLIN_ONE_THREAD(&own.group_.fabric());
  own.fruitless_polls_ = 0;
  const SendResult result = own.may_send() ? own.present().send(message) : SendResult::wedged;
  if (result == SendResult::sent) [[likely]]
    return result;
  own.note_refused(message.size());
  return result == SendResult::wedged ? own.why_not_send() : result;
}

bool Multicast::has_room(std::size_t bytes) const noexcept {
  DUNLIN_ONE_THREAD(&participant_->group_.fabric());
  return participant_->has_room(bytes);
}

void Multicast::on_room(std::function<void()> handler) {
  DUNLIN_ONE_THREAD(&participant_->group_.fabric());
  if (!handler) participant_->refused_bytes_.reset();
  participant_->room_handler_ = std::move(handler);
}

std::size_t Multicast::largest_in_place() const noexcept {
  return multicast::RingShape{
      .memory = nullptr, .bytes = participant_->options_.ring_bytes, .slot_bytes = 0}
      .most_message_bytes();
}

bool Multicast::acknowledged() { return participant_->acknowledged(); }
bool Multicast::hand_over(std::uint32_t timeout_ms) noexcept {
  return participant_->hand_over_at_end(timeout_ms);
}

// --- delivery ------------------------------------------------------------------------------------

void Multicast::on_delivery(multicast::Upcall upcall) {
  Participant& own = *participant_;
  DUNLIN_ONE_THREAD(&own.group_.fabric());
  if (!own.upcall_ || !upcall) own.check_not_begun("on_delivery");
  if (own.upcall_.running())
    throw Error(own.who_ + "on_delivery in the upcall that it would replace");
  own.upcall_.set(std::move(upcall));
}

std::optional<Delivery> Multicast::next() {
  Participant& own = *participant_;
  DUNLIN_ONE_THREAD(&own.group_.fabric());
  if (own.upcall_) [[unlikely]]
    throw Error(own.who_ + "next() cannot be used after on_delivery() was set");
  if (own.state_.awaited()) return std::nullopt;
  while (!own.views_.empty()) {
    OpenView& oldest = own.views_.oldest();
    while (std::optional<Delivery> found = oldest.view->next()) {
      own.fruitless_polls_ = 0;
      own.next_found_ = true;
      if (!oldest.delivered_before(*found)) return found;
    }
    if (own.views_.size() == 1) return std::nullopt;
    own.views_.drop_oldest();
  }
  return std::nullopt;
}

// --- members that come, change and leave ---------------------------------------------------------

void Multicast::on_state(Save save, Load load) {
  participant_->check_not_begun("on_state");
  if (participant_->log_) participant_->log_->on_state(load);
  participant_->state_.on_state(std::move(save), std::move(load));
}

bool Multicast::joined() const noexcept {
  const Participant& own = *participant_;
  return !own.views_.empty() && !own.has_left_ && !own.state_.awaited() &&
         (!own.log_ || own.log_->ever_begun());
}

void Multicast::set_sends(bool sends) {
  participant_->group_.change_subgroup(participant_->name_, sends);
}
void Multicast::leave() { participant_->group_.leave_subgroup(participant_->name_); }
bool Multicast::left() const noexcept { return participant_->has_left_; }
const std::string& Multicast::why_left() const noexcept { return participant_->why_left_; }
void Multicast::on_members(MembersHandler handler) {
  participant_->members_handler_ = std::move(handler);
}

// --- to look at ----------------------------------------------------------------------------------

const Subgroup& Multicast::subgroup() const noexcept { return participant_->views_.subgroup(); }

Counters Multicast::counters() const noexcept {
  Counters all = participant_->views_.counters();
  if (participant_->log_) all.log_commits = participant_->log_->journal().commits();
  participant_->resending_.take_from(all);
  return all;
}

void Multicast::each_table(const std::function<void(const TableCore&)>& look) const {
  participant_->views_.each_table(look);
}

}  // namespace dunlin
