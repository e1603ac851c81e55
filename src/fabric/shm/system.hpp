#pragma once

#include "fabric/system.hpp"

namespace dunlin::shm {

using dunlin::checked;
using dunlin::Descriptor;
using dunlin::error_text;
using dunlin::read_clock_ns;

}  // namespace dunlin::shm
