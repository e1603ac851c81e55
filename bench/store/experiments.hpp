#pragma once

#include "bench/fabric/networks.hpp"
#include "bench/harness/experiment.hpp"

/// The figures of the key-value store, one function and one file each.
namespace dunlin::bench {

/// Reads per lookup of the store's index, beside plain cuckoo and hopscotch tables.
[[nodiscard]] Experiment lookup_cost();
/// Gets beside bare random reads of the same bytes.
[[nodiscard]] Experiment store_gets(const RealNetwork& network);
/// Gets by the size of the value.
[[nodiscard]] Experiment store_sizes();
/// Gets by the size of the location cache, of as many pairs as were published.
[[nodiscard]] Experiment store_cache();
/// Gets of as many pairs as were published, with caches of the published size.
[[nodiscard]] Experiment store_twenty_million();
/// One client's gets and puts, by skew and by the share of gets.
[[nodiscard]] Experiment store_skew_and_reads();
/// More clients than cores.
[[nodiscard]] Experiment store_clients();
/// Puts in place beside the operations that they consist of.
[[nodiscard]] Experiment store_puts(const RealNetwork& network);
/// An index that grows beside one that need not.
[[nodiscard]] Experiment store_growth(const RealNetwork& network);
/// The workloads of YCSB beside Redis, memcached and LMDB.
[[nodiscard]] Experiment store_ycsb();
/// What a client waits for one call, beside the same.
[[nodiscard]] Experiment store_latency();
/// The published setting of DrTM-KV in virtual time, and what a call costs among many members.
[[nodiscard]] Experiment simulated_store();

}  // namespace dunlin::bench
