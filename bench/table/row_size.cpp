#include "bench/fabric/group.hpp"
#include "bench/harness/bare.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/ping_pong.hpp"

namespace dunlin::bench {
namespace {

template <std::size_t N>
Result with_row_of(const Effort& effort) {
  constexpr std::size_t kBytes = N * sizeof(std::int32_t);
  const Batches plan = effort.plan(100, 100);
  const Group group(real_network("shm"), effort);
  Team team(group.team());
  team.run([&](Member& me) {
    const auto fabric = group.join(me.rank());
    PingPong<N> dunlin(me, *fabric);
    connect(me, dunlin.table());
    // The bare flag counts as the last of the bytes.
    alternate(me, effort.rounds,
              {[&] { return bare::ping_pong(me, plan, bare::Spin::pause, kBytes - 4); },
               [&] { return dunlin.round(plan); }});
  });
  return compared({.params = {{"bytes", double{kBytes}}}, .unit = "ns"}, team.series(1),
                  "bare copy and flag", team.series(0));
}

}  // namespace

Experiment row_size() {
  return {.name = "row-size",
          .title = "detection when the whole row is pushed, by its size",
          .fabric = "shm",
          .x = "bytes",
          .run = [](const Effort& effort) -> std::vector<Result> {
            return {with_row_of<1>(effort),  with_row_of<4>(effort),   with_row_of<16>(effort),
                    with_row_of<64>(effort), with_row_of<256>(effort), with_row_of<1024>(effort)};
          }};
}

}  // namespace dunlin::bench
