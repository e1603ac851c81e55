#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/join.hpp>

#include "fabric/core/core.hpp"
#include "fabric/mixed/host.hpp"
#include "fabric/mixed/networks.hpp"
#include "fabric/shm/linking.hpp"

/// A member's way into a mixed fabric, once it knows the others: founders know each other from the
/// rendezvous, newcomers and members from an admission. To the two ways, both are newcomers: a
/// founder comes into a fabric that has no members yet.
namespace dunlin::mixed {

class Forming {
 public:
  /// `place` is what a launcher said, `host` is OwnHost's `pretended`. Throws Error.
  Forming(JoinOptions options, std::uint32_t members, std::string place, const std::string& host);

  [[nodiscard]] const std::vector<std::byte>& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] bool has_begun() const noexcept { return entry_.has_value(); }
  /// Begins to connect: the ranks of all others are known. Throws Error.
  void begin(const dunlin::Entry& entry);
  /// Makes progress; returns the fabric once all are connected. Throws Error that names the missing
  /// members when the time is up.
  [[nodiscard]] std::unique_ptr<Fabric> step();
  [[nodiscard]] Awaited awaited() const;
  /// The members that are not connected yet: "'b' (rank 1), 'c' (rank 2)".
  [[nodiscard]] std::string missing() const;

 private:
  [[nodiscard]] Endpoint hear(Rank peer, std::span<const std::byte> endpoint) const;
  void choose(std::span<const Rank> ranks, std::span<const Endpoint> members);
  [[nodiscard]] stream::FormingNetwork& network() const { return *offers_.all.front().network; }
  void ensure_links() const;
  void begin_links();
  void begin_streams();
  [[nodiscard]] std::unique_ptr<Fabric> make();
  [[nodiscard]] std::vector<Rank> ranks_here() const;
  [[nodiscard]] std::vector<Rank> ranks_elsewhere() const;

  JoinOptions options_;
  std::string place_;
  OwnHost own_;
  Offers offers_;  // from begin() on, the offer that the group takes
  std::vector<std::byte> endpoint_;

  std::optional<dunlin::Entry> entry_;             // set by begin()
  FabricSetup setup_;                              // has names, and ranks without a member
  std::vector<Way> ways_;                          // by rank
  std::vector<std::vector<std::byte>> endpoints_;  // by rank: the network's endpoints
  std::vector<stream::Proof> our_proofs_;
  std::vector<stream::Proof> their_proofs_;
  std::optional<shm::Linking> linking_;  // set if this member shares memory
  std::uint64_t deadline_ns_ = UINT64_MAX;
};

}  // namespace dunlin::mixed
