#pragma once

#include "topic/tool.hpp"

namespace dunlin::app::topic {

/// `echo`, `publish`, `record` and `replay` of a program that is no member: through one of
/// Options::relays. Throws BadInput and Error.
void run_relayed(const Options& options);

}  // namespace dunlin::app::topic
