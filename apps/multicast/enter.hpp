#pragma once

#include <memory>

#include <dunlin/group.hpp>

#include "multicast/place.hpp"
#include "signals.hpp"

namespace dunlin::app::cast {

/// A member's group, and the fabric that a founder's group stands on.
struct Entered {
  std::unique_ptr<Fabric> fabric;  // null for a member that joins
  std::unique_ptr<Group> group;
};

/// Waits for the other founders, or until a member lets this one in. After a second it prints for
/// which founders it waits, and again when that changes. The group's member events are printed
/// (member_events.hpp). Returns no group if a signal comes first;
/// then it has printed so. Throws Error if the time is up.
[[nodiscard]] Entered enter(const Place& place, GroupOptions options, SignalGuard& signals);

}  // namespace dunlin::app::cast
