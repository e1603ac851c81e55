#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/shm.hpp>

#include "fabric/failure_detector.hpp"
#include "fabric/shm/late_release.hpp"
#include "fabric/shm/membarrier.hpp"
#include "fabric/shm/rendezvous.hpp"
#include "fabric/tick_timer.hpp"

/// The Fabric over shared memory, one file a concern: operations.cpp and messages.cpp are the data
/// path, regions.cpp connects memory, control.cpp speaks with the peers, watch.cpp sees who is
/// alive, waiting.cpp sleeps and wakes.
namespace dunlin::shm {

class ShmFabric final : public Fabric {
 public:
  explicit ShmFabric(Attachment attachment);
  ~ShmFabric() override;

  [[nodiscard]] std::string_view kind() const noexcept override { return "shm"; }
  [[nodiscard]] bool connected(Rank peer, RegionId region) const noexcept override;
  using Fabric::post;
  Posted post(std::span<const Operation> batch) noexcept override;
  [[nodiscard]] Refusal send(Rank peer, std::uint32_t channel,
                             std::span<const std::byte> message) noexcept override;
  std::size_t poll() noexcept override;
  void abandon(Completion& completion) noexcept override { clear(completion); }

  [[nodiscard]] std::uint64_t now_ns() const noexcept override;
  void prepare_sleep() noexcept override;
  void cancel_sleep() noexcept override;
  void sleep(std::uint64_t timeout_ns) noexcept override;
  void wake() noexcept override;
  void wake_at(std::uint64_t time_ns) noexcept override;
  [[nodiscard]] int wait_descriptor() const noexcept override { return epoll_.get(); }
  [[nodiscard]] std::uint32_t host_members() const noexcept override { return living_; }

 protected:
  std::span<std::byte> do_allocate(RegionId id, const RegionSpec& spec,
                                   bool observers_only) override;
  void do_announce(RegionId id) override;
  void do_release(RegionId id) noexcept override;
  void channel_opened(std::uint32_t channel) noexcept override;
  void part_with_expelled(Rank peer) noexcept override;

 private:
  /// Memory of a peer that operations may reach; no bytes: none.
  struct Remote {
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
  };
  /// How to reach a member between operations; no base: it has failed.
  struct Door {
    BaseSegment* base = nullptr;
    int bell = -1;
    bool needs_fence = false;
    MessageSender sender = {};
  };
  /// A region of our own.
  struct Local {
    std::shared_ptr<const OwnSegment> segment;
    RegionSpec spec;
    bool observers_only;
    std::uint64_t number = 0;  // among our announcements; 0: not announced
  };
  /// A region that a peer has announced.
  struct Offer {
    enum class State { waiting, connected, refused };
    std::uint64_t number;
    PeerSegment segment;
    State state = State::waiting;
    RegionId region = {};  // ours that goes with it, unless waiting
  };
  struct Outgoing {
    Packet packet;
    std::shared_ptr<const OwnSegment> segment;  // to send along; may be none
  };
  struct Contact {
    Link link;
    MessageReceiver receiver;
    std::uint64_t messages_until = UINT64_MAX;  // in its ring; less once it has failed
    std::vector<Offer> offers;
    std::deque<Outgoing> outgoing;
    bool says_goodbye = false;
    bool failing = false;
  };

  void open_door(Rank rank, Link link);
  /// Not in a forked child, which has the same descriptors but is not the member.
  [[nodiscard]] bool in_own_process() const noexcept { return getpid() == process_; }

  // operations.cpp
  [[nodiscard]] Refusal perform(const Operation& operation) noexcept;
  void wake_if_asleep(const Door& door) noexcept;
  void ring(const Door& door, std::uint64_t sleep) noexcept;

  // messages.cpp
  void handle_pending();
  void drain_messages(Rank from);
  void mark_messages(Rank to) noexcept;
  void attend_soon() noexcept;

  // regions.cpp
  [[nodiscard]] OwnSegment make_segment(const SegmentInfo& info);
  void take_announcement(Rank from, Received& received);
  void take_withdrawal(Rank from, std::uint64_t number);
  void match_offers();
  void connect_region(Rank peer, Offer& offer, RegionId id);
  void refuse_region(Rank peer, Offer& offer, RegionId id);
  [[nodiscard]] RegionId local_region(const SegmentInfo& info) const noexcept;
  [[nodiscard]] Remote& remote(Rank peer, RegionId id) noexcept {
    return remotes_[peer * kMaxRegions + id.index];
  }

  // control.cpp
  void read_control();
  void read_packets(Rank from);
  void handle_packet(Rank from, Received& received);
  void send_control(Rank to, const Packet& packet, std::shared_ptr<const OwnSegment> segment);
  void flush_control();
  void flush(Rank to);
  void accept_arrivals();
  void refuse_arrivals();
  [[nodiscard]] bool listen_for(int descriptor, std::uint64_t tag) noexcept;
  void forget(const Descriptor& descriptor) noexcept;

  // watch.cpp
  std::size_t poll_slowly() noexcept;
  void look_at_clock();
  void look_soon() noexcept;
  void watch(std::uint64_t now_ns);
  void beat(std::uint64_t now_ns) noexcept;
  void check_silence();
  void fail(Rank peer, const std::string& how);
  void part_with(Rank peer) noexcept;
  void fail_soon(Rank peer, std::string how);
  void tell(const Event& event);
  [[nodiscard]] std::string who(Rank peer) const;

  // waiting.cpp
  void wait(std::uint64_t timeout_ns) noexcept;
  void get_up() noexcept;
  void silence_bell() noexcept;
  void set_alarm() noexcept;
  void alarm_went_off() noexcept;

  // The data path's.
  BaseSegment* own_;
  std::uint32_t members_;
  std::uint32_t polls_until_ticks_ = 1;
  std::vector<Remote> remotes_;  // by peer and region
  std::vector<Door> doors_;      // by rank

  // Watching.
  TickTimer look_timer_;  // until the next look at the clock
  std::uint64_t last_watch_ns_;
  std::uint64_t next_silence_check_ns_ = 0;
  std::uint64_t silence_timeout_ns_;
  std::uint64_t beat_interval_ns_ = UINT64_MAX;
  std::uint64_t heartbeats_ = 0;
  bool watch_now_ = false;
  std::size_t handled_ = 0;  // messages and events, in this poll()
  FailureDetector detector_;

  // Waiting.
  bool prepared_ = false;
  bool bell_rings_ = false;
  std::uint64_t sleeps_ = 0;             // the number of the last one
  std::uint64_t alarm_ns_ = UINT64_MAX;  // what the timer is set to
  std::atomic<bool> woken_{false};
  std::uint64_t wake_at_ns_ = UINT64_MAX;

  // Control.
  pid_t process_ = getpid();
  Identity self_;
  Access access_;
  Descriptor listener_;
  Descriptor bell_;
  Descriptor epoll_;
  Descriptor alarm_;
  OwnSegment base_;
  std::vector<Contact> contacts_;  // by rank
  std::vector<Descriptor> arrivals_;
  std::vector<std::pair<Rank, std::string>> doomed_;  // to fail at the next watch
  std::vector<std::unique_ptr<Local>> locals_;        // by region
  std::uint64_t announcements_ = 0;
  std::size_t outgoing_ = 0;  // packets that wait, to all
  bool must_match_ = false;
  LateRelease late_;
  std::uint32_t living_;
};

/// W2 and W3: the operations come before the look at `sleeping`. The fence is needed only if one of
/// the two cannot use barriers on all processors; otherwise it is enough that the compiler keeps
/// the order.
[[gnu::always_inline]] inline void ShmFabric::wake_if_asleep(const Door& door) noexcept {
  if (door.base == nullptr) [[unlikely]]
    return;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (door.needs_fence) [[unlikely]]
    full_fence();
  if (const std::uint64_t sleep = memory::load(door.base->sleeping); sleep != 0) [[unlikely]]
    ring(door, sleep);
}

}  // namespace dunlin::shm
