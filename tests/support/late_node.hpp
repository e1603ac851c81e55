#pragma once

#include <memory>
#include <string>
#include <utility>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>

namespace dunlin::test {

/// A node of a simulated world that comes into a group which is at work.
class LateNode {
 public:
  /// Begins to come in; on the node's own CPU.
  void enter(sim::World& world, Rank node) {
    entry_ = std::make_unique<GroupEntry>(
        "late" + std::to_string(node), GroupOptions{.rendezvous = world.rendezvous(node, "sim")});
  }
  /// The group, once this node is in it.
  std::unique_ptr<Group> poll() {
    if (!entry_) return nullptr;
    std::unique_ptr<Group> group = entry_->poll();
    if (group) entry_.reset();
    return group;
  }
  /// Calls `make(group)` for a member once this node is in the group.
  template <class Member, class Make>
  std::size_t poll(std::unique_ptr<Member>& member, const Make& make) {
    std::unique_ptr<Group> group = poll();
    if (!group) return 0;
    member = make(std::move(group));
    return 1;
  }

 private:
  std::unique_ptr<GroupEntry> entry_;
};

}  // namespace dunlin::test
