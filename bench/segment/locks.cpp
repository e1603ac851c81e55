#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <random>

#include "bench/segment/bare_segment.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/segment/segment_node.hpp"

/// Locks: alone, and with rivals. The members of a contended figure are shared out among two
/// processes, each of which polls its own in turns; the segment is at the last member.
namespace dunlin::bench {
namespace {

constexpr double kLeastFairness = 0.7;  // least served to most served
/// Table 2 of DDSS, its "synchronization time", of which the paper says no more.
constexpr double kPublishedSynchronizationNs = 20'000;
constexpr double kLeastThroughput = 0.5;  // of what a hand-over one way permits

Result uncontended(const RealNetwork& network, const Effort& effort) {
  const Batches plan = effort.plan(100, network.trips(4));
  const Group group(network, effort);
  Team team(group.team());
  team.run([&](Member& me) {
    SegmentPair pair(me, group);
    const Key key = pair.make({.bytes = 8});
    BareSegment bare(pair.node(), 8);
    const auto swap_twice = [&] {
      bare.lock();
      bare.unlock();
    };
    const auto lock_and_unlock = [&] {
      auto lock = pair.space().lock(key);
      demand(lock);
      auto unlock = pair.space().unlock(key);
      demand(unlock);
    };
    alternate(me, effort.rounds,
              {timed(pair, plan, swap_twice), timed(pair, plan, lock_and_unlock)});
  });
  return compared({.params = {{"rivals", "none"}},
                   .unit = "ns",
                   .goal = Goal{.bound = network.is_shm() ? 2.0 : 1.15},
                   .published = kPublishedSynchronizationNs},
                  team.series(1), "swap, swap", team.series(0));
}

/// What all members do again and again: lock and unlock, or put (in so many of 100 cases) and get.
struct Contest {
  std::uint32_t members;
  Coherence coherence = Coherence::strict;
  std::uint32_t percent_puts = 0;  // 0: lock and unlock
};

/// A member's program: one operation at a time.
class Contestant {
 public:
  Contestant(SegmentSpace& space, const Contest& contest, std::uint64_t seed)
      : space_(space), contest_(contest), random_(seed) {}

  void begin(Key key) {
    key_ = key;
    served_ = 0;
    going_ = true;
  }
  void stop() { going_ = false; }
  [[nodiscard]] bool idle() const { return !operation_; }
  [[nodiscard]] std::uint64_t served() const { return served_; }

  void step() {
    if (operation_) {
      if (!operation_->finished()) return;
      demand(*operation_);
      operation_.reset();
      if (contest_.percent_puts == 0) {
        auto unlock = space_.unlock(key_);
        demand(unlock);
      }
      if (going_) ++served_;
    }
    if (going_) operation_.reset(next());
  }

 private:
  [[nodiscard]] SegmentOperation* next() {
    const auto memory = bytes_of(value_);
    if (contest_.percent_puts == 0) return new SegmentOperation(space_.lock(key_));
    if (random_() % 100 < contest_.percent_puts)
      return new SegmentOperation(space_.put(key_, memory));
    return new SegmentOperation(space_.get(key_, memory));
  }

  SegmentSpace& space_;
  const Contest& contest_;
  std::mt19937 random_;
  Key key_;
  std::uint64_t value_ = 0;
  bool going_ = false;
  std::uint64_t served_ = 0;
  std::unique_ptr<SegmentOperation> operation_;
};

/// The members of one process.
class Side {
 public:
  Side(Member& me, const Group& group, const Contest& contest)
      : me_(me), half_(contest.members / 2) {
    const Rank first = me.rank() == 0 ? 0 : half_;
    for (auto& fabric : group.join_many(first, me.rank() == 0 ? half_ : contest.members - half_))
      nodes_.push_back(std::make_unique<SegmentNode>(std::move(fabric)));
    std::vector<Node*> all;
    for (const auto& node : nodes_) all.push_back(&node->node);
    connect(me, all);
    std::string word;
    if (me.rank() == 0) {
      auto made = nodes_.front()->space.allocate(
          {.bytes = 8, .coherence = contest.coherence, .placement = {contest.members - 1}});
      if (!made.outcome().ok()) throw Error("bench: " + made.describe());
      word = std::to_string(made.result().key.value);
    }
    key_ = {std::stoull(me.exchange(word, [this] { poll(); }).front())};
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      contestants_.emplace_back(std::make_unique<Contestant>(nodes_[i]->space, contest, first + i));
  }

  [[nodiscard]] const Fabric& fabric() { return nodes_.front()->node.fabric(); }

  struct Score {
    double per_second = 0;
    double fairness = 0;
  };
  /// Until the members of process 0 were served so often; the score is known there.
  std::optional<Score> turn(std::uint64_t often) {
    ++turns_;
    me_.meet([this] { poll(); });
    const double start = now_ns();
    for (const auto& contestant : contestants_) contestant->begin(key_);
    if (me_.rank() == 0) {
      while (sum() < often) poll();
      nodes_.front()->node.end_turn(half_);
    } else {
      while (nodes_.front()->node.word(kOver) < turns_) poll();
    }
    const double seconds = (now_ns() - start) / 1e9;
    for (const auto& contestant : contestants_) contestant->stop();
    const auto [least, most] = std::ranges::minmax(served());
    const auto words = me_.exchange(
        std::to_string(sum()) + " " + std::to_string(least) + " " + std::to_string(most),
        [this] { poll(); });
    while (!std::ranges::all_of(contestants_, [](const auto& c) { return c->idle(); })) poll();
    me_.meet([this] { poll(); });
    if (me_.rank() != 0) return std::nullopt;
    unsigned long long others = 0, others_least = 0, others_most = 0;
    std::sscanf(words.at(1).c_str(), "%llu %llu %llu", &others, &others_least, &others_most);
    const double lowest = static_cast<double>(std::min<std::uint64_t>(least, others_least));
    const double highest = static_cast<double>(std::max<std::uint64_t>(most, others_most));
    return Score{static_cast<double>(sum() + others) / seconds, highest > 0 ? lowest / highest : 0};
  }

 private:
  void poll() {
    for (const auto& node : nodes_) node->poll();
    for (const auto& contestant : contestants_) contestant->step();
  }
  [[nodiscard]] std::vector<std::uint64_t> served() const {
    std::vector<std::uint64_t> all;
    for (const auto& contestant : contestants_) all.push_back(contestant->served());
    return all;
  }
  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t total = 0;
    for (const auto& contestant : contestants_) total += contestant->served();
    return total;
  }

  Member& me_;
  Rank half_;
  std::vector<std::unique_ptr<SegmentNode>> nodes_;
  std::vector<std::unique_ptr<Contestant>> contestants_;
  Key key_;
  std::uint64_t turns_ = 0;
};

Params params_of(const Contest& contest, const char* figure) {
  return {{"members", double(contest.members)},
          {"coherence",
           contest.percent_puts == 0 ? "lock, unlock" : std::string(name_of(contest.coherence))},
          {"% puts", double(contest.percent_puts)},
          {"figure", figure}};
}

std::vector<Result> measure(const RealNetwork& network, const Effort& effort,
                            const Contest& contest) {
  const std::uint64_t often = effort.scaled(network.passive_target ? 20'000 : 1'000) + 10;
  const Batches plan = effort.plan(100, network.trips_per_batch);
  const Group group(network, effort, contest.members);
  Team team(group.team(2));
  team.run([&](Member& me) {
    Side side(me, group, contest);
    const auto bare = group.bare(me, &side.fabric());
    bool warm = false;
    alternate(me, effort.rounds,
              {[&]() -> std::optional<double> {
                 const auto one_way = bare->one_way(me, plan, 8);
                 return one_way ? std::optional(1e9 / *one_way) : std::nullopt;
               },
               [&]() -> std::optional<double> {
                 const auto score = side.turn(often);
                 const bool counts = std::exchange(warm, true);
                 if (!score) return std::nullopt;
                 if (counts) me.record(2, score->fairness);
                 return score->per_second;
               }});
  });
  Result rate =
      compared({.params = params_of(contest, "operations"), .unit = "1/s"}, team.series(1),
               network.bare_name + ", hand-overs one way", team.series(0));
  Result fairness{.params = params_of(contest, "least to most served"),
                  .unit = "ratio",
                  .better = Better::higher};
  if (!team.series(2).empty()) fairness.value = summarize(team.series(2));
  if (contest.percent_puts == 0) {
    rate.goal = Goal{.bound = kLeastThroughput};
    fairness.goal = Goal{.on = Goal::On::value, .bound = kLeastFairness};
  }
  return {rate, fairness};
}

}  // namespace

Experiment uncontended_locks(const RealNetwork& network) {
  return {.name = "lock",
          .title = "lock and unlock a segment that nobody else wants (table 2)",
          .fabric = network.name,
          .run = on_network(network, uncontended)};
}

Experiment contended_locks(const RealNetwork& network) {
  return {.name = "contention",
          .title = "all members of two processes want one segment all the time",
          .fabric = network.name,
          .x = "members",
          .run = [&network](const Effort& effort) {
            std::vector<Contest> contests;
            for (const std::uint32_t members : {2U, 4U, 8U, 16U})
              if (network.passive_target || members <= 4) contests.push_back({.members = members});
            for (const Coherence coherence : {Coherence::strict, Coherence::write})
              for (const std::uint32_t percent : {10U, 40U, 100U})
                contests.push_back({.members = 4, .coherence = coherence, .percent_puts = percent});
            if (effort.quick) contests = {contests.front(), contests.back()};
            std::vector<Result> results;
            for (const Contest& contest : contests)
              append(results, measure(network, effort, contest));
            return results;
          }};
}

}  // namespace dunlin::bench
