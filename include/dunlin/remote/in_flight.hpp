#pragma once

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/remote/call.hpp>
#include <dunlin/remote/membership.hpp>
#include <dunlin/remote/status.hpp>

/// An InFlight is an operation of several steps (lock, put, raise the version, unlock) that is
/// under way; a Progress advances those of one fabric. One thread uses both, the one that polls.
///
///     dunlin::remote::Progress progress(*fabric);
///     dunlin::SegmentSpace space(progress, {.pool_bytes = 1 << 20});
///     auto first = space.get(a, x), second = space.get(b, y);   // both are under way
///     dunlin::remote::wait_all({&first, &second});              // or: poll until finished()
///
/// It is the older kind of call, and keeps REM-1 to REM-5 of call.hpp, but for frames, which it has
/// not. Of a Progress and its parts:
///  REM-13 A part hears that a member is gone once the member can change nothing here any more.
namespace dunlin::remote {

class Awaiting;
class InFlight;
class Progress;

class InFlight {
 public:
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  virtual ~InFlight() = default;  // a derived class's destructor calls abandon()

  [[nodiscard]] bool finished() const noexcept { return status_ != Status::under_way; }
  [[nodiscard]] bool ok() const noexcept { return status_ == Status::ok; }
  [[nodiscard]] Status status() const noexcept { return status_; }

  /// Polls until the operation has ended or the time is up, which the result `under_way` says; the
  /// operation goes on then. Throws Error inside a handler, a callback, or a coroutine that poll()
  /// has resumed.
  Status wait(std::uint64_t timeout_ns = kForever);
  /// Sets the callback for the end of the operation; calls it at once if the operation has ended.
  /// Replaces an earlier callback.
  void then(std::function<void()> callback);
  /// Gives the operation up (REM-3). It ends with `abandoned`, and calls nothing.
  void abandon() noexcept;

 protected:
  explicit InFlight(Progress& progress) noexcept : progress_(&progress) {}

  // A derived class implements these.
  /// Takes the next steps, as many as are possible now. Called when nothing posted with
  /// completion_ is under way any more.
  virtual void advance() noexcept = 0;
  /// Gives back what the operation holds; called once, when it ends, however it does.
  virtual void clean_up() noexcept = 0;

  /// Begins the operation, or begins it anew if it had ended. It may have ended when this returns.
  void start(std::uint64_t timeout_ns = kForever) noexcept;
  /// Begins the operation as start() does, but takes the first steps in the next Progress::poll(),
  /// which is soon.
  void start_in_next_poll() noexcept;
  /// Ends the operation; advance() must return after that.
  void end(Status status) noexcept;

  Progress* progress_;
  Completion completion_;

 private:
  friend class Progress;
  friend class Awaiting;
  friend class AnyCall;
  void set_deadline(std::uint64_t timeout_ns) noexcept;
  void unlink() noexcept;

  Status status_ = Status::ok;
  bool linked_ = false;
  std::uint64_t deadline_ns_ = kForever;
  InFlight* before_ = nullptr;
  InFlight* after_ = nullptr;
  std::function<void()> callback_;
  Awaiting* awaiting_ = nullptr;
};

/// Awaits an operation for a coroutine, in whose frame this object lives. Either of coroutine and
/// operation may go before the other. (coroutine.hpp has the type of a coroutine.)
class Awaiting {
 public:
  explicit Awaiting(InFlight& operation) noexcept : operation_(operation) {}
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;
  ~Awaiting() {
    if (waiter_) operation_.awaiting_ = nullptr;
  }
  [[nodiscard]] bool await_ready() const noexcept { return operation_.finished(); }
  /// Throws Error if another coroutine awaits the operation already.
  void await_suspend(std::coroutine_handle<> waiter);

 private:
  friend class InFlight;
  friend class Progress;
  InFlight& operation_;
  std::coroutine_handle<> waiter_;  // set while it waits
};

template <class Operation>
class AwaitingOne final : public Awaiting {
 public:
  explicit AwaitingOne(Operation& operation) noexcept
      : Awaiting(operation), operation_(operation) {}
  decltype(auto) await_resume() { return operation_.await_resume(); }

 private:
  Operation& operation_;
};

/// `co_await` of any operation that has `await_resume()`. An operation that is made in the
/// expression lives in the coroutine's frame while it is awaited.
template <std::derived_from<InFlight> Operation>
[[nodiscard]] auto operator co_await(Operation& operation) noexcept {
  return AwaitingOne<Operation>(operation);
}
template <std::derived_from<InFlight> Operation>
[[nodiscard]] auto operator co_await(Operation&& operation) noexcept {
  return AwaitingOne<Operation>(operation);
}

/// A call or operation, whatever its kind.
class AnyCall {
 public:
  // Both are conversions, so that a list of pointers is a list of calls.
  AnyCall(CallBase* call) noexcept : call_(call) {}
  AnyCall(InFlight* operation) noexcept : operation_(operation) {}
  [[nodiscard]] bool finished() const noexcept {
    return call_ != nullptr ? call_->finished() : operation_->finished();
  }
  [[nodiscard]] bool begun() const noexcept { return call_ == nullptr || call_->begun(); }
  [[nodiscard]] Progress& progress() const noexcept {
    return call_ != nullptr ? call_->progress() : *operation_->progress_;
  }

 private:
  CallBase* call_ = nullptr;
  InFlight* operation_ = nullptr;
};

/// Waits for all of them, as Call::wait does; returns whether all have ended.
bool wait_all(std::span<const AnyCall> calls, std::uint64_t timeout_ns = kForever);
bool wait_all(std::span<InFlight* const> operations, std::uint64_t timeout_ns = kForever);
inline bool wait_all(std::initializer_list<AnyCall> calls, std::uint64_t timeout_ns = kForever) {
  return wait_all(std::span(calls.begin(), calls.size()), timeout_ns);
}

/// The part of a layer that serves the peers; Progress polls it beside the operations.
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
  /// Makes a progress with a fixed list of members: all operations stop when one of them fails.
  explicit Progress(Fabric& fabric);
  /// The fabric and the membership must outlive the progress.
  Progress(Fabric& fabric, Membership& members, ProgressOptions options = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Polls membership, fabric and parts, and advances the operations under way; returns how much
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
  /// How many operations are under way.
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_ + calls_.size(); }

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
  friend class InFlight;
  friend class LocalWork;
  friend class ProtocolState;
  friend bool wait_all(std::span<const AnyCall> calls, std::uint64_t timeout_ns);
  friend bool wait_all(std::span<InFlight* const> operations, std::uint64_t timeout_ns);
  template <class Calls>
  static bool wait_for(const Calls& calls, std::uint64_t timeout_ns);
  void link(InFlight& operation) noexcept;
  std::size_t advance_all();
  void complete(InFlight& operation);
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
  InFlight* first_ = nullptr;
  InFlight* last_ = nullptr;
  InFlight* next_ = nullptr;  // the operation that advance_all() visits next
  std::size_t in_flight_ = 0;
  std::uint32_t passed_ = 0;  // calls of wait() for operations that had ended already
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
