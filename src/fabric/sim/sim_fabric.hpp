#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/sim/flight.hpp"
#include "fabric/sim/ring.hpp"
#include "fabric/sim/seat.hpp"

namespace dunlin::sim {

struct Simulation;
struct Link;
class Budget;
class Cpu;

/// A simulated node's attachment. What the network brings is queued here, and handled in poll().
class SimFabric final : public Fabric {
 public:
  /// Who is to sit on the seat of this rank, among these nodes. One that is not the world's own
  /// leaves when it is destroyed.
  SimFabric(Simulation& world, std::string group, const std::vector<Rank>& nodes, Seat first_seat,
            Rank rank, bool leaves);
  ~SimFabric() override;

  [[nodiscard]] std::string_view kind() const noexcept override { return "sim"; }
  [[nodiscard]] bool connected(Rank peer, RegionId region) const noexcept override;
  Posted post(std::span<const Operation> batch) noexcept override;
  [[nodiscard]] Refusal send(Rank peer, std::uint32_t channel,
                             std::span<const std::byte> message) noexcept override;
  std::size_t poll() noexcept override;
  void abandon(Completion& completion) noexcept override;

  [[nodiscard]] std::uint64_t now_ns() const noexcept override;
  // A simulated node spins, whatever its runner's policy: there is nothing to sleep on.
  void prepare_sleep() noexcept override {}
  void cancel_sleep() noexcept override {}
  void sleep(std::uint64_t) noexcept override {}
  void wake() noexcept override {}
  void wake_at(std::uint64_t time_ns) noexcept override;
  [[nodiscard]] const CpuCosts* cpu_costs() const noexcept override;
  void spend(double ns) noexcept override;

  // --- for the network ---------------------------------------------------------------------------
  struct Reach {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
  };
  /// The memory that a peer knows by these numbers; null if it is no longer that.
  [[nodiscard]] Reach reach(std::uint32_t index, std::uint32_t serial) const noexcept;
  void arrived(Flight& flight) { inbox_.push_back(flight); }
  void finished(Completion& completion, Seat peer, bool failed);
  /// The connection to the peer is closed already.
  void lost(Seat peer, std::string how);
  /// Nothing was heard of the peer for too long, unless that changes before the next poll.
  void suspect(Seat peer, std::uint32_t silence_epoch);
  [[nodiscard]] FlightList take_inbox() noexcept { return inbox_.take_all(); }
  /// What a message takes of its ring: a header, and its bytes rounded up.
  [[nodiscard]] static constexpr std::uint64_t ring_bytes(std::size_t message) noexcept {
    return 16 + (message + 15) / 16 * 16;
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  struct LocalRegion {
    RegionSpec spec;
    std::uint32_t serial = 0;  // 0: none
    bool announced = false;
    bool observers_only = false;
    std::unique_ptr<std::byte, Free> block;
    std::span<std::byte> memory;
    std::vector<std::shared_ptr<const Announcement>> peers;  // connected ones, by rank
  };
  struct Finished {
    Completion* completion;  // null: abandoned
    Rank peer;
    bool failed;
  };
  struct Failure {
    Rank peer;
    bool closed;  // or else only suspected, while the silence lasts
    std::uint32_t silence_epoch;
    std::string how;
  };

  std::span<std::byte> do_allocate(RegionId id, const RegionSpec& spec,
                                   bool observers_only) override;
  void do_announce(RegionId id) override;
  void do_release(RegionId id) noexcept override;
  void channel_opened(std::uint32_t channel) noexcept override;
  void part_with_expelled(Rank peer) noexcept override;

  [[nodiscard]] Cpu& cpu() const;
  [[nodiscard]] Seat seat_of(Rank rank) const noexcept { return first_seat_ + rank; }
  [[nodiscard]] Rank rank_of(Seat seat) const noexcept { return seat - first_seat_; }
  [[nodiscard]] Link& link_to(Rank peer) const;
  [[nodiscard]] Link& link_from(Rank peer) const;
  void poll_soon();
  [[nodiscard]] const LocalRegion* find(RegionId id) const noexcept;
  void tell_peers(FlightKind kind, const std::shared_ptr<const Announcement>& what);
  [[nodiscard]] Refusal check(const Operation& operation) const noexcept;
  [[nodiscard]] bool take(Budget& budget, std::uint64_t amount, std::uint64_t capacity) noexcept;
  void start(const Operation& operation) noexcept;
  void launch(Flight& flight) noexcept;

  std::size_t handle_failures();
  std::size_t handle_finished();
  std::size_t handle_matches();
  std::size_t handle_inbox();
  std::size_t handle_unheard();
  std::size_t handle(Flight& flight);
  std::size_t hear_announcement(Flight& flight);
  std::size_t hear_withdrawal(Flight& flight);
  std::size_t hear_farewell(Flight& flight);
  void forget(Rank peer);
  void match(Rank peer, const std::shared_ptr<const Announcement>& announcement);
  [[nodiscard]] std::string refusal_text(const LocalRegion& here, Rank peer,
                                         const Announcement& there) const;

  Simulation& world_;
  Rank node_;
  Seat first_seat_;
  bool leaves_;
  std::vector<LocalRegion> regions_;  // by index
  std::uint32_t last_serial_ = 0;
  /// What each peer has announced and not withdrawn: at most its kMaxRegions.
  std::vector<std::vector<std::shared_ptr<const Announcement>>> heard_;
  std::vector<std::pair<Rank, std::shared_ptr<const Announcement>>> matches_;  // heard early
  FlightList inbox_;
  Ring<Finished> finished_;
  std::vector<Failure> failures_;
  bool channels_opened_ = false;
  bool polling_ = false;
};

}  // namespace dunlin::sim
