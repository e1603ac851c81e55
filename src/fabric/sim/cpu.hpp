#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

#include <dunlin/fabric.hpp>

#include "fabric/sim/timeline.hpp"

namespace dunlin::sim {

/// A node's processor: runs its program, one round of polling after the other.
///
/// A round runs at one moment of the world, but takes as long as its parts spend(): the node's own
/// clock runs ahead of the world's until the round is over. The next round sees the arrivals of
/// that time.
///
/// Invariant: a node with a program either has its next round scheduled, or is *spinning*: its last
/// round, which began at `origin_` and took `period_`, found nothing to do. A spinning node would
/// poll at origin_ + k * period_ for k = 1, 2, ... and find nothing until something arrives. So
/// those rounds are not run; wake(t) schedules the first of them that begins at or after t.
class Cpu {
 public:
  Cpu(Timeline& timeline, Rank rank, Ticks least_round)
      : timeline_(timeline), rank_(rank), least_round_(least_round) {}

  // These are about the program. A node without a program takes no part in time.
  void attach(std::function<std::size_t()> poll);
  void detach_all();
  void run_soon(std::function<void()> action);

  /// The node's own time.
  [[nodiscard]] Ticks clock() const noexcept {
    return clock_ > timeline_.now ? clock_ : timeline_.now;
  }
  void spend(double ns) noexcept { clock_ = clock() + ticks(ns * slowness_); }
  [[nodiscard]] Ticks cost(double ns) const noexcept { return ticks(ns * slowness_); }

  /// Says that something that a poll would notice is there from `at` on (not before now).
  void wake(Ticks at);
  /// Asks for a round at `deadline`, or earlier; the next round uses that up.
  void wake_by(Ticks deadline);

  /// Pauses the node; returns by how much this pause is longer than those that were known.
  Ticks pause(Ticks duration);
  /// Nothing else can begin before that moment, as in a pause that has been accounted for.
  void busy_until(Ticks moment) noexcept { paused_until_ = std::max(paused_until_, moment); }
  void stop() noexcept { stopped_ = true; }
  void slow(double factor);
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] bool paused() const noexcept { return paused_until_ > timeline_.now; }
  [[nodiscard]] bool computes() const noexcept { return !stopped_ && !paused(); }

  // These handle occurrences.
  void on_round();
  void on_wake();

 private:
  void schedule(Ticks at);
  void end_round(Ticks begin, std::size_t progress);
  void spin_from(Ticks begin);
  [[nodiscard]] Ticks next_spin(Ticks at) const noexcept;
  [[nodiscard]] bool has_program() const noexcept { return !polls_.empty() || !actions_.empty(); }
  std::size_t run_actions();
  std::size_t run_polls();

  Timeline& timeline_;
  Rank rank_;
  Ticks least_round_;  // for a round that spends nothing: time must go on
  std::deque<std::function<std::size_t()>> polls_;
  std::deque<std::function<void()>> actions_;
  Ticks clock_ = 0;
  Ticks paused_until_ = 0;
  Ticks origin_ = 0;
  Ticks period_ = 0;
  Ticks requested_ = kNever;     // wake_by() since the last round began
  Ticks wake_pending_ = kNever;  // the earliest `wake` occurrence on its way
  double slowness_ = 1.0;
  std::size_t detached_ = 0;  // how many of the first polls_ to drop after the round
  bool scheduled_ = false;
  bool in_round_ = false;
  bool woken_in_round_ = false;
  bool stopped_ = false;
};

}  // namespace dunlin::sim
