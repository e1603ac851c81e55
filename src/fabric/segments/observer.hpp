#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "fabric/segments/segment.hpp"

/// Looking at the segments of running members from outside, read-only and without their help: for
/// tools such as `dunlin top`. Segments have no names, so they are found in /proc, through the
/// descriptors that their owners keep open; the kernel lets us see those of our own user, and root
/// those of all.
namespace dunlin::segments {

/// A segment as it was seen in /proc; it may be gone by now.
struct Sighting {
  SegmentInfo info;
  pid_t pid;         // of its owner, as seen from here
  std::string path;  // opens it as long as its owner keeps it
};

/// All segments on this host that we may read, by owner.
[[nodiscard]] std::vector<Sighting> find_segments();

/// A segment mapped read-only; it stays readable when its owner is gone.
class ObservedSegment {
 public:
  /// Error if it is gone or has become unreadable.
  explicit ObservedSegment(const Sighting& sighting);
  [[nodiscard]] const SegmentInfo& info() const noexcept { return info_; }
  [[nodiscard]] std::span<const std::byte> memory() const noexcept { return mapping_->memory(); }

 private:
  SegmentInfo info_;
  std::unique_ptr<Mapping> mapping_;
};

}  // namespace dunlin::segments
