#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/pending_join.hpp>

namespace dunlin {

/// Where processes meet that form fabrics again and again: those who are in a group form one for
/// each view that takes others in, and who wants to come in connects first. Made by a fabric's own
/// function, such as shm::rendezvous(). One thread at a time; pending joins must not outlive it.
class Rendezvous {
 public:
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  virtual ~Rendezvous() = default;

  /// Of the group that meets here.
  [[nodiscard]] virtual const std::string& group() const noexcept = 0;
  /// Where others find us, for those who form() a fabric with us; may be empty.
  [[nodiscard]] virtual std::string address() const { return {}; }
  /// A fabric of these members by name, of which we are `me`. All give the same, `address` that of
  /// the first member.
  [[nodiscard]] virtual std::unique_ptr<PendingJoin> form(const std::string& name,
                                                          const std::vector<std::string>& members,
                                                          const std::string& me,
                                                          const std::string& address) = 0;
  /// A fabric of two, with whoever connects next; our rank is 0. Waits as long as it takes. One at
  /// a time, and none while we form() another.
  [[nodiscard]] virtual std::unique_ptr<PendingJoin> accept() = 0;
  /// A fabric of two, with whoever has opened; our rank is 1. Error, from poll(), if nobody has for
  /// some time: then connect again.
  [[nodiscard]] virtual std::unique_ptr<PendingJoin> connect() = 0;

  /// The way of a newcomer into a fabric whose members have learnt of it by connect(). Throws Error.
  [[nodiscard]] virtual std::unique_ptr<PendingEntry> enter() = 0;

  /// The clock of the node that meets, and "poll me no later than this" (on a simulated node).
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
  virtual void wake_at(std::uint64_t) {}
};

}  // namespace dunlin
