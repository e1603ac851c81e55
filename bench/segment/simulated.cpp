#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <random>

#include <dunlin/segment.hpp>

#include "bench/fabric/simulated_members.hpp"
#include "bench/segment/experiments.hpp"
#include "bench/table/simulation.hpp"

/// The published figures of DDSS, in virtual time, on a network that is derived from its published
/// latencies of puts; and what an operation costs among 1,000 members. A round is a seed.
namespace dunlin::bench {
namespace {

/// What the paper's processes pay for their daemon, without which ours work: 10 to 12 us, it says.
constexpr double kDaemonNs = 10'000;

/// The paper gives 20 us for a put of 1 byte under null through the daemon, so 10 us for the write;
/// 54.3 us under write coherence, which adds two atomics, so 17.15 us for each. It gives no read:
/// ours takes as long as a write. The port: 8 Gb/s, as a 4X InfiniBand link of that time.
sim::Profile published_network() {
  sim::Profile network = sim::profile("ideal");
  network.name = "ib-2006";
  network.source = "derived from the latencies of 1 byte that DDSS publishes";
  network.write_latency_ns = 5'000;
  network.read_latency_ns = 10'000;
  network.atomic_latency_ns = 17'150;
  network.bandwidth_bytes_per_ns = 1;
  network.jitter = 0.02;
  return network;
}

/// Simulated members with a space each.
class SimulatedSpaces : public SimulatedMembers<SegmentSpace> {
 public:
  SimulatedSpaces(const sim::Profile& profile, std::uint32_t members, std::uint64_t seed)
      : SimulatedMembers(profile, members, seed, [](Fabric& fabric) {
          return std::make_unique<SegmentSpace>(fabric, SpaceOptions{.pool_bytes = 1 << 18});
        }) {}

  Key make(const SegmentSpec& spec) {
    auto made = layers.front()->allocate(spec);
    run_until([&] { return made.finished(); });
    if (!made.ok()) throw Error("bench: " + made.describe());
    return made.result().key;
  }
};

void demand_ok(const Outcome& outcome) {
  if (!outcome.ok())
    throw Error("bench: a simulated operation ends: " + std::string(describe(outcome.status)));
}

/// What a client does again and again, and what it took.
struct Work {
  Key key = {};
  std::size_t bytes = 8;
  std::uint32_t percent_puts = 0;
  std::uint32_t times = 20;
  bool if_changed = false;
  double total_ns = 0;
};

remote::Job work_on(SegmentSpace& space, Work* work, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> words(work->bytes / 8 + 1);
  const auto memory = std::as_writable_bytes(std::span(words)).first(work->bytes);
  // The first use of a key asks its home.
  const Outcome first = co_await space.get(work->key, memory);
  demand_ok(first);
  const std::uint64_t begin = space.fabric().now_ns();
  for (std::uint32_t i = 0; i < work->times; ++i) {
    if (random() % 100 < work->percent_puts) {
      demand_ok(co_await space.put(work->key, memory));
    } else if (work->if_changed) {
      demand_ok(co_await space.get_if_changed(work->key, memory, first.version));
    } else {
      demand_ok(co_await space.get(work->key, memory));
    }
  }
  work->total_ns = static_cast<double>(space.fabric().now_ns() - begin);
}

/// Nanoseconds for one operation, of clients at members 1 and up; the segments are at member 0.
double time_of(std::uint64_t seed, std::uint32_t clients, Coherence coherence, const Work& work,
               bool one_segment, double slowness = 1) {
  SimulatedSpaces all(published_network(), clients + 1, seed);
  std::vector<Work> works(clients, work);
  const SegmentSpec spec{
      .bytes = work.bytes, .coherence = coherence, .placement = Placement::on(0)};
  const Key shared = all.make(spec);
  for (Work& each : works) each.key = one_segment ? shared : all.make(spec);
  if (slowness > 1) all.world.slow(0, slowness);
  for (Rank rank = 1; rank <= clients; ++rank)
    all.start(rank, [&works, rank, seed](SegmentSpace& space) {
      return work_on(space, &works[rank - 1], seed * 100 + rank);
    });
  all.finish();
  double total = 0;
  for (const Work& each : works) total += each.total_ns;
  return total / clients / work.times;
}

Result of_seeds(const Effort& effort, Result result,
                const std::function<double(std::uint64_t)>& measure) {
  result.unit = "ns";
  result.value = summarize(over_seeds(effort, measure));
  return result;
}

/// Figure 4: a lone client, by coherence.
std::vector<Result> by_coherence(const Effort& effort) {
  struct Figure {
    Coherence coherence;
    std::uint32_t percent_puts;
    bool if_changed;
    const char* operation;
    std::optional<double> published_us;  // of 1 byte, through the daemon
    const char* note;
  };
  const std::array<Figure, 10> cases{
      Figure{Coherence::null, 100, false, "put", 20, "One write."},
      Figure{Coherence::read, 100, false, "put", 23, "One write; the paper's has some work more."},
      Figure{Coherence::write, 100, false, "put", 54.3,
             "The paper presumably waits until the lock is given back; ours steps a version, too."},
      Figure{Coherence::strict, 100, false, "put", 54.8, "As write."},
      Figure{Coherence::version, 100, false, "put", 37,
             "Ours takes the lock, so that puts of several members exclude each other."},
      Figure{Coherence::null, 0, false, "get", {}, ""},
      Figure{Coherence::write, 0, false, "get", {}, ""},
      Figure{Coherence::strict, 0, false, "get", {}, ""},
      Figure{Coherence::version, 0, false, "get, changed", {}, ""},
      Figure{Coherence::version, 0, true, "get, unchanged", {}, "As long for each size."}};
  std::vector<Result> results;
  for (const Figure& c : cases)
    for (const std::size_t bytes : {1UL, 1024UL, 65'536UL}) {
      Result result{.params = {{"coherence", std::string(name_of(c.coherence))},
                               {"operation", c.operation},
                               {"bytes", double(bytes)}},
                    .note = c.note};
      if (c.published_us && bytes == 1) result.published = *c.published_us * 1000 - kDaemonNs;
      const Work work{.bytes = bytes, .percent_puts = c.percent_puts, .if_changed = c.if_changed};
      results.push_back(of_seeds(effort, result, [&](std::uint64_t seed) {
        return time_of(seed, 1, c.coherence, work, true);
      }));
    }
  return results;
}

/// Figure 6a: more clients, each with a segment of its own at one member.
std::vector<Result> by_clients(const Effort& effort) {
  std::vector<Result> results;
  for (const Coherence coherence : {Coherence::null, Coherence::strict, Coherence::version})
    for (const std::uint32_t clients : {1U, 4U, 8U, 11U})
      results.push_back(of_seeds(effort,
                                 {.params = {{"coherence", std::string(name_of(coherence))},
                                             {"clients", double(clients)}}},
                                 [&](std::uint64_t seed) {
                                   return time_of(seed, clients, coherence, {.percent_puts = 100},
                                                  false);
                                 }));
  return results;
}

/// Figure 6b: all clients use one segment.
std::vector<Result> by_contention(const Effort& effort) {
  std::vector<Result> results;
  for (const Coherence coherence :
       {Coherence::null, Coherence::read, Coherence::write, Coherence::strict, Coherence::version})
    for (const std::uint32_t percent : {10U, 40U, 70U, 100U})
      results.push_back(of_seeds(
          effort,
          {.params = {{"coherence", std::string(name_of(coherence))}, {"% puts", double(percent)}}},
          [&](std::uint64_t seed) {
            return time_of(seed, 11, coherence, {.percent_puts = percent}, true);
          }));
  return results;
}

/// Figure 7: several operations under way at once.
std::vector<Result> by_operations_under_way(const Effort& effort) {
  std::vector<Result> results;
  for (const std::size_t bytes : {1UL, 4096UL, 65'536UL})
    for (const std::size_t at_once : {1UL, 16UL})
      results.push_back(of_seeds(
          effort, {.params = {{"at once", double(at_once)}, {"bytes", double(bytes)}}},
          [&](std::uint64_t seed) {
            SimulatedSpaces all(published_network(), 2, seed);
            const Key key = all.make(
                {.bytes = bytes, .coherence = Coherence::null, .placement = Placement::on(1)});
            std::vector<std::uint64_t> words(bytes / 8 + 1);
            const auto memory = std::as_writable_bytes(std::span(words)).first(bytes);
            std::deque<SegmentOperation> gets(at_once);
            std::uint64_t begin = 0;
            const auto batch = [&] {
              all.world.on(0, [&] {
                begin = all.layers[0]->fabric().now_ns();
                for (SegmentOperation& get : gets) get = all.layers[0]->get(key, memory);
              });
              all.run_until([&] {
                return begin != 0 &&
                       std::ranges::all_of(gets, [](const auto& get) { return get.finished(); });
              });
            };
            batch();  // asks the key's home
            begin = 0;
            batch();
            return static_cast<double>(all.world.now_ns() - begin) / static_cast<double>(at_once);
          }));
  return results;
}

/// Figure 8b: checking a version, by how busy the processor of its member is.
std::vector<Result> by_load(const Effort& effort) {
  std::vector<Result> results;
  for (const double slowness : {1.0, 4.0, 16.0, 64.0})
    results.push_back(of_seeds(
        effort,
        {.params = {{"its processor takes", to_text(slowness) + " times as long"}},
         .note = "No processor of the segment's member takes part."},
        [&](std::uint64_t seed) {
          return time_of(seed, 1, Coherence::version, {.if_changed = true}, true, slowness);
        }));
  return results;
}

// --- scale ---------------------------------------------------------------------------------------

struct Costs {
  double allocate_ns = 0;
  double put_ns = 0;
  double get_ns = 0;
};

remote::Job allocate_put_get(SegmentSpace& space, Costs* costs) {
  constexpr std::uint32_t kTimes = 8;
  const auto now = [&space] { return static_cast<double>(space.fabric().now_ns()); };
  std::uint64_t value = space.fabric().rank();
  double begin = now();
  // Not within the co_await: g++ 12 destroys such a temporary twice.
  const SegmentSpec spec{.bytes = 8, .coherence = Coherence::write};
  const Outcome made = co_await space.allocate(spec);
  demand_ok(made);
  costs->allocate_ns += now() - begin;
  demand_ok(co_await space.get(made.key, bytes_of(value)));  // asks the key's home, if it must
  begin = now();
  for (std::uint32_t i = 0; i < kTimes; ++i)
    demand_ok(co_await space.put(made.key, bytes_of(value)));
  costs->put_ns += (now() - begin) / kTimes;
  begin = now();
  for (std::uint32_t i = 0; i < kTimes; ++i)
    demand_ok(co_await space.get(made.key, bytes_of(value)));
  costs->get_ns += (now() - begin) / kTimes;
}

std::vector<Result> by_members(const Effort& effort) {
  const std::vector<std::uint32_t> sizes =
      effort.quick ? std::vector{10U, 50U} : std::vector{10U, 100U, 1000U};
  std::vector<Result> results;
  for (const std::uint32_t members : sizes) {
    std::array<std::vector<double>, 3> series;
    // With 1,000 members a seed takes minutes, in which their 2,000,000 connections are made.
    const std::uint32_t seeds = members < 1000 ? std::min(effort.rounds, 3U) : 1;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      SimulatedSpaces all(published_network(), members, seed);
      Costs costs;
      for (Rank rank = 0; rank < members; ++rank)
        all.start(rank, [&costs](SegmentSpace& space) { return allocate_put_get(space, &costs); });
      all.finish();
      series[0].push_back(costs.allocate_ns / members);
      series[1].push_back(costs.put_ns / members);
      series[2].push_back(costs.get_ns / members);
    }
    const std::array<const char*, 3> names{"allocate", "put", "get"};
    for (std::size_t i = 0; i < names.size(); ++i)
      results.push_back({.params = {{"operation", names.at(i)}, {"members", double(members)}},
                         .unit = "ns",
                         .value = summarize(series.at(i))});
  }
  return results;
}

}  // namespace

std::vector<Experiment> simulated_segments() {
  return experiments_on(
      "sim",
      {{"simulated coherence", "get and put by coherence (figure 4 of DDSS, less its daemon)",
        "bytes", by_coherence},
       {"simulated clients", "puts by clients with a segment each (figure 6a)", "clients",
        by_clients},
       {"simulated contention", "11 clients use one segment (figure 6b)", "% puts", by_contention},
       {"simulated in flight", "gets at once, for one of them (figure 7)", "bytes",
        by_operations_under_way},
       {"simulated load", "checking a version at a busy member (figure 8b)", "", by_load},
       {"simulated scale", "what an operation costs among so many members, all at work", "members",
        by_members}});
}

}  // namespace dunlin::bench
