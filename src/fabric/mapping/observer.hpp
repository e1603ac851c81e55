#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "fabric/mapping/mapping.hpp"

/// Looks at the segments of running members from outside, read-only and without their help, for
/// tools such as `dunlin top`. Segments have no names, so they are found in /proc, through the
/// descriptors that their owners keep open; the kernel shows us those of our own user, and root
/// those of all.
namespace dunlin::mapping {

/// A segment as it was seen in /proc; it may be gone by now.
struct Sighting {
  MappingInfo info;
  pid_t pid;         // the owner's, as seen from here
  std::string path;  // opens the segment as long as its owner keeps it
};

/// All segments on this host that we may read, by owner.
[[nodiscard]] std::vector<Sighting> find_mappings();

/// A segment mapped read-only; it stays readable when its owner is gone.
class ObservedMapping {
 public:
  /// Throws Error if the segment is gone or cannot be read.
  explicit ObservedMapping(const Sighting& sighting);
  [[nodiscard]] const MappingInfo& info() const noexcept { return info_; }
  [[nodiscard]] std::span<const std::byte> memory() const noexcept { return mapping_->memory(); }

 private:
  MappingInfo info_;
  std::unique_ptr<Mapping> mapping_;
};

}  // namespace dunlin::mapping
