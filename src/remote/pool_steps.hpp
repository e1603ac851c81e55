#pragma once

#include <cstddef>
#include <utility>

#include <dunlin/fabric.hpp>

/// What the pools share: for each member's memory, one step that is under way there. A `Home` has
/// `done` and `posted_step`.
namespace dunlin::remote {

/// Ends the steps that have finished, and begins further ones. Returns how many it posted.
template <typename PoolState>
std::size_t poll_steps(PoolState& state) {
  std::size_t done = 0;
  for (Rank rank = 0; rank < state.homes.size(); ++rank) {
    auto& home = state.homes[rank];
    while (home.done.finished()) {
      if (std::exchange(home.posted_step, false)) state.end_step(home);
      if (!state.begin_step(rank, home)) break;
      ++done;
    }
  }
  return done;
}

template <typename Home>
Refusal post_step(Fabric& fabric, Home& home, const Operation& operation) noexcept {
  home.done.reset();
  const Refusal refusal = fabric.post(operation.notify(home.done, Notify::remotely)).refusal;
  home.posted_step = refusal == Refusal::none;
  return refusal;
}

}  // namespace dunlin::remote
