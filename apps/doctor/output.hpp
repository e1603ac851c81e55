#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "doctor/finding.hpp"

namespace dunlin::doctor {

/// For people: a line for each subject, and below it what mends it.
[[nodiscard]] std::string describe(const Report& report);
/// For programs: docs/doctor.md.
[[nodiscard]] nlohmann::ordered_json to_json(const Report& report);

}  // namespace dunlin::doctor
