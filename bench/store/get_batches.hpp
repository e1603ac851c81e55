#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dunlin/store.hpp>

#include "bench/fabric/node.hpp"
#include "bench/store/store_pair.hpp"
#include "store/format.hpp"

/// Gets, and bare reads of as many bytes beside them, in the same process and as many at once.
namespace dunlin::bench {

/// Of an entry under a key of eight bytes: head, key and value, on whole lines.
[[nodiscard]] constexpr std::size_t bytes_of_entry(std::size_t value_bytes) {
  return round_up(store::entry_bytes(sizeof(std::uint64_t), value_bytes), kCacheLineBytes);
}

class GetBatches {
 public:
  static constexpr std::size_t kAtOnce = StorePair::kAtOnce;

  /// The bare reads are of entries' bytes, in a region at `home`.
  GetBatches(Node& node, Store& store, Rank home, RegionId places, std::size_t value_bytes)
      : node_(node),
        store_(store),
        home_(home),
        places_(places),
        entry_bytes_(bytes_of_entry(value_bytes)),
        memory_(kAtOnce * entry_bytes_ / sizeof(std::uint64_t)),
        together_(store) {}
  ~GetBatches() { node_.fabric().abandon(done_); }
  GetBatches(const GetBatches&) = delete;
  GetBatches& operator=(const GetBatches&) = delete;

  /// Reads each page of so many places, which later reads find mapped then.
  void touch_places(std::uint32_t places) {
    const auto step = static_cast<std::uint32_t>(std::max(kPageBytes / entry_bytes_, 1UL));
    std::uint32_t number = 0;
    while (number < places) make_reads([&] { return std::min(number += step, places) - 1; });
  }
  /// A batch of reads: of the place with the number that each call of `next_number` returns.
  void make_reads(const auto& next_number) {
    for (std::size_t i = 0; i < kAtOnce; ++i)
      batch_[i] = read(home_, places_, std::uint64_t{next_number()} * entry_bytes_,
                       &memory_[i * entry_bytes_ / sizeof(std::uint64_t)], entry_bytes_)
                      .notify(done_);
    node_.post(batch_);
    while (!done_.finished()) store_.poll();
  }
  /// A StoreBatch of gets.
  void make_gets(const auto& next_key) {
    together_.clear();
    keys_.clear();
    while (keys_.size() < kAtOnce) keys_.emplace_back(next_key());
    together_.get_many(keys_);
    while (!together_.finished()) store_.poll();
    StorePair::demand(together_.wait());
  }

 private:
  Node& node_;
  Store& store_;
  Rank home_;
  RegionId places_;
  std::size_t entry_bytes_;
  std::vector<std::uint64_t> memory_;
  Completion done_;
  std::array<Operation, kAtOnce> batch_;
  StoreBatch together_;
  std::vector<StoreKey> keys_;
};

}  // namespace dunlin::bench
