#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>

#include <dunlin/fabric/pending_join.hpp>

#include "signals.hpp"

namespace dunlin::app {

/// A part of a loop that ends it when a signal comes, or what the loop serves has ended.
class Attendant {
 public:
  /// `look` is called now and then, and says whether it has ended.
  Attendant(SignalGuard& signals, std::function<bool()> look)
      : signals_(signals), look_(std::move(look)) {}

  std::size_t poll() {
    if (++polls_ % kPollsPerLook != 0) return 0;
    const bool ended = look_();
    signal_ = signals_.caught();
    if (signal_ == nullptr && !ended) return 0;
    stop_.request_stop();
    return 1;
  }
  [[nodiscard]] Waits waits() {
    polls_ = kPollsPerLook - 1;  // the poll before the sleep, and the one after it, look
    return {.descriptors = {signals_.descriptor()}};
  }

  [[nodiscard]] std::stop_token stop() const noexcept { return stop_.get_token(); }
  /// That ended the loop; null if no signal did.
  [[nodiscard]] const char* signal() const noexcept { return signal_; }

 private:
  static constexpr std::uint32_t kPollsPerLook = 1'024;

  SignalGuard& signals_;
  std::function<bool()> look_;
  std::stop_source stop_;
  const char* signal_ = nullptr;
  std::uint32_t polls_ = 0;
};

}  // namespace dunlin::app
