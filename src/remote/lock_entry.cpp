#include "assert.hpp"
#include "remote/lock_queue.hpp"

/// How a member that came later than the founders takes part in locks (REM-18). It may never make a
/// Locks, so no repair waits for a member that has not asked. It asks all that take part, and uses
/// locks once each has admitted it in one generation; a change of the members begins that anew. A
/// member admits it between two repairs. So each member that takes part in a repair waits for all
/// others that may use locks:
///  - A repair begins at a member that has admitted it: that member waits for it from then on.
///  - Two that come at one time: a founder admits one of them after the other, and tells the later
///    one of the earlier, which it asks then, too.
namespace dunlin::remote {

using Type = RepairMessage::Type;

/// A member that has admitted this one already may have begun a repair. This one has no node, no
/// lock and no step under way, so each round is over for it at once.
std::size_t Locks::State::come_in() {
  std::size_t asked = 0;
  bool admitted = true, is_founder_here = false;
  for (Rank rank = 0; rank < progress.capacity(); ++rank) {
    if (!counts(rank)) continue;
    is_founder_here = is_founder_here || rank < progress.size();
    admitted = admitted && admitted_in[rank] == generation;
    if (asked_in[rank] == generation) continue;
    for (const Type type : {Type::frozen, Type::reported, Type::placed, Type::resume, Type::enters})
      channel.send(rank, RepairMessage{.type = type, .generation = generation});
    asked_in[rank] = generation;
    ++asked;
  }
  if (!admitted || !is_founder_here) return asked;
  DUNLIN_ASSERT(managed.empty(), "REM-18: a member has no lock at home before it takes part");
  takes_part[fabric.rank()] = true;
  lose_nodes();
  said_resume = true;
  end_repair();
  return 1;
}

std::size_t Locks::State::admit_those_that_enter() {
  if (frozen && has_come_in()) return 0;
  std::size_t done = 0;
  anybody_enters = false;
  for (Rank rank = progress.size(); rank < progress.capacity(); ++rank) {
    if (entered_in[rank] > generation) anybody_enters = true;  // this process has yet to hear of it
    if (entered_in[rank] != generation || !progress.contains(rank)) continue;
    entered_in[rank] = 0;
    takes_part[rank] = true;
    for (Rank other = progress.size(); other < progress.capacity(); ++other)
      if (other != rank && counts(other))
        channel.send(rank,
                     RepairMessage{.type = Type::known, .generation = generation, .node = other});
    channel.send(rank, RepairMessage{.type = Type::admitted, .generation = generation});
    ++done;
  }
  return done;
}

}  // namespace dunlin::remote
