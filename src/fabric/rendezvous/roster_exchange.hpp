#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/error.hpp>
#include <dunlin/fabric.hpp>
#include <dunlin/fabric/tls.hpp>

#include "fabric/stepped_join.hpp"

/// Where the members of a group on several hosts find and come to trust each other; docs/cluster.md
/// gives RDV-N1 to RDV-N5, docs/formats/rendezvous.md the bytes. Used once, before there is a
/// fabric.
namespace dunlin::rendezvous {

struct Options {
  /// "host:port", "[v6]:port" or "unix:NAME"; the member that can bind the address is the host of
  /// the rendezvous.
  std::string address;
  /// The secret of the members.
  std::string secret;
  /// Certificates that members must show in addition.
  TlsFiles tls = {};
  std::string group;
  /// How many members, with ranks in order of arrival unless asked for; or their names, in order of
  /// rank, and our own name.
  std::uint32_t members = 0;
  std::vector<std::string> names = {};
  std::string name = {};
  static constexpr Rank kAnyRank = UINT32_MAX;
  Rank rank = kAnyRank;
  std::uint32_t timeout_ms = 10'000;
  /// What else all members must have alike, to be compared and shown; at most kMaxTermsBytes.
  std::string terms = {};
  /// Whether this member may be the host; one that connects to another member's address may not.
  bool may_host = true;
  /// True: a member of the group that does not fit ends the rendezvous for all, not for itself
  /// alone.
  bool all_must_fit = false;
};

/// Thrown if the host refused this member, or all: the sentence says what differs.
class Refused : public Error {
 public:
  using Error::Error;
};

struct Member {
  std::string name;
  std::vector<std::byte> endpoint_address;  // what the transport needs to reach the member
};

/// The roster, which all members have alike in the end.
struct Roster {
  Rank rank;                        // ours
  std::vector<Member> members;      // by rank
  std::array<std::byte, 32> key{};  // unique to this group
};

inline constexpr std::size_t kMaxEndpointAddressBytes = 4096;
inline constexpr std::size_t kMaxTermsBytes = 95;

/// A member's way to the others, step by step. All functions may throw Error, which names the
/// missing members, the values that do not fit, or the wrong options. A name that must be resolved
/// can keep poll() for as long as the system's resolver takes.
class RosterExchange {
 public:
  RosterExchange(const Options& options, std::span<const std::byte> endpoint_address);
  ~RosterExchange();
  /// Makes progress; returns the roster once every member has come and knows all others.
  [[nodiscard]] std::optional<Roster> poll();
  /// What poll() waits for.
  [[nodiscard]] Awaited awaited() const;

 private:
  class Seeker;
  std::unique_ptr<Seeker> seeker_;
};

/// Meets the others, for a caller that has nothing else to do meanwhile.
[[nodiscard]] Roster meet(const Options& options, std::span<const std::byte> endpoint_address);

/// Throws the errors that meet() would throw before it connects: faults of the options.
void check(const Options& options);

}  // namespace dunlin::rendezvous
