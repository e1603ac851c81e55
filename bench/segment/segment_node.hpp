#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/segment.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

/// A member of a fabric with a space and, for the bare operations beside it, a region of its own.
namespace dunlin::bench {

class SegmentNode {
 public:
  static constexpr std::size_t kPoolBytes = 1 << 20;

  explicit SegmentNode(std::unique_ptr<Fabric> fabric, std::size_t pool_bytes = kPoolBytes)
      : node(std::move(fabric)), space(node.fabric(), {.pool_bytes = pool_bytes}) {}

  std::size_t poll() { return space.poll(); }

  Node node;
  SegmentSpace space;
};

/// The two processes of a figure: member 0 measures, and member 1 holds the segments and serves.
class SegmentPair {
 public:
  SegmentPair(Member& me, const Group& group, std::size_t pool_bytes = SegmentNode::kPoolBytes)
      : me_(me), here_(group.join(me.rank()), pool_bytes) {
    connect(me, here_.node);
  }

  [[nodiscard]] Node& node() noexcept { return here_.node; }
  [[nodiscard]] SegmentSpace& space() noexcept { return here_.space; }

  /// A segment at member 1. All members of the team call it; member 0 learns the key.
  Key make(const SegmentSpec& spec) {
    Key key;
    if (me_.rank() == 0) {
      SegmentSpec there = spec;
      there.placement = Placement::on(1);
      auto made = here_.space.allocate(there);
      if (!made.outcome().ok()) throw Error("bench: " + made.describe());
      key = made.result().key;
    }
    meet();
    return key;
  }

  /// Polls until all members of the team are here.
  void meet() {
    me_.meet([this] { here_.poll(); });
  }

  /// A turn in alternate(): member 0 measures, and the others serve until it says that it has.
  template <class Measure>
  std::optional<double> turn(Measure&& measure) {
    return one_sided(
        me_, here_.node, [this] { here_.poll(); }, measure);
  }

 private:
  Member& me_;
  SegmentNode here_;
};

/// Waits for an operation that is under way, or has ended; throws Error if it ends badly.
inline void demand(SegmentOperation& operation) {
  if (operation.wait() != remote::Status::ok) throw Error("bench: " + operation.describe());
}

}  // namespace dunlin::bench
