#pragma once

#include <string>

#include <dunlin/fabric/network.hpp>

#include "fabric/launch/environment.hpp"

/// Fills in the options that a join leaves open, from the environment that a launcher has made
/// (docs/deploy.md). For an option that is given, the environment is not read; throws Error for an
/// environment that is incomplete or contradicts itself.
namespace dunlin::launch {

/// Fills each of these options that is empty: group, members, names, name, rank (kAnyRank is
/// empty), rendezvous, secret, tls and address, and silence_timeout_ms if any of these came from a
/// launcher. Returns a sentence that says what was taken from where; empty if nothing was.
[[nodiscard]] std::string complete(NetworkJoinOptions& open, const Environment& environment = {});

}  // namespace dunlin::launch
