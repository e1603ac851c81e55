#pragma once

#include <cstdint>

#include <dunlin/fabric.hpp>

namespace dunlin::pubsub {

constexpr std::uint64_t kNsPerMs = 1'000'000;

/// The fabric's clock, which is read at most once a poll, and only if a caller asks.
class PollClock {
 public:
  explicit PollClock(const Fabric& fabric) noexcept : fabric_(&fabric) {}

  [[nodiscard]] std::uint64_t now_ns() noexcept {
    if (!fresh_ && fabric_ != nullptr) {
      now_ns_ = fabric_->now_ns();
      fresh_ = true;
    }
    return now_ns_;
  }
  void begin_poll() noexcept { fresh_ = false; }
  /// Detaches the clock from the fabric, which may be destroyed now; the time stands still.
  void end() noexcept { fabric_ = nullptr; }

 private:
  const Fabric* fabric_;
  std::uint64_t now_ns_ = 0;
  bool fresh_ = false;
};

}  // namespace dunlin::pubsub
