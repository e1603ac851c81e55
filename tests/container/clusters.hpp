#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>

#include "support/cluster.hpp"
#include "support/group_member.hpp"
#include "support/late_node.hpp"

/// Members that share containers, all polled by the test's own thread, on whatever fabric.
namespace dunlin::test {

using ContainerCluster = Cluster<Containers, ContainersOptions>;
using SimContainers = SimCluster<ContainerCluster>;
using RealContainers = RealCluster<ContainerCluster>;
using ContainerBackend = ClusterBackend<ContainerCluster>;

struct ContainerMember : GroupMember {
  explicit ContainerMember(Fabric& fabric) : GroupMember(fabric) {}
  Containers containers{progress};
};

/// Members of a group in the simulator, of which the last one joins when the others are at work.
class LaterContainers final : public ContainerCluster {
 public:
  LaterContainers(std::uint32_t members, ContainersOptions options)
      : world(sim::profile("ib100"), std::max(members - 1, 1U), 1), nodes_(members) {
    const Rank last = members - 1;
    if (last > 0) world.add_node();
    for (Rank rank = 0; rank < members; ++rank) {
      const bool is_late = rank == last && rank > 0;
      if (!is_late)
        nodes_[rank] = member_of(std::make_unique<Group>(
            world.fabric(rank), GroupOptions{.rendezvous = world.rendezvous(rank, "sim")}));
      world.attach(rank, [this, rank] { return poll(rank); });
    }
    world.run_for(1'000'000);
    if (last > 0) world.on(last, [this, last] { late_.enter(world, last); });
    EXPECT_TRUE(until([&] { return nodes_[last] != nullptr; })) << "does not come in";
    for (const auto& node : nodes_)
      members_.push_back(std::make_unique<Containers>(node->progress, options));
  }
  ~LaterContainers() override {
    for (Rank rank = 0; rank < nodes_.size(); ++rank) world.detach_all(rank);
    members_.clear();
    nodes_.clear();
  }
  bool until(const std::function<bool()>& condition) override {
    return world.run_until(condition, 10'000'000'000);
  }

  sim::World world;

 private:
  std::unique_ptr<GroupMember> member_of(std::unique_ptr<Group> group) {
    return std::make_unique<GroupMember>(std::move(group),
                                         static_cast<std::uint32_t>(nodes_.size()));
  }
  std::size_t poll(Rank rank) {
    if (nodes_[rank]) return nodes_[rank]->progress.poll();
    std::unique_ptr<Group> group = late_.poll();
    if (!group) return 0;
    nodes_[rank] = member_of(std::move(group));
    return 1;
  }

  LateNode late_;
  std::vector<std::unique_ptr<GroupMember>> nodes_;
};

/// Each network, and members of which one comes later.
inline std::vector<ContainerBackend> container_backends() {
  std::vector<ContainerBackend> all = cluster_backends<ContainerCluster>();
  all.push_back({"SimLater", [] { return std::string(); },
                 [](std::uint32_t members, const ContainersOptions& options) {
                   return std::make_unique<LaterContainers>(members, options);
                 }});
  return all;
}

/// A map that can have packed slots.
using CountMap = HashMap<std::uint64_t, std::uint32_t>;

/// A fabric, with a style.
struct ContainerCase {
  ContainerBackend backend;
  Style style;
  std::string name;
  bool packed = false;  // of CountMaps
  friend void PrintTo(const ContainerCase& one, std::ostream* out) { *out << one.name; }
};

inline std::vector<ContainerCase> container_cases(const std::vector<Style>& styles = {
                                                      Style::one_sided, Style::message,
                                                      Style::automatic}) {
  static const std::vector<std::string> names{"Automatic", "OneSided", "Message"};
  std::vector<ContainerCase> all;
  for (const ContainerBackend& backend : container_backends())
    for (const Style style : styles)
      all.push_back({backend, style, backend.name + names.at(static_cast<std::size_t>(style))});
  return all;
}

/// Runs a suite with slots of stamps and with packed slots.
inline std::vector<ContainerCase> map_cases() {
  std::vector<ContainerCase> all = container_cases();
  for (ContainerCase one : container_cases()) {
    one.packed = true;
    one.name += "Packed";
    all.push_back(std::move(one));
  }
  return all;
}

struct OnContainers : testing::TestWithParam<ContainerCase> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(GetParam().backend); }
  void start(std::uint32_t members) { cluster = GetParam().backend.start(members, {}); }
  /// The keys of maps, and the elements of arrays, are spread over the founders.
  [[nodiscard]] bool last_has_no_part() const {
    return GetParam().backend.name == "SimLater" && cluster->size() > 1;
  }
  [[nodiscard]] Rank last_with_part() const {
    return cluster->size() - (last_has_no_part() ? 2 : 1);
  }
  /// A container at each member.
  template <class Made, class Options>
  std::vector<std::unique_ptr<Made>> make(Options options) {
    std::vector<std::unique_ptr<Made>> all;
    if constexpr (requires { options.style; }) options.style = GetParam().style;
    if constexpr (std::is_same_v<Made, CountMap>) options.packed |= GetParam().packed;
    if (last_has_no_part()) {  // as much room as with a part at each member
      const auto scale = [&](auto& of_a_part) {
        of_a_part = of_a_part * cluster->size() / (cluster->size() - 1);
      };
      if constexpr (requires { options.slots; }) scale(options.slots);
      if constexpr (requires { options.grow_to; }) scale(options.grow_to);
      if constexpr (requires { options.pool_bytes; }) scale(options.pool_bytes);
      if constexpr (std::is_same_v<Made, Collectives>)
        for (Rank rank = 0; options.members.size() < cluster->size(); ++rank)
          options.members.push_back(rank);
    }
    for (Rank rank = 0; rank < cluster->size(); ++rank)
      all.push_back(std::make_unique<Made>((*cluster)[rank], options));
    return all;
  }
  /// Random calls end as those on a standard map do. Its elements, which the maps have then, too.
  template <class Key, class Value>
  std::map<Key, Value> expect_a_standard_map(
      const std::vector<std::unique_ptr<HashMap<Key, Value>>>& maps, int calls,
      const std::function<Key(std::uint64_t)>& key_of,
      const std::function<Value(std::uint64_t)>& value_of) {
    std::map<Key, Value> model;
    std::mt19937_64 random(7);
    for (int i = 0; i < calls; ++i) {
      HashMap<Key, Value>& map = *maps[random() % maps.size()];
      const Key key = key_of(random());
      const Value value = value_of(random());
      const Promise promise = random() % 2 == 0 ? Promise::both : Promise::writes;
      const bool there = model.contains(key);
      const std::uint64_t call = random() % 5;
      typename HashMap<Key, Value>::Operation op;
      if (call == 0) op = map.erase(key);
      if (call == 1) op = map.assign(key, value, promise);
      if (call == 2) op = map.find(key);
      if (call > 2) op = map.insert(key, value, promise);
      EXPECT_EQ(remote::describe(cluster->end_of(op)), "done") << i;
      EXPECT_EQ(op.result().found(), there) << i;
      if (there && call >= 2) {
        EXPECT_EQ(op.result().value(), model[key]) << i;
      }
      if (call == 0) model.erase(key);
      if (call == 1) model[key] = value;
      if (call > 2) model.try_emplace(key, value);
    }
    std::map<Key, Value> all;
    for (const auto& map : maps)
      map->for_each_local([&](const Key& key, const Value& value) { all[key] = value; });
    EXPECT_EQ(all, model);
    return model;
  }
  /// Runs a call to its end, and gives what `what` makes of it. A call cannot be moved to where it
  /// is kept.
  template <class Begin, class What>
  auto end(const Begin& begin, const What& what) {
    auto&& operation = begin();
    cluster->end_of(operation);
    return what(operation);
  }
  std::unique_ptr<ContainerCluster> cluster;
};

}  // namespace dunlin::test
