#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

/// The port between a Fabric and the backend that moves its bytes. docs/writing-a-backend.md leads
/// through it.
///
/// FabricCore (core.hpp) owns peers, regions and their matching, failures and silence, handlers,
/// and the protocol around sleeping. A backend moves bytes, says what it promises, arms and waits.
/// The fabric's thread makes all calls. A backend tells the core what it finds through core().
namespace dunlin {

/// A region of a peer: its announcement, and the fields by which the backend reaches its memory.
struct RemoteRegion {
  std::uint64_t number = 0;  // its owner's number for it; 0: none
  std::uint64_t bytes = 0;
  std::uint64_t generation = 0;
  std::uint64_t layout_hash = 0;
  std::string name = {};
  std::string layout_text = {};
  // These belong to the backend. The core keeps them, and reads none of them.
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::shared_ptr<const void> mapping = nullptr;
};

/// A region of this member.
struct LocalRegion {
  RegionSpec spec = {};
  std::uint64_t number = 0;  // the peers' number for it; 0: not announced
  bool taken = false;
  bool observers_only = false;
  std::optional<std::vector<Rank>> audience = std::nullopt;  // peers that may reach it; none: all

  [[nodiscard]] bool is_for(Rank peer) const {
    return !audience || std::ranges::find(*audience, peer) != audience->end();
  }
};

class FabricBackend {
 public:
  FabricBackend() = default;
  FabricBackend(const FabricBackend&) = delete;
  FabricBackend& operator=(const FabricBackend&) = delete;
  /// Tells the peers that this member leaves, except in a forked child (core().in_own_process()).
  virtual ~FabricBackend() = default;

  // --- the data path -----------------------------------------------------------------------------
  // A backend has two more members, which make_fabric() finds. They are not virtual, so that the
  // fabric calls them by one pointer:
  //   Posted post(std::span<const Operation> batch) noexcept;
  //   std::size_t poll() noexcept;
  // poll() takes what has arrived, then what the core has to do: core().begin_poll(), end_poll().

  /// Does what Fabric::prefetch() asks, where reads are loads.
  virtual void prefetch(Rank /*peer*/, RegionId /*region*/, std::uint64_t /*offset*/,
                        std::size_t /*bytes*/) noexcept {}
  /// Does what Fabric::reach() and Fabric::ring() ask, where memory is mapped.
  [[nodiscard]] virtual std::span<std::byte> memory_of(Rank /*peer*/,
                                                       RegionId /*region*/) noexcept {
    return {};
  }
  virtual void wake(Rank /*peer*/) noexcept {}
  /// Sends a message. The core has checked rank, channel and size, and that the peer has not
  /// failed.
  [[nodiscard]] virtual Refusal send(Rank peer, std::uint32_t channel,
                                     std::span<const std::byte> message) noexcept = 0;
  /// Forgets the completion, and where the results of its operations were to be written.
  virtual void forget(const Completion& completion) noexcept = 0;

  // --- life and peers ----------------------------------------------------------------------------
  /// Called when the core exists, and core() can be used: connects what the constructor could not.
  virtual void start() {}
  /// Ends everything between this member and the peer: operations that are not finished complete
  /// with an error, and nothing is taken from the peer any more. The core calls it once a peer.
  virtual void close(Rank peer) noexcept = 0;
  /// Does what Fabric::fence() asks, for a peer that was closed and had not left: for backends
  /// whose close() leaves the peer a way to our memory.
  [[nodiscard]] virtual Fenced fence(Rank) noexcept { return Fenced::yes; }
  /// Hands the messages of the peer that wait for a handler to core().deliver(), as long as it
  /// takes them. The core calls this when a channel gets its handler, and before it announces a
  /// failure.
  virtual void drain(Rank peer) = 0;
  /// Says that the next poll() has something to do that no peer's arrival brings.
  virtual void attend_soon() noexcept {}
  /// Tells the peer from other processes of its name, in messages: " (pid 12)".
  [[nodiscard]] virtual std::string detail_of(Rank) const { return {}; }
  [[nodiscard]] virtual std::uint32_t host_members() const noexcept { return 1; }

  // --- members that come while the fabric works --------------------------------------------------
  /// What a newcomer needs to reach this member. Throws Error.
  [[nodiscard]] virtual std::vector<std::byte> endpoint() const { return {}; }
  /// Makes room for more ranks, up to the last one of the admission. The backend takes the
  /// newcomers when they come, and tells core().on_linked() from within poll(). Throws Error, and
  /// changes nothing then.
  virtual void admit(const Admission& admission) = 0;

  // --- memory ------------------------------------------------------------------------------------
  /// Allocates zeroed memory, aligned to a cache line. Throws Error.
  [[nodiscard]] virtual std::span<std::byte> map(RegionId id, const LocalRegion& region) = 0;
  /// Called before the region is announced under its number. Fills in how this member itself
  /// reaches the region. Throws Error.
  virtual void open(RegionId id, const LocalRegion& region, RemoteRegion& own) = 0;
  virtual void announce(Rank peer, RegionId id, const LocalRegion& region) = 0;
  virtual void withdraw(Rank peer, RegionId id, const LocalRegion& region) noexcept = 0;
  /// Called when the region is released: its memory goes once no peer's device reaches into it any
  /// more.
  virtual void unmap(RegionId id, const LocalRegion& region) noexcept = 0;
  /// From connect() on, operations on region `id` of this peer reach `there`; from disconnect() on,
  /// they do not.
  virtual void connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept = 0;
  virtual void disconnect(Rank peer, RegionId id) noexcept = 0;
  /// Called when the peer's region is gone, or the peer has failed: gives back what `there` holds.
  virtual void let_go(Rank, RemoteRegion& /*there*/) noexcept {}

  // --- signs of life -----------------------------------------------------------------------------
  /// A number that changes while the peer is alive.
  [[nodiscard]] virtual std::uint64_t signs_of_life(Rank) const noexcept { return 0; }
  /// Shows the peers that this member is alive.
  virtual void beat() noexcept {}
  /// How often beat() must be called, whatever the peers' time-outs are.
  [[nodiscard]] virtual std::uint64_t longest_beat_interval_ns() const noexcept {
    return UINT64_MAX;
  }

  // --- time and waiting --------------------------------------------------------------------------
  [[nodiscard]] virtual std::uint64_t now_ns() const noexcept = 0;
  /// From now on, any arrival makes one of the watched descriptors readable (core().sleeper()).
  virtual void arm() noexcept {}
  /// Called when the member is awake again. `only_rung`: nothing but the doorbell woke it.
  virtual void disarm(bool /*only_rung*/) noexcept {}
  /// Hands over what is to be sent. Returns whether it is safe to wait now: if not, poll() has
  /// something to do already.
  [[nodiscard]] virtual bool may_wait() noexcept { return true; }
  /// When poll() must be called for a duty of the backend itself.
  [[nodiscard]] virtual std::uint64_t next_duty_ns() const noexcept { return UINT64_MAX; }
  /// Asks for a poll at that time: for nodes with virtual time, which do not sleep.
  virtual void poll_at(std::uint64_t) noexcept {}
  virtual void spend(double) noexcept {}

  [[nodiscard]] FabricCore& core() const noexcept { return *core_; }

 protected:
  /// False if the fabric could not be made.
  [[nodiscard]] bool has_core() const noexcept { return core_ != nullptr; }

  /// Lets a backend that is a part of this one use the core as if it were the fabric's own backend.
  void lend_core(FabricBackend& part) const noexcept { part.core_ = core_; }

  static void begin(Completion& c) noexcept { ++c.pending_; }
  static void finish(Completion& c) noexcept { --c.pending_; }
  static void finish_failed(Completion& c, Rank peer) noexcept {
    --c.pending_;
    if (c.failed_++ == 0) c.failed_peer_ = peer;
  }

 private:
  friend class Fabric;
  friend class FabricCore;
  static void clear(Completion& c) noexcept { c.pending_ = 0; }
  FabricCore* core_ = nullptr;
};

}  // namespace dunlin
