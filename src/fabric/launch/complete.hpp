#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dunlin/fabric/tls.hpp>

#include "fabric/launch/environment.hpp"

/// What the options of a join leave open, from the environment that a launcher has made
/// (docs/deploy.md). An option that is given is not asked for, whatever the environment says; what
/// the environment says incompletely or in contradiction is an Error.
namespace dunlin::launch {

/// Those options that every join over a network has; each is filled if it is empty.
struct OpenOptions {
  std::string& group;
  std::uint32_t& members;
  std::vector<std::string>& names;
  std::string& name;
  std::uint32_t& rank;  // kAnyRank is empty
  std::string& rendezvous;
  std::string& secret;
  TlsFiles& tls;
  std::string& address;
};
/// Says in a sentence what was taken from where; empty if nothing was.
[[nodiscard]] std::string complete(const OpenOptions& open, const Environment& environment);

template <class JoinOptions>
[[nodiscard]] std::string complete(JoinOptions& options, const Environment& environment = {}) {
  return complete(OpenOptions{.group = options.group,
                              .members = options.members,
                              .names = options.names,
                              .name = options.name,
                              .rank = options.rank,
                              .rendezvous = options.rendezvous,
                              .secret = options.secret,
                              .tls = options.tls,
                              .address = options.address},
                  environment);
}

}  // namespace dunlin::launch
