#include <array>
#include <functional>
#include <string>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

#include "bench/store/experiments.hpp"
#include "bench/store/plain_tables.hpp"

/// How many reads a lookup takes, besides the entry's: the store's own count, and that of plain
/// tables. Nothing is timed; a round is a set of keys.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kSlotsOfTables = 100'000;
constexpr std::uint32_t kLookups = 100'000;
constexpr double kZipf = 0.99;

struct PublishedCost {
  double occupancy;
  double uniform, zipf;
};
struct TableKind {
  std::string name;
  /// The mean over the lookups: of so many keys in so many slots, drawn with that skew.
  std::function<double(std::uint32_t slots, std::uint32_t keys, double skew, std::uint64_t seed,
                       std::uint32_t lookups)>
      mean_reads;
  std::array<PublishedCost, 3> published;
  std::string note = {};
};

[[nodiscard]] std::uint64_t nth_key(std::uint64_t seed, std::uint32_t number) {
  return mixed(seed << 32 | number) | 1;
}

template <class ReadsOf>
double mean_of(std::uint32_t keys, double skew, std::uint64_t seed, std::uint32_t lookups,
               const ReadsOf& reads_of) {
  SkewedNumbers numbers(keys, skew, seed);
  std::uint64_t reads = 0;
  for (std::uint32_t i = 0; i < lookups; ++i) reads += reads_of(nth_key(seed, numbers.next()));
  return static_cast<double>(reads) / lookups;
}

double cuckoo(std::uint32_t slots, std::uint32_t keys, double skew, std::uint64_t seed,
              std::uint32_t lookups) {
  CuckooTable table(slots);
  for (std::uint32_t i = 0; i < keys; ++i)
    if (!table.insert(nth_key(seed, i))) throw Error("bench: the cuckoo table is full");
  return mean_of(keys, skew, seed, lookups, [&](std::uint64_t key) { return table.reads_of(key); });
}

double hopscotch(std::uint32_t slots, std::uint32_t keys, double skew, std::uint64_t seed,
                 std::uint32_t lookups) {
  HopscotchTable table(slots);
  for (std::uint32_t i = 0; i < keys; ++i) table.insert(nth_key(seed, i));
  return mean_of(keys, skew, seed, lookups, [&](std::uint64_t key) { return table.reads_of(key); });
}

/// The store itself, of one simulated member, without a location cache.
double cluster_chaining(std::uint32_t slots, std::uint32_t keys, double skew, std::uint64_t seed,
                        std::uint32_t lookups) {
  sim::World world(sim::profile("ideal"), 1, seed);
  Store store(world.fabric(0), {.memory_bytes = (std::size_t{4} << 20) + std::size_t{slots} * 128,
                                .large_bytes = 0,
                                .expected_keys = slots * 3 / 4,
                                .cache_bytes = 0});
  StoreOperation operation;
  const auto demand = [&] {
    if (operation.wait() != remote::Status::ok)
      throw Error("bench: the store " + std::string(remote::describe(operation.status())));
  };
  const std::array<std::byte, 8> value{};
  for (std::uint32_t i = 0; i < keys; ++i) {
    store.put(operation, nth_key(seed, i), value);
    demand();
  }
  return mean_of(keys, skew, seed, lookups, [&](std::uint64_t key) {
    store.get(operation, key);
    demand();
    return operation.bucket_reads();
  });
}

const std::vector<TableKind>& kinds() {
  static const std::vector<TableKind> all{
      {"cuckoo", cuckoo, {{{50, 1.348, 1.304}, {75, 1.652, 1.712}, {90, 1.956, 1.924}}}},
      {"hopscotch", hopscotch, {{{50, 1.000, 1.000}, {75, 1.011, 1.020}, {90, 1.044, 1.040}}}},
      {"cluster chaining",
       cluster_chaining,
       {{{50, 1.008, 1.004}, {75, 1.052, 1.039}, {90, 1.100, 1.091}}},
       "The text of the slides lacks the published values of this column: not verified."}};
  return all;
}

}  // namespace

Experiment lookup_cost() {
  return {.name = "lookup cost",
          .title = "Reads per lookup, besides the entry's",
          .fabric = "sim",
          .x = "occupancy",
          .run = [](const Effort& effort) {
            std::vector<Result> results;
            const std::uint32_t slots = effort.scaled(kSlotsOfTables);
            const std::uint32_t lookups = effort.scaled(kLookups);
            for (const TableKind& kind : kinds())
              for (const PublishedCost& published : kind.published)
                for (const double skew : {0.0, kZipf}) {
                  const auto keys = static_cast<std::uint32_t>(slots * published.occupancy / 100);
                  std::vector<double> rounds;
                  for (std::uint64_t seed = 1; seed <= effort.rounds; ++seed)
                    rounds.push_back(kind.mean_reads(slots, keys, skew, seed, lookups));
                  results.push_back({.params = {{"table", kind.name},
                                                {"skew", skew},
                                                {"occupancy", published.occupancy}},
                                     .unit = "reads",
                                     .value = summarize(rounds),
                                     .published = skew == 0 ? published.uniform : published.zipf,
                                     .note = kind.note});
                }
            return results;
          }};
}

}  // namespace dunlin::bench
