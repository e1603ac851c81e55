#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dunlin/fabric.hpp>

#include "fabric/core/backend.hpp"
#include "fabric/core/failure_detector.hpp"
#include "fabric/core/sleeper.hpp"
#include "fabric/counters/counters.hpp"
#include "fabric/forking.hpp"
#include "fabric/thread_guard.hpp"

/// The code that all fabrics share, with any backend: FAB-F3, FAB-F5 and FAB-X1 to FAB-X4 of
/// docs/fabric.md. One file a concern: members.cpp lets members in, regions.cpp matches the regions
/// of peers with own ones, failures.cpp detects failed peers and expels them, handlers.cpp hands
/// out events and messages, waiting.cpp sleeps and wakes.
namespace dunlin {

/// The parts from which a fabric is made, besides its backend.
struct FabricSetup {
  std::string kind;
  std::string description = {};
  std::string group;
  Rank rank = 0;
  std::vector<std::string> names;  // by rank; empty strings if members are counted
  std::vector<Rank> absent = {};   // ranks whose members had gone before this one came
  Properties properties = {};
  const CpuCosts* cpu_costs = nullptr;
  std::uint32_t silence_timeout_ms = 0;  // 0: silence is never a failure
  /// The sleeper, with the doorbell that peers ring; none: the core makes one that no peer knows.
  std::optional<Sleeper> sleeper = std::nullopt;
};

class FabricCore final : private ForkAware {
 public:
  using PostFunction = Posted (*)(FabricBackend&, std::span<const Operation>) noexcept;
  using PollFunction = std::size_t (*)(FabricBackend&) noexcept;
  /// Called by make_fabric(), below.
  [[nodiscard]] static std::unique_ptr<Fabric> make(FabricSetup setup,
                                                    std::unique_ptr<FabricBackend> backend,
                                                    PostFunction post, PollFunction poll);
  FabricCore(Fabric& fabric, FabricSetup setup, std::unique_ptr<FabricBackend> backend);
  ~FabricCore() override;
  FabricCore(const FabricCore&) = delete;
  FabricCore& operator=(const FabricCore&) = delete;

  // --- for backends: members ---------------------------------------------------------------------
  [[nodiscard]] Rank rank() const noexcept { return fabric_.rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return fabric_.size(); }
  [[nodiscard]] const std::string& group() const noexcept { return fabric_.group_; }
  [[nodiscard]] const Fabric& fabric() const noexcept { return fabric_; }
  [[nodiscard]] static ThreadGuard& guard_of(const Fabric& fabric) noexcept {
    return fabric.core_->guard_;
  }
  /// Called by CounterSet.
  [[nodiscard]] static CounterPages& counters_of(Fabric& fabric) noexcept {
    return *fabric.core_->counters_;
  }
  /// Whether this is the process that joined; false in a forked child, which has the descriptors,
  /// but is no member.
  [[nodiscard]] bool in_own_process() const noexcept { return !fabric_.forked_; }
  /// Sets the fabric's description, which may change when members are admitted.
  void describe(std::string description) { fabric_.description_ = std::move(description); }
  /// "member 'c' (rank 2)", for messages.
  [[nodiscard]] std::string name_of(Rank peer) const;

  // --- for backends: a poll ----------------------------------------------------------------------
  /// Begins a poll; false within another poll, whose handler calls this one: then there is nothing
  /// to do.
  [[nodiscard]] bool begin_poll() noexcept {
    if (polling_) return false;
    polling_ = true;
    handled_ = 0;
    return true;
  }
  [[nodiscard]] std::size_t end_poll() noexcept {
    polling_ = false;
    return handled_;
  }
  [[nodiscard]] bool polling() const noexcept { return polling_; }
  /// Counts messages, completions or events that were handled in this poll.
  void count_handled(std::size_t more = 1) noexcept { handled_ += more; }
  /// Whether there are other duties after all arrivals: failures, expulsions, new channels.
  [[nodiscard]] bool has_duties() const noexcept { return has_duties_; }
  void perform_duties();
  [[nodiscard]] std::uint64_t recent_ns() const noexcept { return fabric_.recent_ns_; }
  void set_time(std::uint64_t now_ns) noexcept {
    fabric_.recent_ns_ = now_ns;
    if (now_ns >= wake_at_ns_) wake_at_ns_ = UINT64_MAX;
  }
  /// Shows signs of life, and checks those of the peers, when it is time for that. The backend
  /// calls this after it has taken what has arrived: a peer whose bytes wait here is not silent.
  void watch();

  // --- for backends: operations and messages -----------------------------------------------------
  /// The reason to refuse an operation for which a backend finds no memory. If the peer has failed,
  /// completes the operation with an error, and returns Refusal::none.
  [[nodiscard]] Refusal refuse(const Operation& operation) const noexcept;
  /// Hands a message to the channel's handler. Returns false if the channel has none yet; then the
  /// message must wait. A message of an expelled peer is dropped.
  [[nodiscard]] bool deliver(Rank from, std::uint32_t channel, std::span<const std::byte> message);

  // --- for backends: what peers tell -------------------------------------------------------------
  /// A text that says what is wrong with a peer's message; null: nothing is.
  using Fault = const char*;
  [[nodiscard]] Fault on_announcement(Rank from, RemoteRegion region) {
    return on_announcement(from, std::make_shared<RemoteRegion>(std::move(region)));
  }
  /// Several members of this process may share one if the backend's let_go() changes nothing.
  [[nodiscard]] Fault on_announcement(Rank from, std::shared_ptr<RemoteRegion> region);
  [[nodiscard]] Fault on_withdrawal(Rank from, std::uint64_t number);
  /// The region that a peer means by a number; null if it was released. `known` says whether it
  /// ever existed.
  [[nodiscard]] const LocalRegion* find(std::uint64_t number, bool& known) const noexcept {
    const std::uint64_t index = number % kMaxRegions;
    const std::uint64_t which = number / kMaxRegions;
    known = index < regions_.size() && which != 0 && which <= announcements_[index];
    return known && regions_[index].number == number ? &regions_[index] : nullptr;
  }
  [[nodiscard]] const LocalRegion& region(RegionId id) const noexcept { return regions_[id.index]; }
  /// Called when a peer says that it takes this member for dead after so long a silence; 0: never.
  void on_silence_timeout(std::uint32_t timeout_ms) noexcept;
  void on_leave(Rank from) noexcept {
    states_[from].says_goodbye = states_[from].touches_nothing = true;
  }
  /// Called when the peer writes to no memory of this member any more, though its process may live
  /// on.
  void on_part(Rank from) noexcept { states_[from].touches_nothing = true; }
  [[nodiscard]] bool touches_nothing(Rank peer) const noexcept {
    return states_[peer].touches_nothing;
  }

  // --- for backends: members that come -----------------------------------------------------------
  /// Called when the newcomer has come, and can be sent messages: only from within poll(), once for
  /// each rank.
  void on_linked(Rank peer);
  [[nodiscard]] bool linked(Rank peer) const noexcept { return fabric_.linked(peer); }
  /// Called when longest_beat_interval_ns() may be less than before.
  void hasten_beats() noexcept;

  // --- for backends: failures --------------------------------------------------------------------
  /// Makes the peer fail: only from within poll(). `silent_ns` says how long it was silent; 0: the
  /// failure was noticed otherwise.
  void fail(Rank peer, const std::string& how, std::uint64_t silent_ns = 0);
  /// Called when the connection to the peer has ended: the peer has left, or failed as `how` says.
  void on_end(Rank peer, const std::string& how);
  /// Makes the peer fail, as fail() does, at the end of this poll() or in the next one.
  void fail_soon(Rank peer, std::string how);
  /// Whether nothing is taken from the peer any more; true a little before Fabric::failed() says
  /// so.
  [[nodiscard]] bool failing(Rank peer) const noexcept { return states_[peer].failing; }
  [[nodiscard]] bool leaves(Rank peer) const noexcept { return states_[peer].leaves; }
  [[nodiscard]] bool expelled(Rank peer) const noexcept { return states_[peer].expelled; }
  /// Called when fence() has killed the peer's process, so long after this member closed the
  /// connection.
  void on_killed(Rank peer, pid_t process, std::uint64_t after_ns) noexcept;

  // --- for backends: waiting ---------------------------------------------------------------------
  [[nodiscard]] Sleeper& sleeper() noexcept { return *sleeper_; }
  /// Called when a duty of the backend itself has become more urgent.
  void reckon_duties() noexcept;
  [[nodiscard]] bool prepared_to_sleep() const noexcept { return prepared_; }

 private:
  friend class Fabric;
  friend class Region;
  friend class Subscription;

  struct Subscriber {
    std::uint64_t id;  // 0: unsubscribed, and removed when no handler runs
    Fabric::EventHandler handler;
  };
  /// A region that a peer has announced, and the region of ours with which it was matched.
  struct Offer {
    enum class State { waiting, connected, refused };
    std::shared_ptr<RemoteRegion> there;
    State state = State::waiting;
    RegionId here = {};  // set unless the offer waits
  };
  struct PeerState {
    bool failing = false;    // only what it has said already is still taken from it
    bool parted = false;     // its connection is closed
    bool expelled = false;   // this member has expelled it
    bool announced = false;  // its failure was announced
    bool leaves = false;     // it was expelled because it wanted to leave
    bool says_goodbye = false;
    bool touches_nothing = false;  // it has said so
    pid_t killed = 0;              // its process, if fence() has killed it
    std::uint64_t killed_after_ns = 0;
    bool kill_told = false;
    std::vector<Offer> offers;
  };

  void in_child() noexcept override;
  void require_own_process() const;

  // These are in regions.cpp.
  [[nodiscard]] bool has_region(std::string_view name) const noexcept;
  [[nodiscard]] Region make_region(RegionSpec spec, bool observers_only);
  [[nodiscard]] RegionId free_slot(const std::string& name, std::uint64_t generation,
                                   bool observers_only);
  void announce(const Region& region, const std::span<const Rank>* to);
  [[nodiscard]] bool can_announce(Rank peer, const LocalRegion& region) const;
  void open_region(RegionId id);
  void release(RegionId id) noexcept;
  void match_soon(RegionId id);
  void match_waiting();
  void match(Rank peer, std::uint64_t number);
  [[nodiscard]] Offer* find_offer(Rank peer, std::uint64_t number) noexcept;
  [[nodiscard]] static bool goes_with(const LocalRegion& here, const RemoteRegion& there) noexcept;
  [[nodiscard]] RegionId local_region(const RemoteRegion& there) const noexcept;
  [[nodiscard]] std::string mismatch(const RegionSpec& here, Rank peer,
                                     const RemoteRegion& there) const;
  void disconnect(Rank peer, RegionId id) noexcept;

  // These are in members.cpp.
  void admit(const Admission& admission);
  void check_admission(const Admission& admission) const;
  void leave_empty(Rank rank, std::string why);

  // These are in failures.cpp.
  void expel(Rank peer, std::string why, Parting how);
  void part_with(Rank peer) noexcept;
  void announce_failure(Rank peer, std::string how, std::uint64_t silent_ns = 0);
  void announce_kills();
  void beat() noexcept;
  void check_silence();

  // These are in handlers.cpp.
  [[nodiscard]] std::uint64_t subscribe(Fabric::EventHandler handler);
  void unsubscribe(std::uint64_t id) noexcept;
  void leave_handler() noexcept;
  void emit(const Event& event);
  void receive(std::uint32_t channel, Fabric::MessageHandler handler);
  void ignore(std::uint32_t channel);
  [[nodiscard]] bool receives(std::uint32_t channel) const noexcept;
  void must_attend() noexcept;

  // These are in waiting.cpp.
  [[nodiscard]] std::uint64_t awake_since_ns() noexcept;
  void prepare_sleep() noexcept;
  void cancel_sleep() noexcept;
  void sleep(std::uint64_t timeout_ns) noexcept;
  void prepare_loop() noexcept;
  void wake_at(std::uint64_t time_ns) noexcept;
  [[nodiscard]] int wait_descriptor() noexcept;
  [[nodiscard]] std::uint64_t next_duty_ns() const noexcept;

  Fabric& fabric_;
  ThreadGuard guard_;
  std::vector<PeerState> states_;  // by rank

  bool polling_ = false;
  bool has_duties_ = false;
  std::size_t handled_ = 0;  // how many in this poll()
  std::vector<std::pair<Rank, std::string>> failing_soon_;
  std::vector<Rank> expelled_;  // peers whose events are still to come
  bool must_announce_kills_ = false;
  bool must_match_ = false;
  bool must_drain_ = false;

  std::deque<LocalRegion> regions_;           // by index, as far as one was ever taken
  std::vector<std::uint64_t> announcements_;  // by index: how often a region was announced there
  std::uint32_t next_slot_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> allocations_;  // so far, by name
  std::vector<std::pair<std::string, std::uint64_t>> published_;    // for observers, by name
  std::unique_ptr<CounterPages> counters_ = std::make_unique<CounterPages>(fabric_);

  std::vector<std::unique_ptr<Subscriber>> subscribers_;
  std::uint64_t next_subscriber_ = 1;
  std::vector<std::shared_ptr<const Fabric::MessageHandler>> handlers_;  // by channel
  std::bitset<kMaxChannels> ignored_;                                    // by channel
  std::uint32_t handler_depth_ = 0;

  std::uint64_t silence_timeout_ns_;
  std::uint64_t beat_interval_ns_ = UINT64_MAX;
  std::uint64_t next_beat_ns_ = UINT64_MAX;
  std::uint64_t next_silence_check_ns_ = 0;
  std::uint64_t last_silence_check_ns_ = 0;
  FailureDetector detector_;

  std::optional<Sleeper> sleeper_;
  bool prepared_ = false;
  bool has_slept_ = false;  // whether it has slept since awake_since_ns() was called
  std::uint64_t awake_since_ns_ = 0;
  std::uint64_t wake_at_ns_ = UINT64_MAX;

  std::unique_ptr<FabricBackend> backend_;  // destroyed first: it tells the peers
};

// The fabric calls these two. They are flat, so that the compiler can inline a backend's own
// function instead of one more jump.
template <class Backend>
[[gnu::flatten]] Posted post_to(FabricBackend& backend, std::span<const Operation> batch) noexcept {
  DUNLIN_ONE_THREAD(&backend.core().fabric());
  return static_cast<Backend&>(backend).post(batch);
}
template <class Backend>
[[gnu::flatten]] std::size_t poll_of(FabricBackend& backend) noexcept {
  DUNLIN_ONE_THREAD(&backend.core().fabric());
  return static_cast<Backend&>(backend).poll();
}

/// Makes a fabric. `Backend` derives from FabricBackend and is final.
template <class Backend>
[[nodiscard]] std::unique_ptr<Fabric> make_fabric(FabricSetup setup,
                                                  std::unique_ptr<Backend> backend) {
  return FabricCore::make(std::move(setup), std::move(backend), post_to<Backend>, poll_of<Backend>);
}

}  // namespace dunlin
