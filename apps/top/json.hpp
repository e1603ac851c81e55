#pragma once

#include <nlohmann/json.hpp>

#include "top/sample.hpp"

namespace dunlin::top {

/// The sample as docs/top.md describes it.
[[nodiscard]] nlohmann::ordered_json to_json(const Sample& sample);

}  // namespace dunlin::top
