#include <algorithm>
#include <array>
#include <vector>

#include "bench/store/experiments.hpp"
#include "bench/store/get_batches.hpp"
#include "bench/store/gets.hpp"

namespace dunlin::bench {
namespace {

constexpr std::array<std::size_t, 6> kValueBytes{16, 64, 256, 1024, 4096, 8192};
constexpr std::uint32_t kMostPairs = 100'000;
constexpr std::size_t kMostBytes = std::size_t{128} << 20;  // of all entries
constexpr std::size_t kCacheBytes = std::size_t{8} << 20;
constexpr double kLeastRatio = 0.95;

Result gets_of(const Effort& effort, std::size_t value_bytes) {
  const std::size_t fitting = kMostBytes / bytes_of_entry(value_bytes);
  const std::uint32_t pairs =
      effort.scaled(static_cast<std::uint32_t>(std::min<std::size_t>(fitting, kMostPairs)));
  Result result{.name = "sizes",
                .params = {{"value bytes", double(value_bytes)},
                           {"pairs", double(pairs)},
                           {"at once", double(GetBatches::kAtOnce)}},
                .unit = "1/s",
                .better = Better::higher,
                .goal = Goal{.on = Goal::On::ratio, .bound = kLeastRatio}};
  measure_gets(result, real_network("shm"), effort,
               {.pairs = pairs, .value_bytes = value_bytes, .cache_bytes = kCacheBytes});
  return result;
}

}  // namespace

Experiment store_sizes() {
  return {.name = "sizes",
          .title = "Gets by the size of the value, 32 at once, uniform, with all locations cached",
          .fabric = "shm",
          .x = "value bytes",
          .run = [](const Effort& effort) {
            std::vector<Result> results;
            for (const std::size_t bytes : kValueBytes) results.push_back(gets_of(effort, bytes));
            return results;
          }};
}

}  // namespace dunlin::bench
