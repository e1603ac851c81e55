#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// The seeds of an audit.
namespace dunlin::test {

/// Draws seeds that no test has had before from the date (UTC) and the running test's name, and
/// prints them.
inline std::vector<std::uint64_t> seeds_of_today(std::uint64_t count) {
  using std::chrono::year_month_day;
  const year_month_day date(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  std::ostringstream from;
  from << static_cast<int>(date.year()) << '-' << static_cast<unsigned>(date.month()) << '-'
       << static_cast<unsigned>(date.day());
  std::ostringstream said;
  said << "seeds of " << from.str() << ':';
  if (const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info())
    from << ' ' << test->test_suite_name() << '.' << test->name();
  const std::string text = from.str();
  std::seed_seq sequence(text.begin(), text.end());
  std::mt19937_64 random(sequence);
  std::vector<std::uint64_t> seeds;
  for (; count > 0; --count) {
    seeds.push_back(1 + random() % (UINT64_MAX - 1));
    said << ' ' << seeds.back();
  }
  if (!seeds.empty()) std::cout << said.str() << std::endl;
  return seeds;
}

/// The seeds of a test: from 1 on, and a few of today; or those of DUNLIN_SEEDS="FIRST LAST".
struct Seeds {
  explicit Seeds(std::uint64_t as_usual)
      : last(as_usual - std::min(kMostOfToday, as_usual / 8)), today(as_usual - last) {
    const char* const wanted = std::getenv("DUNLIN_SEEDS");
    if (wanted == nullptr) return;
    are_usual = false;
    today = 0;
    if (!(std::istringstream(wanted) >> first >> last) || first == 0 || last < first)
      throw std::invalid_argument("DUNLIN_SEEDS is 'FIRST LAST', as '1 50000', and not '" +
                                  std::string(wanted) + "'");
  }
  static constexpr std::uint64_t kMostOfToday = 24;
  std::uint64_t first = 1;
  std::uint64_t last;
  std::uint64_t today;  // how many of today's
  bool are_usual = true;
};

/// One after the other, up to the first that fails.
template <class Audit>
void for_each_seed(const Seeds& seeds, const Audit& audit) {
  const auto passes = [&](std::uint64_t seed) {
    SCOPED_TRACE(testing::Message() << "replay with DUNLIN_SEEDS='" << seed << " " << seed << "'");
    audit(seed);
    return !testing::Test::HasFailure();
  };
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed)
    if (!passes(seed)) return;
  for (const std::uint64_t seed : seeds_of_today(seeds.today))
    if (!passes(seed)) return;
}

}  // namespace dunlin::test
