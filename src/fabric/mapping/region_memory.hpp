#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fabric/mapping/mapping.hpp"

namespace dunlin::mapping {

/// The memory of a region that peers do not map: a segment, so that observers of this host find it
/// as they find those of shared memory; or, where /dev/shm has no room, pages of our own, which no
/// observer sees.
class RegionMemory {
 public:
  /// Makes zeroed memory. Throws Error if there is none.
  explicit RegionMemory(const MappingInfo& info);
  /// Uses the memory of a segment that another object holds as well.
  explicit RegionMemory(std::shared_ptr<const OwnMapping> segment);
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;
  ~RegionMemory();
  [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }

 private:
  std::shared_ptr<const OwnMapping> segment_;  // null: pages of our own
  std::span<std::byte> memory_;
};

}  // namespace dunlin::mapping
