#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric.hpp>

namespace dunlin {

/// A fabric that is being formed step by step, beside the other work of its thread. It has no
/// thread of its own: one thread at a time calls it, and all progress is made in poll().
///
///     auto pending = dunlin::begin_join({.group = "rack7", .members = 4});
///     std::unique_ptr<dunlin::Fabric> next;
///     while (!(next = pending->poll())) fabric->poll();  // the fabric that this member has
class PendingJoin {
 public:
  PendingJoin() = default;
  PendingJoin(const PendingJoin&) = delete;
  PendingJoin& operator=(const PendingJoin&) = delete;
  /// Gives up, unless the fabric is formed; to the other members, this one has died then.
  virtual ~PendingJoin() = default;

  /// Makes progress, and does not wait. Returns the fabric once all members are there and this one
  /// can reach them; null before. Throws Error where join() does. Must not be called again after it
  /// has returned a fabric or thrown an Error.
  [[nodiscard]] virtual std::unique_ptr<Fabric> poll() = 0;
  /// The members that have not come yet, as a list to read: "'b', 'c'". Empty if all have come, or
  /// if the backend does not know.
  [[nodiscard]] virtual std::string missing() const { return {}; }
  /// A descriptor to wait for between two polls: it never changes, and is readable when poll() can
  /// go on or its time is up. -1: none; a simulated node is polled when there is something to do.
  [[nodiscard]] virtual int wait_descriptor() const noexcept { return -1; }
};

/// The fabric that a newcomer enters. docs/fabric.md gives FAB-G1 to FAB-G4.
struct Entry {
  struct Member {
    Rank rank = 0;
    std::string name = {};
    std::vector<std::byte> endpoint = {};  // Fabric::endpoint()
  };
  std::string group;            // the group's name
  std::vector<Member> members;  // the members in the fabric, in order of rank
  Admission admission;          // the admission that these members were given
  std::uint32_t place = 0;      // the newcomer's index in admission.newcomers

  [[nodiscard]] Rank rank() const noexcept { return admission.first + place; }
};

/// A newcomer's way into a fabric that runs. It is a PendingJoin whose fabric is known later: first
/// the members must learn its endpoint().
class PendingEntry : public PendingJoin {
 public:
  /// The bytes by which members and other newcomers reach this newcomer.
  [[nodiscard]] virtual std::vector<std::byte> endpoint() const = 0;
  /// Tells this newcomer that the members admit it: poll() goes on from here. To be called once.
  /// Throws Error.
  virtual void begin(const Entry& entry) = 0;
};

/// Events that end a sleep, besides those of the sleeper's own fabric.
struct Waits {
  std::vector<Fabric*> fabrics = {};
  std::vector<const PendingJoin*> pending_joins = {};
  std::vector<int> descriptors = {};  // readable when there is something to do
  void add(const Waits& more) {
    fabrics.insert(fabrics.end(), more.fabrics.begin(), more.fabrics.end());
    pending_joins.insert(pending_joins.end(), more.pending_joins.begin(), more.pending_joins.end());
    descriptors.insert(descriptors.end(), more.descriptors.begin(), more.descriptors.end());
  }
  friend bool operator==(const Waits&, const Waits&) = default;
};

}  // namespace dunlin
