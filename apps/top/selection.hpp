#pragma once

#include <string>
#include <vector>

#include "top/claims.hpp"
#include "top/sample.hpp"

namespace dunlin::top {

/// The groups, tables and columns that the user asked for; empty names mean all.
struct Selection {
  std::string group = {};
  std::string table = {};
  std::string fabric = {};
};

/// Throws BadInput, or Error if it is there and hidden from us, unless the sample has something of
/// it.
void check(const Selection& selection, const Sample& sample, const std::vector<Hidden>& hidden);
/// Drops everything else, and adds remarks on what is hidden of it.
void apply(const Selection& selection, Sample& sample, const std::vector<Hidden>& hidden);

}  // namespace dunlin::top
