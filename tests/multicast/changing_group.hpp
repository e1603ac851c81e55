#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/error.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

/// Members in the simulator that are in subgroups which come and go at run time.
namespace dunlin::test {

/// Which message it is: of a sender, and of its how-many-th membership of the subgroup.
struct Said {
  std::uint32_t node = 0;
  std::uint32_t membership = 0;
  std::uint64_t index = 0;
  friend auto operator<=>(const Said&, const Said&) = default;
};

/// One membership of one subgroup at one node: it has all that was delivered since the subgroup
/// began, by the state and by messages.
struct ChangingMember {
  std::unique_ptr<Multicast> multicast;
  std::uint32_t node = 0;
  std::uint32_t membership = 0;
  std::uint64_t accepted = 0;
  std::uint64_t began = 0;  // generation of the subgroup's first one
  std::vector<Said> history = {};
  std::size_t loaded = 0;
  std::vector<Subgroup> generations = {};
  bool asked_to_leave = false;
  std::string oddity = {};

  [[nodiscard]] std::vector<std::byte> save() const {
    std::vector<std::byte> bytes(sizeof began + history.size() * sizeof(Said));
    std::memcpy(bytes.data(), &began, sizeof began);
    if (!history.empty())
      std::memcpy(bytes.data() + sizeof began, history.data(), history.size() * sizeof(Said));
    return bytes;
  }
  void load(std::span<const std::byte> bytes) {
    if (!history.empty()) oddity = "was given a state, and had one";
    std::memcpy(&began, bytes.data(), sizeof began);
    history.resize((bytes.size() - sizeof began) / sizeof(Said));
    if (!history.empty())
      std::memcpy(history.data(), bytes.data() + sizeof began, history.size() * sizeof(Said));
    loaded = history.size();
  }
  void take(const multicast::Delivery& delivery) {
    Said said;
    if (delivery.message.size() < sizeof said) {
      oddity = "was given what nobody sent";
      return;
    }
    std::memcpy(&said, delivery.message.data(), sizeof said);
    history.push_back(said);
  }
  /// One more message, if there is room.
  bool send(std::size_t more_bytes = 0) {
    const Said said{node, membership, accepted};
    std::vector<std::byte> bytes(sizeof said + more_bytes);
    std::memcpy(bytes.data(), &said, sizeof said);
    if (multicast->send(bytes) != multicast::SendResult::sent) return false;
    ++accepted;
    return true;
  }
};

class ChangingNode {
 public:
  ChangingNode(sim::World& world, Rank rank, bool joinable)
      : world_(world), rank_(rank), joinable_(joinable) {}

  void found() { settle(std::make_unique<Group>(world_.fabric(rank_), options())); }
  void come() { entry_ = std::make_unique<GroupEntry>(name(), options(), 60'000); }
  [[nodiscard]] std::string name() const { return "node" + std::to_string(rank_); }

  ChangingMember& join(const std::string& subgroup, const MulticastOptions& options,
                       SubgroupJoin join = {}) {
    auto member = std::make_unique<ChangingMember>();
    member->node = rank_;
    member->membership = memberships_++;
    member->multicast = Multicast::join(*group, subgroup, options, std::move(join));
    ChangingMember* const raw = member.get();
    raw->multicast->on_state([raw] { return raw->save(); },
                             [raw](std::span<const std::byte> state) { raw->load(state); });
    raw->multicast->on_delivery([raw](std::span<const multicast::Delivery> batch) {
      for (const multicast::Delivery& delivery : batch) raw->take(delivery);
    });
    raw->multicast->on_members([raw](const Subgroup& now) {
      if (raw->began == 0 && !now.lacks_state) raw->began = now.generation();
      if (!raw->generations.empty() && raw->generations.back().generation() >= now.generation())
        raw->oddity = "was told of an older generation";
      raw->generations.push_back(now);
    });
    if (members.contains(subgroup)) past.push_back({subgroup, std::move(members[subgroup])});
    members[subgroup] = std::move(member);
    world_.on(rank_, [] {});  // polls
    return *raw;
  }
  [[nodiscard]] ChangingMember* in(const std::string& subgroup) {
    const auto found = members.find(subgroup);
    return found == members.end() ? nullptr : found->second.get();
  }

  std::size_t poll() {
    if (entry_) {
      auto entered = entry_->poll();
      if (!entered) return 0;
      entry_.reset();
      settle(std::move(entered));
      return 1;
    }
    if (!group) return 0;
    try {
      return group->poll();
    } catch (const Error& error) {
      errors.emplace_back(error.what());
      return 1;
    }
  }

  std::unique_ptr<Group> group;
  std::map<std::string, std::unique_ptr<ChangingMember>> members;  // by subgroup
  std::vector<std::pair<std::string, std::unique_ptr<ChangingMember>>> past;
  std::vector<View> views;
  std::map<std::string, std::vector<SubgroupInfo>> changes;  // by subgroup
  std::vector<std::string> errors;

 private:
  [[nodiscard]] GroupOptions options() const {
    return {.rendezvous = joinable_ ? world_.rendezvous(rank_, "sim") : nullptr};
  }
  void settle(std::unique_ptr<Group> settled) {
    group = std::move(settled);
    group->on_view([this](const View& view) { views.push_back(view); });
    group->on_subgroup([this](const SubgroupInfo& info) { changes[info.name].push_back(info); });
  }

  sim::World& world_;
  Rank rank_;
  bool joinable_;
  std::unique_ptr<GroupEntry> entry_;
  std::uint32_t memberships_ = 0;
};

class ChangingGroup {
 public:
  explicit ChangingGroup(std::uint32_t founders, std::uint32_t later = 0, std::uint64_t seed = 1)
      : world(sim::profile("ib100"), founders, seed) {
    for (std::uint32_t i = 0; i < later; ++i) world.add_node();
    for (Rank rank = 0; rank < founders + later; ++rank) {
      nodes_.push_back(std::make_unique<ChangingNode>(world, rank, later > 0));
      ChangingNode* const node = nodes_.back().get();
      if (rank < founders) node->found();
      world.attach(rank, [node] { return node->poll(); });
    }
  }
  ~ChangingGroup() {
    for (const auto& node : nodes_) {
      node->past.clear();
      node->members.clear();
    }
  }
  ChangingGroup(const ChangingGroup&) = delete;
  ChangingGroup& operator=(const ChangingGroup&) = delete;

  ChangingNode& operator[](Rank rank) { return *nodes_[rank]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  template <class Condition>
  bool until(const Condition& condition) {
    return world.run_until(condition, 1'000'000'000);
  }

  sim::World world;

 private:
  std::vector<std::unique_ptr<ChangingNode>> nodes_;
};

}  // namespace dunlin::test
