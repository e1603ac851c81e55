#include "kmers/counter.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace dunlin::kmers {

using container::Handled;
using container::MapApplied;
using container::MapCall;
using container::MaybePresent;
using remote::Status;

namespace {

// A filter mistakes few k-mers even if each letter of the reads begins another one.
constexpr double kOnceBitsPerLetter = 4, kAgainBitsPerLetter = 2;

/// Batches under way to all members together: while one has no processor, others go on.
constexpr std::uint32_t kMostBatches = 64;

/// How many k-mers' cache misses pass at once.
constexpr std::size_t kAhead = 24;

std::uint32_t words_for(double letters, double bits, std::uint32_t members) {
  constexpr double kMostWords = 1U << 31;
  return static_cast<std::uint32_t>(std::min(letters * bits / 64 / members, kMostWords)) + 16;
}

/// Calls `use` with each k-mer, some time after `prefetch`.
template <class Prefetch, class Use>
void with_prefetch(std::span<const Kmer> kmers, const Prefetch& prefetch, const Use& use) {
  for (const Kmer kmer : kmers.first(std::min(kAhead, kmers.size()))) prefetch(kmer);
  for (std::size_t i = 0; i < kmers.size(); ++i) {
    if (i + kAhead < kmers.size()) prefetch(kmers[i + kAhead]);
    use(kmers[i]);
  }
}

}  // namespace

KmerCounter::KmerCounter(Containers& containers, const CountOptions& options, double letters,
                         Style style, PartTimes& times, Ranges& found)
    : containers_(containers),
      options_(options),
      style_(style),
      times_(times),
      found_(found),
      by_home_(style == Style::message ? containers.fabric().size() : 1),
      sizes_(by_home_.size()) {
  const std::uint32_t members = containers.fabric().size();
  once_.emplace(containers,
                BloomFilterOptions{.name = "kmers",
                                   .words = words_for(letters, kOnceBitsPerLetter, members)});
  again_.emplace(containers,
                 BloomFilterOptions{.name = "kmers that occur again",
                                    .words = words_for(letters, kAgainBitsPerLetter, members)});
  for (std::vector<Kmer>& home : by_home_) home.resize(kChunkKmers);
  if (style == Style::message) batches_ = batches("marked kmers", &KmerCounter::mark);
}

std::unique_ptr<KmerCounter::Batches> KmerCounter::batches(
    const std::string& name, Handled (KmerCounter::*take)(std::span<const Kmer>)) {
  return std::make_unique<Batches>(
      containers_,
      AggregatorOptions{.name = name,
                        .elements = kBatchKmers,
                        .batches = std::max(4U, kMostBatches / containers_.fabric().size())},
      Batches::BatchHandler([this, take](Rank, std::span<const Kmer> kmers) {
        const InPart in(times_, Part::memory);
        return (this->*take)(kmers);
      }));
}

/// A batch of a round waits at a member that has no map for it yet.
void KmerCounter::begin_round(std::uint32_t round, std::uint32_t slots) {
  once_.reset();
  round_ = round;
  slots_ = slots;
  const std::string name = fmt::format("kmers of round {}", round);
  const bool coherent = containers_.fabric().properties().atomics_coherent_with_cpu;
  map_.emplace(containers_, MapOptions{.name = name,
                                       .slots = slots,
                                       .style = coherent ? Style::automatic : Style::message,
                                       .packed = true});
  if (style_ != Style::message) return;
  counted_.resize(kBatchKmers);
  batches_ = batches(name, &KmerCounter::count);
}

void KmerCounter::end_round() {
  const InPart in(times_, Part::sorting);
  const std::uint32_t least = options_.filter ? 2 : 1;
  map_->for_each_local([&](Kmer kmer, std::uint32_t count) {
    if (count >= least) found_.add({kmer, count});
  });
  map_.reset();
}

/// Any hash does that has nothing in common with the place of a k-mer in the map.
bool KmerCounter::is_in_round(Kmer kmer) const noexcept {
  return (kmer * 0x9e3779b97f4a7c15U >> 32) * options_.rounds >> 32 == round_;
}

KmerCounter::Marks KmerCounter::marks() const noexcept {
  const double mistaken_once = std::min(once_->mistaken_share(), 0.9);
  return {.different = static_cast<double>(different_) / (1 - mistaken_once),
          .again = static_cast<double>(marked_),
          .mistaken = again_->mistaken_share()};
}

void KmerCounter::demand_ok(Status status) const {
  if (status == Status::full)
    throw Error(
        fmt::format("the map is full: give each member more than {} slots (--slots)", slots_));
  if (status != Status::ok)
    throw Error("a k-mer cannot be counted: " + remote::describe(status, "map"));
}

/// The sum of the one add that is too many is 0.
void KmerCounter::demand_counted(Status status, std::uint32_t sum) const {
  demand_ok(status);
  if (sum == 0)
    throw Error(
        fmt::format("a k-mer occurs more than {} times, the most that are counted", UINT32_MAX));
}

void KmerCounter::add(const Chunk& chunk) {
  {
    const InPart in(times_, Part::hashing);
    std::ranges::fill(sizes_, 0);
    const bool all = !map_ || options_.rounds == 1;
    for_each_kmer(chunk, options_.k, [&](Kmer kmer) {
      if (!all && !is_in_round(kmer)) return;
      const Rank home = sizes_.size() == 1 ? 0 : again_->home_of(kmer);
      by_home_[home][sizes_[home]++] = kmer;
    });
  }
  for (std::size_t home = 0; home < sizes_.size(); ++home) {
    const auto kmers = std::span<const Kmer>(by_home_[home]).first(sizes_[home]);
    if (!map_) kmers_ += kmers.size();
    if (style_ == Style::message) {
      const InPart in(times_, Part::moving);
      demand_ok(batches_->add_many(static_cast<Rank>(home), kmers));
      continue;
    }
    const InPart in(times_, Part::memory);
    for (std::size_t i = 0; i < kmers.size(); i += kAtOnce) {
      const auto some = kmers.subspan(i, std::min(kAtOnce, kmers.size() - i));
      map_ ? count_one_sided(some) : mark_one_sided(some);
    }
  }
}

void KmerCounter::finish() {
  if (style_ != Style::message) return;
  const InPart in(times_, Part::moving);
  demand_ok(batches_->flush());
}

void KmerCounter::add_single(Kmer kmer) {
  if (!options_.filter) found_.add({kmer, 1});
}

// --- one-sided -----------------------------------------------------------------------------------

void KmerCounter::mark_one_sided(std::span<const Kmer> kmers) {
  std::array<remote::Call<MaybePresent>, kAtOnce> calls;
  std::array<Kmer, kAtOnce> seen{};
  const auto insert_into = [&](BloomFilter<Kmer>& filter, std::span<const Kmer> some) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < some.size(); ++i) calls[i] = filter.insert(some[i]);
    for (std::size_t i = 0; i < some.size(); ++i) {
      demand_ok(calls[i].wait());
      if (calls[i].result().found()) seen[found++] = some[i];
    }
    return found;
  };
  const std::size_t seen_before = insert_into(*once_, kmers);
  different_ += kmers.size() - seen_before;
  marked_ += seen_before - insert_into(*again_, std::span(seen).first(seen_before));
}

void KmerCounter::count_one_sided(std::span<const Kmer> kmers) {
  std::array<remote::Call<MaybePresent>, kAtOnce> marks;
  std::array<CountMap::Operation, kAtOnce> adds;
  std::size_t many = 0;
  for (std::size_t i = 0; i < kmers.size(); ++i) marks[i] = again_->contains(kmers[i]);
  for (std::size_t i = 0; i < kmers.size(); ++i) {
    demand_ok(marks[i].wait());
    if (marks[i].result().found())
      adds[many++] = map_->add(kmers[i], 1, Promise::both, Style::one_sided);
    else
      add_single(kmers[i]);
  }
  for (std::size_t i = 0; i < many; ++i) {
    const Status status = adds[i].wait();
    demand_counted(status, adds[i].result().value());
  }
}

// --- by messages: batches, which the member that holds the k-mers works off ----------------------

Handled KmerCounter::mark(std::span<const Kmer> kmers) {
  with_prefetch(
      kmers,
      [&](Kmer kmer) {
        once_->prefetch_local(kmer);
        again_->prefetch_local(kmer);
      },
      [&](Kmer kmer) {
        if (!once_->insert_local(kmer))
          ++different_;
        else if (!again_->insert_local(kmer))
          ++marked_;
      });
  return {.taken = kmers.size()};
}

/// Nothing but batches is used on the map in this style, so no call is in another one's way. The
/// first k-mer for which a map has no slot ends the run: each would be looked for in all slots.
Handled KmerCounter::count(std::span<const Kmer> kmers) {
  std::size_t many = 0;
  with_prefetch(
      kmers, [&](Kmer kmer) { again_->prefetch_local(kmer); },
      [&](Kmer kmer) {
        if (again_->contains_local(kmer))
          counted_[many++] = kmer;
        else
          add_single(kmer);
      });
  with_prefetch(
      std::span<const Kmer>(counted_).first(many), [&](Kmer kmer) { map_->core().prefetch(&kmer); },
      [&](Kmer kmer) {
        struct {
          Kmer key;
          std::uint32_t value;
        } payload{kmer, 1};
        MapApplied applied = MapApplied::again();
        while (applied.is_again())  // as when the part has opened a window of its key
          applied = map_->core().apply(MapCall::add, Promise::local,
                                       reinterpret_cast<std::byte*>(&payload));
        demand_counted(applied.status(), payload.value);
      });
  return {.taken = kmers.size()};
}

}  // namespace dunlin::kmers
