#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dunlin::doctor {

enum class State {
  good,
  absent,  // not here, and nothing is wrong with that
  advice,  // works, and could be better
  problem  // does not work
};
[[nodiscard]] const char* name_of(State state);

/// The doctor's report on one subject.
struct Finding {
  std::string subject;
  State state = State::good;
  std::string text = {};                            // one sentence for people
  std::string mend = {};                            // the command that mends it; may be empty
  nlohmann::json facts = nlohmann::json::object();  // for programs
  std::vector<Finding> parts = {};                  // devices, networks
};

struct Report {
  std::string host;
  std::string kernel;
  std::vector<Finding> fabrics;
  std::vector<Finding> machine;

  /// Counts findings at the top only: a part alone keeps nothing from working.
  [[nodiscard]] std::size_t count(State state) const;
  /// Why this fabric would not work here; empty: it would.
  [[nodiscard]] std::string why_not(const std::string& fabric) const;
};

}  // namespace dunlin::doctor
