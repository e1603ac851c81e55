// What a durable subgroup's Multicast and its participant have and do with its log.

#include <utility>

#include <dunlin/error.hpp>

#include "assert.hpp"
#include "multicast/participant.hpp"
#include "multicast/subgroup_view.hpp"

namespace dunlin {

using multicast::OpenView;

void Multicast::on_replay(multicast::ReplayUpcall upcall, Load load_logged) {
  participant_->check_not_begun("on_replay");
  if (participant_->log_) participant_->log_->on_replay(std::move(upcall), std::move(load_logged));
}

multicast::LogPosition Multicast::log_start() const {
  return participant_->log().journal().start();
}

multicast::DurableLog& Multicast::Participant::log() const {
  DUNLIN_ASSERT_ALWAYS(log_ != nullptr, "only a durable subgroup has a log");
  return *log_;
}

std::uint64_t Multicast::Participant::first_record_of_oldest() const noexcept {
  return views_.size() == 1 ? log_->first_message() : views_.oldest().first_record;
}

std::uint64_t Multicast::log_record() const {
  const multicast::DurableLog& log = participant_->log();
  const std::uint64_t behind =
      log.replaying() ? log.replay_position().number
                      : participant_->first_record_of_oldest() +
                            participant_->views_.oldest().view->delivered_records().records;
  return behind - 1;
}

multicast::LogPosition Multicast::log_end() const {
  const multicast::DurableLog& log = participant_->log();
  if (log.replaying()) return log.replay_position();
  const OpenView& view = participant_->views_.oldest();
  const std::uint64_t first = participant_->first_record_of_oldest();
  const auto delivered = view.view->delivered_records();
  return {.number = first + delivered.records,
          .from = first + delivered.complete,
          .members = view.names};
}

std::shared_ptr<multicast::LogCursor> Multicast::read_log(multicast::LogPosition at) const {
  return participant_->log().journal().follow_from(std::move(at));
}

void Multicast::keep_log_from(std::function<std::uint64_t()> first_record) {
  participant_->check_not_begun("keep_log_from");
  if (participant_->log_) participant_->log_->keep_from(std::move(first_record));
}

const std::string& Multicast::why_waiting() const noexcept {
  static const std::string no_reason;
  const Participant& own = *participant_;
  return own.log_ && !own.has_left_ ? own.log_->why_waiting() : no_reason;
}

std::vector<std::string> Multicast::log_notices() const {
  const auto& log = participant_->log_;
  return log ? log->journal().notices() : std::vector<std::string>();
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
