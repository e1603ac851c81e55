#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

/// Groups in the simulator that others join, with a history as their state.
namespace dunlin::test {

/// One node's program: all that was delivered, in order.
class ClusterNode {
 public:
  explicit ClusterNode(sim::World& world, Rank node, MulticastOptions options = {})
      : world_(world), node_(node), options_(options) {
    world.attach(node, [this] { return catches ? poll_and_catch() : poll(); });
  }
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  [[nodiscard]] GroupOptions group_options() {
    return {.subgroups = {{.name = "log", .senders = senders}},
            .rendezvous = world_.rendezvous(node_, "sim")};
  }
  void found() { settle(std::make_unique<Group>(world_.fabric(node_), group_options())); }
  void come() { come(group_options()); }
  void come(GroupOptions options) {
    came_ = true;
    world_.on(node_,
              [this, options] { entry = std::make_unique<GroupEntry>(name(), options, 1'000); });
  }
  [[nodiscard]] std::string name() const { return "node" + std::to_string(node_); }
  /// Counts how many are left to send.
  void send(std::uint32_t messages) {
    to_send_ += messages;
    world_.on(node_, [] {});  // looks
  }
  [[nodiscard]] bool idle() const noexcept { return to_send_ == 0; }
  void by_next() {
    takes_next_ = true;
    if (multicast) multicast->on_delivery(nullptr);
  }
  void saves_nothing() { saves_ = false; }

  std::size_t poll() {
    std::size_t done = 0;
    if (entry) done += enter();
    if (!group) return done;
    done += group->poll();
    while (takes_next_) {
      const auto delivery = multicast->next();
      if (!delivery) break;
      take(*delivery);
      ++done;
    }
    while (to_send_ > 0) {
      const std::string text = name() + ":" + std::to_string(sent_);
      const auto result = multicast->send(std::as_bytes(std::span(text)));
      results.insert(result);
      if (result != multicast::SendResult::sent) break;
      ++sent_;
      --to_send_;
      sent_without_state |= came_ && loads == 0;
      ++done;
    }
    return done;
  }

  std::vector<std::string> senders;  // by name; none: all members
  std::unique_ptr<GroupEntry> entry;
  std::unique_ptr<Group> group;
  std::unique_ptr<Multicast> multicast;
  std::vector<View> views;
  std::vector<std::string> history;
  std::set<multicast::SendResult> results;  // of send()
  std::uint32_t loads = 0;
  std::uint32_t replayed = 0;  // messages of a log
  bool sent_without_state = false;
  bool fails_to_load = false;
  std::string error;
  bool catches = false;  // what comes out of poll(), which is counted then, and polls again
  std::uint32_t caught = 0;

 private:
  std::size_t poll_and_catch() {
    try {
      return poll();
    } catch (const std::runtime_error& e) {
      ++caught;
      error = e.what();
      return 1;
    }
  }
  std::size_t enter() {
    try {
      std::unique_ptr<Group> made = entry->poll();
      if (!made) return 0;
      settle(std::move(made));
    } catch (const Error& e) {
      error = e.what();
    }
    entry.reset();
    return 1;
  }
  void settle(std::unique_ptr<Group> made) {
    group = std::move(made);
    multicast = std::make_unique<Multicast>(*group, "log", options_);
    if (!takes_next_)
      multicast->on_delivery([this](std::span<const multicast::Delivery> batch) {
        for (const multicast::Delivery& delivery : batch) take(delivery);
      });
    if (saves_)
      multicast->on_state([this] { return save(); },
                          [this](std::span<const std::byte> state) { load(state); });
    multicast->on_replay([this](const multicast::Logged&) { ++replayed; });
    group->on_view([this](const View& view) { views.push_back(view); });
  }
  void take(const multicast::Delivery& delivery) {
    history.emplace_back(reinterpret_cast<const char*>(delivery.message.data()),
                         delivery.message.size());
  }
  [[nodiscard]] std::vector<std::byte> save() const {
    std::string all;
    for (const std::string& text : history) all += text + '\n';
    const auto bytes = std::as_bytes(std::span(all));
    return {bytes.begin(), bytes.end()};
  }
  void load(std::span<const std::byte> state) {
    ++loads;
    if (fails_to_load) throw std::runtime_error("the state's");
    EXPECT_TRUE(history.empty());
    std::string line;
    for (const std::byte b : state) {
      if (const char c = static_cast<char>(b); c != '\n') {
        line += c;
      } else {
        history.push_back(std::exchange(line, {}));
      }
    }
  }

  sim::World& world_;
  Rank node_;
  MulticastOptions options_;
  std::uint32_t to_send_ = 0;
  std::uint32_t sent_ = 0;
  bool takes_next_ = false;
  bool saves_ = true;
  bool came_ = false;
};

/// Founders, and nodes that may come.
class ClusterFixture {
 public:
  ClusterFixture(std::uint32_t founders, std::uint32_t others, std::uint64_t seed = 1,
                 MulticastOptions with_options = {})
      : options(with_options), world(sim::profile("ib100"), founders, seed) {
    for (std::uint32_t i = 0; i < others; ++i) world.add_node();
    for (Rank node = 0; node < founders + others; ++node)
      cluster_nodes.push_back(std::make_unique<ClusterNode>(world, node, options));
    for (Rank node = 0; node < founders; ++node) cluster_nodes[node]->found();
  }
  ~ClusterFixture() { cluster_nodes.clear(); }
  ClusterFixture(const ClusterFixture&) = delete;
  ClusterFixture& operator=(const ClusterFixture&) = delete;

  ClusterNode& operator[](Rank node) { return *cluster_nodes[node]; }
  bool until(const std::function<bool()>& condition, std::uint64_t limit_ns = 1'000'000'000) {
    return world.run_until(condition, limit_ns);
  }
  /// Until these are alone in one view, all with the same history of at least so many messages.
  bool until_view_of(const std::vector<Rank>& nodes, std::size_t messages = 0) {
    std::vector<std::string> names;
    for (const Rank node : nodes) names.push_back(cluster_nodes[node]->name());
    return until([&] {
      return std::ranges::all_of(nodes, [&](Rank node) {
        const ClusterNode& cluster_node = *cluster_nodes[node];
        return !cluster_node.views.empty() && cluster_node.views.back().members == names &&
               cluster_node.idle() && cluster_node.history.size() >= messages &&
               cluster_node.history == cluster_nodes[nodes.front()]->history;
      });
    });
  }

  /// What is where, for a failure's message.
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    for (const auto& cluster_node : cluster_nodes) {
      text << "  " << cluster_node->name() << ": ";
      if (!cluster_node->views.empty()) text << cluster_node->views.back();
      text << "; " << cluster_node->history.size() << " messages; " << cluster_node->error
           << (cluster_node->group ? cluster_node->group->why_ended() : "")
           << (cluster_node->idle() ? "" : " sending") << "\n";
    }
    return text.str();
  }

  const MulticastOptions options;
  sim::World world;
  std::vector<std::unique_ptr<ClusterNode>> cluster_nodes;
};

}  // namespace dunlin::test
