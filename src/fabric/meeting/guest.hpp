#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fabric/meeting/address.hpp"
#include "fabric/meeting/plan.hpp"

namespace dunlin::meeting {

/// How a guest's attempt to meet at an endpoint ended.
struct Attempt {
  enum class End : std::uint8_t {
    met,
    unanswered,  // nobody is there, or whoever is has no time for us
    unproved,    // somebody is there who does not know our secret, our version, or our protocol
    lost         // the host trusted us, and then left
  };
  End end;
  std::string note;  // what to tell the user if there is no other attempt
  std::optional<Roster> roster = {};
};

/// Visits whoever is there, until it ends in one way or another. Error if the host refuses us and
/// has proved that it may.
[[nodiscard]] Attempt visit(const Plan& plan, Bytes card, const Endpoint& endpoint,
                            std::uint64_t deadline_ns);

}  // namespace dunlin::meeting
