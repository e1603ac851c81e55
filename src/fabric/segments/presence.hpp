#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

#include "fabric/segments/base.hpp"
#include "fabric/segments/region_memory.hpp"

namespace dunlin::segments {

/// What observers see of a member whose peers do not map its memory: a base segment that nobody but
/// its owner writes. Each call is a store or two.
class Presence {
 public:
  /// `member`: whose; kind and bytes are filled in here. A random incarnation tells it from others.
  explicit Presence(SegmentInfo member);

  /// Who we are, for the segments of our regions.
  [[nodiscard]] SegmentInfo segment(SegmentKind kind, const RegionSpec& spec) const;

  void show_poll(std::uint64_t now_ns) noexcept;
  void show_asleep(bool asleep) noexcept;
  void show_failed(Rank peer) noexcept;

 private:
  SegmentInfo member_;
  RegionMemory memory_;
  Base* base_;
  bool asleep_ = false;
};

}  // namespace dunlin::segments
