#pragma once

#include <span>
#include <string>

#include "routing/record.hpp"

/// The page of `--report`: report.html with the runs' figures inside. It needs no network.
namespace dunlin::routing {

[[nodiscard]] std::string html_report(std::span<const RunRecord> runs);

}  // namespace dunlin::routing
