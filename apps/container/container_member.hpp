#pragma once

#include <memory>
#include <utility>

#include <dunlin/container.hpp>

#include "team/team.hpp"

namespace dunlin::app {

/// A process of a team, and of a group, with containers. It ends when a member of the group fails.
struct ContainerMember {
  ContainerMember(Member& me, std::unique_ptr<Fabric> joined)
      : fabric(std::move(joined)),
        containers(*fabric),
        calibration(containers),
        failures(fabric->subscribe([&me](const Event& event) {
          if (event.kind == Event::Kind::peer_failed) me.lost(event.peer, event.text);
        })) {}

  std::unique_ptr<Fabric> fabric;
  Containers containers;
  Calibration calibration;
  Subscription failures;
};

}  // namespace dunlin::app
