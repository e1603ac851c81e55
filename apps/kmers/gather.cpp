#include "kmers/gather.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dunlin::kmers {
namespace {

constexpr std::uint64_t kRangeKmers = 1U << 19;  // in one range, of all members together
constexpr std::size_t kBlockKmers = 4096;        // that are read or written at once

/// The first k-mer of range `i` of `ranges`, of about equally many k-mers each: of k-mers and their
/// reverse complements the lesser ones are counted, so the lower ones are more.
Kmer begin_of(std::uint64_t i, std::uint64_t ranges, std::uint32_t k) {
  if (i == ranges) return Kmer{1} << (2 * k);
  const double share = 1 - std::sqrt(1 - static_cast<double>(i) / static_cast<double>(ranges));
  return static_cast<Kmer>(share * static_cast<double>(Kmer{1} << (2 * k)));
}

[[noreturn]] void fail(const std::string& path) { throw Error("'" + path + "' cannot be written"); }

}  // namespace

Gathering::Gathering(Containers& containers, const CountOptions& options, PartTimes& times,
                     std::function<void()> meet)
    : containers_(containers),
      options_(options),
      times_(times),
      meet_(std::move(meet)),
      parts_(containers.fabric().size()),
      batches_(containers, {.name = "gathered", .elements = 1024},
               Aggregator<FoundKmer>::BatchHandler(
                   [this](Rank from, std::span<const FoundKmer> some) -> container::Handled {
                     parts_[from].insert(parts_[from].end(), some.begin(), some.end());
                     return {.taken = some.size()};
                   })) {}

void Gathering::run(KmerCounter& counter, Spill& singles, std::uint64_t all_kmers,
                    const std::function<void()>& at_first_range) {
  const bool writes = containers_.fabric().rank() == 0;
  const File file(writes ? std::fopen(options_.counts_file.c_str(), "wbe") : nullptr);
  if (writes && file == nullptr) fail(options_.counts_file);
  const std::uint64_t ranges = all_kmers / kRangeKmers + 1;
  for (std::uint64_t i = 0; i < ranges; ++i) {
    {
      const InPart in(times_, Part::sorting);
      collect(counter, singles, begin_of(i, ranges, options_.k),
              begin_of(i + 1, ranges, options_.k));
    }
    {
      const InPart in(times_, Part::moving);
      if (batches_.add_many(0, own_) != remote::Status::ok ||
          batches_.flush() != remote::Status::ok)
        throw Error("member 0 is lost");
    }
    meet_();
    if (i == 0) at_first_range();
    if (writes) write_range(*file);
    meet_();  // no member sends k-mers of the next range before
  }
  if (writes && std::fflush(file.get()) != 0) fail(options_.counts_file);
}

void Gathering::collect(KmerCounter& counter, Spill& singles, Kmer from, Kmer end) {
  const std::uint32_t least = options_.filter ? 2 : 1;
  own_.clear();
  counter.map().for_each_local([&](Kmer kmer, std::uint32_t count) {
    if (kmer >= from && kmer < end && count >= least) own_.push_back({kmer, count});
  });
  if (counter.singles() > 0) {
    std::vector<Kmer> block(kBlockKmers);
    singles.rewind();
    for (std::size_t left = counter.singles(); left > 0;) {
      const std::size_t some = std::min(left, block.size());
      if (singles.read(block.data(), some * sizeof(Kmer)) != some * sizeof(Kmer))
        throw Error("what occurs once cannot be read again");
      for (const Kmer kmer : std::span(block).first(some))
        if (kmer >= from && kmer < end) own_.push_back({kmer, 1});
      left -= some;
    }
  }
  std::ranges::sort(own_, {}, &FoundKmer::kmer);
}

/// Each member's k-mers have come in order (CON-B1).
void Gathering::write_range(std::FILE& file) {
  const InPart in(times_, Part::sorting);
  std::vector<std::span<const FoundKmer>> left;
  for (const auto& part : parts_)
    if (!part.empty()) left.emplace_back(part);
  std::vector<FoundKmer> block;
  const auto flush = [&] {
    if (std::fwrite(block.data(), sizeof(FoundKmer), block.size(), &file) != block.size())
      fail(options_.counts_file);
    block.clear();
  };
  while (!left.empty()) {
    const auto least = std::ranges::min_element(left, {}, [](auto part) { return part[0].kmer; });
    block.push_back(least->front());
    *least = least->subspan(1);
    if (least->empty()) left.erase(least);
    if (block.size() == kBlockKmers) flush();
  }
  flush();
  for (auto& part : parts_) part.clear();
}

}  // namespace dunlin::kmers
