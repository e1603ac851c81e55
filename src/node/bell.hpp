#pragma once

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/system.hpp"

namespace dunlin::node {

/// Ends a sleep of the polling thread. It lives as long as its engine, so that any thread may ring
/// it at any time, also in a signal handler.
class Bell {
 public:
  Bell() : event_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "making an eventfd")) {}
  void ring() const noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(event_.get(), &one, sizeof one));  // full: it rings already
  }
  void silence() const noexcept {
    std::uint64_t rings = 0;
    static_cast<void>(!::read(event_.get(), &rings, sizeof rings));  // it had not rung
  }
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

 private:
  Descriptor event_;
};

}  // namespace dunlin::node
