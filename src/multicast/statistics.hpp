#pragma once

#include <cstdint>
#include <string>

#include <dunlin/multicast.hpp>

#include "fabric/counters/counters.hpp"
#include "multicast/view_memory.hpp"

/// The figures of counters() and `dunlin top` for one subgroup in one view.
namespace dunlin::multicast {

class Statistics {
 public:
  explicit Statistics(ViewMemory& memory);

  /// Each stage counts here what it does.
  Counters counters;

  // --- how long a message takes from commit() until its delivery here, now and then --------------
  [[nodiscard]] bool times_next() const noexcept { return timed_.due; }
  /// Says that an own message was committed, which has the last of so many slots.
  void start_timing(std::uint64_t slots) noexcept;
  [[nodiscard]] bool timing() const noexcept { return timed_.since_ns != 0; }
  /// Says how many own slots have been delivered here.
  void note_delivered(std::uint64_t slots) noexcept;

  // --- how long a sender had no room -------------------------------------------------------------
  [[nodiscard]] bool lacks_room() const noexcept { return no_room_since_ns_ != 0; }
  /// A sender that does not try again counts as having no room until it does.
  void note_no_room() noexcept;
  void note_room() noexcept;

  // --- for observers -----------------------------------------------------------------------------
  /// Counts a poll that has found something. Returns whether it is time to publish().
  [[nodiscard]] bool count_poll() noexcept { return --polls_until_publication_ == 0; }
  void publish() noexcept;

 private:
  [[nodiscard]] std::uint64_t without_room_ns() const noexcept;

  struct Timed {
    bool due = true;
    std::uint64_t since_ns = 0;  // 0: no message is timed
    std::uint64_t slot = 0;
    std::uint64_t last_ns = 0;
    std::uint64_t count = 0;
  };

  /// What observers see.
  struct Shown {
    Shown(Fabric& fabric, const std::string& labels) : all(fabric, labels) {}
    CounterSet all;
    SharedCounter messages = all.add("multicast.messages");
    SharedCounter bytes = all.add("multicast.bytes", CounterKind::total, CounterUnit::bytes);
    SharedCounter nulls = all.add("multicast.nulls");
    SharedCounter receive_batches = all.add("multicast.receive_batches");
    SharedCounter send_batches = all.add("multicast.send_batches");
    SharedCounter deliver_batches = all.add("multicast.deliver_batches");
    SharedCounter no_room = all.add("multicast.no_room");
    SharedCounter no_room_ns =
        all.add("multicast.no_room_ns", CounterKind::total, CounterUnit::nanoseconds);
    SharedCounter own_ns = all.add_level("multicast.own_ns", CounterUnit::nanoseconds);
    SharedCounter own_timed = all.add("multicast.own_timed");
  };

  ViewMemory& memory_;
  Shown shown_;
  Timed timed_;
  std::uint64_t no_room_since_ns_ = 0;  // 0: the last attempt had room
  std::uint64_t no_room_ns_ = 0;
  std::uint32_t polls_until_publication_ = 1;
};

}  // namespace dunlin::multicast
