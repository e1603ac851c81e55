#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fabric/rendezvous/address.hpp"
#include "fabric/rendezvous/plan.hpp"
#include "fabric/stepped_join.hpp"

namespace dunlin::rendezvous {

/// How a joiner's attempt to meet a host at a target ended.
struct Attempt {
  enum class End : std::uint8_t {
    met,
    unanswered,  // no host is there, or the host does not answer
    unproved,    // the process there does not know our secret, our version, or our protocol
    lost         // the host trusted us, and then left
  };
  End end;
  std::string note;  // for the user, if there is no other attempt
  std::optional<Roster> roster = {};
};

/// Talks to the process at the address, until it ends in one way or another.
class Joiner {
 public:
  Joiner(const Plan& plan, Bytes endpoint_address, const SocketAddress& target,
         std::uint64_t deadline_ns);
  ~Joiner();
  /// Makes progress; returns how the attempt ended, once it has. Throws Error if the host refuses
  /// us and has proved that it may.
  [[nodiscard]] std::optional<Attempt> poll();
  /// What poll() waits for.
  [[nodiscard]] Awaited awaited() const;

 private:
  class Talk;
  [[nodiscard]] std::optional<Attempt> finish_connecting();

  const Plan& plan_;
  Bytes endpoint_address_;
  std::string where_;
  std::uint64_t deadline_ns_;
  std::uint64_t patience_ns_;
  std::string fault_;  // why there is no target to connect to
  Descriptor connecting_;
  std::unique_ptr<Talk> talk_;  // set once there is a connection
};

}  // namespace dunlin::rendezvous
