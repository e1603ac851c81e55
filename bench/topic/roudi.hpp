#pragma once

#include <string>

#include "fabric/system.hpp"
#include "process/child.hpp"

/// What Cyclone DDS needs for its shared memory: iceoryx's daemon.
namespace dunlin::bench {

/// An `iox-roudi` of its own, with a /dev/shm and a /tmp of its own, in which it and its clients
/// leave their files. All of this goes with this object, also if a process is killed.
class RouDi {
 public:
  /// What to do to make it available; empty if it is.
  [[nodiscard]] static std::string missing();

  /// Returns when it is ready. Throws Error.
  RouDi();
  /// Called in a process that will be its client, before the program begins. Throws Error.
  void enter() const;

 private:
  Descriptor output_;
  process::Child daemon_;
};

}  // namespace dunlin::bench
