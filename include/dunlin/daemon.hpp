#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/segment.hpp>

/// A Daemon is a member of a group that makes its segments available to other processes and threads
/// of its host. They attach to it, and get the interface of a SegmentSpace; each of them has its
/// own rings in shared memory. The thread that polls the daemon's fabric uses the Daemon; each
/// thread that attaches uses its own space.
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
  /// The group's name, under which clients find the daemon. If `socket` is not empty, they find the
  /// daemon there instead: a socket in the file system, which can be mounted into other containers.
  std::string group = {};
  std::string socket = {};
  /// The mode of the socket in the file system: a process that may write to it may attach.
  std::uint32_t socket_mode = 0600;
  /// Without a socket in the file system: a Unix group that may attach as well; empty: only the
  /// daemon's own user may.
  std::string access_group = {};
  /// Most clients at a time.
  std::uint32_t clients = 256;
  /// Limits for each client: operations under way (a power of two), and bytes of one get or put.
  std::uint32_t operations = 32;
  std::size_t transfer_bytes = 65'536;
  /// Limits for each client: the bytes of its segments without a name, and the locks that it holds.
  /// Limit for each user: the bytes of segments with a name, which stay when the client goes.
  std::size_t quota_bytes = std::size_t{1} << 24;
  std::uint32_t quota_locks = 64;
  /// A client that does not poll for so long is cut off, as if it had ended; 0: never. A client
  /// that waits for an operation polls.
  std::uint32_t silence_timeout_ms = 0;
};

struct DaemonState;

class Daemon {
 public:
  /// The space must outlive it. Throws Error.
  Daemon(SegmentSpace& space, DaemonOptions options);
  /// Tells the clients that the daemon ends.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Serves the clients, and polls the space, too.
  std::size_t poll();
  /// Called by dunlin::Loop before a sleep: from now on, clients wake the daemon.
  [[nodiscard]] Waits waits();
  [[nodiscard]] Fabric& fabric() const noexcept;

  [[nodiscard]] std::uint32_t clients() const noexcept;
  /// How many operations of clients the daemon has ended.
  [[nodiscard]] std::uint64_t served() const noexcept;
  /// Why the last client was cut off that did not leave by itself; empty: no client was.
  [[nodiscard]] const std::string& last_cut_off() const noexcept;

 private:
  std::unique_ptr<DaemonState> state_;
};

struct AttachOptions {
  std::string group = {};         // as in DaemonOptions
  std::string socket = {};        // as in DaemonOptions
  std::string access_group = {};  // as in DaemonOptions
  /// How long to wait for a daemon.
  std::uint32_t timeout_ms = 10'000;
};

/// Attaches this thread to the daemon of its host. If an operation ends with `stopped`, the daemon
/// has ended: destroy the space, and attach again; another daemon may not know the earlier keys.
/// `use()` of such a space is all 0. Throws Error.
[[nodiscard]] std::unique_ptr<SegmentSpace> attach(const AttachOptions& options);

}  // namespace dunlin
