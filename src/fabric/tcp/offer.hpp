#pragma once

#include <cstdint>

#include <dunlin/join.hpp>

#include "fabric/stream/forming_network.hpp"

namespace dunlin::tcp {

/// Offers TCP for a fabric of so many members that has other ways, too. Throws Error.
[[nodiscard]] stream::Offer offer(const JoinOptions& options, std::uint32_t members);

}  // namespace dunlin::tcp
