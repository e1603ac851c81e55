#pragma once

#include <dunlin/dunlin.hpp>

/// Ends with the outcome's own sentence unless the call ended well.
inline const dunlin::Outcome& demand(const dunlin::Outcome& outcome) {
  if (!outcome.ok()) throw dunlin::Error(outcome.describe());
  return outcome;
}
