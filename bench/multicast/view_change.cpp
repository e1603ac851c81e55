#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <vector>

#include <unistd.h>

#include <dunlin/fabric/sim.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/simulated_members.hpp"
#include "bench/harness/turns.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/patience.hpp"
#include "bench/multicast/speaker.hpp"
#include "bench/table/simulation.hpp"

/// How long a group stands still when a member ends.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kMembers = 3;
constexpr std::uint32_t kVictim = 2;
constexpr std::uint64_t kWarmUp = 2'000;  // messages
constexpr double kMostNs = 5e6;           // on shared memory, in 99 of 100 cases
constexpr double kMostSimulatedNs = 1e6;  // from the first suspicion

/// On memory that the processes share; moments are of the host's one clock.
struct Scene {
  std::atomic<double> ended_ns{0};  // the victim: killed, or told to leave
  std::array<std::atomic<double>, kMembers> in_view_ns{};
  std::array<std::atomic<double>, kMembers> delivered_ns{};
  std::array<std::atomic<double>, kMembers> paused_ns{};  // between two deliveries, a view each

  [[nodiscard]] static double later(const std::array<std::atomic<double>, kMembers>& of) noexcept {
    return std::max(of[0].load(), of[1].load());
  }
};

enum class End : std::uint8_t { killed, leaves };

void live(Member& me, const Group& group, End end) {
  Scene& scene = *reinterpret_cast<Scene*>(me.arena().data());
  const auto fabric = group.join(me.rank());
  Speaker speaker(*fabric);
  if (me.rank() == kVictim) {
    for (Patience patience; speaker.delivered() < kWarmUp;) patience.after(speaker.poll() > 0);
    scene.ended_ns = now_ns();
    if (end == End::killed) ::raise(SIGKILL);
    speaker.group().leave();
    for (Patience patience; !speaker.group().ended();) patience.after(speaker.poll() > 0);
    return;
  }
  speaker.group().on_view([&](const View& view) {
    if (view.number == 2) scene.in_view_ns.at(me.rank()) = now_ns();
  });
  double before_ns = 0;
  speaker.on_delivery = [&](std::uint64_t view) {
    if (scene.delivered_ns.at(me.rank()) != 0) return;
    const double at_ns = now_ns();
    if (view == 2) {
      scene.paused_ns.at(me.rank()) = at_ns - before_ns;
      scene.delivered_ns.at(me.rank()) = at_ns;
    }
    before_ns = at_ns;
  };
  const auto over = [&] { return scene.delivered_ns[0] != 0 && scene.delivered_ns[1] != 0; };
  for (Patience patience; !over();) patience.after(speaker.poll() > 0);
  if (me.rank() != 0) return;
  me.record(0, Scene::later(scene.in_view_ns) - scene.ended_ns);
  me.record(1, Scene::later(scene.delivered_ns) - scene.ended_ns);
  me.record(2, Scene::later(scene.paused_ns));
}

std::vector<Result> after(End end, const Effort& effort) {
  const std::uint32_t times = effort.quick ? 2 : 10 * effort.rounds;
  const bool killed = end == End::killed;
  std::array<std::vector<double>, 3> series;
  for (std::uint32_t i = 0; i < times; ++i) {
    const Group group(real_network("shm"), effort, kMembers);
    TeamOptions options = group.team(kMembers);
    if (killed) options.doomed = kVictim;
    Team team(options);
    team.run([&](Member& me) { live(me, group, end); });
    for (std::uint32_t j = 0; j < series.size(); ++j)
      series.at(j).push_back(team.series(j).front());
  }
  std::vector<Result> results;
  const auto add = [&](const char* what, std::uint32_t j) {
    report(results,
           {.params = {{"members", double(kMembers)},
                       {"one", killed ? "is killed" : "leaves"},
                       {"time", what}},
            .unit = "ns"},
           series.at(j), kMostNs);
  };
  add("until both others are in the next view", 0);
  add("until both have delivered a message in it", 1);
  add("without a delivery", 2);
  return results;
}

std::vector<Result> after_each_end(const Effort& effort) {
  return joined<Result>(after(End::killed, effort), after(End::leaves, effort));
}

/// From the first suspicion to the last member's first delivery in the next view.
double simulated_ns(const sim::Profile& profile, std::uint64_t seed, std::uint32_t members) {
  sim::World world(profile, members, seed);
  std::vector<std::unique_ptr<Speaker>> speakers;
  std::vector<Subscription> subscriptions;
  std::uint64_t suspected_ns = 0;
  std::uint32_t on = 0;
  for (Rank rank = 0; rank < members; ++rank) {
    Fabric& fabric = world.fabric(rank);
    speakers.push_back(std::make_unique<Speaker>(fabric));
    subscriptions.push_back(fabric.subscribe([&](const Event& event) {
      if (event.kind == Event::Kind::peer_failed && suspected_ns == 0)
        suspected_ns = fabric.now_ns();
    }));
    speakers.back()->on_delivery = [&on, first = true](std::uint64_t view) mutable {
      if (view == 2 && std::exchange(first, false)) ++on;
    };
    world.attach(rank, [speaker = speakers.back().get()] { return speaker->poll(); });
  }
  run_until(world, [&] { return speakers.front()->delivered() >= kWarmUp; });
  world.crash(static_cast<Rank>(seed % members));  // the leader's turn comes, too
  run_until(world, [&] { return on == members - 1; });
  return static_cast<double>(world.now_ns() - suspected_ns);
}

std::vector<Result> simulated(const Effort& effort) {
  const Network network(effort, "ib100");
  std::vector<Result> results;
  for (const std::uint32_t members : {3U, 8U, 16U}) {
    const std::uint64_t crashes = effort.quick ? 2 : 10 * effort.rounds;
    std::vector<double> times;
    for (std::uint64_t seed = 1; seed <= crashes; ++seed)
      times.push_back(simulated_ns(network.profile, seed, members));
    report(results, {.params = {{"members", double(members)}}, .unit = "ns"}, times,
           kMostSimulatedNs);
  }
  return results;
}

}  // namespace

Experiment view_change() {
  return {.name = "view change",
          .title = "from kill -9 of one of three members, or its leaving, until the others go on",
          .fabric = "shm",
          .run = after_each_end};
}

Experiment simulated_view_change() {
  return {
      .name = "simulated view change",
      .title = "from the first suspicion of a crashed member to the last first delivery after it",
      .fabric = "sim",
      .x = "members",
      .run = simulated};
}

}  // namespace dunlin::bench
