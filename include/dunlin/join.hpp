#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>
#include <dunlin/fabric/pending_join.hpp>
#include <dunlin/fabric/rendezvous.hpp>
#include <dunlin/fabric/tls.hpp>

/// How a process joins a group, over whichever network:
///
///     auto here   = dunlin::join({.group = "rack7", .members = 4});  // processes of one host
///     auto named  = dunlin::join({.group = "rack7", .names = {"a", "b"}, .name = "a"});
///     auto hosts  = dunlin::join({.network = "tcp", .group = "rack7", .members = 3,
///                                 .rendezvous = "10.0.0.1:7700", .secret_file = "secret"});
///     auto placed = dunlin::join({.group = "rack7"});  // by mpirun, srun or DUNLIN_*
namespace dunlin {

/// What join() must know. An option that is left empty is taken from the environment: from DUNLIN_*
/// or from the variables of mpirun or srun (docs/deploy.md has the table of all options). If the
/// environment is incomplete or contradicts itself, join() throws; Fabric::description() says what
/// was taken from where. A network refuses an option that it cannot honour.
struct JoinOptions {
  /// One of networks(): "shm", "tcp", "auto", "verbs" or "ofi". Empty: what DUNLIN_NETWORK says,
  /// else "shm".
  std::string network = {};
  /// In shared memory, groups of different users never meet, whatever their names.
  std::string group = {};
  /// The number of members; ranks go to them in order of arrival unless `rank` is given.
  std::uint32_t members = 0;
  /// In place of `members`: their names; a member's rank is the index of its name in the list.
  std::vector<std::string> names = {};
  std::string name = {};
  /// Asks for a rank (with `members`); kAnyRank takes the first free one.
  static constexpr std::uint32_t kAnyRank = UINT32_MAX;
  std::uint32_t rank = kAnyRank;
  /// How long to wait for the others; then join() throws Error, which names the missing members.
  /// Without a value: kTimeoutMs.
  std::optional<std::uint32_t> timeout_ms = {};
  static constexpr std::uint32_t kTimeoutMs = 10'000;
  /// Silence after which a peer counts as failed although its connection is open (stopped, hung
  /// outside poll(), or behind a cut link); 0: never. A closed connection (exit, kill) is noticed
  /// at once; in shared memory, as soon as the kernel has freed the process's memory (some 100 ms a
  /// gigabyte). Without a value: never if a launcher has placed this member, because mpirun and
  /// srun watch the processes; otherwise kSilenceTimeoutMs.
  std::optional<std::uint32_t> silence_timeout_ms = {};
  static constexpr std::uint32_t kSilenceTimeoutMs = 1'000;

  // --- between hosts -----------------------------------------------------------------------------
  /// Where the members meet: "host:port", "[v6]:port" or "unix:NAME". The member that can bind this
  /// address serves the others.
  std::string rendezvous = {};
  /// Whether this member may be the one that serves the rendezvous.
  bool may_serve = true;
  /// The secret of the group's members; at least 16 bytes.
  std::string secret = {};
  /// In place of `secret`: a file that has it, which other users cannot read.
  std::string secret_file = {};
  /// Certificates for the rendezvous, in addition to the secret.
  TlsFiles tls = {};
  /// For tcp and auto: everything that the members send each other is encrypted (TLS 1.3), not only
  /// the rendezvous. All members must give the same value.
  bool encrypt = false;
  /// For ofi and auto: libfabric's name of the network; empty, for ofi: "tcp".
  std::string provider = {};
  /// The network interface ("eth0"), or the device as libfabric ("domain") or ibv_devices names it;
  /// empty: the first that fits.
  std::string device = {};
  /// The address of this host that peers connect to. Empty: over tcp and ofi, the address from
  /// which this host reaches the rendezvous, or the others; over verbs, any address of the device.
  std::string address = {};

  // --- on one host -------------------------------------------------------------------------------
  /// For shm: a Unix group whose users may join as well; empty: only processes of this user may.
  /// Segments have mode 0600, or 0660 and that group.
  std::string access_group = {};

  [[nodiscard]] std::uint32_t join_ms() const noexcept { return timeout_ms.value_or(kTimeoutMs); }
  [[nodiscard]] std::uint32_t silence_ms() const noexcept {
    return silence_timeout_ms.value_or(kSilenceTimeoutMs);
  }
};

/// Joins a group: returns when every member is there and all can reach each other. Throws Error.
[[nodiscard]] std::unique_ptr<Fabric> join(const JoinOptions& options);

/// Begins a join(), which goes on beside other work: poll() it. Throws Error, here or from poll().
/// If the rendezvous is given by a host name, poll() may take as long as the system needs to
/// resolve it.
[[nodiscard]] std::unique_ptr<PendingJoin> begin_join(const JoinOptions& options);

/// Makes the place where processes form the fabrics of a group's later views (docs/group.md).
/// `options` are as for join(), without members, names and ranks. Between hosts, their `rendezvous`
/// is an address of this process alone, at which joiners connect, and which other members use when
/// this process leads; a joiner connects to all `contacts`, where members of the group may be.
/// Throws Error.
[[nodiscard]] std::shared_ptr<Rendezvous> make_rendezvous(const JoinOptions& options,
                                                          std::vector<std::string> contacts = {});

/// A network that join() knows, whether or not this build and this host have it.
struct Network {
  std::string_view name;   // JoinOptions::network
  std::string_view about;  // for a help text
  bool between_hosts;
  bool encrypts;       // honours JoinOptions::encrypt
  bool has_providers;  // honours JoinOptions::provider
};
[[nodiscard]] std::span<const Network> networks() noexcept;
/// The network of that name. Throws Error that names those that there are.
[[nodiscard]] const Network& network_of(std::string_view name);

/// What a member on this host can use, one a line, which begins as JoinOptions::device asks for it:
/// "eth0 10.0.0.7"; over ofi with the provider before it, "tcp: eth0 10.0.0.7"; for auto the
/// networks that it offers to members of other hosts, the best first: "verbs on mlx5_0 10.0.0.7",
/// "tcp". If there are none, the reason or nothing. Over ofi, the first call takes 0.2 s. Throws
/// Error for a network that is not one of networks().
[[nodiscard]] std::vector<std::string> devices_of(std::string_view network);
/// What cannot be used of this network here, and why, one a line: "provider: why"; if libfabric
/// cannot be loaded, "libfabric: why".
[[nodiscard]] std::vector<std::string> unfit_devices_of(std::string_view network);

}  // namespace dunlin
