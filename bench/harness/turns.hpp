#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "team/team.hpp"

/// How the members of a team measure: Dunlin and its raw limit take turns, so that a busy machine
/// slows both.
///
///     Team team({.processes = 2});
///     team.run([](Member& me) {
///       alternate(me, 11, {[&] { return bare(me); }, [&] { return dunlin(me); }});
///     });
///     Summary bare = summarize(team.series(0));
namespace dunlin::bench {

using app::kArenaBytes;
using app::kMaxSeries;
using app::Member;
using app::Team;
using app::TeamOptions;

/// A contender runs one round and returns what it measured, or nothing where another member does.
using Contender = std::function<std::optional<double>()>;

/// Let the contenders take turns, after one round each that does not count. The contender that
/// begins changes from round to round. Contender i is series i; all members must call this alike.
void alternate(Member& me, std::uint32_t rounds, const std::vector<Contender>& contenders);

/// A turn of Dunlin's in alternate(). Before and after it all poll until all are there, so that
/// nothing that a peer waits for stays behind while the limit has its turn.
template <class Poll, class Turn>
std::optional<double> take_turn(Member& me, Poll&& poll, Turn&& turn) {
  me.meet(poll);
  const std::optional<double> measured = turn();
  me.meet(poll);
  return measured;
}

}  // namespace dunlin::bench
