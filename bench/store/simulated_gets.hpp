#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dunlin/fabric/sim.hpp>

/// Gets of many client threads at one server, in virtual time, and bare reads beside them.
namespace dunlin::bench {

/// The network of DrTM-KV's publication, made of its raw figures (docs/benchmarks/store.md).
[[nodiscard]] sim::Profile drtm_network();

inline constexpr std::size_t kSimulatedValueBytes = 64;
/// Of an entry with such a value: head, key and value, on whole lines.
inline constexpr std::size_t kSimulatedEntryBytes = 128;

/// What a client computes for a call, which the simulator does not know: a get with a cached
/// location takes 1,400 instructions.
inline constexpr double kSimulatedCallNs = 400;

struct SimulatedGets {
  sim::Profile network;
  std::uint32_t clients = 0;  // threads, each a member of its own
  std::uint32_t pairs = 0;
  double skew = 0;              // 0: each client asks for all keys in turn
  std::size_t cache_bytes = 0;  // of each client
  std::uint32_t warm_up = 0;    // gets of each client before it is measured
};

struct GetFigures {
  double per_second = 0;    // of all clients
  double latency_ns = 0;    // the mean, from the call to the poll that sees its end
  double bucket_reads = 0;  // of a get, besides the entry's
};

/// An element for each of `under_way`: each client always has so many gets under way.
[[nodiscard]] std::vector<GetFigures> simulate_gets(const SimulatedGets& setting,
                                                    std::span<const std::uint32_t> under_way,
                                                    std::uint64_t seed);

/// The same with reads of an entry's bytes instead of gets.
[[nodiscard]] std::vector<GetFigures> simulate_bare_reads(const sim::Profile& network,
                                                          std::uint32_t clients,
                                                          std::span<const std::uint32_t> under_way,
                                                          std::uint64_t seed);

}  // namespace dunlin::bench
