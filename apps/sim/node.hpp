#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>

#include "sim/audit.hpp"
#include "sim/row_watch.hpp"
#include "sim/scenario.hpp"

namespace dunlin::app::sim {

/// How a node sends, and how it takes what is delivered.
struct Habits {
  std::uint64_t gap_ns = 0;     // the longest between two bursts
  std::uint32_t burst = 1;      // messages at once, if there is room
  std::size_t most_bytes = 16;  // the longest message
  bool in_place = false;
  bool polls = false;  // takes messages by next(), not by upcall
};

/// One member's program: it sends until it is told to be quiet, and writes down all that it sees.
class Node {
 public:
  struct Place {
    dunlin::sim::World& world;
    Rank node;
    bool joinable;          // by others, and by this one if it is no founder
    bool changing = false;  // its subgroups come at run time
  };
  Node(const Place& place, const std::vector<SubgroupSpec>& specs,
       const std::vector<MulticastOptions>& options, const Habits& habits, std::uint64_t seed,
       Trace trace);

  /// It is in the first view.
  void found();
  /// It comes in later.
  void come();
  std::size_t poll();
  void leave() {
    if (group_) group_->leave();
  }
  void be_quiet() { quiet_ = true; }
  /// Sends a message in each subgroup in which it may; returns for how many there was room.
  std::size_t send_one_each();
  [[nodiscard]] std::uint64_t polls() const noexcept { return polls_; }
  /// It has promised to end its view, and does not know yet how.
  [[nodiscard]] bool agreeing() const noexcept { return watch_.agreeing(); }
  /// The first that it was given, or saw, and should not have; empty if there was nothing.
  [[nodiscard]] const std::string& oddity() const noexcept {
    return corruption_.empty() ? watch_.fault() : corruption_;
  }
  /// Why it left when it could not write its log; empty if it could.
  [[nodiscard]] const std::string& log_failure() const noexcept { return log_failure_; }
  [[nodiscard]] bool lacks_log() const noexcept { return !lacks_log_.empty(); }
  [[nodiscard]] NodeLog log() const;

 private:
  [[nodiscard]] GroupOptions group_options() const;
  void settle(std::unique_ptr<Group> group);
  [[nodiscard]] std::unique_ptr<Multicast> make_multicast(std::size_t subgroup);
  std::size_t enter();
  std::size_t poll_group();
  [[nodiscard]] std::vector<std::byte> save(std::size_t subgroup) const;
  void load(std::size_t subgroup, std::span<const std::byte> state);
  void look();
  std::size_t send_some();
  bool send_one(std::size_t subgroup);
  void take(std::size_t subgroup, const multicast::Delivery& delivery);
  void say(const std::string& what) const;

  Place place_;
  std::string name_;
  std::vector<SubgroupSpec> specs_;
  std::vector<MulticastOptions> options_;
  std::unique_ptr<GroupEntry> entry_;
  std::unique_ptr<Group> group_;
  std::vector<std::unique_ptr<Multicast>> multicasts_;
  std::vector<SubgroupLog> logs_;
  std::vector<View> views_;
  bool founder_ = false;
  Habits habits_;
  std::mt19937_64 random_;
  Trace trace_;
  std::uint64_t next_burst_ns_ = 0;
  bool quiet_ = false;
  std::uint64_t polls_ = 0;
  std::string corruption_;
  std::string log_failure_;
  std::string lacks_log_;  // the subgroup whose log nobody has
  RowWatch watch_;
};

}  // namespace dunlin::app::sim
