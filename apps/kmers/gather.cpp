#include "kmers/gather.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dunlin::kmers {
namespace {

constexpr std::size_t kRanges = 16;        // one has fewer k-mers than the map of a round had
constexpr std::size_t kBlockKmers = 4096;  // that are written at once

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

Ranges::Ranges(const std::string& folder, std::uint32_t k)
    : all_(static_cast<double>(Kmer{1} << (2 * k))) {
  for (std::size_t i = 0; i < kRanges; ++i) files_.emplace_back(folder);
}

/// Ranges have about equally many k-mers: of a k-mer and its reverse complement the lesser one is
/// counted, so the lower ones are more.
void Ranges::add(FoundKmer found) {
  const double above = 1 - static_cast<double>(found.kmer) / all_;
  const auto range = static_cast<std::size_t>((1 - above * above) * kRanges);
  files_[std::min(range, kRanges - 1)].write(&found, sizeof found);
}

void Ranges::take(std::size_t range, std::vector<FoundKmer>& found) {
  Spill& file = files_[range];
  found.resize(file.bytes() / sizeof(FoundKmer));
  file.rewind();
  if (file.read(found.data(), file.bytes()) != file.bytes())
    throw Error("counts cannot be read again");
  std::ranges::sort(found, {}, &FoundKmer::kmer);
}

void Gathering::run(Ranges& ranges, const std::function<void()>& at_first_range) {
  const bool writes = containers_.fabric().rank() == 0;
  const File file(writes ? std::fopen(options_.counts_file.c_str(), "wbe") : nullptr);
  if (writes && file == nullptr) fail(options_.counts_file);
  std::vector<FoundKmer> own;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    {
      const InPart in(times_, Part::sorting);
      ranges.take(i, own);
    }
    {
      const InPart in(times_, Part::moving);
      if (batches_.add_many(0, own) != remote::Status::ok || batches_.flush() != remote::Status::ok)
        throw Error("member 0 is lost");
    }
    meet_();
    if (i == 0) at_first_range();
    if (writes) write_range(*file);
    meet_();  // no member sends k-mers of the next range before
  }
  if (writes && std::fflush(file.get()) != 0) fail(options_.counts_file);
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
