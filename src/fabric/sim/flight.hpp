#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/core/backend.hpp"
#include "fabric/sim/ticks.hpp"

namespace dunlin::sim {

struct Flight;

enum class FlightKind : std::uint8_t {
  put,
  write,
  read,
  compare_swap,
  fetch_add,
  message,
  announcement,
  withdrawal,
  notice,   // a completion on its own way back, ahead of its operation
  farewell  // says that the sender's fabric is gone
};

/// The description of a flight, without the bytes that it carries.
struct FlightFacts {
  FlightKind kind = FlightKind::put;
  Notify when = Notify::locally;
  bool dead = false;        // given up: its present holder releases it
  bool captured = false;    // the source's bytes are in data()
  bool numbered = false;    // whether `order` is set
  bool responding = false;  // a read or atomic on its way back
  bool delivered = false;   // done at the target, but not acknowledged
  bool failed = false;      // the target had no such memory
  std::uint32_t from = 0;   // endpoint of the sender
  std::uint32_t to = 0;

  std::uint64_t region = 0;  // the target's number of the region
  std::uint32_t channel = 0;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  std::byte* local = nullptr;
  std::uint64_t operand = 0;
  std::uint64_t desired = 0;
  std::uint64_t result = 0;
  Completion* completion = nullptr;
  std::shared_ptr<RemoteRegion> announcement = nullptr;

  Ticks ready = 0;          // when the CPU handed it to the NIC
  Ticks sent = 0;           // when the NIC took it: retries count from here
  Ticks left = 0;           // when its first byte entered the path to the other end
  Ticks begin = 0;          // where it is among the sender's operations to that peer
  double pace = 1.0;        // of its path when it left: all its bytes keep it
  std::uint64_t order = 0;  // its place among the sender's operations to that peer

  std::uint32_t steps_done = 0;     // runs of lines that were placed
  std::uint32_t steps_fetched = 0;  // runs of lines that were read at a read's target
  std::uint32_t first_step = 0;     // where a shuffled placement begins
  std::uint32_t stride = 1;
  std::uint32_t pending = 0;  // occurrences in the queue that point here
  Flight* next = nullptr;     // the next one in a FlightList, or in the pool
};

/// One operation on its way through the network, from posting to acknowledgement. Pooled, so that
/// its buffers are kept.
struct Flight : FlightFacts {
  /// The bytes under way, at the same place within a line as in the target's memory.
  [[nodiscard]] std::byte* data() noexcept { return buffer_at_ + offset % kCacheLineBytes; }
  [[nodiscard]] std::span<const std::byte> contents() noexcept { return {data(), bytes}; }
  void make_room();
  void forget() noexcept { static_cast<FlightFacts&>(*this) = {}; }
  std::size_t place = 0;  // index in the pool

  [[nodiscard]] bool is_atomic() const noexcept {
    return kind == FlightKind::compare_swap || kind == FlightKind::fetch_add;
  }
  [[nodiscard]] bool places_bytes() const noexcept {
    return kind == FlightKind::put || kind == FlightKind::write;
  }
  /// Whether it was posted as an Operation, and so uses a queue slot.
  [[nodiscard]] bool is_operation() const noexcept { return kind <= FlightKind::fetch_add; }
  /// Whether it must not be seen before operations that were posted earlier (FAB-F1).
  [[nodiscard]] bool is_signal() const noexcept {
    return kind != FlightKind::put && kind != FlightKind::read && kind != FlightKind::notice;
  }
  /// Whether later signals must wait for this flight.
  [[nodiscard]] bool is_ordered() const noexcept {
    return kind != FlightKind::read && kind != FlightKind::notice;
  }
  /// Bytes of payload on the wire, in the direction in which the flight now travels.
  [[nodiscard]] std::size_t wire_bytes() const noexcept {
    if (places_bytes() || kind == FlightKind::message) return bytes;
    return kind == FlightKind::read && responding ? bytes : 0;
  }

 private:
  alignas(kCacheLineBytes) std::array<std::byte, 2 * kCacheLineBytes> small_;
  std::vector<std::byte> large_;
  std::byte* buffer_at_ = nullptr;
};

/// Flights in the order in which they were added.
class FlightList {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] Flight& front() const noexcept { return *head_; }
  void push_back(Flight& flight) noexcept;
  Flight& pop_front() noexcept;
  /// Adds the flight behind all flights of a lower order.
  void insert_by_order(Flight& flight) noexcept;
  [[nodiscard]] FlightList take_all() noexcept;

 private:
  Flight* head_ = nullptr;
  Flight* tail_ = nullptr;
};

class FlightPool {
 public:
  [[nodiscard]] Flight& take(std::uint32_t from);
  void release(Flight& flight) noexcept;
  /// Calls `visit` for each flight of `from` in use, in an order that only the run determines.
  template <class Visit>
  void for_each_of(std::uint32_t from, Visit visit) {
    for (std::size_t place = 0; place < owners_.size(); ++place)
      if (owners_[place] == from) visit(all_[place]);
  }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  std::deque<Flight> all_;
  std::vector<std::uint32_t> owners_;  // senders, in few cache lines; kNobody: not in use
  Flight* free_ = nullptr;
};

}  // namespace dunlin::sim
