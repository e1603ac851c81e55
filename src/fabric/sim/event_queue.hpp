#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric/sim/ticks.hpp"

namespace dunlin::sim {

struct Flight;

enum class Happening : std::uint8_t {
  round,        // a node's CPU begins a round of polling; subject: rank
  wake,         // a node wants to be polled now; subject: rank
  resume,       // a pause may have ended; subject: rank
  transmit,     // a NIC may take its next operation; subject: rank
  arrive,       // the first bytes of a flight reach the NIC at the other end
  step,         // bytes of a flight are due in memory
  fetch,        // bytes of a read are due to be read at its target
  acknowledge,  // the sender learns that a flight is done
  retry,        // a link may have retried for too long; subject: link
  silence,      // a node may have been silent for too long; subject: link, epoch
  timer         // an action given to World::at; subject: its slot
};

/// What will happen, and when. Equal times happen in the order in which they were scheduled, so a
/// run depends on nothing but its inputs.
struct Occurrence {
  Ticks time;
  std::uint64_t order;  // sequence number, then the kind in the lowest bits
  union {
    std::uint64_t subject;
    Flight* flight;
  };

  [[nodiscard]] Happening kind() const noexcept {
    return static_cast<Happening>(order & ((1U << kKindBits) - 1));
  }
  static constexpr unsigned kKindBits = 4;
};

/// A binary heap of occurrences by time and sequence.
class EventQueue {
 public:
  void push(Ticks time, Happening kind, std::uint64_t subject) {
    Occurrence next{.time = time, .order = order_of(kind), .subject = subject};
    insert(next);
  }
  void push(Ticks time, Happening kind, Flight& flight) {
    Occurrence next{.time = time, .order = order_of(kind), .flight = &flight};
    insert(next);
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] Ticks next_time() const noexcept {
    return heap_.empty() ? kNever : heap_.front().time;
  }
  Occurrence pop() noexcept {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Occurrence next = heap_.back();
    heap_.pop_back();
    return next;
  }

 private:
  struct Later {
    bool operator()(const Occurrence& a, const Occurrence& b) const noexcept {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  std::uint64_t order_of(Happening kind) noexcept {
    return sequence_++ << Occurrence::kKindBits | static_cast<std::uint64_t>(kind);
  }
  void insert(const Occurrence& next) {
    heap_.push_back(next);
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  std::vector<Occurrence> heap_;
  std::uint64_t sequence_ = 0;
};

static_assert(static_cast<unsigned>(Happening::timer) < 1U << Occurrence::kKindBits);

}  // namespace dunlin::sim
