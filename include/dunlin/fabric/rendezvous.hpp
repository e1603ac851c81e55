#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/pending_join.hpp>

namespace dunlin {

/// Where newcomers meet a running group. A member accepts and a newcomer connects: the two form a
/// fabric of their own, over which they exchange the admission into the group's fabric.
/// make_rendezvous() makes one. One thread at a time uses it; the objects that it returns must not
/// outlive it.
class Rendezvous {
 public:
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  virtual ~Rendezvous() = default;

  /// The name of the group that meets here.
  [[nodiscard]] virtual const std::string& group() const noexcept = 0;
  /// Begins a fabric of two members, with the next newcomer that connects; the own rank is 0. It
  /// has no time-out. Only one may be pending at a time.
  [[nodiscard]] virtual std::unique_ptr<PendingJoin> accept() = 0;
  /// Begins a fabric of two members, with the member that accepts; the own rank is 1. Its poll()
  /// throws Error if no member has accepted for some time: then connect again.
  [[nodiscard]] virtual std::unique_ptr<PendingJoin> connect() = 0;

  /// The newcomer's pending join of the group's fabric, whose members have learnt of it through
  /// connect(). Throws Error.
  [[nodiscard]] virtual std::unique_ptr<PendingEntry> enter() = 0;
  /// Whether a process of this host is a member that came later, with a rank from `founders` on:
  /// then the group runs, even if no founder is left. Always false between hosts, where nobody can
  /// know.
  [[nodiscard]] virtual bool has_later_members(std::uint32_t founders);
  /// A key for an admission: 32 bytes that no attacker can guess (on a simulated node: that are not
  /// used twice). Throws Error.
  [[nodiscard]] virtual std::array<std::byte, kAdmissionKeyBytes> new_key();

  /// The clock of the node that meets others here, and "poll me no later than this" (on a simulated
  /// node).
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
  virtual void wake_at(std::uint64_t) {}
};

}  // namespace dunlin
