#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>

/// The shared-memory fabric: processes (or threads) of one host, each with segments of memory that
/// its peers map. A write is a store, an atomic is a CPU atomic, a dead peer is noticed from the
/// kernel. Needs no service and no configuration, and leaves nothing behind: segments have no
/// names.
///
///     auto fabric = dunlin::shm::join({.group = "rack7", .members = 4});
///     auto same   = dunlin::shm::join({.group = "rack7", .names = {"a", "b"}, .name = "a"});
namespace dunlin::shm {

struct JoinOptions {
  /// Groups of different users never meet, whatever their names.
  std::string group;
  /// The number of members; ranks go to them in order of arrival unless `rank` is given.
  std::uint32_t members = 0;
  /// In place of `members`: their names; a member's rank is the index of its name in the list.
  std::vector<std::string> names = {};
  std::string name = {};
  /// Asks for a rank (with `members`); kAnyRank takes the first free one.
  static constexpr std::uint32_t kAnyRank = UINT32_MAX;
  std::uint32_t rank = kAnyRank;
  /// How long to wait for the others; then join() throws Error, which names the missing members.
  std::uint32_t timeout_ms = 10'000;
  /// Silence after which a peer counts as failed although its process lives (stopped, or hung
  /// outside poll()); 0: never. A closed connection (exit, kill) is noticed as soon as the kernel
  /// has freed the process's memory (some 100 ms a gigabyte), whatever this value is.
  std::uint32_t silence_timeout_ms = 1'000;
  /// A Unix group whose users may join as well; empty: only processes of this user may. Segments
  /// have mode 0600, or 0660 and that group.
  std::string access_group = {};
};

/// Join a group: returns when every member is there and all can reach each other. Throws Error.
[[nodiscard]] std::unique_ptr<Fabric> join(const JoinOptions& options);

/// Begins a join(), which goes on beside other work: poll() it. Throws Error, here or from poll().
[[nodiscard]] std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options);

struct RendezvousOptions {
  std::string group;                         // at most kMaxJoinableGroupNameBytes
  std::uint32_t timeout_ms = 5'000;          // to form a fabric of the members that are there
  std::uint32_t silence_timeout_ms = 1'000;  // as in JoinOptions
  std::string access_group = {};
};

/// Makes the place where processes of this host form the fabrics of a group's later views
/// (docs/group.md). Throws Error for an invalid group name.
[[nodiscard]] std::shared_ptr<Rendezvous> rendezvous(const RendezvousOptions& options);

}  // namespace dunlin::shm
