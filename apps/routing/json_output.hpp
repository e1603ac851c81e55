#pragma once

#include <span>
#include <string>

#include "routing/record.hpp"

/// Runs as JSON: `--json` writes it, and the report's page draws it.
namespace dunlin::routing {

/// {"format": "dunlin-routing", "version": 1, "runs": [...]}; docs/routing.md lists the fields.
/// On one line if `indent` is -1.
[[nodiscard]] std::string to_json(std::span<const RunRecord> runs, int indent);

}  // namespace dunlin::routing
