#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/segment.hpp>

/// A Daemon is a member of a group that makes its segments available to other processes and threads
/// of its host. They attach to it, and get the interface of a SegmentSpace; each has rings of its
/// own in shared memory. The thread that polls the daemon's fabric uses the Daemon; each thread
/// that attaches uses its own space.
///
///     dunlin::SegmentSpace space(*fabric, {.pool_bytes = 1 << 24});     // `dunlin daemon`
///     dunlin::Daemon daemon(space, {.group = "rack7"});
///     dunlin::run(daemon);
///
///     auto space = dunlin::attach({.group = "rack7"});                  // any other process
///     auto found = space->find("load/rack7").outcome();
///     std::uint64_t load = 0;
///     space->get(found.key, dunlin::bytes_of(load)).outcome();
///
/// Invariants (docs/daemon.md; the daemon's side of one client is src/daemon/session.hpp):
///  DMN-1  Nothing that a client writes into its rings harms the daemon or other clients, or
///         reaches memory that is not a segment's.
///  DMN-2  A put of a client happens as a whole or not at all, at whichever instruction the client
///         dies.
///  DMN-3  When a client has ended, its locks go to the next waiters, which are told, and the
///         segments without a name that it allocated are released.
///  DMN-4  A client whose daemon has ended is told: all its operations end with `stopped`.
namespace dunlin {

struct DaemonOptions {
  /// Where clients find it: under the group's name, or, if that is not empty, at a socket in the
  /// file system, which can be mounted into other containers.
  std::string group = {};
  std::string socket = {};
  /// The mode of the socket in the file system: a process that may write to it may attach.
  std::uint32_t socket_mode = 0600;
  /// Without such a socket: a Unix group that may attach as well; empty: only the same user.
  std::string access_group = {};
  /// Clients at a time.
  std::uint32_t clients = 256;
  /// Of each client: operations under way (a power of two), and bytes of one get or put.
  std::uint32_t operations = 32;
  std::size_t transfer_bytes = 65'536;
  /// Of each client: the bytes of its segments without a name, and the locks that it holds. Of each
  /// user: the bytes of segments with a name, which stay when the client goes.
  std::size_t quota_bytes = std::size_t{1} << 24;
  std::uint32_t quota_locks = 64;
  /// A client that does not poll for so long is cut off, as if it had ended; 0: never. A client
  /// that waits, polls.
  std::uint32_t silence_timeout_ms = 0;
};

struct DaemonState;

class Daemon {
 public:
  /// The space must outlive it. Throws Error.
  Daemon(SegmentSpace& space, DaemonOptions options);
  /// The clients are told.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Polls the space, too.
  std::size_t poll();
  /// Before a sleep: from now on clients ring (dunlin::Loop calls it).
  [[nodiscard]] Waits waits();
  [[nodiscard]] Fabric& fabric() const noexcept;

  [[nodiscard]] std::uint32_t clients() const noexcept;
  /// How many operations it has ended for clients.
  [[nodiscard]] std::uint64_t served() const noexcept;
  /// Why the last client was cut off that did not leave by itself; empty: there was none.
  [[nodiscard]] const std::string& last_cut_off() const noexcept;

 private:
  std::unique_ptr<DaemonState> state_;
};

struct AttachOptions {
  std::string group = {};         // as in the daemon's options
  std::string socket = {};        // likewise
  std::string access_group = {};  // likewise
  /// How long to wait for a daemon.
  std::uint32_t timeout_ms = 10'000;
};

/// Attaches this thread to the daemon of its host. An operation with `stopped` says that the daemon
/// has ended: destroy the space, and attach again; keys of before may mean nothing to another
/// daemon. `use()` of such a space tells nothing. Throws Error.
[[nodiscard]] std::unique_ptr<SegmentSpace> attach(const AttachOptions& options);

}  // namespace dunlin
