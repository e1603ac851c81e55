#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/container.hpp>

#include "kmers/count.hpp"

/// One process of a count.
namespace dunlin::kmers {

using CountMap = HashMap<Kmer, std::uint32_t>;

/// A KmerCounter brings k-mers to the members that hold them, in one style or the other.
class KmerCounter {
 public:
  KmerCounter(Containers& containers, const CountOptions& options, std::uint32_t slots);

  /// The action of a pass on each k-mer.
  enum class Pass : std::uint8_t {
    filter,  // the second time, it gets a place in the map
    count,   // counts a k-mer that has a place in the map
    all      // counts every k-mer
  };
  /// `style` is not automatic.
  void begin(Pass pass, Style style);
  void add(Kmer kmer);
  /// Returns when all that this member has added is counted. Then all members meet.
  void finish();
  [[nodiscard]] CountMap& map() noexcept { return map_; }

 private:
  static constexpr std::uint32_t kBatchElements = 1024;
  static constexpr std::size_t kAtOnce = 32;

  container::Handled take(Pass pass, std::span<const Kmer> kmers);
  [[nodiscard]] bool take_one(Pass pass, Kmer kmer, bool& refused);
  [[nodiscard]] container::MapApplied apply(container::MapCall call, Kmer kmer,
                                            std::uint32_t value);
  void run_one_sided();
  void demand_room(remote::Status status) const;

  std::uint32_t slots_;
  CountMap map_;
  std::optional<BloomFilter<Kmer>> filter_;
  std::vector<std::unique_ptr<Aggregator<Kmer>>> batches_;  // by pass
  Pass pass_ = Pass::all;
  Style style_ = Style::message;
  std::vector<CountMap::Operation> map_calls_;
  std::vector<remote::Call<container::MaybePresent>> filter_calls_;
  std::array<Kmer, kAtOnce> waiting_{};
  std::size_t waits_ = 0;
};

}  // namespace dunlin::kmers
