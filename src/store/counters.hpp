#pragma once

#include <optional>
#include <string>

#include "fabric/counters/counters.hpp"
#include "store/census.hpp"

/// What a member shows of a store to observers.
namespace dunlin::store {

/// The keys that a member holds; with `copies: 2`, second copies count, too.
class PartCounters {
 public:
  explicit PartCounters(CounterSet& all) : all_(all) {}
  /// Every 10 ms: not in each poll, because the words lie in cache lines that other members change.
  void look(const State& state) noexcept;

 private:
  SharedCounter level(const char* name, CounterUnit unit = CounterUnit::count) {
    return all_.add_level(name, unit);
  }
  static constexpr CounterUnit kBytes = CounterUnit::bytes;

  CounterSet& all_;
  Census census_;
  SharedCounter keys_ = level("store.keys");
  SharedCounter value_bytes_ = level("store.value_bytes", kBytes);
  SharedCounter memory_bytes_ =
      level("store.memory_bytes", kBytes);  // without what a limit keeps unused
  SharedCounter held_bytes_ = level("store.held_bytes", kBytes);    // of these, in members' slabs
  SharedCounter used_bytes_ = level("store.used_bytes", kBytes);    // of these, in linked blocks
  SharedCounter limit_bytes_ = level("store.limit_bytes", kBytes);  // kUnknown: none
  SharedCounter evictions_ = all_.add("store.evictions");
  SharedCounter main_slots_ = level("store.main_slots");
  SharedCounter main_slots_used_ = level("store.main_slots_used");
  SharedCounter indirect_headers_ = level("store.indirect_headers");  // that are linked
  SharedCounter indirect_headers_free_ =
      level("store.indirect_headers_free");  // blocks for more of them
  SharedCounter locked_chains_ = level("store.locked_chains");
};

struct StoreCounters {
  StoreCounters(Fabric& fabric, const std::string& store, bool is_home)
      : all(fabric, "store=" + store),
        part(is_home ? std::make_optional<PartCounters>(all) : std::nullopt) {}

  CounterSet all;
  std::optional<PartCounters> part;
  // calls of this process, by what they are
  SharedCounter gets = all.add("store.gets");
  SharedCounter puts = all.add("store.puts");
  SharedCounter erases = all.add("store.erases");
  SharedCounter expiries = all.add("store.expiries");
  SharedCounter holds = all.add("store.holds");    // of chains, by transactions
  SharedCounter others = all.add("store.others");  // the store's own
  SharedCounter in_flight = all.add_level("store.in_flight");
  SharedCounter cache_slots = all.add_level("store.cache_slots");
  SharedCounter cache_hits = all.add("store.cache_hits");
  SharedCounter cache_misses = all.add("store.cache_misses");
  SharedCounter cache_stale = all.add("store.cache_stale");
  SharedCounter bucket_reads = all.add("store.bucket_reads");
  SharedCounter entry_reads = all.add("store.entry_reads");
  SharedCounter read_again = all.add("store.read_again");  // entries that were being written
  SharedCounter lock_waits = all.add("store.lock_waits");
  SharedCounter marks = all.add("store.marks");  // uses of entries that the home was told of
  SharedCounter waits_for_room = all.add("store.waits_for_room");
  SharedCounter expired = all.add("store.expired");  // keys that this member has erased for that
  SharedCounter splits = all.add_event("store.splits");
  SharedCounter repaired_locks = all.add_event("store.repaired_locks");
  SharedCounter repaired_entries = all.add_event("store.repaired_entries");
  SharedCounter keys_moved = all.add_event("store.keys_moved");
  SharedCounter copies_restored = all.add_event("store.copies_restored");
};

}  // namespace dunlin::store
