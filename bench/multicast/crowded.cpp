#include <fmt/format.h>

#include "bench/fabric/group.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/workload.hpp"
#include "team/cores.hpp"

/// What becomes of a group that has more members than the machine has cores.
namespace dunlin::bench {
namespace {

constexpr double kGoal = 0.5;  // of the rate of two

/// A round after one that does not count; appends what it gives.
void measure(const Effort& effort, std::uint32_t members, std::size_t bytes,
             std::vector<double>& rates, std::string& note) {
  const Group group(real_network("shm"), effort, members);
  const std::uint64_t messages = effort.scaled(bytes >= 10'000 ? 20'000 : 200'000);
  Team team(group.team(members));
  team.run([&](Member& me) {
    Workload workload(me, group.join(me.rank()), {.senders = members, .bytes = bytes});
    alternate(me, 1, {[&] { return workload.round(messages, Wait::adaptive); }});
    if (me.rank() == 0) me.note(workload.told());
  });
  rates.push_back(team.series(0).front());
  note = fmt::format("{} of {} bytes: {}", members, bytes, team.note());
}

Result crowded(const Effort& effort, std::size_t bytes) {
  std::vector<double> of_two, of_three;
  std::string note;
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    measure(effort, 2, bytes, of_two, note);
    measure(effort, 3, bytes, of_three, note);
  }
  return compared({.params = {{"members", 3.0},
                              {"cores", double(app::usable_cores().size())},
                              {"bytes", double(bytes)},
                              {"wait", "adaptive"}},
                   .unit = "1/s",
                   .goal = Goal{.bound = kGoal},
                   .note = note},
                  of_three, "2 members, alike", of_two);
}

}  // namespace

Experiment crowded_cast() {
  return {
      .name = "crowded",
      .title = "messages a second that each of three members delivers, which poll and then sleep",
      .fabric = "shm",
      .x = "bytes",
      .run = for_settings({100UL, 10'000UL}, crowded)};
}

}  // namespace dunlin::bench
