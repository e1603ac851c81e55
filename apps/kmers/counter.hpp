#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/container.hpp>

#include "kmers/chunk.hpp"
#include "kmers/count.hpp"
#include "kmers/gather.hpp"
#include "kmers/part_times.hpp"

/// One process of a count.
namespace dunlin::kmers {

using CountMap = HashMap<Kmer, std::uint32_t>;

/// How many k-mers a batch brings.
inline constexpr std::uint32_t kBatchKmers = 2048;

/// A KmerCounter brings k-mers to the members that hold them, in one style or the other, twice: it
/// marks those that occur again, and then counts them.
class KmerCounter {
 public:
  /// Of `letters` letters, all members together. `style` is not automatic. `found` gets the
  /// k-mers and counts.
  KmerCounter(Containers& containers, const CountOptions& options, double letters, Style style,
              PartTimes& times, Ranges& found);

  /// Marks or counts the chunk's k-mers.
  void add(const Chunk& chunk);
  /// Returns when all that this member has added is marked or counted. Then all members meet.
  void finish();

  /// What the marks of this member say about the k-mers of all.
  struct Marks {
    double different = 0;  // k-mers that this member saw first
    double again = 0;      // k-mers that this member saw to occur again
    double mistaken = 0;   // the share of k-mers that occur once that is taken for such
  };
  [[nodiscard]] Marks marks() const noexcept;
  /// From now on add() counts those k-mers that belong to this round, in a map of so many slots
  /// for each member. All members have met.
  void begin_round(std::uint32_t round, std::uint32_t slots);
  /// All members have met behind the round. Its k-mers are found, and there is no map any more.
  void end_round();

  [[nodiscard]] CountMap& map() noexcept { return *map_; }
  /// How many this member has added, in a pass through all reads.
  [[nodiscard]] std::uint64_t kmers() const noexcept { return kmers_; }

 private:
  using Batches = Aggregator<Kmer>;
  static constexpr std::size_t kAtOnce = 32;  // one-sided calls

  [[nodiscard]] std::unique_ptr<Batches> batches(
      const std::string& name, container::Handled (KmerCounter::*take)(std::span<const Kmer>));
  // Those of the own part that members have sent.
  container::Handled mark(std::span<const Kmer> kmers);
  container::Handled count(std::span<const Kmer> kmers);
  // By calls on others' memory, at most kAtOnce.
  void mark_one_sided(std::span<const Kmer> kmers);
  void count_one_sided(std::span<const Kmer> kmers);
  void add_single(Kmer kmer);
  [[nodiscard]] bool is_in_round(Kmer kmer) const noexcept;
  void demand_ok(remote::Status status) const;
  /// Throws Error if no add may have ended with that status, or with that sum.
  void demand_counted(remote::Status status, std::uint32_t sum) const;

  Containers& containers_;
  const CountOptions& options_;
  const Style style_;
  PartTimes& times_;
  Ranges& found_;
  std::optional<BloomFilter<Kmer>> once_, again_;  // what occurs, and what does so again
  std::unique_ptr<Batches> batches_;               // with style message
  std::optional<CountMap> map_;
  std::uint32_t round_ = 0;
  std::uint32_t slots_ = 0;
  std::vector<std::vector<Kmer>> by_home_;  // those of a chunk
  std::vector<std::size_t> sizes_;          // how many each home has of them
  std::vector<Kmer> counted_;               // those of a batch that are counted
  std::uint64_t different_ = 0, marked_ = 0, kmers_ = 0;
};

}  // namespace dunlin::kmers
