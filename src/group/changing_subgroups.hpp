#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/group/subgroup_participant.hpp>

#include "group/control_channel.hpp"
#include "group/control_message.hpp"
#include "group/scope.hpp"
#include "group/subgroup_leader.hpp"
#include "group/subgroup_membership.hpp"
#include "group/subgroup_message.hpp"
#include "turns.hpp"

/// A member's side of the subgroups that come and go at run time: it tells the leader what this
/// member has and wants, and does what the leader says. The leader's side is here, too, and decides
/// if this member leads. docs/group.md gives the rules GRP-D1 to GRP-D9. One thread at a time, that
/// of the group.
namespace dunlin::group {

class ChangingSubgroups {
 public:
  /// `declared` says how many subgroups were declared, which take room.
  ChangingSubgroups(ControlChannel& channel, Scope scope, std::size_t declared);

  // --- what the user asks for: Group has the contracts -------------------------------------------
  void join(const std::string& name, SubgroupParticipant& participant, SubgroupJoin join);
  void change(const std::string& name, bool sends);
  void leave(const std::string& name);
  void detach(const SubgroupParticipant& participant) noexcept;
  void remove(const std::string& name);
  [[nodiscard]] std::vector<SubgroupInfo> infos() const;
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  void on_change(Group::SubgroupHandler handler) {
    handler_ =
        handler ? std::make_shared<const Group::SubgroupHandler>(std::move(handler)) : nullptr;
  }

  // --- from view to view -------------------------------------------------------------------------
  /// Everything of an earlier view is void, except what this member has and wants.
  void enter(const View& view, const std::vector<Rank>& ranks);
  /// Starts work in the view, which has been announced.
  void start();
  /// From here on no subgroup sends, receives or delivers: the view will end.
  void wedge() noexcept;
  void receive(Rank from, ControlMessage message);
  /// Throws what participants and handlers throw.
  std::size_t poll();
  [[nodiscard]] std::string describe() const;
  /// Whether the others have what was sent here, or are waited for no longer.
  [[nodiscard]] bool hand_over();
  [[nodiscard]] bool active() const noexcept {
    return !memberships_.empty() || !held_.empty() || !local_.empty() || !removals_.empty();
  }

 private:
  using Kind = SubgroupMessage::Kind;

  [[nodiscard]] Membership* find(const std::string& name) noexcept;
  void send(const MemberSet& to, SubgroupMessage message);
  void send_leader(const SubgroupMessage& message) { send(MemberSet::only(0), message); }
  void send_to_leader_of(Membership& membership);
  std::size_t tell_of_leavers();
  void report();
  [[nodiscard]] SubgroupReport report_of(const Membership& membership, bool whole) const;
  [[nodiscard]] SubgroupReport report_accepted(const Membership& membership) const;
  std::size_t handle_held();
  void handle(Rank place, const SubgroupMessage& message);
  void do_as_the_leader_says(const SubgroupMessage& message);
  void wedge_one(const SubgroupMessage& message);
  void accept(const SubgroupMessage& message);
  void carry_out(std::uint64_t proposal);
  void apply_all(const SubgroupMessage& message);
  void apply(const SubgroupChange& change);
  void note(const SubgroupChange& change);
  void forget_those_of_earlier_views();
  void end(Membership& membership, const SubgroupChange& change);
  void begin(Membership& membership, const SubgroupChange& change);
  void refused(const SubgroupMessage& message);
  void ask_anew(Membership& membership);
  void part(Membership& membership, const std::string& why);
  void give_up(Membership& membership, const std::string& why) noexcept;
  std::size_t poll_participants();
  std::size_t ask_for_states();
  std::size_t answer();
  void send_state(Rank place, const SubgroupMessage& request,
                  std::optional<std::vector<std::byte>> state, const std::string& why = {});
  void take_state(Rank place, const SubgroupMessage& message);
  void forget_parted();
  void show(const SubgroupInfo& info);
  void post_from_leader();
  [[nodiscard]] MemberSet places_of(const std::vector<Rank>& ranks) const;
  [[nodiscard]] std::optional<Rank> place_of(Rank rank) const;

  template <class Call>
  void keep(Call call) noexcept {
    try {
      call();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
  }

  ControlChannel& channel_;
  Fabric& fabric_;
  const Scope scope_;
  const std::size_t declared_;
  View view_;
  std::vector<Rank> ranks_;  // those of the view's members
  bool works_ = false;
  bool reported_ = false;  // to the leader, in this view
  SubgroupLeader leader_;  // used if this member leads
  std::vector<std::unique_ptr<Membership>> memberships_;
  bool any_hands_over_ = false;  // a membership hands over what was sent here
  std::uint32_t attempts_ = 0;
  std::map<std::string, SubgroupInfo> infos_;
  std::uint64_t changes_ = 0;          // how often infos_ has changed
  std::vector<std::string> removals_;  // subgroups that this member asked to remove, still there
  std::shared_ptr<const Group::SubgroupHandler> handler_;
  std::deque<std::pair<Rank, ControlMessage>> held_;  // by rank; from this view on
  std::deque<SubgroupMessage> local_;                 // messages from this member to itself
  std::vector<SubgroupMessage> proposals_;  // accepted in this view, and not known to be decided
  struct Request {
    Rank place;
    SubgroupMessage message;
  };
  std::deque<Request> requests_;  // wait for a state of this member
  std::exception_ptr thrown_;
  Turns turns_;
};

}  // namespace dunlin::group
