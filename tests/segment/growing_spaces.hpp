#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>

#include "segment/spaces.hpp"
#include "support/late_node.hpp"

/// Members of one space in the simulator, some of which join the group when it is at work.
namespace dunlin::test {

class GrowingSpaces final : public Spaces {
 public:
  /// Members are numbered as the nodes of the world. The later ones come when they are told; their
  /// ranks are these numbers unless a member dies while one comes: that uses ranks up (GRP-N3).
  GrowingSpaces(const sim::Profile& profile, std::uint32_t founders, std::uint32_t later,
                SpaceOptions its_options = {}, std::uint32_t spare_ranks = 0)
      : world(profile, founders, 1),
        options(std::move(its_options)),
        most_(founders + later + spare_ranks),
        nodes_(founders + later),
        late_(founders + later) {
    members_.resize(nodes_.size());
    for (std::uint32_t i = 0; i < later; ++i) world.add_node();
    for (Rank node = 0; node < nodes_.size(); ++node) {
      if (node < founders) {
        nodes_[node] = member_of(std::make_unique<Group>(
            world.fabric(node), GroupOptions{.rendezvous = world.rendezvous(node, "sim")}));
        make_space(node);
      }
      world.attach(node, [this, node] { return poll(node); });
    }
    world.run_for(1'000'000);
  }
  ~GrowingSpaces() override {
    for (Rank node = 0; node < nodes_.size(); ++node) world.detach_all(node);
    members_.clear();
    late_.clear();
    nodes_.clear();
  }
  void enter(Rank node) {
    world.on(node, [this, node] { late_[node].enter(world, node); });
  }
  bool has_entered(Rank node) const { return nodes_[node] != nullptr; }
  void make_space(Rank node) {
    members_[node] = std::make_unique<SegmentSpace>(nodes_[node]->progress, options);
  }
  void join(Rank node) {
    enter(node);
    EXPECT_TRUE(until([&] { return has_entered(node); })) << "does not come in";
    if (has_entered(node)) world.on(node, [this, node] { make_space(node); });
    EXPECT_TRUE(until([&] { return members_[node] != nullptr; }));
    world.run_for(1'000'000);  // the others let it in
  }
  bool until(const std::function<bool()>& condition) override {
    return world.run_until(condition, 10'000'000'000);
  }
  Rank rank_of(Rank node) const { return nodes_.at(node)->group.fabric().rank(); }
  std::size_t used(Rank node) { return members_.at(node)->use().used; }
  /// Until that member has agreed with the others on the founder's death.
  void until_gone(Rank founder, Rank by) {
    EXPECT_TRUE(until([&] { return !nodes_[by]->progress.contains(founder); }));
  }

  sim::World world;
  SpaceOptions options;

 private:
  std::unique_ptr<GroupMember> member_of(std::unique_ptr<Group> group) {
    return std::make_unique<GroupMember>(std::move(group), most_);
  }
  std::size_t poll(Rank node) {
    if (nodes_[node]) return nodes_[node]->progress.poll();
    return late_[node].poll(
        nodes_[node], [this](std::unique_ptr<Group> group) { return member_of(std::move(group)); });
  }

  std::uint32_t most_;
  std::vector<std::unique_ptr<GroupMember>> nodes_;
  std::vector<LateNode> late_;
};

/// One founder, and members that have all come later.
inline SpaceBackend later_members() {
  return {"SimLater", [] { return std::string(); },
          [](std::uint32_t members, const SpaceOptions& options) {
            auto spaces =
                std::make_unique<GrowingSpaces>(sim::profile("ib100"), 1, members - 1, options);
            for (Rank rank = 1; rank < members; ++rank) spaces->join(rank);
            return spaces;
          }};
}

/// Each network, and members that come later.
inline std::vector<SpaceBackend> space_backends() {
  std::vector<SpaceBackend> all = cluster_backends<Spaces>();
  all.push_back(later_members());
  return all;
}

}  // namespace dunlin::test
