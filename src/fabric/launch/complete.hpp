#pragma once

#include <string>

#include <dunlin/join.hpp>

#include "fabric/launch/environment.hpp"

/// Fills in the options that a join leaves open, from the environment that a launcher has made
/// (docs/deploy.md). For an option that is given, the environment is not read; throws Error for an
/// environment that is incomplete or contradicts itself.
namespace dunlin::launch {

/// The network of a join that names none.
[[nodiscard]] std::string network_name(const Environment& environment = {});

/// Fills each option that is left open; silence_timeout_ms also if any of them came from a
/// launcher. `between_hosts`: rather than where and with which secret members meet, members of one
/// host need none. Returns a sentence that says what was taken from where; empty if nothing was.
[[nodiscard]] std::string complete(JoinOptions& open, bool between_hosts,
                                   const Environment& environment = {});

/// Fills what members need to meet newcomers, each of whom has an address of its own: all but
/// members, ranks, names and the rendezvous.
void complete_reach(JoinOptions& open, bool between_hosts, const Environment& environment = {});

}  // namespace dunlin::launch
