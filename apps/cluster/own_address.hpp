#pragma once

#include <string>

namespace dunlin::app {

/// Throws BadInput, which names the option, unless it is the number of an IP address of this host;
/// then it lists those.
void demand_own_address(const std::string& option, const std::string& address);

}  // namespace dunlin::app
