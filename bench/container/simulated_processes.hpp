#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "bench/container/container_node.hpp"
#include "bench/fabric/simulated_members.hpp"
#include "bench/harness/experiment.hpp"

/// Simulated processes with containers, and the sequences of bare operations that BCL's containers
/// consist of, on the network of "RDMA vs. RPC for Implementing Distributed Data Structures".
namespace dunlin::bench {

/// Table I: round trips among 64 nodes of 32 processes that are all at work.
inline constexpr double kPublishedPutNs = 3'000;
inline constexpr double kPublishedGetNs = 3'700;
inline constexpr double kPublishedSwapNs = 3'800;
inline constexpr double kPublishedAddNs = 3'900;
inline constexpr std::uint32_t kPublishedNodes = 64;
/// The text has no number for an active message and its reply. At 128 nodes a find under `both`, F
/// + R + F, comes at a similar cost.
inline constexpr double kPublishedMessageNs = 2 * kPublishedAddNs + kPublishedGetNs;
/// Nor for an addition to the single variable of each process. With 2 us of computing between two
/// calls, the half of which a message waits on average, a message takes as long as a push, which is
/// such an addition and a put.
inline constexpr double kPublishedSingleWordAddNs = kPublishedMessageNs + 1'000 - kPublishedPutNs;

/// That network; its nodes are the simulator's racks. docs/benchmarks/container.md derives it.
[[nodiscard]] sim::Profile aries_network(std::uint32_t nodes);
/// The same for so many nodes; or the one that --profile names, which has no nodes.
[[nodiscard]] sim::Profile network_of(const Effort& effort, std::uint32_t nodes);
/// What `dunlin calibrate` would find there.
[[nodiscard]] ComponentCosts component_costs(const sim::Profile& network);

/// An operation of a sequence, on a random place of the process that the sequence works on.
enum class Component : std::uint8_t {
  put,
  get,
  swap,
  persistent_swap,  // until it changes the word
  add,
  add_to_one_word,  // of each process
  take_ticket,      // a fetch-and-add on the tail of the process's queue
  mark_ready,       // a persistent swap on its second tail, behind all earlier tickets
  take_place,       // likewise of a pop: on the head,
  mark_taken        // and on the second head
};

struct ProcessSetting {
  Style style = Style::one_sided;
  std::uint32_t slots = 0;     // of each process's part of the map
  std::uint32_t capacity = 0;  // of each process's queue; 0: it has none
  ComponentCosts costs = {};   // for the automatic style; those of the network
};

class SimulatedProcess {
 public:
  SimulatedProcess(Fabric& fabric, const ProcessSetting& setting);
  SimulatedProcess(const SimulatedProcess&) = delete;
  SimulatedProcess& operator=(const SimulatedProcess&) = delete;

  std::size_t poll() { return containers_.poll(); }
  [[nodiscard]] Fabric& fabric() const noexcept { return containers_.fabric(); }
  [[nodiscard]] bool connected() const;
  [[nodiscard]] remote::Progress& its_progress() const noexcept { return containers_.progress(); }

  struct Work {
    std::uint32_t times = 0;
    /// The processes of ranks 1 to this one work, all at process 0. 0: all work, each time at a
    /// random other process.
    std::uint32_t at_first = 0;
    double computing_ns = 0;  // before each
    /// Computes on another processor, while a progress thread polls on the simulated one.
    bool progress_thread = false;
    double took_ns = 0;  // one on average, without the computing
  };
  /// Sequences.
  remote::Job run_bare(std::span<const Component> sequence, std::uint64_t seed, Work* work);
  /// Calls on keys that other processes hold, or on their queues. Finds, assigns and erases are of
  /// keys that were inserted before.
  remote::Job run_calls(Call call, Promise promise, std::uint64_t seed, Work* work);
  /// Pushes so many on the own queue.
  remote::Job fill_queue(std::uint32_t elements);

 private:
  /// One operation of the fabric. Throws Error if it fails.
  remote::Job step(Operation operation);
  /// A time in which the process does not use its simulated processor.
  remote::Job pause(double ns);
  [[nodiscard]] remote::Protocol<remote::Status> post(Operation operation);
  [[nodiscard]] remote::Protocol<remote::Status> wait_for(std::uint64_t ns);
  [[nodiscard]] Rank other(std::mt19937_64& random, const Work& work) const;
  [[nodiscard]] std::uint64_t new_key();
  void begin_on_map(Call call, Promise promise, std::uint32_t i);

  Containers containers_;
  Region words_;
  BenchMap map_;
  std::vector<std::unique_ptr<BenchQueue>> queues_;
  BenchMap::Operation map_call_;
  std::vector<QueueCall<std::uint64_t>> queue_calls_;  // by queue
  std::vector<std::uint64_t> keys_;                    // that it has inserted
  std::uint64_t next_key_ = 0;
};

using SimulatedProcesses = SimulatedMembers<SimulatedProcess>;

/// Makes them, and returns once all are connected. They know the costs of the network.
[[nodiscard]] std::unique_ptr<SimulatedProcesses> processes_of(const sim::Profile& network,
                                                               std::uint32_t processes,
                                                               std::uint64_t seed,
                                                               const ProcessSetting& setting);

/// Nanoseconds of one, on average over all processes that work, all at once.
[[nodiscard]] double time_of_bare(SimulatedProcesses& all, std::span<const Component> sequence,
                                  std::uint64_t seed, const SimulatedProcess::Work& work);
[[nodiscard]] double time_of_calls(SimulatedProcesses& all, Call call, Promise promise,
                                   std::uint64_t seed, const SimulatedProcess::Work& work);

}  // namespace dunlin::bench
