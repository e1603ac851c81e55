#pragma once

#include <cstdint>

#include "fabric/sim/ticks.hpp"
#include "ring.hpp"

namespace dunlin::sim {

/// Resources that a link lends to its sender (queue slots, bytes of a message ring), and gets back
/// at moments that are known in advance. So an acknowledgement for which no sender waits needs no
/// event.
class Budget {
 public:
  [[nodiscard]] bool take(std::uint64_t amount, std::uint64_t capacity, Ticks now) {
    while (!returns_.empty() && returns_.front().at <= now) {
      used_ -= returns_.front().amount;
      returns_.pop();
    }
    wanted_ = used_ + amount > capacity;
    if (!wanted_) used_ += amount;
    return !wanted_;
  }
  void give_back_at(Ticks at, std::uint64_t amount) { returns_.push_or_grow({at, amount}); }
  void reset() noexcept {
    returns_.clear();
    used_ = 0;
  }

  /// Whether a sender was refused, and has not been told since that there is more.
  [[nodiscard]] bool wanted() const noexcept { return wanted_; }
  void told() noexcept { wanted_ = false; }
  /// When the next amount comes back; kNever if that is not known.
  [[nodiscard]] Ticks next_return() const noexcept {
    return returns_.empty() ? kNever : returns_.front().at;
  }

 private:
  struct Return {
    Ticks at;
    std::uint64_t amount;
  };
  Ring<Return> returns_;
  std::uint64_t used_ = 0;
  bool wanted_ = false;
};

}  // namespace dunlin::sim
