#pragma once

#include <set>
#include <vector>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/remote/lock.hpp>

#include "remote/control_channel.hpp"
#include "remote/lock_word.hpp"

namespace dunlin::remote {

/// One acquisition, from compare-and-swap to hand-over; a protocol goes with it (locks.cpp).
struct Node {
  Rank home = 0;
  std::uint64_t offset = 0;
  bool only_if_free = false;
  bool given_up = false;   // released, or its waiter has gone
  bool recovered = false;  // the last holder died with the lock
  bool unsettled = false;  // operations without a waiting caller may be under way
  bool elsewhere = false;  // unsettled at that member, too
  Rank also_at = 0;
  std::uint64_t also_offset = 0;

  Locks::Answer answer = Locks::Answer::waiting;
  std::uint64_t word = 0;  // what it made of the lock's word; 0: it is in no queue
  bool posted = false;     // an operation's result has to be looked at
  // What repairs say:
  bool lost = false;          // there is no such lock any more
  bool restarts = false;      // at another home, once the repair is over
  bool parked = false;        // it is not known yet whether there is a lock at the other home
  bool quiet = false;         // lost, and no member will write to it any more
  bool stranded = false;      // its successor has failed: the repair sees to it
  std::uint64_t before = 0;   // what the last compare-and-swap found
  std::uint64_t message = 0;  // source of what is written to another node
  ProtocolState* protocol = nullptr;  // under way

  [[nodiscard]] bool is_at(Rank its_home, std::uint64_t its_offset) const noexcept {
    return home == its_home && offset == its_offset;
  }
  [[nodiscard]] bool in_queue() const noexcept { return word != 0 && !lost && !stranded; }
};

/// A message while queues are repaired, or a member comes in; `generation` is the membership's.
struct RepairMessage {
  enum class Type : std::uint64_t {
    frozen,    // the sender has expelled the gone members, and has no lock step under way
    report,    // one of the sender's nodes in the queue of the lock at `offset`
    reported,  // that was the last of them
    place,     // the receiver's node has this successor, and holds the lock if `grant`
    placed,    // that was the last of them
    resume,    // the sender's nodes are where they belong
    enters,    // the sender came later, and asks to take part from this generation on
    known,     // the later member of rank `node` takes part, as the sender knows
    admitted   // the sender's repairs wait for the receiver from now on; comes behind `known`
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
  // A node's way is two protocols: from its acquisition to the lock, and from its release to the
  // end. Where a compare-and-swap has ended when it is posted, a lock that nobody else wants needs
  // neither.
  Protocol<Status> get(std::uint32_t index);
  Protocol<Status> give_back(std::uint32_t index);
  /// `ok`: it is in the queue; else it is not.
  Protocol<Status> join_queue(std::uint32_t index);
  /// Waits until all that was posted under the lock has landed.
  Protocol<Status> settle(std::uint32_t index);
  /// Hands the lock on, or frees it.
  Protocol<Status> leave_queue(std::uint32_t index);
  /// The word of that home's part, if it is mapped here; else null.
  [[nodiscard]] std::byte* mapped(Rank home, RegionId region, std::uint64_t offset) const noexcept;
  /// Whether the lock is free now, or the successor's, whose node is mapped here.
  [[nodiscard]] bool leaves_at_once(std::uint32_t index) noexcept;

  /// When a node's operation may be posted: not while queues are repaired. One that was not posted
  /// before a repair never is.
  struct Gate {
    const State* locks;
    Node* node;
    Rank target;
    std::uint64_t repairs;
    [[nodiscard]] Status now() const noexcept;
    [[nodiscard]] Status refused() const noexcept {
      return locks->withdrawn[target] ? Status::lost : Status::ok;
    }
    void posted() const noexcept { node->posted = true; }
    void taken() const noexcept { node->posted = false; }
  };
  /// `in_repair`: the number of repairs that had begun when the operation was decided on.
  [[nodiscard]] auto step(Node& node, std::uint64_t in_repair, Rank target,
                          const Operation& operation) noexcept {
    return post(fabric, operation, Gate{this, &node, target, in_repair});
  }
  /// Whether no queue changes.
  [[nodiscard]] bool rests() const noexcept;
  [[nodiscard]] auto thawed() const noexcept {
    return Until([this] { return !rests(); });
  }
  /// Whether a word that a peer has written can be a node's address.
  [[nodiscard]] bool is_known(NodeAddress address) const noexcept {
    return address.member < withdrawn.size() && address.node < kMaxLockNodes;
  }
  void give_back_all() noexcept;
  /// Requires that one is free. A free node is as new, and its words are 0.
  [[nodiscard]] LockNode take_node(Rank home, std::uint64_t offset) noexcept;
  void reset_words(std::uint32_t index) noexcept;
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

  // --- members that come later: lock_entry.cpp ---------------------------------------------------
  /// Whether repairs count on that member: a founder, or one that this process has admitted, unless
  /// it has destroyed its part. All that it had posted here has landed then (FAB-F1).
  [[nodiscard]] bool counts(Rank rank) const noexcept {
    return takes_part[rank] && progress.contains(rank) && !withdrawn[rank];
  }
  [[nodiscard]] bool has_come_in() const noexcept { return takes_part[fabric.rank()]; }
  /// Asks all that take part; once all have admitted this member, it uses locks.
  std::size_t come_in();
  std::size_t admit_those_that_enter();

  Progress& progress;
  Fabric& fabric;
  LocksOptions options;
  const bool coherent = fabric.properties().atomics_coherent_with_cpu;
  Region node_words;
  std::vector<Node> nodes;
  std::vector<std::uint32_t> free_nodes;
  std::vector<std::uint32_t> active;
  std::vector<bool> withdrawn;  // members that have destroyed their part
  Subscription subscription;
  ControlChannel channel;
  std::set<std::uint64_t> managed;

  bool owes = false;  // there was no memory for a release
  bool frozen = false;
  std::uint64_t repairs = 0;  // begun
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
  std::vector<bool> takes_part;           // by rank; our own flag: this process uses locks
  std::vector<std::uint64_t> asked_in;    // by member: the last generation in which we asked it
  std::vector<std::uint64_t> entered_in;  // in which it has asked us, and has no answer; 0: none
  std::vector<std::uint64_t> admitted_in;
  bool anybody_enters = false;
  Runs protocols{progress};  // those of the nodes
};

}  // namespace dunlin::remote
