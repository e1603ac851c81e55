#include "group/state_transfer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "assert.hpp"

namespace dunlin::group {

void StateTransfer::begin(const Participants& participants) {
  lacking_.assign(participants.size(), false);
  for (std::size_t i = 0; i < participants.size(); ++i)
    lacking_[i] = participants[i] != nullptr && participants[i]->wants_state();
}

/// Members that joined together with this one are asked last: they may lack the state, too.
void StateTransfer::enter(const View& view, const SubgroupsInView& in_view,
                          ControlChannel& channel) {
  view_ = view.number;
  channel_ = &channel;
  questions_.assign(in_view.size(), {});
  names_.clear();
  lacking_.resize(in_view.size());
  was_there_.resize(in_view.size());
  for (std::size_t i = 0; i < in_view.size(); ++i) {
    const Subgroup& subgroup = in_view[i].subgroup;
    names_.push_back(subgroup.name);
    if (!in_view[i].ours) lacking_[i] = false;
    if (!lacking_[i]) continue;
    std::vector<Rank>& whom = questions_[i].whom;
    whom = subgroup.members;
    std::erase(whom, channel.fabric().rank());
    std::stable_partition(whom.begin(), whom.end(), [&](Rank rank) {
      return std::ranges::find(view.joined, channel.fabric().member_name(rank)) ==
             view.joined.end();
    });
    if (!whom.empty()) {
      was_there_[i] = true;
    } else if (was_there_[i]) {
      lost_ = subgroup.name;
    } else {
      lacking_[i] = false;  // this is the first member
    }
  }
  states_.clear();
}

void StateTransfer::receive(Rank from, ControlMessage message) {
  if (message.kind == ControlMessage::Kind::want)
    requests_.push_back({.from = from, .view = message.view, .subgroup = message.count});
  else if (message.view == view_ && lacks(message.count) && !message.good)
    questions_[message.count].refused = true;
  else if (message.view == view_ && lacks(message.count))
    states_.push_back(std::move(message));
}

std::size_t StateTransfer::poll(const Participants& participants) {
  return take(participants) + ask() + answer(participants);
}

std::size_t StateTransfer::take(const Participants& participants) {
  std::size_t done = 0;
  for (; !states_.empty(); ++done) {
    const ControlMessage message = std::move(states_.front());
    states_.pop_front();
    if (!lacks(message.count)) continue;
    DUNLIN_ASSERT_ALWAYS(participants[message.count] != nullptr,
                         "GRP-S1: only a subgroup in which this member takes part lacks its state");
    lacking_[message.count] = false;
    participants[message.count]->take_state(message.bytes);
  }
  return done;
}

std::size_t StateTransfer::ask() {
  std::size_t done = 0;
  for (std::uint32_t i = 0; i < questions_.size(); ++i) {
    if (!lacking_[i]) [[likely]]
      continue;
    DUNLIN_ASSERT_ALWAYS(channel_ != nullptr, "GRP-S1: enter() comes before poll()");
    Question& question = questions_[i];
    DUNLIN_ASSERT_ALWAYS(question.next < question.whom.size() || !question.asked,
                         "GRP-S3: who is asked is one of those that may have the state");
    if (question.asked && (question.refused || has_failed(question.whom[question.next]))) {
      ++question.next;
      question.asked = question.refused = false;
    }
    if (question.next == question.whom.size()) {
      const bool some_fail =
          std::ranges::any_of(question.whom, [&](Rank rank) { return has_failed(rank); });
      if (!some_fail) lost_ = names_[i];  // otherwise another view comes, in which others are asked
      continue;
    }
    if (question.asked) continue;
    question.asked = true;
    channel_->send(question.whom[question.next],
                   encode({.kind = ControlMessage::Kind::want, .view = view_, .count = i}));
    ++done;
  }
  return done;
}

/// Answers requests of the view at hand; those of a later view wait for it.
std::size_t StateTransfer::answer(const Participants& participants) {
  std::size_t done = 0;
  for (std::size_t left = requests_.size(); left > 0; --left) {
    const Request request = requests_.front();
    requests_.pop_front();
    if (request.view < view_ || request.subgroup >= participants.size()) continue;
    SubgroupParticipant* const participant = participants[request.subgroup];
    const bool has_it = participant != nullptr && !lacks(request.subgroup);
    std::optional<std::vector<std::byte>> state;
    try {
      if (request.view == view_ && has_it) state = participant->give_state();
    } catch (...) {  // the user's exception: the joiner asks the next member
      send_state(request, std::nullopt);
      throw;
    }
    if (request.view > view_ || (has_it && !state)) {
      requests_.push_back(request);
      continue;
    }
    ++done;
    send_state(request, std::move(state));
  }
  return done;
}

/// Without a state, the joiner asks another member.
void StateTransfer::send_state(const Request& request,
                               std::optional<std::vector<std::byte>> state) {
  channel_->send(request.from,
                 encode({.kind = ControlMessage::Kind::state,
                         .view = view_,
                         .count = request.subgroup,
                         .good = state.has_value(),
                         .bytes = state ? std::move(*state) : std::vector<std::byte>()}));
}

}  // namespace dunlin::group
