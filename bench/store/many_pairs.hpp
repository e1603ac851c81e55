#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/harness/experiment.hpp"
#include "bench/harness/turns.hpp"
#include "bench/store/get_batches.hpp"
#include "bench/store/home_and_clients.hpp"

/// The published setting of DrTM-KV on shm, with pairs of 64 B in place of some 2 KB: 20 million at
/// one home, and clients that get them. It takes some 7 GB, so the figures of it are measured only
/// if they are named.
namespace dunlin::bench {

inline constexpr std::size_t kManyValueBytes = 64;
inline constexpr double kManySkew = 0.99;

/// All of something, or a thousandth of it.
[[nodiscard]] constexpr std::size_t of_many(const Effort& effort, std::size_t full) noexcept {
  return effort.quick ? full / 1000 : full;
}
[[nodiscard]] constexpr std::uint32_t many_pairs(const Effort& effort) noexcept {
  return static_cast<std::uint32_t>(of_many(effort, 20'000'000));
}

/// Draws the number of a pair.
using NextNumber = std::function<std::uint32_t()>;
[[nodiscard]] NextNumber uniform_numbers(std::uint32_t count, std::uint64_t seed);
/// For whole batches that make `count` calls at least.
void draw(std::vector<std::uint32_t>& numbers, std::size_t count, const NextNumber& next);

/// Of one client, or of all together.
struct GetRates {
  double bare = 0, gets = 0;  // a second
  double bucket_reads = 0;    // of a get, besides the entry's
};
/// A series for each.
inline constexpr std::uint32_t kRatesSeries = 3;
void record(Member& me, std::uint32_t series, const GetRates& rates);
/// Two results, of gets beside bare reads, and of reads of buckets.
void add_results(std::vector<Result>& results, const Params& params, const Team& team,
                 std::uint32_t series);

/// A process for the home, and one for each client.
class ManyPairs {
 public:
  static constexpr Rank kFirstClient = HomeAndClients::kHome + 1;
  /// It takes minutes.
  [[nodiscard]] static TeamOptions team(const Group& group, const Effort& effort);

  /// With an empty location cache of so many MB. All members of the team make one.
  ManyPairs(Member& me, const Group& group, const Effort& effort, std::size_t cache_mb);

  [[nodiscard]] bool is_client() const noexcept { return me_.rank() != HomeAndClients::kHome; }
  /// One client measures, and all others sleep.
  template <class Measure>
  void alone(Rank client, Measure&& measure) {
    me_.meet();
    if (me_.rank() == client) measure();
    me_.meet();
  }
  /// So many bare reads and so many gets, in the order that the round's number says.
  [[nodiscard]] GetRates measure(const NextNumber& next, std::size_t reads, std::size_t gets,
                                 std::uint32_t round);
  /// Of all clients at the same time. All members call it.
  [[nodiscard]] GetRates measure_together(const NextNumber& next, std::size_t of_each,
                                          std::uint32_t round);

 private:
  using Batch = void (ManyPairs::*)();
  // Drawing takes longer than reading, and is not measured.
  void read_drawn();
  void get_drawn();
  [[nodiscard]] double rate(const NextNumber& next, std::size_t count, Batch drawn);
  [[nodiscard]] double rate_together(const NextNumber& next, std::size_t of_each, Batch drawn);

  Member& me_;
  HomeAndClients members_;
  GetBatches batches_;
  std::vector<std::uint32_t> drawn_;
};

}  // namespace dunlin::bench
