#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/group/subgroup_participant.hpp>

#include "group/control_channel.hpp"
#include "group/control_message.hpp"
#include "group/subgroups.hpp"

/// Gets the states of a new member's subgroups: it asks the others in them, one after the other, in
/// every view anew, until it has them. docs/group.md gives the rules GRP-S1 to GRP-S4. One thread
/// at a time.
namespace dunlin::group {

class StateTransfer {
 public:
  using SubgroupsInView = std::vector<Subgroups::InView>;
  using Participants = std::vector<SubgroupParticipant*>;

  /// This member has just come: the participants that need a state lack it.
  void begin(const Participants& participants);
  void enter(const View& view, const SubgroupsInView& in_view, ControlChannel& channel);
  [[nodiscard]] bool lacks(std::size_t subgroup) const noexcept {
    return subgroup < lacking_.size() && lacking_[subgroup];
  }
  void receive(Rank from, ControlMessage message);
  std::size_t poll(const Participants& participants);
  /// The subgroup whose state no member has any more; empty if there is no such subgroup.
  [[nodiscard]] const std::string& lost() const noexcept { return lost_; }

 private:
  struct Question {
    std::vector<Rank> whom;
    std::size_t next = 0;
    bool asked = false;
    bool refused = false;  // the member that was asked has refused
  };
  struct Request {
    Rank from;
    std::uint64_t view;
    std::uint32_t subgroup;
  };

  std::size_t ask();
  std::size_t answer(const Participants& participants);
  void send_state(const Request& request, std::optional<std::vector<std::byte>> state);
  std::size_t take(const Participants& participants);
  [[nodiscard]] bool has_failed(Rank rank) const { return channel_->fabric().failed(rank); }

  std::vector<bool> was_there_;  // by subgroup: a member that may have had it, in an earlier view
  std::vector<bool> lacking_;    // by subgroup
  std::vector<Question> questions_;    // by subgroup, in the view at hand
  std::vector<std::string> names_;     // by subgroup
  std::deque<Request> requests_;       // requests of other members
  std::deque<ControlMessage> states_;  // states that have come for this member
  std::uint64_t view_ = 0;
  ControlChannel* channel_ = nullptr;
  std::string lost_;
};

}  // namespace dunlin::group
