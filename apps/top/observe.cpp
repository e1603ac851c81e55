#include "top/observe.hpp"

#include <ctime>
#include <memory>

#include <sys/stat.h>
#include <unistd.h>

#include "fabric/mapping/observer.hpp"
#include "fabric/shm/system.hpp"
#include "top/claims.hpp"

namespace dunlin::top {
namespace {

/// A segment that others than its user may open belongs to a group of a Unix group.
std::string access_of(const mapping::Sighting& sighting) {
  struct stat status {};
  const bool known = stat(sighting.path.c_str(), &status) == 0;
  return known && (status.st_mode & S_IRGRP) != 0 ? access_of_unix_group(status.st_gid)
                                                  : access_of_user(sighting.info.owner_uid);
}

std::vector<Segment> map_segments() {
  std::vector<Segment> segments;
  for (const mapping::Sighting& sighting : mapping::find_mappings()) {
    try {
      auto mapped = std::make_shared<const mapping::ObservedMapping>(sighting);
      Segment segment{.info = mapped->info(), .pid = sighting.pid, .access = access_of(sighting)};
      segment.payload = mapped->memory();
      segment.mapping = std::move(mapped);
      segments.push_back(std::move(segment));
    } catch (const Error&) {
      // Gone since it was found; the next look will not find it.
    }
  }
  return segments;
}

Sample observe_all(std::vector<Hidden>& hidden) {
  const std::vector<Segment> segments = map_segments();
  Sample sample = take_sample(segments, shm::read_clock_ns(CLOCK_MONOTONIC));
  hidden = find_hidden(read_claims(), sample, geteuid());
  return sample;
}

}  // namespace

Sample observe(const Selection& selection) {
  std::vector<Hidden> hidden;
  Sample sample = observe_all(hidden);
  apply(selection, sample, hidden);
  return sample;
}

Sample observe_checked(const Selection& selection) {
  std::vector<Hidden> hidden;
  Sample sample = observe_all(hidden);
  check(selection, sample, hidden);
  apply(selection, sample, hidden);
  return sample;
}

}  // namespace dunlin::top
