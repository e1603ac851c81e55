#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/store/store_pair.hpp"
#include "store/format.hpp"

namespace dunlin::bench {

/// The operations of a put in place, on memory of member 1 that is nobody's: lock; bucket; entry;
/// then redo record, entry and unlocking, which land in this order.
class BarePut {
 public:
  /// Of memory, for each number: the bucket's place, the entry's, and the redo record's.
  [[nodiscard]] static constexpr std::uint64_t bytes_for(std::size_t entry_bytes) {
    return 3 * place_for(entry_bytes);
  }

  BarePut(StorePair& pair, std::size_t entry_bytes)
      : pair_(pair),
        entry_bytes_(entry_bytes),
        place_(place_for(entry_bytes)),
        memory_(4 * place_ / sizeof(std::uint64_t)) {}
  ~BarePut() { pair_.node().fabric().abandon(done_); }
  BarePut(const BarePut&) = delete;
  BarePut& operator=(const BarePut&) = delete;

  void operator()(std::uint64_t number) {
    const RegionId places = pair_.places();
    const std::uint64_t at = number * 3 * place_;
    std::uint64_t before = 0;
    finish(compare_swap(1, places, at, 0, 1, &before));
    finish(read(1, places, at, memory_.data(), sizeof(store::Bucket)));
    read_entry(number);
    const std::array batch{
        write(1, places, at + 2 * place_, bytes(2), sizeof(store::RedoHead) + entry_bytes_),
        write(1, places, at + place_, bytes(3), entry_bytes_),
        write(1, places, at, memory_.data() + memory_.size() - 1, sizeof(std::uint64_t))
            .notify(done_, Notify::remotely)};
    pair_.node().post(batch);
    wait();
  }
  /// All that a get with a cached location does.
  void read_entry(std::uint64_t number) {
    finish(read(1, pair_.places(), (3 * number + 1) * place_, bytes(1), entry_bytes_));
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t place_for(std::size_t entry_bytes) {
    return round_up(std::max(sizeof(store::MainHeader), sizeof(store::RedoHead) + entry_bytes),
                    kCacheLineBytes);
  }
  std::uint64_t* bytes(std::size_t place) {
    return &memory_[place * place_ / sizeof(std::uint64_t)];
  }
  void finish(Operation operation) {
    pair_.node().post(operation.notify(done_));
    wait();
  }
  void wait() {
    while (!done_.finished()) pair_.poll();
  }

  StorePair& pair_;
  std::size_t entry_bytes_;
  std::uint64_t place_;
  std::vector<std::uint64_t> memory_;  // its last word stays 0: the unlocking
  Completion done_;
};

}  // namespace dunlin::bench
