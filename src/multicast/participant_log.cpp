// What a durable subgroup's participant does with its log.

#include <utility>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "multicast/participant.hpp"
#include "multicast/subgroup_view.hpp"

namespace dunlin {

using multicast::OpenView;

void Multicast::Participant::on_replay(multicast::ReplayUpcall upcall, Load load_logged) {
  check_not_begun("on_replay");
  if (log_) log_->on_replay(std::move(upcall), std::move(load_logged));
}

multicast::LogPosition Multicast::Participant::log_start() const {
  DUNLIN_ASSERT_ALWAYS(log_ != nullptr, "only a durable subgroup has a log");
  return log_->journal().start();
}

std::uint64_t Multicast::Participant::first_record_of_oldest() const noexcept {
  return views_.size() == 1 ? log_->first_message() : views_.oldest().first_record;
}

std::uint64_t Multicast::Participant::log_record() const {
  DUNLIN_ASSERT_ALWAYS(log_ != nullptr, "only a durable subgroup has a log");
  const std::uint64_t behind =
      log_->replaying()
          ? log_->replay_position().number
          : first_record_of_oldest() + views_.oldest().view->delivered_records().records;
  return behind - 1;
}

multicast::LogPosition Multicast::Participant::log_end() const {
  DUNLIN_ASSERT_ALWAYS(log_ != nullptr, "only a durable subgroup has a log");
  if (log_->replaying()) return log_->replay_position();
  const OpenView& view = views_.oldest();
  const std::uint64_t first = first_record_of_oldest();
  const auto delivered = view.view->delivered_records();
  return {.number = first + delivered.records,
          .from = first + delivered.complete,
          .members = view.names};
}

std::shared_ptr<multicast::LogCursor> Multicast::Participant::read_log(
    multicast::LogPosition at) const {
  DUNLIN_ASSERT_ALWAYS(log_ != nullptr, "only a durable subgroup has a log");
  return log_->journal().follow_from(std::move(at));
}

void Multicast::Participant::keep_log_from(std::function<std::uint64_t()> first_record) {
  check_not_begun("keep_log_from");
  if (log_) log_->keep_from(std::move(first_record));
}

const std::string& Multicast::Participant::why_waiting() const noexcept {
  static const std::string no_reason;
  return log_ && !has_left_ ? log_->why_waiting() : no_reason;
}

std::vector<std::string> Multicast::Participant::log_notices() const {
  return log_ ? log_->journal().notices() : std::vector<std::string>();
}

/// Waits while next() has yet to return messages, or messages have yet to come that are in the
/// state that this member was given.
void Multicast::Participant::trim_log() {
  if (views_.size() != 1 || state_.awaited() || !present().handed_up()) return;
  const OpenView& view = views_.present();
  for (std::size_t rank = 0; rank < view.subgroup.senders.size() && !view.had.empty(); ++rank)
    if (present().passed(rank).slots < view.had[view.subgroup.senders[rank]].slots) return;
  const std::uint64_t now_ns = present().fabric().now_ns();
  if (!log_->trims_by_state()) return log_->trim(present().delivered_records(), {}, now_ns);
  if (!state_.saves())
    throw Error(who_ +
                "log_trim needs on_state with `save`: it makes the snapshot of the state "
                "that stands for the messages that go; or set keeps_state to false");
  const std::vector<std::byte> state = state_.save();
  log_->trim(present().delivered_records(), state, now_ns);
}

}  // namespace dunlin
