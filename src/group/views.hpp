#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dunlin/group.hpp>
#include <dunlin/group/subgroup_participant.hpp>

#include "group/changing_subgroups.hpp"
#include "group/control_channel.hpp"
#include "group/declaration.hpp"
#include "group/group_joiner.hpp"
#include "group/joins.hpp"
#include "group/member_events.hpp"
#include "group/scope.hpp"
#include "group/state_transfer.hpp"
#include "group/subgroups.hpp"
#include "group/view_agreement.hpp"
#include "turns.hpp"

/// A member's way from one view to the next (GRP-V1 to GRP-V4 of docs/group.md).
namespace dunlin {

struct Group::State {
  /// Begins in the first view of a fabric's members.
  State(Fabric& fabric, GroupOptions options);
  /// Begins in the first view of a member that comes in.
  State(group::GroupJoiner::Arrival arrival, GroupOptions options);

  std::size_t poll();
  [[nodiscard]] Waits waits() const;
  [[nodiscard]] std::string why_closed() const {
    return joins_ ? joins_->trouble() : std::string();
  }
  void leave();
  /// Gives access to `changing` for a wish, which the next poll() handles.
  [[nodiscard]] group::ChangingSubgroups& change_subgroups() noexcept {
    attends_ = true;
    return *changing;
  }
  void each_table(const std::function<void(const TableCore&)>& look) const;
  [[nodiscard]] std::string describe() const;  // describe.cpp

  std::unique_ptr<Fabric> owned;  // for a member that came in
  Fabric& fabric;                 // the same for all views
  const group::Scope scope;       // the group's scope on the fabric
  std::string name;
  group::Subgroups subgroups;
  std::vector<SubgroupParticipant*> participants;  // by subgroup; null: none is attached here
  View view;
  std::vector<Rank> ranks;  // the view's members' ranks in the fabric
  std::uint32_t founders = 0;
  std::shared_ptr<const ViewHandler> handler;
  std::unique_ptr<group::ChangingSubgroups> changing;  // subgroups that come and go at run time
  group::MemberEvents member_events;                   // for the user to read
  std::string why;
  bool wrong = false;  // it ended here against our will

  /// Whether the view at hand has been announced to the handler, and its parts begin it.
  [[nodiscard]] bool announced() const noexcept { return stage_ != Stage::entered; }
  /// Whether this member is in no view any more.
  [[nodiscard]] bool stopped() const noexcept { return stage_ == Stage::ended; }

 private:
  /// The stages of the view at hand; go_to() has the ways from one to the next.
  enum class Stage : std::uint8_t {
    entered,  // no handler has been told of it yet
    working,  // the handler has been told, and the parts work
    wedged,   // the parts do nothing any more until it is decided how the view ends
    ended     // there is no further view here
  };
  State(GroupOptions options, Fabric& on);
  [[nodiscard]] group::ViewState state() const noexcept { return agreement_->change().state(); }
  void go_to(Stage next) noexcept;
  void enter();
  void announce();
  void begin(SubgroupParticipant* participant, const Subgroup& subgroup);
  void step();
  void wedge();
  [[nodiscard]] bool has_all(const std::vector<std::uint64_t>& counts) const noexcept;
  [[nodiscard]] std::exception_ptr finish();
  void go_on();
  void welcome();
  void hand_over();
  void stop(const std::string& how, bool is_wrong);
  [[nodiscard]] std::string too_few() const;
  [[nodiscard]] std::string perhaps_other_subgroups() const;
  [[nodiscard]] std::vector<std::uint64_t> received();
  void part_from_all();
  void expel_others(const std::vector<Rank>& stay, const std::string& reason,
                    const std::vector<Rank>& left = {});
  std::size_t poll_past();
  std::size_t poll_view();
  std::size_t poll_participants();
  std::size_t poll_control();
  std::size_t poll_changing();
  void open_channel(std::unique_ptr<group::ControlChannel> channel);
  void receive(Rank from, group::ControlMessage message);
  template <class Do>
  void each_participant(Do action) {
    for (std::size_t i = 0; i < in_view_.size(); ++i)
      if (in_view_[i].ours && participants[i] != nullptr) action(*participants[i], in_view_[i]);
  }

  std::unique_ptr<group::ControlChannel> channel_;
  bool attends_ = true;  // whether each poll calls poll_control()
  std::vector<group::Subgroups::InView> in_view_;
  std::size_t begun_ = 0;  // how many of the participants, from the first on, have begun the view
  std::vector<bool> had_members_;  // by subgroup, in the view at hand or one before
  Turns turns_;
  std::optional<group::Declaration> declaration_;  // set in the first view
  std::unique_ptr<group::ViewAgreement> agreement_;
  // Agreements on views that have ended, until all know what this member knows of them.
  std::vector<std::unique_ptr<group::ViewAgreement>> past_;
  std::shared_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<group::Joins> joins_;
  group::StateTransfer transfer_;
  // Messages that came before the view was begun.
  std::vector<std::pair<Rank, group::ControlMessage>> early_;
  bool came_in_ = false;  // it came in, and has begun nothing yet
  bool polling_ = false;
  std::thread::id polled_by_;  // the thread that polled last
  Stage stage_ = Stage::entered;
  bool leaving_ = false;
  bool handed_over_ = false;  // what was sent here was handed over
};

}  // namespace dunlin
