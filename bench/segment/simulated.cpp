#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <random>
#include <string_view>

#include <dunlin/segment.hpp>

#include "bench/segment/experiments.hpp"
#include "bench/segment/simulated_spaces.hpp"
#include "bench/table/simulation.hpp"

/// The published figures of DDSS, in virtual time, on a network that is derived from its published
/// latencies of puts; and what an operation costs among 1,000 members. A round is a seed.
namespace dunlin::bench {
namespace {

/// What the paper's processes pay for their daemon, without which ours work: 10 to 12 us, it says.
constexpr double kDaemonNs = 10'000;
/// The versions that a segment under delta keeps. The paper does not give its number.
constexpr std::uint32_t kVersions = 2;

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

SegmentSpec spec_of(Coherence coherence, std::size_t bytes, Rank home) {
  return {.bytes = bytes,
          .coherence = coherence,
          .placement = Placement::on(home),
          .versions = coherence == Coherence::delta ? kVersions : 0};
}

struct Clients {
  sim::Profile network = ddss_network();
  std::uint32_t count = 1;  // at members 1 and up; the segments are at member 0
  bool one_segment = true;  // or one for each
  double slowness = 1;      // of member 0's processor
};

/// Nanoseconds for one operation.
double time_of(std::uint64_t seed, const Clients& clients, Coherence coherence, const Work& work) {
  SimulatedSpaces all(clients.network, clients.count + 1, seed);
  std::vector<Work> works(clients.count, work);
  const SegmentSpec spec = spec_of(coherence, work.bytes, 0);
  const Key shared = all.make(spec);
  for (Work& each : works) each.key = clients.one_segment ? shared : all.make(spec);
  if (clients.slowness > 1) all.world.slow(0, clients.slowness);
  for (Rank rank = 1; rank <= clients.count; ++rank)
    all.start(rank, [&works, rank, seed](SegmentSpace& space) {
      return work_on(space, &works[rank - 1], seed * 100 + rank);
    });
  all.finish();
  double total = 0;
  for (const Work& each : works) total += each.total_ns;
  return total / clients.count / work.times;
}

Result of_seeds(const Effort& effort, Result result,
                const std::function<double(std::uint64_t)>& measure) {
  result.unit = "ns";
  result.value = summarize(over_seeds(effort, measure));
  return result;
}

struct CoherenceCase {
  Coherence coherence;
  const char* operation;
  std::uint32_t percent_puts;
  std::optional<double> published_us;  // of 1 byte over InfiniBand, through the daemon
  const char* note;
};
constexpr std::string_view kUnchanged = "get, unchanged";
constexpr std::array kCoherences{
    CoherenceCase{Coherence::null, "put", 100, 20, "One write."},
    CoherenceCase{Coherence::read, "put", 100, 23, "One write; the paper's has some work more."},
    CoherenceCase{Coherence::write, "put", 100, 54.3,
                  "The paper presumably waits until the lock is given back; ours steps a version."},
    CoherenceCase{Coherence::strict, "put", 100, 54.8, "As write."},
    CoherenceCase{Coherence::version, "put", 100, 37,
                  "Ours takes the lock, so that puts of several members exclude each other."},
    CoherenceCase{Coherence::delta, "put", 100, 41,
                  "Ours takes the lock, and reads the version before it writes the next one."},
    CoherenceCase{Coherence::null, "get", 0, {}, ""},
    CoherenceCase{Coherence::read, "get", 0, {}, ""},
    CoherenceCase{Coherence::write, "get", 0, {}, ""},
    CoherenceCase{Coherence::strict, "get", 0, {}, ""},
    CoherenceCase{Coherence::version, "get, changed", 0, {}, ""},
    CoherenceCase{
        Coherence::version, kUnchanged.data(), 0, {}, "Published: as long for each size."},
    CoherenceCase{Coherence::delta, "get", 0, {}, ""}};

/// Figures 4 and 5: a lone client, by coherence.
std::vector<Result> by_coherence(const Effort& effort, const sim::Profile& network,
                                 bool as_published) {
  std::vector<Result> results;
  for (const CoherenceCase& c : kCoherences)
    for (const std::size_t bytes : {1UL, 1024UL, 65'536UL}) {
      Result result{.params = {{"coherence", std::string(name_of(c.coherence))},
                               {"operation", c.operation},
                               {"bytes", double(bytes)}},
                    .note = as_published ? c.note : "Published: similar trends, without a number."};
      if (c.published_us && bytes == 1 && as_published)
        result.published = *c.published_us * 1000 - kDaemonNs;
      const Work work{
          .bytes = bytes, .percent_puts = c.percent_puts, .if_changed = c.operation == kUnchanged};
      results.push_back(of_seeds(effort, result, [&](std::uint64_t seed) {
        return time_of(seed, {.network = network}, c.coherence, work);
      }));
    }
  return results;
}
std::vector<Result> over_infiniband(const Effort& effort) {
  return by_coherence(effort, ddss_network(), true);
}

/// The paper gives no latencies of this network, and says that the trends are similar. Assumptions:
/// those of the other network; 1 Gb/s; and no atomics of the NIC, so the home's processor adds.
std::vector<Result> over_ammasso(const Effort& effort) {
  sim::Profile network = ddss_network();
  network.name = "iwarp-2006";
  network.source = "assumed: ib-2006 with 1 Gb/s, and without atomics of the NIC";
  network.bandwidth_bytes_per_ns = 0.125;
  network.native_atomics = false;
  return by_coherence(effort, network, false);
}

/// Figure 6a: more clients, each with a segment of its own at one member.
std::vector<Result> by_clients(const Effort& effort) {
  std::vector<Result> results;
  for (const Coherence coherence :
       {Coherence::null, Coherence::strict, Coherence::version, Coherence::delta})
    for (const std::uint32_t clients : {1U, 4U, 8U, 11U})
      results.push_back(of_seeds(
          effort,
          {.params = {{"coherence", std::string(name_of(coherence))}, {"clients", double(clients)}},
           .note = "Published: more clients do not seem to matter."},
          [&](std::uint64_t seed) {
            return time_of(seed, {.count = clients, .one_segment = false}, coherence,
                           {.percent_puts = 100});
          }));
  return results;
}

/// Figure 6b: all clients use one segment.
std::vector<Result> by_contention(const Effort& effort) {
  std::vector<Result> results;
  for (const Coherence coherence : {Coherence::null, Coherence::read, Coherence::write,
                                    Coherence::strict, Coherence::version, Coherence::delta})
    for (const std::uint32_t percent : {10U, 40U, 70U, 100U})
      results.push_back(of_seeds(
          effort,
          {.params = {{"coherence", std::string(name_of(coherence))}, {"% puts", double(percent)}},
           .note = "Published: up to 40 % no loss; beyond, strict and write lose much."},
          [&](std::uint64_t seed) {
            return time_of(seed, {.count = 11}, coherence, {.percent_puts = percent});
          }));
  return results;
}

/// Nanoseconds of one operation under null, of so many that begin at once.
double time_at_once(std::uint64_t seed, bool puts, std::size_t at_once, std::size_t bytes) {
  SimulatedSpaces all(ddss_network(), 2, seed);
  const Key key = all.make(spec_of(Coherence::null, bytes, 1));
  std::vector<std::uint64_t> words(bytes / 8 + 1);
  const auto memory = std::as_writable_bytes(std::span(words)).first(bytes);
  std::deque<SegmentOperation> operations(at_once);
  std::uint64_t begin = 0;
  const auto batch = [&] {
    all.world.on(0, [&] {
      SegmentSpace& space = *all.layers[0];
      begin = space.fabric().now_ns();
      for (SegmentOperation& each : operations)
        each = puts ? space.put(key, memory) : space.get(key, memory);
    });
    all.run_until([&] {
      return begin != 0 &&
             std::ranges::all_of(operations, [](const auto& each) { return each.finished(); });
    });
  };
  batch();  // asks the key's home
  begin = 0;
  batch();
  return static_cast<double>(all.world.now_ns() - begin) / static_cast<double>(at_once);
}

/// Figure 7: several operations under way at once.
std::vector<Result> by_operations_under_way(const Effort& effort) {
  std::vector<Result> results;
  for (const bool puts : {false, true})
    for (const std::size_t bytes : {1UL, 4096UL, 65'536UL})
      for (const std::size_t at_once : {1UL, 16UL})
        results.push_back(
            of_seeds(effort,
                     {.params = {{"operation", puts ? "put" : "get"},
                                 {"at once", double(at_once)},
                                 {"bytes", double(bytes)}}},
                     [&](std::uint64_t seed) { return time_at_once(seed, puts, at_once, bytes); }));
  return results;
}

/// Figure 8b: checking a version, by how busy the processor of its member is.
std::vector<Result> by_load(const Effort& effort) {
  std::vector<Result> results;
  for (const double slowness : {1.0, 4.0, 16.0, 64.0})
    results.push_back(of_seeds(
        effort,
        {.params = {{"its processor takes", to_text(slowness) + " times as long"}},
         .note = "Published: constant. No processor of the segment's member takes part."},
        [&](std::uint64_t seed) {
          return time_of(seed, {.slowness = slowness}, Coherence::version, {.if_changed = true});
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
      SimulatedSpaces all(ddss_network(), members, seed);
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
        "bytes", over_infiniband},
       {"simulated iwarp", "the same without atomics of the NIC (figure 5, assumed latencies)",
        "bytes", over_ammasso},
       {"simulated clients", "puts by clients with a segment each (figure 6a)", "clients",
        by_clients},
       {"simulated contention", "11 clients use one segment (figure 6b)", "% puts", by_contention},
       {"simulated in flight", "gets and puts at once, for one of them (figure 7)", "bytes",
        by_operations_under_way},
       {"simulated load", "checking a version at a busy member (figure 8b)", "", by_load},
       {"simulated scale", "what an operation costs among so many members, all at work", "members",
        by_members}});
}

}  // namespace dunlin::bench
