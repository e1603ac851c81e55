#pragma once

#include "fabric/sim/event_queue.hpp"
#include "fabric/sim/random.hpp"
#include "fabric/sim/ticks.hpp"

namespace dunlin::sim {

/// The world's time: now, and the events to come.
struct Timeline {
  Ticks now = 0;
  EventQueue events;
  Digest digest;

  template <class Subject>
  void schedule(Ticks time, Happening kind, Subject&& subject) {
    events.push(time > now ? time : now, kind, subject);
  }
};

}  // namespace dunlin::sim
