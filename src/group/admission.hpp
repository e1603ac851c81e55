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

/// How a view gets members: the leader's listener, the plan of a fabric for those who are in and
/// those who come, and forming it while the view works. docs/group.md gives the rules GRP-N1 to
/// GRP-N6. One thread at a time, that of the group.
namespace dunlin::group {

class Admission {
 public:
  Admission(std::shared_ptr<Rendezvous> place, std::string declaration)
      : place_(std::move(place)), declaration_(std::move(declaration)) {}

  /// A view begins, whose members have these ranks in the fabric of `mail`. Whatever was planned
  /// for another one is void.
  void enter(const View& view, const std::vector<Rank>& ranks, ControlChannel& channel);
  /// Goes on. `working`: the view is not about to end; `alive`: whom we do not suspect.
  std::size_t poll(bool working, MemberSet alive);
  /// What another member says.
  void receive(Rank from, const ControlMessage& message);
  /// That the leader may propose: all who are alive have formed it, and all who come.
  [[nodiscard]] PlanId ready() const noexcept;
  /// The view has ended with this plan, and we go on.
  struct Formed {
    Plan plan;
    std::unique_ptr<Fabric> fabric;
  };
  [[nodiscard]] Formed take(PlanId id);
  /// Nobody comes in any more.
  void close();
  /// Why our listener could not be opened the last time; empty if it was, or need not be.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

  /// What a sleeper must wait for besides the group's own fabric.
  void collect(Waits& waits) const;

 private:
  /// Somebody at the listener, with a fabric for the two of us.
  struct PendingJoiner {
    std::unique_ptr<Fabric> fabric;
    std::unique_ptr<ControlChannel> channel;
    std::string name = {};  // once it has said hello
    std::string news = {};  // what it was told
    bool planned = false;   // the plan at hand counts on it,
    bool formed = false;    // and it has formed the fabric
    bool gone = false;
    std::uint64_t until_ns = UINT64_MAX;  // then it is gone at the latest
  };

  std::size_t accept_joiners();
  std::size_t serve_joiners();
  void on_joiner_message(PendingJoiner& joiner, const ControlMessage& message);
  void refuse(PendingJoiner& joiner, const std::string& why);
  void send_news(PendingJoiner& joiner, const std::string& news);
  [[nodiscard]] bool fits(PendingJoiner& joiner);
  void make_plan();
  void drop_plan(const std::string& why);
  void begin(const Plan& plan);
  std::size_t go_on_forming();
  void report(ControlMessage message);
  void on_failure(const std::string& text);
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
  std::uint32_t attempts_ = 0;  // of ours, in this view
  std::uint64_t next_plan_ns_ = 0;

  Plan plan_;  // that we follow; none: id is kNoPlan
  std::unique_ptr<PendingJoin> forming_;
  std::unique_ptr<Fabric> formed_;
  std::vector<std::pair<Rank, ControlMessage>> early_;  // of the next view
  MemberSet have_formed_;  // of the view's members, as the leader has heard
};

}  // namespace dunlin::group
