#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// The simulated fabric: many nodes in one thread under a virtual clock. The same tables and
/// protocols run on it unchanged, as fast as they can be computed, and a run is a pure function of
/// profile, node count and seed.
///
///     dunlin::sim::World world(dunlin::sim::profile("ib100"), 3, /*seed=*/7);
///     dunlin::Table<Row> a(world.fabric(0)), b(world.fabric(1)), c(world.fabric(2));
///     world.attach(0, [&] { return a.poll(); });   // and b, c
///     world.at(5'000, [&] { world.crash(2); });
///     bool seen = world.run_until([&] { return a[1].step.load() == 1; }, 1'000'000);
namespace dunlin::sim {

/// A network and its nodes' processors, by figures that have a source. Times are in nanoseconds.
struct Profile {
  std::string name;
  std::string source;             // where the figures come from
  double write_latency_ns;        // 1 byte, from the doorbell to placement at the target
  double read_latency_ns;         // 1 byte, round trip, from the doorbell to the data at hand
  double atomic_latency_ns;       // round trip
  double message_overhead_ns;     // added to a write for a send's handling by the target's NIC
  double bandwidth_bytes_per_ns;  // one port, in each direction; 0: no limit
  double nic_gap_ns;              // least time between two operations of one NIC
  double jitter;                  // latency varies by up to this fraction, from the seed
  double post_ns;                 // CPU time to post one operation
  double post_batched_ns;         // CPU time for each further operation of a batch
  CpuCosts cpu;
  std::uint32_t max_inline_bytes;
  std::uint32_t queue_slots;
  bool ordered_placement;
  bool native_atomics;
  // Nodes r with equal r % racks share a rack; between racks, latency and bandwidth are scaled.
  std::uint32_t racks = 1;
  double cross_rack_latency = 1.0;
  double cross_rack_bandwidth = 1.0;
  // Failure detection, as on real fabrics: broken connections and silence.
  double retry_timeout_ns = 500'000;  // an operation to a dead NIC fails after this
  double heartbeat_interval_ns = 50'000;
  double silence_timeout_ns = 1'000'000;  // 0: silence never counts as a failure
  // A NIC reads the whole first packet over its bus before it sends it on, which adds latency.
  double bus_bytes_per_ns = 0;  // 0: no such latency
  std::uint32_t packet_bytes = 4096;
  // On some NICs, atomics on one word wait longer for each other than those on several words.
  double same_word_gap_ns = 0;  // least time between two native atomics on one word
};

[[nodiscard]] const std::vector<Profile>& profiles();
/// Returns the profile of that name; otherwise throws Error, which lists the profiles.
[[nodiscard]] const Profile& profile(std::string_view name);

class World {
 public:
  World(Profile profile, std::uint32_t nodes, std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] const Profile& profile() const noexcept;
  /// How many nodes there are.
  [[nodiscard]] std::uint32_t size() const noexcept;
  /// A node's fabric among the nodes that the world began with; its rank there is its number.
  [[nodiscard]] Fabric& fabric(Rank node);

  /// Adds a node, which is in no fabric yet; returns its number.
  Rank add_node();
  /// Begins to form a fabric of these nodes at `node`, beside what the node does otherwise. A
  /// node's rank there is its index in the list, which all must give alike. Forming takes a round
  /// trip once two nodes have begun, so polling takes a while; poll() throws Error if one of the
  /// nodes gives up, cannot be reached, or does not come in time. A node's fabrics share its CPU,
  /// NIC, clock and faults. Fabrics and pending joins must not outlive the world. Destroying a
  /// fabric takes leave.
  [[nodiscard]] std::unique_ptr<PendingJoin> form(Rank node, const std::string& name,
                                                  const std::vector<Rank>& nodes,
                                                  std::uint64_t timeout_ns = 100'000'000);

  /// Makes the place where the node meets others of that group: `node0` is the name of node 0.
  [[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(Rank node, const std::string& group);

  /// Adds a part of a node's program, which is called whenever the node polls, and returns whether
  /// it did something. (While a node does nothing, the world skips its polls until something
  /// arrives for it or a timer is due, and continues with the poll that would have noticed that.)
  /// An exception comes out of run_until() or run_for(), and the world can be run on.
  void attach(Rank node, std::function<std::size_t()> poll);
  void detach_all(Rank node);
  /// Runs `action` once at (or after) a virtual time, outside all nodes.
  void at(std::uint64_t time_ns, std::function<void()> action);
  /// Runs `action` on the node's CPU as soon as it is free: its operations and its time count
  /// there.
  void on(Rank node, std::function<void()> action);

  [[nodiscard]] std::uint64_t now_ns() const noexcept;
  /// Runs events until the condition holds (checked after every event), or `limit_ns` of further
  /// virtual time have passed, or no event is left; returns whether the condition holds.
  bool run_until(const std::function<bool()>& condition, std::uint64_t limit_ns);
  void run_for(std::uint64_t ns);

  /// Stops all CPUs for good, so that nothing is posted any more, and nobody notices. A program
  /// that destroys what it has on many nodes calls this before.
  void end();

  // --- faults ------------------------------------------------------------------------------------
  void crash(Rank node);                    // CPU and NIC stop for good
  void hang(Rank node);                     // the CPU stops for good, the NIC keeps serving
  void pause(Rank node, std::uint64_t ns);  // the CPU stops for so long
  void slow(Rank node, double factor);      // the CPU takes `factor` times as long
  void cut(Rank from, Rank to);             // one direction; operations fail after retries
  void heal(Rank from, Rank to);
  void slow_link(Rank from, Rank to, double factor);

  /// Draws a number from the world's own generator, for programs that must be part of the replay.
  [[nodiscard]] std::uint64_t random();
  /// How many operations and messages all nodes have posted so far.
  [[nodiscard]] std::uint64_t operations() const noexcept;
  /// A digest of everything that happened so far: equal seeds give equal digests.
  [[nodiscard]] std::uint64_t digest() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dunlin::sim
