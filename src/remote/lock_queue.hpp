#pragma once

#include <set>
#include <vector>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote/lock.hpp>

#include "remote/control_channel.hpp"
#include "remote/lock_word.hpp"

namespace dunlin::remote {

/// One acquisition, from compare-and-swap to hand-over.
struct Node {
  enum class Phase : std::uint8_t {
    free,
    enter,        // compare-and-swap until this node is the tail
    link,         // write its address into the predecessor's node
    wait,         // for the predecessor's write into its own
    held,         //
    settle_also,  // a change was given up: until what was posted of it has landed elsewhere
    settle,       // ... at the home
    leave,        // compare-and-swap the word back to 0, as long as there is no successor
    await_next,   // another has entered, and will write its address
    grant,        // write into the successor's node
    stranded,     // the successor has failed: the repair sees to it
    busy,         // refused
    lost          // the home has failed
  };
  Phase phase = Phase::free;
  bool only_if_free = false;
  bool given_up = false;   // released, or its waiter has gone
  bool recovered = false;  // the last holder died with the lock
  bool unsettled = false;  // operations without a waiting caller may be under way
  bool settled = false;    // lost, and no member will write to it any more
  bool posted = false;     // an operation's result has to be looked at
  bool restarts = false;   // at another home, once the repair is over
  bool elsewhere = false;  // unsettled at that member, too
  Rank also_at = 0;
  std::uint64_t also_offset = 0;
  Rank home = 0;
  std::uint64_t offset = 0;
  std::uint64_t word = 0;      // what it made of the lock's word
  std::uint64_t expected = 0;  // in it
  std::uint64_t before = 0;    // what was there
  std::uint64_t message = 0;   // source of what is written to another node
  NodeAddress other;           // the predecessor, then the successor
  Completion done;

  [[nodiscard]] bool in_queue() const noexcept {
    return phase >= Phase::link && phase <= Phase::grant;
  }
};

/// A message while queues are repaired; `generation` is the membership's.
struct RepairMessage {
  enum class Type : std::uint64_t {
    frozen,    // the sender has expelled the gone members, and has no lock step under way
    report,    // one of the sender's nodes in the queue of the lock at `offset`
    reported,  // that was the last of them
    place,     // the receiver's node has this successor, and holds the lock if `grant`
    placed,    // that was the last of them
    resume     // the sender's nodes are where they belong
  };
  Type type;
  std::uint64_t generation;
  std::uint64_t node = 0;
  std::uint64_t offset = 0;
  std::uint64_t ticket = 0;
  std::uint64_t holds = 0;
  std::uint64_t next = 0;
  std::uint64_t grant = 0;
};

struct Locks::State {
  State(Progress& progress, LocksOptions options);

  // --- queues: locks.cpp -------------------------------------------------------------------------
  void step(std::uint32_t index) noexcept;
  void take_result(std::uint32_t index) noexcept;
  /// Returns whether the node can go on at once.
  bool act(std::uint32_t index) noexcept;
  bool post(Node& node, const Operation& operation) noexcept;
  [[nodiscard]] bool is_lost_with_its_home(Node& node) noexcept;
  /// Whether a word that a peer has written can be a node's address.
  [[nodiscard]] bool is_known(NodeAddress address) const noexcept {
    return address.member < withdrawn.size() && address.node < kMaxLockNodes;
  }
  void free(std::uint32_t index) noexcept;
  [[nodiscard]] std::uint64_t& own_word(std::uint32_t index, std::uint64_t which) const noexcept;
  [[nodiscard]] NodeAddress address(std::uint32_t index) const noexcept {
    return {fabric.rank(), index};
  }

  // --- repair: lock_repair.cpp -------------------------------------------------------------------
  void begin_repair();
  std::size_t go_on_with_repair();
  void handle(Rank from, std::span<const std::byte> bytes);
  void report_nodes();
  void lose_nodes() noexcept;
  void rebuild();
  void rebuild(std::uint64_t offset, std::vector<std::pair<Rank, RepairMessage>>& queue);
  void place(const RepairMessage& message) noexcept;
  void end_repair() noexcept;
  void tell_members(RepairMessage::Type type);
  [[nodiscard]] bool all_members(const std::vector<std::uint64_t>& have, bool exactly) const;

  Progress& progress;
  Fabric& fabric;
  LocksOptions options;
  Region node_words;
  std::vector<Node> nodes;
  std::vector<std::uint32_t> free_nodes;
  std::vector<std::uint32_t> active;
  std::vector<bool> withdrawn;  // members that have destroyed their part
  Subscription subscription;
  ControlChannel channel;
  std::set<std::uint64_t> managed;

  bool frozen = false;
  std::uint64_t generation = 0;
  bool parted = false;  // nodes whose home is gone are lost
  bool said_frozen = false;
  bool said_report = false;
  bool said_placed = false;
  bool said_resume = false;
  std::vector<std::uint64_t> frozen_in;  // by member: the last generation
  std::vector<std::uint64_t> reported_in;
  std::vector<std::uint64_t> placed_in;
  std::vector<std::uint64_t> resumed_in;
  std::vector<std::pair<Rank, RepairMessage>> reports;
};

}  // namespace dunlin::remote
