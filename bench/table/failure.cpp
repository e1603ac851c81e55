#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <ctime>

#include <poll.h>
#include <unistd.h>

#include "bench/fabric/group.hpp"
#include "bench/table/experiments.hpp"
#include "bench/table/nodes.hpp"
#include "bench/table/ping_pong.hpp"
#include "process/child.hpp"

/// What two nodes notice of the end of a third: they detect each other's changes all the time,
/// before, while they do not know it yet, and afterwards. All rows are pushed to all three.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kMembers = 3;
constexpr std::uint32_t kVictim = 2;
constexpr std::array kQuantiles{0.5, 0.99, 1.0};
constexpr std::array kQuantileNames{"median", "p99", "longest"};
constexpr std::array kPhases{"before", "until both know", "after"};

// Series of a round.
constexpr std::uint32_t kBare = 0;  // three quantiles, and as many of each phase
constexpr std::uint32_t kDetections = 3;
constexpr std::uint32_t kNoticed = 12;
constexpr std::uint32_t kBareNoticed = 13;

enum class End { killed, stopped };

/// On memory that the processes share; moments are of the host's one clock.
struct Scene {
  std::atomic<std::uint32_t> die{0};
  std::atomic<pid_t> victim{0};
  std::atomic<double> died_ns{0};
  std::array<std::atomic<double>, 2> noticed_ns{};
  std::atomic<std::uint32_t> over{0};

  [[nodiscard]] bool noticed() const noexcept { return noticed_ns[0] != 0 && noticed_ns[1] != 0; }
};
static_assert(std::atomic<double>::is_always_lock_free);

/// Behind all that the bare limits use.
Scene& scene_of(const Member& me) {
  return *reinterpret_cast<Scene*>(&me.arena()[kArenaBytes - 4096]);
}

/// Any number of times, in classes of three percent each; the longest as it is.
class Times {
 public:
  void add(double ns) noexcept {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(std::max(ns, 1.0)) >> kDropped;
    ++counts_[std::min(bits - kOne, kClasses - 1)];
    ++total_;
    longest_ = std::max(longest_, ns);
  }
  [[nodiscard]] double quantile(double q) const noexcept {
    auto left = static_cast<std::uint64_t>(q * static_cast<double>(total_));
    for (std::uint64_t i = 0; i < kClasses && q < 1; ++i) {
      if (left < counts_[i])
        return std::min(longest_, std::bit_cast<double>((i + kOne) << kDropped));
      left -= counts_[i];
    }
    return longest_;
  }

 private:
  static constexpr int kDropped = 47;  // leaves five bits behind the leading one
  static constexpr std::uint64_t kOne = std::bit_cast<std::uint64_t>(1.0) >> kDropped;
  static constexpr std::uint64_t kClasses = std::uint64_t{40} << 5;

  std::array<std::uint64_t, kClasses> counts_{};
  std::uint64_t total_ = 0;
  double longest_ = 0;
};

/// The least that anybody could take to learn of a death: a child's, told by the kernel.
double bare_death_ns(Scene& scene) {
  process::Child child([&scene] {
    scene.died_ns = now_ns();
    return ::raise(SIGKILL);
  });
  pollfd wait{child.descriptor(), POLLIN, 0};
  while (::poll(&wait, 1, 0) == 0) {
  }
  return now_ns() - scene.died_ns.exchange(0);
}

/// Takes part in what its peers need of it, without taking a core from them, until its end comes.
void await_the_end(Scene& scene, Table<Ball<1>>& table, End end) {
  constexpr timespec kNap{0, 200'000};
  scene.victim = ::getpid();
  while (scene.die == 0) {
    table.poll();
    ::nanosleep(&kNap, nullptr);
  }
  scene.died_ns = now_ns();
  ::raise(end == End::killed ? SIGKILL : SIGSTOP);
}

void play(Member& me, Scene& scene, PingPong<1>& game, std::uint32_t times, End end) {
  std::array<Times, kPhases.size()> phases;
  for (std::uint32_t i = 0; i < times; ++i) phases[0].add(game.detection());
  scene.die = 1;
  while (!scene.noticed()) {
    const double ns = game.detection();
    if (scene.died_ns != 0) phases[1].add(ns);
  }
  for (std::uint32_t i = 0; i < times; ++i) phases[2].add(game.detection());
  scene.over = 1;
  if (end == End::stopped) ::kill(scene.victim, SIGKILL);
  std::uint32_t series = kDetections;
  for (const Times& phase : phases)
    for (const double quantile : kQuantiles) me.record(series++, phase.quantile(quantile));
  const double last_ns = std::max(scene.noticed_ns[0].load(), scene.noticed_ns[1].load());
  me.record(kNoticed, last_ns - scene.died_ns);
}

std::uint32_t silence_ms(const Effort& effort) {
  // Quick runs come where nobody may be late.
  const std::uint32_t ms = effort.network.silence_timeout_ms.value_or(effort.quick ? 5'000 : 1'000);
  if (ms == 0) throw Error("bench: with --silence-timeout 0 nobody notices a stop");
  return ms;
}

/// Nobody polls meanwhile, so this is not done in the group where silence counts.
void measure_the_limit(Member& me, const Group& group, std::uint32_t times) {
  const auto fabric = group.join(me.rank());
  const auto bare = group.bare(me, fabric.get());
  for (std::uint32_t i = 0; i < kQuantiles.size(); ++i) {
    const Batches plan{.batches = times, .per_batch = 1, .quantile = kQuantiles[i]};
    const auto measured = bare->one_way(me, plan, 8);
    if (measured) me.record(kBare + i, *measured);
    me.meet();
  }
}

void survive(Member& me, const Group& group, const Effort& effort, End end) {
  Scene& scene = scene_of(me);
  const std::uint32_t times = effort.scaled(2'000);
  if (me.rank() == 0) me.record(kBareNoticed, bare_death_ns(scene));
  measure_the_limit(me, group, times);
  const auto fabric = group.join(me.rank(), silence_ms(effort));
  PingPong<1> game(me, *fabric);
  connect(me, game.table());
  game.table().on_failure([&](auto&, std::size_t row, std::string_view why) {
    if (row == kVictim && scene.died_ns != 0) {
      scene.noticed_ns.at(me.rank()) = now_ns();
    } else if (scene.over == 0) {
      me.lost(static_cast<std::uint32_t>(row), why);
    }
  });
  if (me.rank() == kVictim) return await_the_end(scene, game.table(), end);
  if (me.rank() == 0) return play(me, scene, game, times, end);
  while (scene.over == 0) game.table().poll();
}

using Rounds = std::array<std::vector<double>, kMaxSeries>;  // by series

Rounds take_rounds(const RealNetwork& network, const Effort& effort, End end) {
  Rounds rounds;
  for (std::uint32_t round = 0; round < (effort.quick ? 1 : effort.rounds); ++round) {
    const Group group(network, effort, kMembers);
    TeamOptions options = group.team(kMembers);
    options.doomed = kVictim;
    Team team(options);
    team.run([&](Member& me) { survive(me, group, effort, end); });
    for (std::uint32_t series = 0; series <= kBareNoticed; ++series)
      rounds.at(series).push_back(team.series(series).front());
  }
  return rounds;
}

std::vector<Result> measure(const RealNetwork& network, const Effort& effort, End end) {
  const char* const how = end == End::killed ? "killed" : "stopped";
  const Rounds rounds = take_rounds(network, effort, end);
  std::vector<Result> results;
  const auto result = [&](const std::string& what) -> Result& {
    results.push_back({.params = {{"third", how}, {"what", what}}, .unit = "ns"});
    return results.back();
  };
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
    for (std::size_t i = 0; i < kQuantiles.size(); ++i) {
      const std::string quantile = kQuantileNames[i];
      compare(result(quantile + " detection " + kPhases[phase]),
              rounds.at(kDetections + phase * kQuantiles.size() + i),
              network.bare_name + ", one way, " + quantile, rounds.at(kBare + i));
    }
  }
  const std::vector<double> silence(rounds[kNoticed].size(), 1e6 * silence_ms(effort));
  Result& noticed = result("from its end to peer_failed at both");
  if (end == End::killed) {
    compare(noticed, rounds[kNoticed], "a child's death, by pidfd", rounds[kBareNoticed]);
  } else {
    compare(noticed, rounds[kNoticed], "the silence that is allowed", silence);
  }
  return results;
}

}  // namespace

Experiment failure(const RealNetwork& network) {
  return {.name = "failure",
          .title = "detection at two nodes while a third is killed, or stopped",
          .fabric = network.name,
          .run = [&network](const Effort& effort) {
            return joined<Result>(measure(network, effort, End::killed),
                                  measure(network, effort, End::stopped));
          }};
}

}  // namespace dunlin::bench
