#include "bench/store/many_pairs.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include <dunlin/error.hpp>

namespace dunlin::bench {
namespace {

constexpr std::size_t kDrawnAtOnce = std::size_t{1} << 16;
constexpr std::array<std::byte, kManyValueBytes> kValue{};

[[nodiscard]] double sum_of_clients(Member& me, std::uint64_t mine) {
  const std::vector<double> all = HomeAndClients::of_clients(me, static_cast<double>(mine));
  return std::accumulate(all.begin(), all.end(), 0.0);
}

/// Its memory is taken bit by bit: the kernel would end some process when there is no more.
void demand_memory() {
  constexpr std::uint64_t kNeededKb = 8'000'000;
  std::ifstream lines("/proc/meminfo");
  for (std::string name; lines >> name;) {
    std::uint64_t kb = 0;
    if (name == "MemAvailable:" && lines >> kb && kb < kNeededKb)
      throw Error("bench: 20 million pairs need 8 GB of memory, and " + std::to_string(kb / 1'000) +
                  " MB are available");
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
}

}  // namespace

NextNumber uniform_numbers(std::uint32_t count, std::uint64_t seed) {
  return [random = std::mt19937_64(seed),
          below = std::uniform_int_distribution(0U, count - 1)]() mutable { return below(random); };
}

void draw(std::vector<std::uint32_t>& numbers, std::size_t count, const NextNumber& next) {
  numbers.resize(round_up(count, GetBatches::kAtOnce));
  for (std::uint32_t& number : numbers) number = next();  // std::generate would draw from a copy
}

void record(Member& me, std::uint32_t series, const GetRates& rates) {
  me.record(series, rates.bare);
  me.record(series + 1, rates.gets);
  me.record(series + 2, rates.bucket_reads);
}

void add_results(std::vector<Result>& results, const Params& params, const Team& team,
                 std::uint32_t series) {
  const auto add = [&](const char* figure, const char* unit) -> Result& {
    Result& result = results.emplace_back(Result{.params = params, .unit = unit});
    result.params.emplace_back("figure", figure);
    return result;
  };
  compare(add("gets", "1/s"), team.series(series + 1), "bare random reads of the same bytes",
          team.series(series));
  add("bucket reads of a get", "reads").value = summarize(team.series(series + 2));
}

TeamOptions ManyPairs::team(const Group& group, const Effort& effort) {
  TeamOptions options = group.team(group.members());
  if (effort.quick) return options;
  demand_memory();
  options.timeout *= 15;
  return options;
}

ManyPairs::ManyPairs(Member& me, const Group& group, const Effort& effort, std::size_t cache_mb)
    : me_(me),
      members_(me, group, many_pairs(effort), kValue, of_many(effort, cache_mb << 20),
               many_pairs(effort) * bytes_of_entry(kManyValueBytes)),
      batches_(members_.node(), members_.store(), HomeAndClients::kHome, members_.places(),
               kManyValueBytes) {
  if (is_client()) batches_.touch_places(many_pairs(effort));
  me.meet();
}

GetRates ManyPairs::measure(const NextNumber& next, std::size_t reads, std::size_t gets,
                            std::uint32_t round) {
  GetRates rates;
  for (const bool bare : {round % 2 == 0, round % 2 != 0}) {
    if (bare) {
      rates.bare = rate(next, reads, &ManyPairs::read_drawn);
      continue;
    }
    const auto before = members_.store().counters();
    rates.gets = rate(next, gets, &ManyPairs::get_drawn);
    const auto after = members_.store().counters();
    rates.bucket_reads = static_cast<double>(after.at("bucket_reads") - before.at("bucket_reads")) /
                         static_cast<double>(after.at("gets") - before.at("gets"));
  }
  return rates;
}

GetRates ManyPairs::measure_together(const NextNumber& next, std::size_t of_each,
                                     std::uint32_t round) {
  GetRates rates;
  const auto before = members_.store().counters();
  for (const bool bare : {round % 2 == 0, round % 2 != 0})
    (bare ? rates.bare : rates.gets) =
        rate_together(next, of_each, bare ? &ManyPairs::read_drawn : &ManyPairs::get_drawn);
  const auto after = members_.store().counters();
  rates.bucket_reads = sum_of_clients(me_, after.at("bucket_reads") - before.at("bucket_reads")) /
                       sum_of_clients(me_, after.at("gets") - before.at("gets"));
  return rates;
}

void ManyPairs::read_drawn() {
  auto number = drawn_.begin();
  while (number != drawn_.end()) batches_.make_reads([&] { return *number++; });
}

void ManyPairs::get_drawn() {
  auto number = drawn_.begin();
  while (number != drawn_.end()) batches_.make_gets([&] { return mixed(*number++); });
}

double ManyPairs::rate(const NextNumber& next, std::size_t count, Batch drawn) {
  double ns = 0, made = 0;
  while (made < static_cast<double>(count)) {
    draw(drawn_, std::min(count, kDrawnAtOnce), next);
    const double begin = now_ns();
    (this->*drawn)();
    ns += now_ns() - begin;
    made += static_cast<double>(drawn_.size());
  }
  return 1e9 * made / ns;
}

double ManyPairs::rate_together(const NextNumber& next, std::size_t of_each, Batch drawn) {
  if (is_client()) draw(drawn_, of_each, next);
  me_.meet();
  const double begin = now_ns();
  if (is_client()) (this->*drawn)();
  const double ns = HomeAndClients::ns_of_clients(me_, begin, now_ns());
  return 1e9 * sum_of_clients(me_, drawn_.size()) / ns;
}

}  // namespace dunlin::bench
