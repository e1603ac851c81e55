#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

#include "fabric/mapping/base.hpp"
#include "fabric/mapping/region_memory.hpp"

namespace dunlin::mapping {

/// Observers see this of a member whose peers do not map its memory: a base segment that only its
/// owner writes. Each call is a store or two.
class ProcessRegistry {
 public:
  /// `member`: the owner; kind and bytes are filled in here. A random incarnation tells it from
  /// others.
  explicit ProcessRegistry(MappingInfo member);

  /// Our identity, for the segments of our regions.
  [[nodiscard]] MappingInfo segment(MappingKind kind, const RegionSpec& spec) const;

  void publish_poll(std::uint64_t now_ns) noexcept;
  void publish_asleep(bool asleep) noexcept;
  void publish_failed(Rank peer) noexcept;

 private:
  MappingInfo member_;
  RegionMemory memory_;
  Base* base_;
  bool asleep_ = false;
};

}  // namespace dunlin::mapping
