#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/pending_join.hpp>

namespace dunlin {

/// Where newcomers meet a group that works. A member accepts; a newcomer connects, which gives the
/// two a fabric of their own, to speak about its admission into the group's. Made by a fabric's own
/// function, such as shm::rendezvous(). One thread at a time; what it returns must not outlive it.
class Rendezvous {
 public:
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  virtual ~Rendezvous() = default;

  /// Of the group that meets here.
  [[nodiscard]] virtual const std::string& group() const noexcept = 0;
  /// A fabric of two, with whoever connects next; the own rank is 0. Waits as long as it takes. One
  /// at a time.
  [[nodiscard]] virtual std::unique_ptr<PendingJoin> accept() = 0;
  /// A fabric of two, with whoever accepts; the own rank is 1. Error, from poll(), if nobody has
  /// for some time: then connect again.
  [[nodiscard]] virtual std::unique_ptr<PendingJoin> connect() = 0;

  /// The way of a newcomer into a fabric whose members have learnt of it by connect(). Throws
  /// Error.
  [[nodiscard]] virtual std::unique_ptr<PendingEntry> enter() = 0;
  /// For an admission: 32 bytes that nobody can guess (on a simulated node: that are not used
  /// twice). Throws Error.
  [[nodiscard]] virtual std::array<std::byte, kAdmissionKeyBytes> new_key();

  /// The clock of the node that meets, and "poll me no later than this" (on a simulated node).
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
  virtual void wake_at(std::uint64_t) {}
};

}  // namespace dunlin
