#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/clock.hpp"
#include "bench/store/store_pair.hpp"
#include "bench/store/ycsb.hpp"

/// Stores that hold the records of YCSB and make its calls: ours, and those of other people.
namespace dunlin::bench {

/// Makes calls that are under way together.
using MakeCalls = std::function<void(std::span<const YcsbCall> calls)>;

/// Ours: member 0 of two makes the calls. All members of the team make one.
class OurRecords {
 public:
  /// Room for so many records that calls insert.
  static constexpr std::uint32_t kMostInserts = 30'000;

  OurRecords(Member& me, const Group& group, std::uint32_t records);

  [[nodiscard]] StorePair& pair() noexcept { return pair_; }
  /// Each call is one of the store's.
  void make_each(std::span<const YcsbCall> calls);
  /// The calls are one StoreBatch.
  void make_batch(std::span<const YcsbCall> calls);

 private:
  StorePair pair_;
  StoreBatch batch_;
  std::vector<std::byte> value_;
  StoreUpdater change_;
};

/// A store of other people, in this process or beside it.
struct Peer {
  std::string name;
  std::string missing;  // what to do to make it available; empty if it is
  MakeCalls make = {};  // null: it is not available
};

/// All of them, each with all records.
[[nodiscard]] std::vector<Peer> load_peers(std::uint32_t records);

/// Calls a second of one client that makes so many calls together.
[[nodiscard]] double calls_per_second(const MakeCalls& make, YcsbCalls& calls, const Batches& plan,
                                      std::size_t at_once);

}  // namespace dunlin::bench
