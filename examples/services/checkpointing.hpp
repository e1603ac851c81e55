#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "outcome.hpp"

/// Workers compute parts of one result, epoch by epoch, and write each part's state into segments,
/// at random times. If a worker dies, the others take over its parts, and all restart from the
/// latest consistent check-point: the latest epoch of which each part's state is there.
namespace services {

/// A check-point of one part.
struct State {
  std::uint64_t epoch = 0;
  std::array<std::uint64_t, 64> words{};
};

inline State first_state(std::uint64_t part) {
  State state;
  for (std::size_t i = 0; i < state.words.size(); ++i) state.words.at(i) = part * 1000 + i;
  return state;
}
/// The part's state in the next epoch.
inline State advance(std::size_t part, const std::vector<State>& all) {
  State next = all[part];
  ++next.epoch;
  for (std::size_t i = 0; i < next.words.size(); ++i)
    for (const State& other : all)
      next.words.at(i) = next.words.at(i) * 6364136223846793005 + other.words.at(i) + part;
  return next;
}
inline std::uint64_t digest(const std::vector<State>& all) {
  std::uint64_t sum = 0;
  for (const State& state : all)
    for (const std::uint64_t word : state.words) sum = sum * 31 + word;
  return sum;
}
inline std::uint64_t digest_of_one_process(std::size_t parts, std::uint64_t epochs) {
  std::vector<State> all;
  for (std::size_t part = 0; part < parts; ++part) all.push_back(first_state(part));
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<State> next;
    for (std::size_t part = 0; part < parts; ++part) next.push_back(advance(part, all));
    all = next;
  }
  return digest(all);
}

/// A part has two segments. An epoch's state is in that of epoch % 2: nobody writes epoch e + 2
/// before all have written e + 1, and so have read e.
[[nodiscard]] inline std::size_t checkpoint_of(std::size_t part, std::uint64_t epoch) {
  return part * 2 + epoch % 2;
}
[[nodiscard]] inline dunlin::SegmentSpec checkpoint_segment(std::size_t which) {
  return {.bytes = sizeof(State),
          .coherence = dunlin::Coherence::write,
          .placement = dunlin::Placement::here(),
          .name = "checkpoint/" + std::to_string(which)};
}

/// The members 1 and up are workers, with a part each as long as they live.
class Worker {
 public:
  /// The keys are of two segments for each part.
  Worker(dunlin::SegmentSpace& space, std::vector<dunlin::Key> keys, std::uint64_t epochs)
      : space_(space),
        keys_(std::move(keys)),
        parts_(keys_.size() / 2),
        epochs_(epochs),
        random_(space.fabric().rank()) {}

  /// Computes the next states of this worker's parts if all states of its epoch are there, and
  /// writes them; or restarts if a worker has died. Call it until done().
  dunlin::remote::Job step() {
    if (space_.progress().generation() != generation_) {
      co_await restart();
      co_return;
    }
    if (epoch_ < epochs_) {
      co_await collect(epoch_);
      if (complete()) {
        co_await write_next();
        ++epoch_;
      } else {  // after a restart the others may be ahead: our part of it was there already
        co_await collect(epoch_ + 1);
        if (complete()) ++epoch_;
      }
    }
    if (epoch_ == epochs_) co_await collect(epochs_);
  }
  /// Goes to the latest epoch of which there are all states. A part is at most one epoch ahead of
  /// another.
  dunlin::remote::Job restart() {
    const std::uint64_t begin_ns = space_.fabric().now_ns();
    generation_ = space_.progress().generation();
    std::uint64_t latest = 0;
    for (const dunlin::Key key : keys_) {
      State state;
      const dunlin::Outcome got = co_await space_.get(key, dunlin::bytes_of(state));
      if (got.ok()) latest = std::max(latest, state.epoch);
    }
    for (epoch_ = latest + 1; epoch_ > 0;) {
      co_await collect(--epoch_);
      if (complete()) break;
    }
    ++restarts_;
    restart_ns_ += space_.fabric().now_ns() - begin_ns;
  }

  [[nodiscard]] bool done() const noexcept { return epoch_ == epochs_ && complete(); }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  /// When it is done: the result.
  [[nodiscard]] const std::vector<State>& states() const noexcept { return states_; }
  [[nodiscard]] std::uint64_t checkpoints() const noexcept { return checkpoints_; }
  [[nodiscard]] std::uint64_t checkpoint_ns() const noexcept { return checkpoint_ns_; }
  [[nodiscard]] std::uint64_t restarts() const noexcept { return restarts_; }
  [[nodiscard]] std::uint64_t restart_ns() const noexcept { return restart_ns_; }

 private:
  [[nodiscard]] bool complete() const noexcept { return states_.size() == parts_; }
  /// The worker whose part it is, or else the next one that is alive.
  [[nodiscard]] dunlin::Rank owner(std::size_t part) const {
    for (std::size_t i = 0; i < parts_; ++i) {
      const auto rank = static_cast<dunlin::Rank>((part + i) % parts_ + 1);
      if (space_.progress().contains(rank)) return rank;
    }
    return 0;
  }
  /// Gets the states of that epoch, up to the first that is not there: also because its writer died
  /// in the middle of it.
  dunlin::remote::Job collect(std::uint64_t epoch) {
    states_.clear();
    while (!complete()) {
      const std::size_t part = states_.size();
      State state = first_state(part);
      if (epoch > 0) {
        const dunlin::Outcome got =
            co_await space_.get(keys_[checkpoint_of(part, epoch)], dunlin::bytes_of(state));
        if (got.status == dunlin::remote::Status::half_written) co_return;
        demand(got);
      }
      if (state.epoch != epoch) co_return;
      states_.push_back(state);
    }
  }
  /// Writes the states of this worker's parts that follow the collected ones.
  dunlin::remote::Job write_next() {
    const std::vector<State> all = states_;
    for (std::size_t part = 0; part < parts_; ++part) {
      if (owner(part) != space_.fabric().rank()) continue;
      State state = advance(part, all);
      const dunlin::Key key = keys_[checkpoint_of(part, state.epoch)];
      compute(random_() % 500'000);  // each writes when it likes
      const std::uint64_t begin_ns = space_.fabric().now_ns();
      demand(co_await space_.put(key, dunlin::bytes_of(state)));
      checkpoint_ns_ += space_.fabric().now_ns() - begin_ns;
      ++checkpoints_;
    }
  }
  void compute(std::uint64_t ns) {
    const std::uint64_t until_ns = space_.fabric().now_ns() + ns;
    space_.fabric().spend(static_cast<double>(ns) + 1);  // the time of a simulated processor
    while (space_.fabric().now_ns() < until_ns) continue;
  }

  dunlin::SegmentSpace& space_;
  std::vector<dunlin::Key> keys_;
  std::size_t parts_;
  std::uint64_t epochs_;
  std::mt19937_64 random_;
  std::uint64_t generation_ = 0;  // of the membership, at the last restart
  std::uint64_t epoch_ = 0;
  std::vector<State> states_;  // those that were collected last
  std::uint64_t checkpoints_ = 0;
  std::uint64_t checkpoint_ns_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t restart_ns_ = 0;
};

}  // namespace services
