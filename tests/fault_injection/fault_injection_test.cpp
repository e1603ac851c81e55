#include <algorithm>
#include <iterator>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include "fault_injection/catalogue.hpp"
#include "sim/scenario.hpp"

/// An auditor that finds nothing proves nothing: it must find each of these.
namespace dunlin::fault_injection {

void PrintTo(const Entry& entry, std::ostream* out) { *out << entry.rule; }

namespace {

class AtWork {
 public:
  explicit AtWork(FaultInjection fault) { active_fault = fault; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() { active_fault = FaultInjection::none; }
};

std::string fault_of(std::uint64_t seed, FaultInjection fault) {
  const AtWork at_work(fault);
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

struct Faults : testing::TestWithParam<Entry> {};
INSTANTIATE_TEST_SUITE_P(Auditor, Faults, testing::ValuesIn(in_scenarios()), name_of);

TEST_P(Faults, AreFound) {
  const Entry& entry = GetParam();
  const std::uint64_t end = entry.first_seed + entry.seeds;
  std::uint64_t seed = entry.first_seed;
  std::string fault;
  while (seed < end && (fault = fault_of(seed, entry.fault)).empty()) ++seed;
  ASSERT_NE(fault, "") << "not in " << entry.seeds << " seeds";
  RecordProperty("seed", std::to_string(seed));
  RecordProperty("fault", fault);
  const auto in_fault = [&](const std::string& sign) {
    return fault.find(sign) != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(entry.signs, in_fault)) << "seed " << seed << ": " << fault;
  EXPECT_EQ(fault_of(seed, FaultInjection::none), "") << "seed " << seed;
}

}  // namespace
}  // namespace dunlin::fault_injection
