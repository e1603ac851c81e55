#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric/rendezvous.hpp>
#include <dunlin/group.hpp>

#include "group/control_channel.hpp"
#include "group/control_message.hpp"
#include "group/member_set.hpp"

/// How a view gets members: the leader's listener, its plan, and letting the joiners into the
/// fabric while the view works. docs/group.md gives the rules GRP-N1 to GRP-N5. One thread at a
/// time, that of the group.
namespace dunlin::group {

class Joins {
 public:
  Joins(std::shared_ptr<Rendezvous> place, std::string declaration)
      : place_(std::move(place)), declaration_(std::move(declaration)) {}

  /// Enters a view whose members have these ranks in the fabric of `channel`. Plans for another
  /// view are void.
  void enter(const View& view, const std::vector<Rank>& ranks, ControlChannel& channel);
  /// `working`: the view is not about to end; `alive`: the members that this one does not suspect.
  std::size_t poll(bool working, const MemberSet& alive);
  /// The view is about to end, perhaps with the plan at hand: so that is not made void any more.
  void wedge() noexcept { working_ = false; }
  /// Handles a control message of another member.
  void receive(Rank from, const ControlMessage& message);
  /// The plan that the leader may propose: its joiners are linked to all live members, and to each
  /// other.
  [[nodiscard]] PlanId ready() const noexcept;
  /// Lets in the joiners of the plan with which the view has ended. None if this member is not
  /// linked to all of them, which GRP-N4 excludes.
  [[nodiscard]] std::optional<Admission> take(PlanId id);
  /// Closes the listener: no joiner comes in any more.
  void close();
  /// Why our listener could not be opened the last time; empty if it could, or need not be.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

  /// Adds the events that must end a sleep, besides those of the group's own fabric.
  void collect(Waits& waits) const;

 private:
  /// A joiner at the listener, with a fabric for the two of us.
  struct PendingJoiner {
    std::unique_ptr<Fabric> fabric;
    std::unique_ptr<ControlChannel> channel;
    std::string name = {};                 // set once it has said hello,
    std::vector<std::byte> endpoint = {};  // as is where it is reached
    std::string news = {};                 // the last news that it was told
    bool planned = false;                  // the present plan counts on it,
    bool formed = false;                   // and it is linked to all
    bool gone = false;
    std::uint64_t until_ns = UINT64_MAX;  // when it is dropped at the latest
  };

  std::size_t accept_joiners();
  std::size_t serve_joiners();
  void on_joiner_message(PendingJoiner& joiner, const ControlMessage& message);
  void refuse(PendingJoiner& joiner, const std::string& why);
  void send_news(PendingJoiner& joiner, const std::string& news);
  [[nodiscard]] bool fits(PendingJoiner& joiner);
  void make_plan();
  void tell_no_rank_is_left();
  void send_to_members(const std::vector<std::byte>& message);
  void drop_plan(const std::string& why);
  void begin(const Plan& plan);
  void void_plan(const std::string& why);
  std::size_t look_at_links();
  std::size_t tell_failure(Rank joiner);
  void report(ControlMessage message);
  void on_report(std::uint32_t member, const ControlMessage& message);
  void let_joiners_enter();
  [[nodiscard]] Fabric& fabric() const noexcept { return channel_->fabric(); }
  [[nodiscard]] bool leads() const noexcept { return alive_.lowest() == view_.me; }

  std::shared_ptr<Rendezvous> place_;
  std::string declaration_;
  View view_;
  std::vector<Rank> ranks_;
  ControlChannel* channel_ = nullptr;
  MemberSet alive_;
  bool working_ = false;

  std::unique_ptr<PendingJoin> listener_;
  std::uint64_t next_listen_ns_ = 0;
  std::uint64_t next_look_ns_ = 0;
  std::string trouble_;
  std::vector<std::unique_ptr<PendingJoiner>> joiners_;
  std::uint32_t attempts_ = 0;  // our attempts in this view
  std::uint64_t next_plan_ns_ = 0;

  Plan plan_;                  // the plan that this member follows; none: id is kNoPlan
  PlanId latest_ = kNoPlan;    // the latest plan in this view
  bool admitted_ = false;      // the plan's joiners have ranks here
  bool linked_ = false;        // and this member was linked to all of them
  bool told_failure_ = false;  // a joiner has failed since
  Rank next_rank_ = 0;         // the next free rank, as far as the leader has heard
  std::vector<std::pair<Rank, ControlMessage>> early_;  // messages of the next view
  // What the leader has heard of the view's members:
  MemberSet have_admitted_;
  MemberSet have_formed_;
  std::vector<std::vector<std::byte>> endpoints_;  // by index in the view
  bool entering_ = false;                          // the joiners have been told the endpoints
};

}  // namespace dunlin::group
