#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/call.hpp>
#include <dunlin/remote/membership.hpp>
#include <dunlin/remote/status.hpp>

/// A Progress advances the calls of one fabric, and polls the layers that have them. One thread
/// uses it, the one that polls.
///
///     dunlin::remote::Progress progress(*fabric);
///     dunlin::SegmentSpace space(progress, {.pool_bytes = 1 << 20});
///     auto first = space.get(a, x), second = space.get(b, y);   // both are under way
///     dunlin::remote::wait_all({&first, &second});              // or: poll until finished()
///
/// Invariant:
///  REM-13 A part hears that a member is gone once the member can change nothing here any more.
namespace dunlin::remote {

/// Waits for all of them, as Call::wait does; returns whether all have ended.
bool wait_all(std::span<CallBase* const> calls, std::uint64_t timeout_ns = kForever);
inline bool wait_all(std::initializer_list<CallBase*> calls, std::uint64_t timeout_ns = kForever) {
  return wait_all(std::span(calls.begin(), calls.size()), timeout_ns);
}

/// The part of a layer that serves the peers; Progress polls it beside the calls.
class Part {
 public:
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  virtual ~Part() = default;
  virtual std::size_t poll_part() = 0;
  /// Called when Progress::contains() has changed: the members that are gone can change nothing
  /// here any more.
  virtual void members_changed() = 0;
};

struct ProgressOptions {
  /// True: this process goes on although a member that counts as failed may still change our
  /// memory, because its process could not be killed (Fabric::fence), such as another user's
  /// process. False: this process stops then.
  bool accept_unfenced = false;
};

class Progress {
 public:
  /// Makes a progress with a fixed list of members: all calls stop when one of them fails.
  explicit Progress(Fabric& fabric);
  /// The fabric and the membership must outlive the progress.
  Progress(Fabric& fabric, Membership& members, ProgressOptions options = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Polls membership, fabric and parts, and advances the calls under way; returns how much
  /// was done. Throws what Membership::poll() throws.
  std::size_t poll();
  /// The events of the membership that end a sleep of a Loop.
  [[nodiscard]] Waits waits() const;

  [[nodiscard]] Fabric& fabric() const noexcept { return fabric_; }
  /// The number of founders of the membership, which have the first ranks: duties that never move
  /// are spread over these. Members that came later use all layers; keys and elements of containers
  /// stay with the founders.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  /// The number of ranks that can ever be members.
  [[nodiscard]] std::uint32_t capacity() const noexcept {
    return static_cast<std::uint32_t>(present_.size());
  }
  [[nodiscard]] const Membership& members() const noexcept { return members_; }
  /// Opens the members' order of that name (agreed_order.hpp). Throws Error.
  [[nodiscard]] std::unique_ptr<AgreedOrder> open_order(const OrderOptions& options,
                                                        AgreedState& state) {
    return members_.open_order(*this, options, state);
  }
  [[nodiscard]] bool stopped() const noexcept { return !why_stopped().empty(); }
  /// Whether the process was stopped at the last poll().
  [[nodiscard]] bool was_stopped() const noexcept { return was_stopped_ || fabric_.is_forked(); }
  /// A sentence that says why this process is no member any more, or cannot go on as one; empty
  /// otherwise.
  [[nodiscard]] const std::string& why_stopped() const noexcept {
    if (fabric_.is_forked()) return forked_text();
    return unfenced_.empty() ? members_.why_stopped() : unfenced_;
  }
  /// How many calls are under way.
  [[nodiscard]] std::size_t in_flight() const noexcept { return calls_.size(); }

  // --- for layers --------------------------------------------------------------------------------
  void add(Part& part);
  void remove(Part& part) noexcept;
  /// Throws Error, whose text begins with `who`, if this process has such an object already, whose
  /// region has that name: other members would find only one of the two.
  void check_is_only(const std::string& who, const std::string& region) const;
  /// Whether the rank is a member in the generation that the parts know. A member that is gone
  /// there can change nothing any more.
  [[nodiscard]] bool contains(Rank rank) const noexcept {
    return rank < present_.size() && present_[rank];
  }
  /// Whether the rank has been a member and is none any more, or never will be one. A rank that is
  /// neither contained nor gone is still to come; or it has come, and the parts have yet to hear of
  /// it: it may have locks, memory and keys already.
  [[nodiscard]] bool is_gone(Rank rank) const noexcept {
    return rank >= present_.size() || (rank < known_ && !present_[rank]);
  }
  [[nodiscard]] std::uint64_t generation() const noexcept { return told_generation_; }
  /// Whether the function that runs for another member (LocalWork) has been refused a call or wait.
  [[nodiscard]] bool broke_local_work() const noexcept { return broke_local_work_; }
  /// Polls once in a while, for calls that have ended without a poll.
  void poll_in_passing();
  /// How a call ends that may not begin because of was_stopped().
  [[nodiscard]] Status why_none_begins() noexcept;

 private:
  friend class CallBase;
  friend class LocalWork;
  friend class ProtocolState;
  friend bool wait_all(std::span<CallBase* const> calls, std::uint64_t timeout_ns);
  [[nodiscard]] static const std::string& forked_text() noexcept;
  void follow_members();
  void look_who_is_present();
  std::size_t fence_members();
  void check_may_wait();
  void check_no_local_work();
  void pause(std::uint32_t fruitless, std::uint64_t deadline_ns);

  Fabric& fabric_;
  std::unique_ptr<FixedMembers> fixed_;
  Membership& members_;
  ProgressOptions options_;
  std::uint64_t generation_;       // members that are gone in it have been expelled
  std::uint64_t told_generation_;  // gone members are fenced, and the parts know
  std::uint32_t size_;
  std::vector<bool> present_;  // in told_generation_
  Rank known_ = 0;             // ranks below this have come; members come in the order of ranks
  Rank come_ = 0;              // as known_, but in generation_
  std::vector<bool> has_been_;
  std::vector<Rank> to_fence_;
  std::string unfenced_;
  std::vector<Part*> parts_;
  FramePool frames_;
  Runs calls_{*this};
  std::uint32_t passed_ = 0;  // calls of wait() for calls that had ended already
  bool was_stopped_ = false;
  bool polling_ = false;
  bool works_locally_ = false;
  bool broke_local_work_ = false;
};

/// While one of these lives, this process runs a function for another member: whatever begins a
/// call or waits for one throws Error. At most one lives at a time.
class LocalWork {
 public:
  explicit LocalWork(Progress& progress) noexcept;
  LocalWork(const LocalWork&) = delete;
  LocalWork& operator=(const LocalWork&) = delete;
  ~LocalWork();
  /// Whether a call or a wait has been refused, also if the function has caught the Error.
  [[nodiscard]] bool was_broken() const noexcept { return progress_.broke_local_work(); }

 private:
  Progress& progress_;
  bool was_stopped_;
  bool was_polling_;
};

}  // namespace dunlin::remote
