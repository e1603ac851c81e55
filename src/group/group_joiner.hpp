#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric/rendezvous.hpp>
#include <dunlin/group.hpp>

#include "group/control_channel.hpp"
#include "group/control_message.hpp"

/// A joiner's way: connect, say hello, enter the fabric when the leader's plan says so, and be
/// welcomed by any member of the next view. A step that fails begins anew, until the time is up.
namespace dunlin::group {

class GroupJoiner {
 public:
  GroupJoiner(std::shared_ptr<Rendezvous> place, std::string name, std::string declaration,
              std::uint32_t timeout_ms);

  /// The view that this member is in, and its fabric.
  struct Arrival {
    View view;
    std::vector<Rank> ranks;  // the members' ranks in that fabric
    std::uint32_t founders = 0;
    std::unique_ptr<Fabric> fabric;
    std::vector<std::byte> had_members;  // by subgroup: whether it had any members before
    std::unique_ptr<ControlChannel> channel;
    std::vector<std::pair<Rank, ControlMessage>> messages;  // that came after the welcome
  };
  /// Throws Error if the group refuses this member, or the time is up.
  [[nodiscard]] std::optional<Arrival> poll();
  void collect(Waits& waits) const;
  [[nodiscard]] std::uint64_t next_ns() const noexcept { return resume_ns_; }

 private:
  void connect();
  void poll_leader();
  void on_leader_message(const ControlMessage& message);
  void say_hello();
  void enter(const ControlMessage& message);
  void go_on_entering();
  [[nodiscard]] std::optional<Arrival> wait_for_welcome();
  [[nodiscard]] bool is_welcome(const ControlMessage& message) const;
  [[nodiscard]] Arrival arrive();
  void start_anew(const std::string& why);
  void forget_plan();
  void send(ControlMessage message);

  std::shared_ptr<Rendezvous> place_;
  std::string name_;
  std::string declaration_;
  std::uint32_t timeout_ms_;
  std::uint64_t deadline_ns_;
  std::uint64_t resume_ns_ = 0;
  std::string news_ = "no member has accepted it";

  std::unique_ptr<PendingJoin> connecting_;
  std::unique_ptr<Fabric> leader_;
  std::unique_ptr<ControlChannel> leader_channel_;
  PlanId plan_ = kNoPlan;
  std::vector<Rank> members_;  // the members of the view that planned the join
  std::unique_ptr<PendingEntry> entry_;
  bool entering_ = false;  // the members have admitted it
  std::unique_ptr<Fabric> formed_;
  std::unique_ptr<ControlChannel> channel_;  // on the fabric that it enters
  std::optional<ControlMessage> welcome_;
  std::vector<std::pair<Rank, ControlMessage>>
      messages_;  // from members that are in the view already
};

}  // namespace dunlin::group
