#include "bench/harness/turns.hpp"

namespace dunlin::bench {

void alternate(Member& me, std::uint32_t rounds, const std::vector<Contender>& contenders) {
  me.need_others(true);
  for (std::uint32_t round = 0; round <= rounds; ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t who = (turn + round) % contenders.size();
      me.meet();
      const std::optional<double> measured = contenders[who]();
      const bool warm_up = round == 0;
      if (measured && !warm_up) me.record(static_cast<std::uint32_t>(who), *measured);
    }
  }
  me.need_others(false);  // what is destroyed behind this polls, and others are gone by then
  me.meet();
}

}  // namespace dunlin::bench
