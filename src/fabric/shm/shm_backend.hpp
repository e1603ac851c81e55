#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric/memory.hpp>

#include "fabric/core/core.hpp"
#include "fabric/shm/late_release.hpp"
#include "fabric/shm/link.hpp"
#include "fabric/shm/membarrier.hpp"
#include "fabric/tick_timer.hpp"

/// The backend over shared memory, one file a concern: operations.cpp and messages.cpp are the data
/// path, regions.cpp shares memory, control.cpp speaks with the peers, watch.cpp looks after them
/// now and then, and sleeps.
namespace dunlin::shm {

[[nodiscard]] std::unique_ptr<Fabric> make_shm_fabric(Attachment attachment);

/// The tags of the core's sleeper for these descriptors, besides the peers' sockets by rank.
inline constexpr std::uint64_t kListenerTag = kMaxRanks;
inline constexpr std::uint64_t kArrivalTag = kMaxRanks + 1;

class ShmBackend final : public FabricBackend {
 public:
  explicit ShmBackend(Attachment attachment, int bell);
  ~ShmBackend() override;

  Posted post(std::span<const Operation> batch) noexcept;
  std::size_t poll() noexcept {
    if (memory::load(*pending_) == 0 && --polls_until_ticks_ != 0) [[likely]]
      return 0;
    return poll_slowly();
  }

  // --- as a part of another backend --------------------------------------------------------------
  /// What poll() does between core().begin_poll() and end_poll().
  void take_arrivals() noexcept {
    if (memory::load(*pending_) == 0 && --polls_until_ticks_ != 0) [[likely]]
      return;
    handle_arrivals();
  }
  /// Says that another backend reaches a newcomer that has just been admitted.
  void leave_elsewhere(Rank newcomer) noexcept { contacts_[newcomer].key = 0; }
  /// Tells observers that a peer that another backend reaches has failed.
  void mark_failed(Rank peer) noexcept;
  /// The segment of a region of this member.
  [[nodiscard]] const std::shared_ptr<const OwnMapping>& segment_of(RegionId id) const noexcept {
    return segments_[id.index];
  }

  void prefetch(Rank peer, RegionId region, std::uint64_t offset,
                std::size_t bytes) noexcept override;
  [[nodiscard]] std::span<std::byte> memory_of(Rank peer, RegionId region) noexcept override;
  void wake(Rank peer) noexcept override;
  [[nodiscard]] Refusal send(Rank peer, std::uint32_t channel,
                             std::span<const std::byte> message) noexcept override;
  void forget(const Completion&) noexcept override {}  // all is done when post() returns

  void start() override;
  void admit(const Admission& admission) override;
  void close(Rank peer) noexcept override;
  [[nodiscard]] Fenced fence(Rank peer) noexcept override;
  void drain(Rank peer) override;
  void attend_soon() noexcept override;
  [[nodiscard]] std::string detail_of(Rank peer) const override;
  [[nodiscard]] std::uint32_t host_members() const noexcept override { return living_; }

  [[nodiscard]] std::span<std::byte> map(RegionId id, const LocalRegion& region) override;
  void open(RegionId id, const LocalRegion& region, RemoteRegion& own) override;
  void announce(Rank peer, RegionId id, const LocalRegion& region) override;
  void withdraw(Rank peer, RegionId id, const LocalRegion& region) noexcept override;
  void unmap(RegionId id, const LocalRegion& region) noexcept override;
  void connect(Rank peer, RegionId id, const RemoteRegion& there) noexcept override;
  void disconnect(Rank peer, RegionId id) noexcept override;
  void let_go(Rank peer, RemoteRegion& there) noexcept override;

  [[nodiscard]] std::uint64_t signs_of_life(Rank peer) const noexcept override;
  void beat() noexcept override;

  [[nodiscard]] std::uint64_t now_ns() const noexcept override;
  void arm() noexcept override;
  void disarm(bool only_rung) noexcept override;
  [[nodiscard]] bool may_wait() noexcept override;
  [[nodiscard]] std::uint64_t next_duty_ns() const noexcept override;

 private:
  /// Memory of a peer that operations may reach; no bytes: there is none.
  struct Target {
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
  };
  /// There are some cache lines more than regions, to avoid a power of two: otherwise the targets
  /// of one region at all peers, which a batch reads in turn, would share a set of the cache.
  static constexpr std::size_t kTargetsOfAPeer = kMaxRegions + 12;
  /// How to reach a member between operations; null base: it has failed.
  struct Attention {
    BaseMapping* base = nullptr;
    int bell = -1;
    bool needs_fence = false;
    MessageRing* ring = nullptr;  // in its memory, for our messages
    MessageSender sender = {};
  };
  struct Outgoing {
    Packet packet;
    std::shared_ptr<const OwnMapping> segment;  // sent along; may be null
  };
  struct Contact {
    Link link;
    std::uint64_t key = 0;        // the key of its admission, until it has come
    MessageRing* ring = nullptr;  // in our memory, for its messages; null: it has not come
    Descriptor process;           // by which it can be killed, and its end seen
    Descriptor parting;           // of an expelled peer, until its last word
    std::uint64_t parted_ns = 0;  // when its connection was closed
    bool hung_up = false;         // the peer hung up, or its process ended
    MessageReceiver receiver;
    std::uint64_t messages_until = UINT64_MAX;  // less once it has failed
    std::deque<Outgoing> outgoing;
  };

  struct Arrival {
    Descriptor socket;
    pid_t pid;
  };

  [[nodiscard]] bool attach(Rank rank);
  void part(Rank peer) noexcept;

  // These are in operations.cpp.
  [[nodiscard]] Refusal perform(const Operation& operation) noexcept;
  void wake_if_asleep(const Attention& peer) noexcept;
  void ring(const Attention& peer, std::uint64_t sleep) noexcept;

  // These are in messages.cpp.
  void handle_pending();
  void mark_messages(Rank to) noexcept;
  static void give_back_ring(Contact& contact) noexcept;

  // These are in regions.cpp.
  [[nodiscard]] OwnMapping make_segment(const MappingInfo& info);
  void take_announcement(Rank from, Received& received);
  [[nodiscard]] Target& target(Rank peer, RegionId id) noexcept {
    return targets_[peer * kTargetsOfAPeer + id.index];
  }

  // These are in control.cpp.
  void read_control();
  void read_packets(Rank from);
  void handle_packet(Rank from, Received& received);
  void send_control(Rank to, const Packet& packet, std::shared_ptr<const OwnMapping> segment);
  void flush_control();
  void flush(Rank to);
  void hear_last_word(Rank from);
  void accept_arrivals();
  void stop_listening();
  void listen_again();
  void answer_arrivals();
  [[nodiscard]] bool answer(Arrival& arrival);
  void take_newcomer(Arrival& arrival, Received& received);

  // These are in watch.cpp.
  std::size_t poll_slowly() noexcept;
  void handle_arrivals() noexcept;
  void look_at_clock();
  void look_soon() noexcept;
  void watch();

  // These belong to the data path.
  std::uint64_t* pending_;  // in our base segment
  std::uint32_t polls_until_ticks_ = 1;
  std::uint32_t members_;
  std::vector<Target> targets_;       // by peer and region
  std::vector<Attention> attention_;  // by rank

  // These belong to watching and waiting.
  BaseMapping* own_;
  TickTimer look_timer_;  // until the next look at the clock
  std::uint64_t last_watch_ns_;
  std::uint64_t heartbeats_ = 0;
  bool watch_now_ = false;
  std::uint64_t sleeps_ = 0;  // the number of the last sleep

  // These belong to the control packets.
  Identity self_;
  Access access_;
  Descriptor listener_;
  int bell_;  // owned by the core
  OwnMapping base_;
  std::vector<Contact> contacts_;  // by rank
  std::vector<Arrival> arrivals_;
  std::uint64_t listen_again_ns_ = UINT64_MAX;               // set if there were no descriptors
  std::vector<std::shared_ptr<const OwnMapping>> segments_;  // by region
  std::size_t outgoing_ = 0;                                 // packets that wait for any peer
  LateRelease late_;
  std::vector<Rank> elsewhere_;  // among founding members
  std::uint32_t living_;
};

/// SHM-W2 and SHM-W3: the operations come before the look at `sleeping`. The fence is needed only
/// if one of the two cannot use barriers on all processors; otherwise it is enough that the
/// compiler keeps the order.
[[gnu::always_inline]] inline void ShmBackend::wake_if_asleep(const Attention& peer) noexcept {
  if (peer.base == nullptr) [[unlikely]]
    return;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (peer.needs_fence) [[unlikely]]
    full_fence();
  if (const std::uint64_t sleep = memory::load(peer.base->sleeping); sleep != 0) [[unlikely]]
    ring(peer, sleep);
}

}  // namespace dunlin::shm
