#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/join.hpp>

#include "cluster/agreement.hpp"
#include "cluster/fabric_options.hpp"

/// Where the processes of a command run and how they find each other: chosen once on the command
/// line, used by every group that the command makes.
namespace dunlin::app {

/// The networks that this host has for the fabric: "provider: device ...", "device address", or
/// devices. Asked so that children of this process can use all of it. Throws Error for a fabric
/// that is not one of networks().
[[nodiscard]] std::vector<std::string> networks_of(const std::string& fabric);

/// A member's place in a group.
struct MemberPlacement {
  std::string group;
  std::uint32_t members = 0;
  Rank rank = 0;
  // Defaults, which the user may change.
  std::uint32_t timeout_ms = 10'000;
  std::uint32_t silence_timeout_ms = 1'000;
};

class Cluster {
 public:
  /// Shared memory of this host.
  Cluster() = default;
  /// Throws BadInput that names what is missing, does not fit, or is not there; then it lists what
  /// is. The launcher's environment fills the options left open.
  explicit Cluster(const FabricOptions& options);

  [[nodiscard]] const std::string& fabric() const noexcept { return common_.network; }
  [[nodiscard]] bool simulated() const noexcept { return common_.network == "sim"; }
  /// How many hosts take part, each with a command of its own, and which of them this is.
  [[nodiscard]] std::uint32_t hosts() const noexcept { return hosts_; }
  [[nodiscard]] std::uint32_t host() const noexcept { return host_; }

  /// Returns when all hosts have come and are about to do the same. Throws BadInput on all of them
  /// if they are not; Error if not all have come in time: `timeout_ms`, unless the user says
  /// another.
  void agree(Intent intent, std::uint32_t timeout_ms) const;

  /// A group's name that all hosts agree on; with one host, a name that no other run has. To be
  /// called before the processes of this host are made.
  [[nodiscard]] std::string group(const std::string& what) const;
  /// Joins by any process that has this object, or a copy from before it was forked. Throws Error.
  [[nodiscard]] std::unique_ptr<Fabric> join(const MemberPlacement& placement) const;
  /// The network of a fabric that was joined so, and why it was chosen, in one line.
  [[nodiscard]] std::string describe(const Fabric& fabric) const;

 private:
  void choose_hosts(const FabricOptions& options);
  void take_place(const JoinOptions& place);
  void choose_network(const FabricOptions& options);

  std::uint32_t hosts_ = 1;
  std::uint32_t host_ = 0;
  /// What all groups have in common; without a rendezvous, each meets on this host.
  JoinOptions common_ = {.network = "shm"};
  std::string launched_ = {};  // what a launcher has said
};

}  // namespace dunlin::app
