// Check-pointing: workers compute parts of one result, epoch by epoch, and write each part's state
// into segments at a keeper, at random times. Workers may be killed at any instruction. The others
// then take over the parts of the dead, and all restart from the latest consistent check-point: the
// latest epoch of which each part's state is there. Start the keeper, rank 0, and some workers:
//
//     ./checkpointing job 4 0 & ./checkpointing job 4 1 & ./checkpointing job 4 2 & ./checkpointing
//     job 4 3
//
// The state of a part depends on the states of all parts in the epoch before, so a restart from
// states that do not belong together would change the result; each worker computes it alone, too.

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "../typed_lines.hpp"
#include "member.hpp"

namespace {

using dunlin::Rank;
using dunlin::remote::Status;

constexpr std::uint64_t kEpochs = 300;

/// A check-point of one part.
struct State {
  std::uint64_t epoch = 0;
  std::array<std::uint64_t, 64> words{};
};

State first_state(std::uint64_t part) {
  State state;
  for (std::size_t i = 0; i < state.words.size(); ++i) state.words.at(i) = part * 1000 + i;
  return state;
}

/// The part's state in the next epoch.
State advance(std::size_t part, const std::vector<State>& all) {
  State next = all[part];
  ++next.epoch;
  for (std::size_t i = 0; i < next.words.size(); ++i)
    for (const State& other : all)
      next.words.at(i) = next.words.at(i) * 6364136223846793005 + other.words.at(i) + part;
  return next;
}

std::uint64_t digest(const std::vector<State>& all) {
  std::uint64_t sum = 0;
  for (const State& state : all)
    for (const std::uint64_t word : state.words) sum = sum * 31 + word;
  return sum;
}

std::uint64_t digest_of_one_process(std::size_t parts) {
  std::vector<State> all;
  for (std::size_t part = 0; part < parts; ++part) all.push_back(first_state(part));
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::vector<State> next;
    for (std::size_t part = 0; part < parts; ++part) next.push_back(advance(part, all));
    all = next;
  }
  return digest(all);
}

class Worker {
 public:
  Worker(Member& member, std::uint32_t members) : member_(member), parts_(members - 1) {
    for (std::size_t part = 0; part < parts_; ++part)
      for (std::uint64_t slot = 0; slot < 2; ++slot) keys_.push_back(member.find(name(part, slot)));
  }

  /// An epoch's state is in slot epoch % 2: nobody writes epoch e + 2 before all have written
  /// e + 1, and so have read e.
  static std::string name(std::size_t part, std::uint64_t slot) {
    return "part/" + std::to_string(part) + "/" + std::to_string(slot);
  }

  void work() {
    restart();
    while (epoch_ < kEpochs) {
      const std::uint64_t generation = member_.members_now.generation();
      if (const auto all = all_of(epoch_)) {
        for (std::size_t part = 0; part < parts_; ++part)
          if (owner(part) == member_.fabric->rank()) checkpoint(part, advance(part, *all));
        if (++epoch_ % 10 == 0) std::cout << "epoch " << epoch_ << std::endl;
      } else if (all_of(epoch_ + 1)) {
        ++epoch_;  // after a restart the others may be ahead: our part of it was there already
      }
      if (member_.members_now.generation() != generation) restart();
    }
    std::optional<std::vector<State>> all;
    while (!(all = all_of(kEpochs))) finish_for_the_dead();
    const bool same = digest(*all) == digest_of_one_process(parts_);
    std::cout << "result " << digest(*all) << (same ? ", as of one process" : ", WRONG") << "; "
              << written_ << " check-points, of " << (written_ > 0 ? write_ns_ / written_ : 0)
              << " ns each" << std::endl;
    if (!same) throw dunlin::Error("another result than that of one process");
  }

 private:
  /// The worker whose part it is, or else the next one that is alive.
  [[nodiscard]] Rank owner(std::size_t part) const {
    for (std::size_t i = 0; i < parts_; ++i) {
      const auto rank = static_cast<Rank>((part + i) % parts_ + 1);
      if (member_.alive(rank)) return rank;
    }
    return 0;
  }

  /// What was check-pointed of that part for that epoch; nothing if it is not there, also because
  /// its writer died in the middle of it.
  std::optional<State> state_of(std::size_t part, std::uint64_t epoch) {
    if (epoch == 0) return first_state(part);
    State state;
    auto get = member_.space.get(keys_.at(part * 2 + epoch % 2), dunlin::bytes_of(state));
    const Status status = get.outcome().status;
    if (status == Status::half_written) return std::nullopt;
    if (status != Status::ok) throw dunlin::Error(get.describe());
    if (state.epoch != epoch) return std::nullopt;
    return state;
  }
  std::optional<std::vector<State>> all_of(std::uint64_t epoch) {
    std::vector<State> all;
    for (std::size_t part = 0; part < parts_; ++part) {
      const auto state = state_of(part, epoch);
      if (!state) {
        member_.space.poll();
        return std::nullopt;
      }
      all.push_back(*state);
    }
    return all;
  }

  void checkpoint(std::size_t part, State state) {
    const std::uint64_t until = clock_ns() + random_() % 500'000;  // each when it likes
    while (clock_ns() < until) member_.space.poll();
    const std::uint64_t begin = clock_ns();
    demand(member_.space.put(keys_.at(part * 2 + state.epoch % 2), dunlin::bytes_of(state)));
    write_ns_ += clock_ns() - begin;
    ++written_;
  }

  /// The latest epoch of which there are all states. A part is at most one epoch ahead of another.
  void restart() {
    std::uint64_t latest = 0;
    for (std::size_t part = 0; part < parts_; ++part)
      for (std::uint64_t slot = 0; slot < 2; ++slot) {
        State state;
        auto get = member_.space.get(keys_.at(part * 2 + slot), dunlin::bytes_of(state));
        if (get.outcome().ok()) latest = std::max(latest, state.epoch);
      }
    epoch_ = latest;
    while (epoch_ > 0 && !all_of(epoch_)) --epoch_;
    std::cout << "restart at epoch " << epoch_ << std::endl;
  }
  /// Somebody died at the very end, and left a part unfinished.
  void finish_for_the_dead() {
    if (const auto before = all_of(kEpochs - 1))
      for (std::size_t part = 0; part < parts_; ++part)
        if (owner(part) == member_.fabric->rank() && !state_of(part, kEpochs))
          checkpoint(part, advance(part, *before));
  }
  [[nodiscard]] std::uint64_t clock_ns() const { return member_.fabric->now_ns(); }

  Member& member_;
  std::size_t parts_;
  std::vector<dunlin::Key> keys_;
  std::mt19937_64 random_{member_.fabric->rank()};
  std::uint64_t epoch_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t write_ns_ = 0;
};

/// Holds the check-points.
void keep(Member& member, std::uint32_t members) {
  for (std::size_t part = 0; part + 1 < members; ++part)
    for (std::uint64_t slot = 0; slot < 2; ++slot)
      member.allocate({.bytes = sizeof(State),
                       .coherence = dunlin::Coherence::write,
                       .placement = dunlin::Placement::here(),
                       .name = Worker::name(part, slot)});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw dunlin::Error("usage: checkpointing GROUP MEMBERS RANK");
  const auto members = static_cast<std::uint32_t>(std::atoi(argv[2]));
  Member member(argv[1], members, static_cast<std::uint32_t>(std::atoi(argv[3])));
  if (member.fabric->rank() == 0) {
    keep(member, members);
  } else {
    Worker(member, members).work();
  }
  TypedLines input;  // serves the others until its input ends
  while (!input.over()) {
    member.rest(20);
    if (input.front() != nullptr) input.pop();
  }
  member.leave();
  return 0;
} catch (const dunlin::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
