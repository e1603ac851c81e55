#include <algorithm>
#include <iterator>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include "flaws/catalogue.hpp"
#include "sim/scenario.hpp"

/// An auditor that finds nothing proves nothing: it must find each of these.
namespace dunlin::flaws {

void PrintTo(const Entry& entry, std::ostream* out) { *out << entry.rule; }

namespace {

class AtWork {
 public:
  explicit AtWork(Flaw flaw) { flaw_at_work = flaw; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() { flaw_at_work = Flaw::none; }
};

std::string fault_of(std::uint64_t seed, Flaw flaw) {
  const AtWork at_work(flaw);
  return app::sim::run_multicast(seed).fault;
}

/// Those that show in the simulator.
std::vector<Entry> in_scenarios() {
  std::vector<Entry> entries;
  std::ranges::copy_if(catalogue(), std::back_inserter(entries),
                       [](const Entry& entry) { return entry.seeds > 0; });
  return entries;
}

std::string name_of(const testing::TestParamInfo<Entry>& info) { return info.param.name; }

struct Flaws : testing::TestWithParam<Entry> {};
INSTANTIATE_TEST_SUITE_P(Auditor, Flaws, testing::ValuesIn(in_scenarios()), name_of);

TEST_P(Flaws, AreFound) {
  const Entry& entry = GetParam();
  const std::uint64_t end = entry.first_seed + entry.seeds;
  std::uint64_t seed = entry.first_seed;
  std::string fault;
  while (seed < end && (fault = fault_of(seed, entry.flaw)).empty()) ++seed;
  ASSERT_NE(fault, "") << "not in " << entry.seeds << " seeds";
  RecordProperty("seed", std::to_string(seed));
  RecordProperty("fault", fault);
  const auto in_fault = [&](const std::string& sign) {
    return fault.find(sign) != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(entry.signs, in_fault)) << "seed " << seed << ": " << fault;
  EXPECT_EQ(fault_of(seed, Flaw::none), "") << "seed " << seed;
}

}  // namespace
}  // namespace dunlin::flaws
