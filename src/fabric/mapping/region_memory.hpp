#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fabric/mapping/mapping.hpp"

namespace dunlin::mapping {

/// The memory of a region that peers do not map: a segment, so that observers of this host find it
/// as they find those of shared memory; or, where /dev/shm cannot give one, pages of our own, which
/// nobody sees.
class RegionMemory {
 public:
  /// Zeroed. Error if there is no memory at all.
  explicit RegionMemory(const MappingInfo& info);
  /// That of a segment which others hold as well.
  explicit RegionMemory(std::shared_ptr<const OwnMapping> segment);
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;
  ~RegionMemory();
  [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }

 private:
  std::shared_ptr<const OwnMapping> segment_;  // none: pages of our own
  std::span<std::byte> memory_;
};

}  // namespace dunlin::mapping
