#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <sys/socket.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/join.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/networks.hpp"
#include "bench/fabric/simulated_members.hpp"
#include "bench/harness/turns.hpp"
#include "bench/multicast/experiments.hpp"
#include "bench/multicast/patience.hpp"
#include "bench/multicast/speaker.hpp"
#include "bench/table/simulation.hpp"

/// A member comes into a group whose members talk: how long that takes, how long the others pause,
/// and what is connected and mapped for it.
namespace dunlin::bench {
namespace {

constexpr std::uint64_t kWarmUp = 300;  // messages
constexpr double kFirstQuietNs = 2e7;
constexpr double kMostPauseNs = 2e6;        // of three members on shared memory, in 99 of 100 cases
constexpr std::uint32_t kMostMembers = 16;  // members that are there
constexpr std::size_t kMegabyte = std::size_t{1} << 20;

struct Case {
  std::string fabric;
  std::uint32_t members;     // before the join
  std::size_t shared_bytes;  // that all of them share, beside the group's own
  std::uint32_t times;
};

// --- where the members meet ----------------------------------------------------------------------

std::string address_of(const std::string& group, Rank rank) {
  return "unix:" + group + ".of." + std::to_string(rank);
}

JoinOptions on_tcp(const std::string& group, const std::string& rendezvous) {
  return {.network = "tcp",
          .group = group,
          .silence_timeout_ms = 0,
          .rendezvous = rendezvous,
          .secret = "known to these processes"};
}

std::unique_ptr<Fabric> found(const Case& of, const std::string& group, Rank rank) {
  JoinOptions options = of.fabric == "shm" ? JoinOptions{.group = group, .silence_timeout_ms = 0}
                                           : on_tcp(group, "unix:" + group);
  options.members = of.members;
  options.rank = rank;
  return join(options);
}

std::shared_ptr<Rendezvous> place_of(const Case& of, const std::string& group, Rank rank) {
  if (of.fabric == "shm") return make_rendezvous({.group = group, .silence_timeout_ms = 0});
  std::vector<std::string> others;
  for (Rank other = 0; other < of.members; ++other)
    if (other != rank) others.push_back(address_of(group, other));
  return make_rendezvous(on_tcp(group, address_of(group, rank)), std::move(others));
}

// --- what a process holds ------------------------------------------------------------------------

/// Of this process, by the kernel's account.
struct Holdings {
  std::uint32_t connections = 0;
  std::set<std::uint64_t> segments = {};  // inodes of those that are mapped
  std::uint64_t new_bytes = 0;            // in segments that the earlier ones did not have

  static Holdings now(const std::set<std::uint64_t>& earlier = {}) {
    Holdings all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      sockaddr_storage peer;
      socklen_t bytes = sizeof peer;
      const int descriptor = std::stoi(entry.path().filename().string());
      if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0)
        ++all.connections;
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(" /dev/shm/") == std::string::npos) continue;
      std::istringstream words(line);
      std::uint64_t first = 0, last = 0, inode = 0;
      char dash = 0;
      std::string flags, offset, device;
      words >> std::hex >> first >> dash >> last >> flags >> offset >> device >> std::dec >> inode;
      all.segments.insert(inode);
      if (!earlier.contains(inode)) all.new_bytes += last - first;
    }
    return all;
  }
};

/// On memory that the processes share; moments are of the host's one clock.
struct Scene {
  std::atomic<std::uint32_t> ready{0};  // members that talk, and know what they hold
  std::atomic<double> quiet_ns{0};      // the joiner begins to spin, and does nothing else;
  std::atomic<double> asked_ns{0};      // it begins to join,
  std::atomic<double> delivered_ns{0};  // and has its first message
  std::atomic<std::uint32_t> on{0};     // members that have delivered one in the next view
  std::atomic<std::uint32_t> seen{0};   // processes that know what they hold now
  std::array<std::atomic<double>, kMostMembers> quiet_paused_ns{};
  std::array<std::atomic<double>, kMostMembers> paused_ns{};
  std::array<std::atomic<std::uint32_t>, kMostMembers + 1> connections{};  // that are new, by rank
  std::array<std::atomic<std::uint64_t>, kMostMembers + 1> bytes{};        // that are mapped anew

  static Scene& of(const Member& me) { return *reinterpret_cast<Scene*>(me.arena().data()); }
  /// The joiner and all others are in the next view.
  [[nodiscard]] bool over(std::uint32_t members) const {
    return delivered_ns != 0 && on == members;
  }
};

/// What is new since then; returns when all processes know it of themselves.
void compare_holdings(Member& me, Speaker& speaker, const Holdings& before) {
  Scene& scene = Scene::of(me);
  const Holdings after = Holdings::now(before.segments);
  scene.connections.at(me.rank()) = after.connections - before.connections;
  scene.bytes.at(me.rank()) = after.new_bytes;
  ++scene.seen;
  for (Patience patience; scene.seen < me.size();) patience.after(speaker.poll() > 0);
}

/// How long this member delivered nothing, at the longest: while the joiner spun, and from its
/// request on until this member has delivered in the next view, and so has the joiner.
class PauseWatch {
 public:
  explicit PauseWatch(Scene& scene) : scene_(scene) {}
  void on_delivery(std::uint64_t view) {
    const double at_ns = now_ns();
    const double quiet_ns = scene_.quiet_ns;
    const double asked_ns = scene_.asked_ns;
    const bool on = view > 1;
    if (asked_ns != 0 && (!on_ || scene_.delivered_ns == 0))
      paused_ns = std::max(paused_ns, at_ns - std::max(before_ns_, asked_ns));
    else if (asked_ns == 0 && quiet_ns != 0)
      quiet_paused_ns = std::max(quiet_paused_ns, at_ns - std::max(before_ns_, quiet_ns));
    before_ns_ = at_ns;
    if (on && !on_) ++scene_.on;
    on_ = on;
  }
  double quiet_paused_ns = 0;
  double paused_ns = 0;

 private:
  Scene& scene_;
  double before_ns_ = 0;
  bool on_ = false;
};

void be_there(Member& me, const Case& of, const std::string& group) {
  Scene& scene = Scene::of(me);
  const auto fabric = found(of, group, me.rank());
  Speaker speaker(*fabric, place_of(of, group, me.rank()));
  const Region state =
      fabric->allocate({.name = "state", .bytes = of.shared_bytes / of.members / 64 * 64});
  fabric->announce(state);
  const auto warm = [&] {
    bool all = speaker.delivered() >= kWarmUp;
    for (Rank rank = 0; rank < of.members; ++rank)
      all = all && (rank == me.rank() || fabric->connected(rank, state.id()));
    return all;
  };
  for (Patience patience; !warm();) patience.after(speaker.poll() > 0);
  const Holdings before = Holdings::now();
  PauseWatch watch(scene);
  speaker.on_delivery = [&](std::uint64_t view) { watch.on_delivery(view); };
  ++scene.ready;
  for (Patience patience; !scene.over(of.members);) patience.after(speaker.poll() > 0);
  scene.quiet_paused_ns.at(me.rank()) = watch.quiet_paused_ns;
  scene.paused_ns.at(me.rank()) = watch.paused_ns;
  compare_holdings(me, speaker, before);
  if (me.rank() != 0) return;
  double quiet_paused_ns = 0, paused_ns = 0;
  std::uint32_t connections = 0;
  std::uint64_t bytes = 0;
  for (Rank rank = 0; rank < of.members; ++rank) {
    quiet_paused_ns = std::max(quiet_paused_ns, scene.quiet_paused_ns.at(rank).load());
    paused_ns = std::max(paused_ns, scene.paused_ns.at(rank).load());
    connections += scene.connections.at(rank);
    bytes = std::max(bytes, scene.bytes.at(rank).load());
  }
  me.record(0, scene.delivered_ns - scene.asked_ns);
  me.record(1, paused_ns);
  me.record(2, connections);
  me.record(3, static_cast<double>(bytes));
  me.record(4, static_cast<double>(scene.bytes.at(of.members)));
  me.record(5, quiet_paused_ns);
}

/// Spins as long as the last join took, before it joins: with so many processes on so few
/// processors the members pause without a join, too.
void come(Member& me, const Case& of, const std::string& group, double quiet_ns) {
  Scene& scene = Scene::of(me);
  const auto place = place_of(of, group, me.rank());
  for (Patience patience; scene.ready < of.members;) patience.after(false);
  const Holdings before = Holdings::now();
  scene.quiet_ns = now_ns();
  for (Patience patience; now_ns() < scene.quiet_ns + quiet_ns;) patience.after(false);
  scene.asked_ns = now_ns();
  GroupEntry entry("late", Speaker::options(place));
  std::unique_ptr<dunlin::Group> in;
  for (Patience patience; !(in = entry.poll());) patience.after(false);
  Speaker speaker(std::move(in));
  Fabric& fabric = speaker.group().fabric();
  const Region state = fabric.allocate({.name = "state", .bytes = 64});
  fabric.announce(state);
  speaker.on_delivery = [&](std::uint64_t) {
    if (scene.delivered_ns == 0) scene.delivered_ns = now_ns();
  };
  const auto reaches_all = [&] {
    bool all = scene.over(of.members);
    for (Rank rank = 0; rank < of.members; ++rank) all = all && fabric.connected(rank, state.id());
    return all;
  };
  for (Patience patience; !reaches_all();) patience.after(speaker.poll() > 0);
  compare_holdings(me, speaker, before);
}

std::vector<Result> measure(const Effort& effort, const Case& of) {
  std::array<std::vector<double>, 6> series;
  for (std::uint32_t i = 0; i < of.times; ++i) {
    const std::string group = fresh_group();
    const double quiet_ns = series[0].empty() ? kFirstQuietNs : series[0].back();
    Team team({.processes = of.members + 1, .timeout = effort.timeout});
    team.run([&](Member& me) {
      me.rank() < of.members ? be_there(me, of, group) : come(me, of, group, quiet_ns);
    });
    for (std::uint32_t j = 0; j < series.size(); ++j)
      series.at(j).push_back(team.series(j).front());
  }
  std::vector<Result> results;
  const auto about = [&](const char* what, const char* unit) {
    return Result{.params = {{"members", double(of.members)},
                             {"shared", std::to_string(of.shared_bytes / kMegabyte) + " MB"},
                             {"what", what}},
                  .unit = unit};
  };
  const bool aimed_at = of.fabric == "shm" && of.members == 3;
  report(results, about("until the joiner has delivered", "ns"), series[0], 0);
  report(results, about("others without a delivery", "ns"), series[1], aimed_at ? kMostPauseNs : 0);
  report(results, about("the same without a join", "ns"), series[5], 0);
  const auto add = [&](const char* what, std::uint32_t j, double most) {
    Result result = about(what, j == 2 ? "connections" : "B");
    result.value = summarize(series.at(j));
    if (most > 0) result.goal = Goal{.on = Goal::On::value, .bound = most};
    results.push_back(std::move(result));
  };
  add("connections that the members gain", 2, of.members);
  add("mapped anew, each of them at most", 3, 0);
  add("mapped by the joiner", 4, 0);
  return results;
}

std::vector<Result> real(const std::string& fabric, const Effort& effort) {
  std::vector<Case> cases;
  if (effort.quick) {
    cases.push_back({fabric, 3, kMegabyte, 2});
  } else {
    for (const std::uint32_t members : {3U, 8U, kMostMembers})
      cases.push_back({fabric, members, 16 * kMegabyte, (members == 3 ? 10 : 2) * effort.rounds});
    cases.push_back({fabric, 3, 4'096 * kMegabyte, 2 * effort.rounds});
  }
  return for_settings(cases, measure)(effort);
}

// --- in the simulator ----------------------------------------------------------------------------

struct SimulatedJoin {
  double until_delivered_ns;
  double paused_ns;
  double linked;  // by all members together: one connection each
};

SimulatedJoin simulate(const sim::Profile& profile, std::uint64_t seed, std::uint32_t members) {
  sim::World world(profile, members, seed);
  const Rank late = world.add_node();
  std::vector<std::unique_ptr<Speaker>> speakers(members + 1);
  std::vector<Subscription> subscriptions;
  std::unique_ptr<GroupEntry> entry;
  std::uint32_t linked = 0, on = 0;
  std::uint64_t asked_ns = 0, first_ns = 0, paused_ns = 0;
  const auto over = [&] { return first_ns != 0 && on == members; };
  for (Rank rank = 0; rank < members; ++rank) {
    Fabric& fabric = world.fabric(rank);
    speakers[rank] = std::make_unique<Speaker>(fabric, world.rendezvous(rank, "sim"));
    subscriptions.push_back(fabric.subscribe([&linked](const Event& event) {
      if (event.kind == Event::Kind::peer_linked) ++linked;
    }));
    speakers[rank]->on_delivery = [&, before_ns = std::uint64_t{0},
                                   first = true](std::uint64_t view) mutable {
      const std::uint64_t at_ns = fabric.now_ns();
      if (asked_ns != 0 && !over())
        paused_ns = std::max(paused_ns, at_ns - std::max(before_ns, asked_ns));
      before_ns = at_ns;
      if (view > 1 && std::exchange(first, false)) ++on;
    };
    world.attach(rank, [speaker = speakers[rank].get()] { return speaker->poll(); });
  }
  world.attach(late, [&]() -> std::size_t {
    if (speakers[late]) return speakers[late]->poll();
    if (!entry) return 0;
    auto group = entry->poll();
    if (!group) return 0;
    entry.reset();
    speakers[late] = std::make_unique<Speaker>(std::move(group));
    speakers[late]->on_delivery = [&](std::uint64_t) {
      if (first_ns == 0) first_ns = speakers[late]->group().fabric().now_ns();
    };
    return 1;
  });
  run_until(world, [&] { return speakers.front()->delivered() >= kWarmUp; });
  asked_ns = world.now_ns();
  world.on(late, [&] {
    entry = std::make_unique<GroupEntry>("late", Speaker::options(world.rendezvous(late, "sim")));
  });
  run_until(world, over);
  const SimulatedJoin seen{static_cast<double>(first_ns - asked_ns), static_cast<double>(paused_ns),
                           static_cast<double>(linked)};
  subscriptions.clear();
  speakers.clear();
  return seen;
}

std::vector<Result> simulated(const Effort& effort) {
  const Network network(effort, "ib100");
  const std::vector<std::uint32_t> sizes =
      effort.quick ? std::vector{3U} : std::vector{3U, 8U, 16U, 30U, 60U};
  std::vector<Result> results;
  for (const std::uint32_t members : sizes) {
    std::vector<double> until, paused, linked;
    for (std::uint64_t seed = 1; seed <= (effort.quick ? 2 : 2 * effort.rounds); ++seed) {
      const SimulatedJoin seen = simulate(network.profile, seed, members);
      until.push_back(seen.until_delivered_ns);
      paused.push_back(seen.paused_ns);
      linked.push_back(seen.linked);
    }
    const auto about = [&](const char* what, const char* unit) {
      return Result{.params = {{"members", double(members)}, {"what", what}}, .unit = unit};
    };
    report(results, about("until the joiner has delivered", "ns"), until, 0);
    report(results, about("others without a delivery", "ns"), paused, 0);
    Result connections = about("connections that the members gain", "connections");
    connections.value = summarize(linked);
    connections.goal = Goal{.on = Goal::On::value, .bound = double(members)};
    results.push_back(std::move(connections));
  }
  return results;
}

}  // namespace

std::vector<Experiment> joins() {
  std::vector<Experiment> all;
  for (const std::string fabric : {"shm", "tcp"}) {
    const auto has = [&](const RealNetwork& network) { return network.name == fabric; };
    if (fabric != "shm" && std::ranges::none_of(real_networks(), has)) continue;
    all.push_back({.name = "join",
                   .title = "a member comes into a group at work: its way, and the others' pause",
                   .fabric = fabric,
                   .x = "members",
                   .run = [fabric](const Effort& effort) { return real(fabric, effort); }});
  }
  all.push_back({.name = "simulated join",
                 .title = "the same in the simulator",
                 .fabric = "sim",
                 .x = "members",
                 .run = simulated});
  return all;
}

}  // namespace dunlin::bench
