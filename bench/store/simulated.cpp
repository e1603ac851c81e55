#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/store.hpp>

#include "bench/fabric/simulated_members.hpp"
#include "bench/store/experiments.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/simulated_gets.hpp"
#include "bench/store/store_pair.hpp"

/// The published setting of DrTM-KV in virtual time: one server and five clients of eight threads.
/// Then what a call costs among 2 to 64 members that all hold keys. A round is a seed.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kClients = 5 * 8;
constexpr std::array<std::uint32_t, 3> kUnderWay{1, 2, 4};  // of each client thread
constexpr std::uint32_t kMostSeeds = 3;

constexpr double kPublishedRate = 23.4e6;
constexpr double kPublishedLatencyNs = 3'400;
/// Of each thread: the product of both is 80 gets.
constexpr std::uint32_t kPublishedUnderWay = 2;
constexpr double kPublishedLookupCost = 0.178;

/// Published: 20 million pairs, and a cache of 20 MB that the eight threads of a client share.
constexpr std::uint32_t kFewer = 320;
constexpr std::uint32_t kPairs = 20'000'000 / kFewer;
constexpr std::size_t kCacheOfClient = (std::size_t{20} << 20) / kFewer;
constexpr double kZipf = 0.99;

/// Pairs of which each client knows all locations, or none: their number does not matter.
constexpr std::uint32_t kFewPairs = 4'000;
constexpr std::size_t kRoomForAll = std::size_t{1} << 20;

struct Caching {
  std::string name;
  SimulatedGets setting;
  bool is_published = false;                   // the rate and the latency
  std::optional<double> published_reads = {};  // of buckets, by a get
};

std::vector<Caching> cachings(const sim::Profile& network, const Effort& effort) {
  const bool as_published = effort.profile.empty();
  const std::uint32_t clients = effort.quick ? 8 : kClients;
  const std::uint32_t few = effort.scaled(kFewPairs);
  const SimulatedGets skewed{.network = network,
                             .clients = clients,
                             .pairs = effort.scaled(kPairs),
                             .skew = kZipf,
                             .cache_bytes = kCacheOfClient,
                             .warm_up = effort.scaled(kPairs)};
  SimulatedGets divided = skewed;
  divided.cache_bytes /= 8;
  std::vector<Caching> all{
      {.name = "all locations",
       .setting = {.network = network,
                   .clients = clients,
                   .pairs = few,
                   .cache_bytes = kRoomForAll,
                   .warm_up = few},
       .is_published = as_published},
      {.name = "20 MB a thread, Zipf", .setting = skewed},
      {.name = "20 MB for 8 threads, Zipf", .setting = divided},
      {.name = "none", .setting = {.network = network, .clients = clients, .pairs = few}}};
  if (as_published) all[2].published_reads = kPublishedLookupCost;
  return all;
}

/// What the seeds gave, for one number of calls under way.
struct Series {
  std::vector<double> per_second, latency_ns, bucket_reads;
  void add(const GetFigures& figures) {
    per_second.push_back(figures.per_second);
    latency_ns.push_back(figures.latency_ns);
    bucket_reads.push_back(figures.bucket_reads);
  }
};
using AllSeries = std::array<Series, kUnderWay.size()>;

void add(AllSeries& all, const std::vector<GetFigures>& figures) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i].add(figures.at(i));
}

/// The clients' gets beside bare reads of as many bytes, with as many under way.
void add_results(std::vector<Result>& results, const Caching& caching, const AllSeries& gets,
                 const AllSeries& bare) {
  for (std::size_t i = 0; i < kUnderWay.size(); ++i) {
    const auto add = [&](const char* what, const char* unit) -> Result& {
      return results.emplace_back(Result{.params = {{"cached", caching.name},
                                                    {"under way", double(kUnderWay[i])},
                                                    {"figure", what}},
                                         .unit = unit});
    };
    constexpr const char* kLimit = "bare reads of the entries' bytes";
    Result& rate = add("all gets", "1/s");
    compare(rate, gets[i].per_second, kLimit, bare[i].per_second);
    Result& latency = add("latency", "ns");
    compare(latency, gets[i].latency_ns, kLimit, bare[i].latency_ns);
    if (!caching.is_published || kUnderWay[i] != kPublishedUnderWay) continue;
    rate.published = kPublishedRate;
    latency.published = kPublishedLatencyNs;
  }
  results.push_back({.params = {{"cached", caching.name},
                                {"under way", double(kUnderWay.back())},
                                {"figure", "bucket reads"}},
                     .unit = "reads",
                     .value = summarize(gets.back().bucket_reads),
                     .published = caching.published_reads});
}

void add_published_setting(std::vector<Result>& results, const sim::Profile& network,
                           const Effort& effort, std::uint32_t seeds) {
  const std::vector<Caching> all = cachings(network, effort);
  AllSeries bare;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    add(bare, simulate_bare_reads(network, all.front().setting.clients, kUnderWay, seed));
  for (const Caching& caching : all) {
    AllSeries gets;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
      add(gets, simulate_gets(caching.setting, kUnderWay, seed));
    add_results(results, caching, gets, bare);
  }
}

// --- scale ---------------------------------------------------------------------------------------

constexpr std::uint32_t kCallsOfMember = 200;
constexpr std::uint32_t kKeysOfMember = 8 * kCallsOfMember;
constexpr std::array kCalls{"get", "get, location cached", "put"};
using CallTimes = std::array<double, kCalls.size()>;

/// Keys that other members hold and have put, and that no other member uses.
std::vector<std::uint64_t> keys_elsewhere(const Store& store) {
  const Rank me = store.fabric().rank();
  std::vector<std::uint64_t> chosen;
  for (std::uint32_t i = me * kKeysOfMember; chosen.size() < kCallsOfMember; ++i)
    if (i % store.fabric().size() != me && store.home_of(mixed(i)) != me)
      chosen.push_back(mixed(i));
  return chosen;
}

/// Puts the member's share of the keys, and makes its first call at each home.
remote::Job prepare(Store& store, std::uint32_t keys) {
  const std::array<std::byte, kSimulatedValueBytes> value{};
  const std::uint32_t members = store.fabric().size();
  StoreOperation operation;
  for (std::uint32_t i = store.fabric().rank(); i < keys; i += members) {
    store.put(operation, mixed(i), value);
    co_await operation;
    StorePair::demand(operation.status());
  }
  for (Rank home = 0; home < members; ++home) {
    std::uint64_t absent = keys;
    while (store.home_of(mixed(absent)) != home) ++absent;
    store.get(operation, mixed(absent));
    co_await operation;
    StorePair::demand(operation.status());
  }
}

remote::Job make_calls(Store& store, CallTimes* sums) {
  const std::array<std::byte, kSimulatedValueBytes> value{};
  const std::vector<std::uint64_t> chosen = keys_elsewhere(store);
  StoreOperation operation;
  for (std::size_t call = 0; call < kCalls.size(); ++call) {
    const std::uint64_t begin = store.fabric().now_ns();
    for (const std::uint64_t key : chosen) {
      store.fabric().spend(kSimulatedCallNs);
      if (call < 2) {
        store.get(operation, key);
      } else {
        store.put(operation, key, value);
      }
      co_await operation;
      StorePair::demand(operation.status());
    }
    sums->at(call) += static_cast<double>(store.fabric().now_ns() - begin) / kCallsOfMember;
  }
}

/// The means over all members, each of which makes one call after the other.
CallTimes times_among(std::uint32_t members, const sim::Profile& network, std::uint64_t seed) {
  const std::uint32_t keys = members * kKeysOfMember;
  constexpr std::uint32_t kMost = 2 * kKeysOfMember;  // at one home
  constexpr std::size_t kSlabsOfMember = 2 << 16;     // of entries and of indirect headers
  const StoreOptions options{
      .memory_bytes = store_bytes(kMost, kSimulatedValueBytes) + members * kSlabsOfMember,
      .large_bytes = 0,
      .expected_keys = kMost,
      .cache_bytes = std::size_t{1} << 16};
  SimulatedMembers<Store> all(network, members, seed, [&](Fabric& fabric) {
    return std::make_unique<Store>(fabric, options);
  });
  const auto for_all = [&](const auto& program) {
    for (Rank rank = 0; rank < members; ++rank) all.start(rank, program);
    all.finish();
  };
  CallTimes sums{};
  for_all([keys](Store& store) { return prepare(store, keys); });
  for_all([&sums](Store& store) { return make_calls(store, &sums); });
  for (double& sum : sums) sum /= members;
  return sums;
}

void add_scale(std::vector<Result>& results, const sim::Profile& network, const Effort& effort,
               std::uint32_t seeds) {
  const std::vector<std::uint32_t> sizes =
      effort.quick ? std::vector{2U, 8U} : std::vector{2U, 4U, 8U, 16U, 32U, 64U};
  for (const std::uint32_t members : sizes) {
    std::array<std::vector<double>, kCalls.size()> series;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const CallTimes times = times_among(members, network, seed);
      for (std::size_t call = 0; call < times.size(); ++call) series[call].push_back(times[call]);
    }
    for (std::size_t call = 0; call < kCalls.size(); ++call)
      results.push_back({.params = {{"call", kCalls[call]}, {"members", double(members)}},
                         .unit = "ns",
                         .value = summarize(series[call])});
  }
}

std::vector<Result> simulate(const Effort& effort) {
  const sim::Profile network =
      effort.profile.empty() ? drtm_network() : sim::profile(effort.profile);
  const std::uint32_t seeds = std::min(effort.rounds, kMostSeeds);
  std::vector<Result> results;
  add_published_setting(results, network, effort, seeds);
  add_scale(results, network, effort, seeds);
  return results;
}

}  // namespace

Experiment simulated_store() {
  return {.name = "simulated",
          .title =
              "Gets of 40 client threads at one server, as DrTM-KV was published; then what a call "
              "costs among so many members",
          .fabric = "sim",
          .x = "members",
          .run = simulate};
}

}  // namespace dunlin::bench
