#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric/pending_join.hpp>

#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/ticks.hpp"

/// Nodes that come into a fabric which works. A newcomer meets each member that has admitted it,
/// and each other newcomer, by a round trip.
namespace dunlin::sim {

struct Simulation;

/// The node of the endpoint that PendingEntry::endpoint() returned. Throws Error.
[[nodiscard]] Rank node_at(const Simulation& world, std::span<const std::byte> endpoint);

class SimEntry final : public PendingEntry {
 public:
  SimEntry(Simulation& world, Rank node);
  ~SimEntry() override;
  [[nodiscard]] std::vector<std::byte> endpoint() const override;
  void begin(const Entry& entry) override;
  [[nodiscard]] std::unique_ptr<Fabric> poll() override;
  [[nodiscard]] std::string missing() const override;

 private:
  /// The part of an entry to which the events of the world refer, also when the entry is gone.
  struct Awaited {
    bool given_up = false;
    std::vector<Rank> missing;  // ranks that the newcomer has not met
    std::string fault;
  };
  void meet(Rank peer);
  void try_to_meet(Rank peer, Ticks since);
  enum class Answer : std::uint8_t { yes, not_yet, never };
  [[nodiscard]] Answer ask(Rank peer) const;
  [[nodiscard]] std::string why_not() const;
  void give_up();

  Simulation& world_;
  Rank node_;
  std::optional<Entry> entry_;  // set once it has begun
  std::string group_;
  Endpoints endpoints_;  // by rank
  EndpointId endpoint_ = kNoEndpoint;
  std::shared_ptr<Awaited> awaited_ = std::make_shared<Awaited>();
  Ticks deadline_ = kNever;
  bool over_ = false;
};

}  // namespace dunlin::sim
