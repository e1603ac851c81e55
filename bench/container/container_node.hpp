#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <dunlin/container.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

/// A member of a fabric with containers and, for the bare operations beside them, regions of its
/// own.
namespace dunlin::bench {

using BenchMap = HashMap<std::uint64_t, std::uint64_t>;
using BenchQueue = Queue<std::uint64_t>;

class ContainerNode {
 public:
  explicit ContainerNode(std::unique_ptr<Fabric> fabric)
      : node(std::move(fabric)), containers(node.fabric()), calibration(containers) {}

  std::size_t poll() { return containers.poll(); }

  Node node;
  Containers containers;
  Calibration calibration;
};

/// The two processes of a figure: member 0 calls, and member 1 holds the containers and serves.
class ContainerPair {
 public:
  static constexpr Rank kHolder = 1;

  ContainerPair(Member& me, const Group& group) : me_(me), here_(group.join(me.rank())) {
    connect(me, here_.node);
  }

  [[nodiscard]] Member& me() noexcept { return me_; }
  [[nodiscard]] Node& node() noexcept { return here_.node; }
  [[nodiscard]] Containers& containers() noexcept { return here_.containers; }
  /// Once all have what they make.
  void meet() {
    me_.meet([this] { here_.poll(); });
  }

  /// A turn in alternate(): member 0 measures, and the others serve until it says that it has.
  template <class Measure>
  std::optional<double> turn(Measure&& measure) {
    return turn(std::forward<Measure>(measure), [] {});
  }
  /// The same; the others call `pause` between two polls.
  template <class Measure, class Pause>
  std::optional<double> turn(Measure&& measure, Pause&& pause) {
    const auto poll = [this] { here_.poll(); };
    return take_turn(me_, poll, [&]() -> std::optional<double> {
      ++turns_;
      if (me_.rank() != 0) {
        while (here_.node.word(kOver) < turns_) {
          here_.poll();
          pause();
        }
        return std::nullopt;
      }
      const double measured = measure();
      here_.node.end_turn(kHolder);
      return measured;
    });
  }
  /// At member 0: the components of this fabric, measured now.
  [[nodiscard]] ComponentCosts costs(bool quick) {
    ComponentCosts costs;
    static_cast<void>(turn([&] {
      costs = here_.calibration.measure(kHolder, quick ? 4 : 100);
      return 0.0;
    }));
    return costs;
  }

 private:
  Member& me_;
  ContainerNode here_;
  std::uint64_t turns_ = 0;
};

/// Keys that the holder of a pair holds, all different.
inline std::vector<std::uint64_t> keys_of_holder(const BenchMap& map, std::size_t count) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 1; keys.size() < count; ++key)
    if (map.home_of(key) == ContainerPair::kHolder) keys.push_back(key);
  return keys;
}

/// Waits for an operation that is under way, or has ended; throws Error if it ends badly.
inline void demand(ContainerOperation& operation) {
  const remote::Status status = operation.wait();
  if (status != remote::Status::ok)
    throw Error("bench: a call ended: " + std::string(remote::describe(status)));
}

}  // namespace dunlin::bench
