#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/group/subgroup_participant.hpp>

/// Groups in the simulator: the real tables and the real detection of failures.
namespace dunlin::test {

inline constexpr std::uint64_t kLongNs = 1'000'000'000;

/// Has received what the test says, and remembers what it was told.
class ScriptedParticipant final : public SubgroupParticipant {
 public:
  std::vector<std::uint64_t> counts;  // by sender of the view at hand
  std::uint64_t per_view = 0;         // with which a view begins, for each sender
  std::vector<Subgroup> begun;
  std::vector<std::vector<std::uint64_t>> trims;
  std::vector<Rank> stayed;  // at the last finish()
  bool wedged = false;
  bool fails_to_begin = false;
  std::function<void()> on_finish;

  void begin(Fabric&, const Subgroup& subgroup) override {
    if (fails_to_begin) throw Error("no memory, say");
    EXPECT_EQ(begun.size(), trims.size());
    begun.push_back(subgroup);
    counts.assign(subgroup.senders.size(), per_view);
    wedged = false;
  }
  std::size_t poll() override {
    EXPECT_FALSE(wedged);
    return 0;
  }
  void wedge() noexcept override { wedged = true; }
  std::span<const std::uint64_t> received() const noexcept override { return counts; }
  void finish(std::span<const std::uint64_t> trim, std::span<const Rank> staying) override {
    stayed.assign(staying.begin(), staying.end());
    EXPECT_TRUE(wedged);
    for (std::size_t i = 0; i < trim.size(); ++i) EXPECT_LE(trim[i], counts[i]);
    trims.emplace_back(trim.begin(), trim.end());
    if (on_finish) on_finish();
  }
};

struct GroupNode {
  std::unique_ptr<Group> group;
  ScriptedParticipant participant;
  std::vector<View> views;
};

class SimGroups {
 public:
  explicit SimGroups(std::uint32_t members, std::uint64_t seed = 1, GroupOptions options = {})
      : world(sim::profile("ib100"), members, seed), nodes_(members) {
    for (Rank rank = 0; rank < members; ++rank) {
      GroupNode& node = nodes_[rank];
      node.group = std::make_unique<Group>(world.fabric(rank), options);
      node.group->on_view([&node](const View& view) { node.views.push_back(view); });
      if (!options.subgroups.empty())
        node.group->attach(options.subgroups.front().name, node.participant);
      world.attach(rank, [&node] { return node.group->poll(); });
    }
  }

  GroupNode& operator[](Rank rank) { return nodes_[rank]; }

  /// Until those members are alone in one view.
  bool run_until_view_of(const std::vector<Rank>& ranks) {
    std::vector<std::string> names;
    for (const Rank rank : ranks) names.push_back(name(rank));
    return world.run_until(
        [&] {
          return std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
            const std::vector<View>& views = nodes_[rank].views;
            return !views.empty() && views.back().members == names;
          });
        },
        kLongNs);
  }
  bool run_until_ended(Rank rank) {
    return world.run_until([&] { return nodes_[rank].group->ended(); }, kLongNs);
  }
  std::string name(Rank rank) {
    const std::string& name = world.fabric(rank).member_name(rank);
    return name.empty() ? std::to_string(rank) : name;
  }

  sim::World world;

 private:
  std::vector<GroupNode> nodes_;
};

}  // namespace dunlin::test
