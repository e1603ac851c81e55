#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// What the suite Growing needs of a backend whose members can come while a fabric works.
namespace dunlin::conformance {

/// Some nodes: founders, which are in a fabric, and others, which are in none yet. A node's number
/// is also the rank that it has, or will have.
class GrowingBackend {
 public:
  GrowingBackend() = default;
  GrowingBackend(const GrowingBackend&) = delete;
  GrowingBackend& operator=(const GrowingBackend&) = delete;
  virtual ~GrowingBackend() = default;

  [[nodiscard]] virtual Fabric& founder(Rank node) = 0;
  [[nodiscard]] virtual std::shared_ptr<Rendezvous> rendezvous(Rank node) = 0;
  /// What each node does again and again from now on; it returns how much it has found to do.
  virtual void attach(std::function<std::size_t(Rank node)> poll) = 0;
  /// Lets all nodes work until the condition holds; false if it did not within a very long time.
  [[nodiscard]] virtual bool run_until(const std::function<bool()>& condition) = 0;
};

struct Grower {
  std::string variant;
  std::function<std::unique_ptr<GrowingBackend>(std::uint32_t founders, std::uint32_t nodes)> start;
};

/// A backend whose nodes are all polled by this thread: `begin` is for a founder, as in Backend.
[[nodiscard]] std::unique_ptr<GrowingBackend> real_growing_backend(
    std::uint32_t founders, std::uint32_t nodes,
    const std::function<std::unique_ptr<PendingJoin>(const std::string& group, Rank rank,
                                                     std::uint32_t nodes)>& begin,
    std::function<std::shared_ptr<Rendezvous>(const std::string& group, Rank node)> rendezvous);

[[nodiscard]] std::vector<Grower> growers();

/// One more of them, from a file that is compiled only where there is what it needs.
bool add_grower(Grower grower);

}  // namespace dunlin::conformance
