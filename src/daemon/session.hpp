#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dunlin/segment.hpp>

#include "daemon/layout.hpp"
#include "daemon/ledger.hpp"
#include "segment/port.hpp"

/// The daemon's side of one client: takes its requests, makes the calls of the space, and replies.
/// It knows no socket. One thread uses it, the one that polls the space.
///
/// Invariants (docs/daemon.md):
///  DMN-S1  Whatever the client writes into the shared memory: the session copies a request, checks
///         the copy, and uses that alone. It hands the space buffers of its own only, and writes
///         into the shared memory only the client's rings, buffers and control words.
///  DMN-S2  A put has all its bytes when it starts, so the client's end does not tear it.
///  DMN-S3  When a client has ended, its gets and waits are given up; its puts end; then its locks
///         are released as those of a dead holder.
namespace dunlin::attached {

struct SessionOptions {
  std::uint64_t owner = 1;  // owns locks, and has an account in the ledger; unique to the session
  std::uint32_t user = 0;
  std::uint64_t quota_bytes = 0;
  std::uint32_t quota_locks = 0;
  std::uint32_t index = 0;  // goes into the list of sessions that have replied
};

class Session {
 public:
  /// `replied` has room for all sessions.
  Session(SegmentSpace& space, Ledger& ledger, std::vector<std::uint32_t>& replied, Layout layout,
          std::span<std::byte> memory, SessionOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Takes the client's requests; returns how much was done.
  std::size_t poll();
  /// How the client broke the protocol; null: it did not. Otherwise the session must be ended.
  [[nodiscard]] const char* fault() const noexcept { return fault_; }

  /// From now on the client rings after a request. Poll once more before you rely on it.
  void rest() noexcept;
  void go_on() noexcept;
  [[nodiscard]] bool rests() const noexcept { return rests_; }
  /// Called for the sessions in `replied`: whether the client sleeps, and must be rung to see its
  /// replies.
  [[nodiscard]] bool must_ring() noexcept;
  [[nodiscard]] std::uint64_t beats() const noexcept;

  /// Ends the session of a client that is gone (DMN-S3).
  void end() noexcept;
  /// Whether the session was ended, and nothing of it is under way.
  [[nodiscard]] bool over() const noexcept { return ended_ && running_ == 0; }

  [[nodiscard]] std::uint64_t owner() const noexcept { return options_.owner; }
  [[nodiscard]] std::uint64_t served() const noexcept { return replies_; }

 private:
  enum class State : std::uint8_t { idle, running, held_back };
  struct Slot {
    SegmentOperation operation;
    std::unique_ptr<std::byte[]> buffer;  // transfer_bytes, in words
    Request request = {};
    std::uint64_t charged = 0;  // bytes that an allocate has charged
    Ledger::Account account = 0;
    State state = State::idle;
  };

  void take_request(const Request& request);
  void cancel(const Request& request);
  void start(Slot& slot);
  [[nodiscard]] bool start_transfer(Slot& slot);
  void start_allocation(Slot& slot);
  void start_lock(Slot& slot);
  void start_behind(Slot& slot);
  [[nodiscard]] bool uses(std::uint64_t key) const noexcept;
  void run(Slot& slot, const SegmentRequest& request, std::string_view name = {});
  void finished(Slot& slot);
  void reply(Slot& slot, remote::Status status, const Outcome& outcome = {});
  void break_off(const char* why) noexcept { fault_ = why; }
  void release_locks() noexcept;

  [[nodiscard]] std::byte* shared_buffer(const Slot& slot) const noexcept {
    return memory_.data() + layout_.buffer_at(slot.request.slot);
  }

  SegmentSpace& space_;
  Ledger& ledger_;
  std::vector<std::uint32_t>& replied_;
  Layout layout_;
  std::span<std::byte> memory_;
  SessionOptions options_;
  std::vector<Slot> slots_;
  std::vector<Key> locks_;  // locks that the client holds
  std::uint64_t requests_ = 0;
  std::uint64_t replies_ = 0;
  bool listed_ = false;  // whether it is in replied_
  std::uint32_t running_ = 0;
  std::uint32_t waiting_unlocks_ = 0;  // for operations under the lock
  bool rests_ = false;
  bool ended_ = false;
  const char* fault_ = nullptr;
};

}  // namespace dunlin::attached
