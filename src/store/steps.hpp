#pragma once

#include <cstddef>

#include "store/state.hpp"

/// How the store's own work on keys that move goes on, beside the members' calls.
namespace dunlin::store {

/// Takes steps until one has to wait or nothing is left, in bounded numbers a poll, and none while
/// it rests. Returns how many.
template <class GoesOn, class Step>
std::size_t take_steps(State& state, Rest& rest, const GoesOn& goes_on, const Step& step) {
  constexpr int kStepsOfPoll = 256;
  if (state.rests(rest)) return 0;
  std::size_t done = 0;
  for (int steps = 0; steps < kStepsOfPoll && goes_on(); ++steps) {
    if (!step()) return done;
    ++done;
  }
  state.look_again_soon();
  return done;
}

}  // namespace dunlin::store
