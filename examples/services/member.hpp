#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <dunlin/dunlin.hpp>

#include "outcome.hpp"

/// A process of a service: a member of a group on this host, which goes on without those that die,
/// and its part of the shared segments.
class Member {
 public:
  /// Waits until all are there. A member that is only stopped does not count as dead: on shared
  /// memory, its death must be certain before another takes its locks over.
  Member(const std::string& group_name, std::uint32_t members, std::uint32_t rank,
         std::size_t pool_bytes = 1 << 20)
      : fabric(dunlin::join({.group = group_name,
                             .members = members,
                             .rank = rank,
                             .timeout_ms = kPatienceMs,
                             .silence_timeout_ms = 0})),
        group(*fabric),
        members_now(group),
        progress(*fabric, members_now),
        space(progress, {.pool_bytes = pool_bytes}) {}

  [[nodiscard]] bool alive(dunlin::Rank rank) const { return members_now.contains(rank); }

  /// The key of a segment, once some member has allocated it.
  dunlin::Key find(const std::string& name) {
    for (;;) {
      auto search = space.find(name);
      const dunlin::Outcome found = search.outcome();
      if (found.ok()) return found.key;
      if (found.status != dunlin::remote::Status::unknown) throw dunlin::Error(search.describe());
    }
  }
  dunlin::Key allocate(const dunlin::SegmentSpec& spec) {
    auto allocation = space.allocate(spec);
    const dunlin::Outcome made = allocation.outcome();
    if (!made.ok()) throw dunlin::Error(allocation.describe());
    return made.key;
  }
  /// Polls until the job has ended, and throws what ended it, if anything did.
  void run(const dunlin::remote::Job& job) {
    while (!job.finished()) space.poll();
    job.check();
  }
  /// Polls for so long, and sleeps where there is nothing to do.
  void rest(std::uint32_t ms) {
    dunlin::run_until(
        space, [] { return false; }, ms);
  }

  /// Before the process ends: the others must not take it for dead, as what is dead and may still
  /// write to their memory, they kill.
  void leave() {
    group.leave();
    dunlin::run_until(
        group, [this] { return group.ended(); }, kPatienceMs);
  }

  static constexpr std::uint32_t kPatienceMs = 60'000;

  std::unique_ptr<dunlin::Fabric> fabric;
  dunlin::Group group;
  dunlin::GroupMembers members_now;
  dunlin::remote::Progress progress;
  dunlin::SegmentSpace space;
};

/// Waits for the operation's end.
inline dunlin::Outcome demand(dunlin::SegmentOperation&& operation) {
  return demand(operation.outcome());
}
