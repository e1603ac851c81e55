#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/table.hpp>

/// The limit of the table in the simulator: the same exchanges by the fabric's bare operations,
/// without rows, predicates or triggers.
namespace dunlin::bench {

/// Nodes that each keep one word for every node: in place where they can be written (writes), or
/// as copies of what they have read (reads).
class RawCluster {
 public:
  RawCluster(const sim::Profile& profile, std::uint32_t nodes, std::uint64_t seed, Refresh refresh);

  /// Half of a round trip between nodes 0 and 1, begun at random moments; the mean in ns.
  [[nodiscard]] double detection(std::uint32_t times);
  /// All nodes count in step; rounds a second.
  [[nodiscard]] double counting_rate(std::uint64_t rounds);

 private:
  struct Node {
    Fabric* fabric = nullptr;
    Region region;
    std::vector<std::uint64_t> copies;  // reads: one a cache line
    std::vector<std::unique_ptr<Completion>> fetched;
    std::uint64_t mine = 0;
  };

  [[nodiscard]] std::uint64_t word(const Node& node, Rank of) const noexcept;
  void publish(Node& node, std::uint64_t value) noexcept;
  std::size_t fetch_again(Node& node) noexcept;
  void attach(const std::function<std::size_t(Node&)>& step);

  sim::World world_;
  Refresh refresh_;
  std::vector<Node> nodes_;
};

}  // namespace dunlin::bench
