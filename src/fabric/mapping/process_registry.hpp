#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

#include "fabric/mapping/base.hpp"
#include "fabric/mapping/region_memory.hpp"

namespace dunlin::mapping {

/// A base segment that only its owner writes: observers see it of a member whose peers do not map
/// its memory. Each call is a store or two.
class ProcessRegistry {
 public:
  /// `member` describes the owner; kind and bytes are filled in here. A random incarnation tells
  /// the owner from others.
  explicit ProcessRegistry(MappingInfo member);

  /// The owner's identity, for the segments of its regions.
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
