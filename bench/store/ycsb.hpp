#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string_view>

#include "bench/store/keys.hpp"

/// The core workloads of YCSB (Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC
/// 2010), but for E, which scans in the order of keys: the store has no such order.
namespace dunlin::bench {

struct YcsbWorkload {
  std::string_view name;
  std::string_view text;
  double reads, updates, inserts, read_modify_writes;  // shares; their sum is 1
  bool latest = false;                                 // reads favour what was inserted last
};

inline constexpr std::array kYcsbWorkloads{
    YcsbWorkload{"A", "half reads, half updates", 0.5, 0.5, 0, 0},
    YcsbWorkload{"B", "95 % reads, 5 % updates", 0.95, 0.05, 0, 0},
    YcsbWorkload{"C", "reads", 1, 0, 0, 0},
    YcsbWorkload{"D", "95 % reads of the latest, 5 % inserts", 0.95, 0, 0.05, 0, true},
    YcsbWorkload{"F", "half reads, half read-modify-writes", 0.5, 0, 0, 0.5}};

/// As the standard has it: ten fields of 100 bytes, and Zipf's constant.
inline constexpr std::size_t kYcsbValueBytes = 1000;
inline constexpr double kYcsbSkew = 0.99;

enum class YcsbKind : std::uint8_t { read, update, insert, read_modify_write };

struct YcsbCall {
  YcsbKind kind = YcsbKind::read;
  std::uint64_t record = 0;  // its key is mixed(record)
};

/// The calls of a workload, one after the other.
class YcsbCalls {
 public:
  YcsbCalls(const YcsbWorkload& workload, std::uint32_t records, std::uint64_t seed,
            double skew = kYcsbSkew)
      : workload_(workload), records_(records), random_(seed), numbers_(records, skew, seed) {}

  YcsbCall next() {
    double share = std::uniform_real_distribution<double>(0, 1)(random_);
    if ((share -= workload_.inserts) < 0) return {YcsbKind::insert, records_++};
    const YcsbKind kind = (share -= workload_.updates) < 0             ? YcsbKind::update
                          : (share - workload_.read_modify_writes) < 0 ? YcsbKind::read_modify_write
                                                                       : YcsbKind::read;
    if (!workload_.latest) return {kind, numbers_.next()};
    return {kind, records_ - 1 - numbers_.next_rank()};
  }

 private:
  const YcsbWorkload& workload_;
  std::uint64_t records_;  // that there are
  std::mt19937_64 random_;
  SkewedNumbers numbers_;
};

}  // namespace dunlin::bench
