#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>

#include "fabric/core/core.hpp"
#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/flight.hpp"
#include "ring.hpp"

namespace dunlin::sim {

struct Simulation;
struct Link;
class Budget;
class Cpu;

enum class Begins { with_the_world, later };

/// Makes the fabric of this rank on these endpoints. A fabric that begins later also leaves, when
/// it is destroyed; those that the world begins with last as long as the world.
[[nodiscard]] std::unique_ptr<Fabric> make_sim_fabric(Simulation& world,
                                                      const std::shared_ptr<Roster>& roster,
                                                      Rank rank, Begins when);
/// Makes the fabric of a newcomer.
[[nodiscard]] std::unique_ptr<Fabric> make_sim_fabric(Simulation& world, const std::string& group,
                                                      const Entry& entry, Endpoints endpoints);

/// A simulated node's attachment. The network's arrivals are queued here, and handled in poll().
class SimBackend final : public FabricBackend {
 public:
  SimBackend(Simulation& world, Endpoints endpoints, Rank rank, Begins when);
  ~SimBackend() override;

  Posted post(std::span<const Operation> batch) noexcept;
  std::size_t poll() noexcept;
  [[nodiscard]] Refusal send(Rank peer, std::uint32_t channel,
                             std::span<const std::byte> message) noexcept override;
  void forget(const Completion& completion) noexcept override;

  void start() override;
  void close(Rank peer) noexcept override;
  void drain(Rank peer) override;
  [[nodiscard]] std::vector<std::byte> endpoint() const override;
  void admit(const Admission& admission) override;
  void attend_soon() noexcept override;

  [[nodiscard]] std::span<std::byte> map(RegionId id, const LocalRegion& region) override;
  void open(RegionId id, const LocalRegion& region, RemoteRegion& own) override;
  void announce(Rank peer, RegionId id, const LocalRegion& region) override;
  void withdraw(Rank peer, RegionId id, const LocalRegion& region) noexcept override;
  void unmap(RegionId id, const LocalRegion& region) noexcept override;
  void connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept override;
  void disconnect(Rank peer, RegionId id) noexcept override;

  // A simulated node spins, whatever its runner's policy: there is nothing to sleep on.
  [[nodiscard]] std::uint64_t now_ns() const noexcept override;
  void poll_at(std::uint64_t time_ns) noexcept override;
  void spend(double ns) noexcept override;

  // --- for the network ---------------------------------------------------------------------------
  /// Called when the newcomer has been met.
  void met(Rank peer);
  /// Whether the newcomer is awaited: admitted, but not met.
  [[nodiscard]] bool awaits(EndpointId newcomer) const noexcept;
  [[nodiscard]] bool has_given_up(EndpointId newcomer) const noexcept {
    return knows(newcomer) && core().failing(rank_of(newcomer));
  }
  struct RemoteMemory {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
  };
  /// The memory that a peer knows by this number; null if it is no longer there.
  [[nodiscard]] RemoteMemory reach(std::uint64_t number) const noexcept;
  void arrived(Flight& flight) { inbox_.push_back(flight); }
  void finished(Completion& completion, EndpointId peer, bool failed);
  /// Called when the connection to the peer is closed already.
  void lost(EndpointId peer, std::string how);
  /// Called when nothing was heard of the peer for too long, unless that changes before the next
  /// poll.
  void suspect(EndpointId peer, std::uint32_t silence_generation);
  [[nodiscard]] FlightList take_inbox() noexcept { return inbox_.take_all(); }
  /// How many bytes a message takes in its ring: a header, and its bytes rounded up.
  [[nodiscard]] static constexpr std::uint64_t ring_bytes(std::size_t message) noexcept {
    return 16 + (message + 15) / 16 * 16;
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  /// A region of a peer that operations may reach; number 0: none.
  struct Remote {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
  };
  /// The memory of a region of this member, and the peers' regions that go with it.
  struct Memory {
    std::unique_ptr<std::byte, Free> block;
    std::span<std::byte> bytes;
    std::vector<Remote> remotes;              // by rank
    std::shared_ptr<RemoteRegion> announced;  // which all peers that are told of it share
  };
  struct Finished {
    Completion* completion;  // null: the caller forgot it
    Rank peer;
    bool failed;
  };
  struct Failure {
    Rank peer;
    bool closed;  // false: only suspected, while the silence lasts
    std::uint32_t silence_generation;
    std::string how;
  };

  [[nodiscard]] Cpu& cpu() const;
  [[nodiscard]] EndpointId endpoint_of(Rank rank) const noexcept { return endpoints_[rank]; }
  /// Whether the endpoint is a peer's; from another endpoint of the same rank, nothing is taken.
  [[nodiscard]] bool knows(EndpointId endpoint) const noexcept {
    const Rank rank = rank_of(endpoint);
    return rank < members_ && endpoints_[rank] == endpoint;
  }
  [[nodiscard]] Rank rank_of(EndpointId endpoint) const noexcept;
  [[nodiscard]] Link& link_to(Rank peer) const;
  [[nodiscard]] Link& link_from(Rank peer) const;
  void poll_soon();
  void send_control(Rank peer, FlightKind kind, const std::shared_ptr<RemoteRegion>& what);
  [[nodiscard]] Refusal check(const Operation& operation) const noexcept;
  [[nodiscard]] bool take(Budget& budget, std::uint64_t amount, std::uint64_t capacity) noexcept;
  void start(const Operation& operation) noexcept;
  void launch(Flight& flight) noexcept;

  void handle_failures();
  void handle_finished();
  void handle_inbox();
  void handle(Flight& flight);
  void take_message(Rank from, Flight& flight);
  void take_announcement(Rank from, Flight& flight);
  void take_withdrawal(Rank from, Flight& flight);
  void take_farewell(Rank from, Flight& flight);

  Simulation& world_;
  Rank node_;
  Rank rank_;
  std::uint32_t members_;
  Endpoints endpoints_;  // by rank
  Begins when_;
  std::vector<Memory> memories_;  // by region, as far as one was ever mapped
  FlightList inbox_;
  Ring<Finished> finished_;
  std::vector<Failure> failures_;
  std::vector<Rank> met_;  // newcomers of which the core was not told
};

}  // namespace dunlin::sim
