#include "bench/store/ycsb.hpp"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace dunlin::bench {
namespace {

constexpr std::uint32_t kRecords = 1000;
constexpr int kCalls = 20'000;

TEST(Ycsb, DrawsEachKindOfCallAsOftenAsTheWorkloadSays) {
  for (const YcsbWorkload& workload : kYcsbWorkloads) {
    YcsbCalls calls(workload, kRecords, 7);
    std::array<int, 4> drawn{};
    for (int i = 0; i < kCalls; ++i) ++drawn.at(static_cast<std::size_t>(calls.next().kind));
    const std::array shares{workload.reads, workload.updates, workload.inserts,
                            workload.read_modify_writes};
    for (std::size_t kind = 0; kind < shares.size(); ++kind)
      EXPECT_NEAR(drawn.at(kind), shares.at(kind) * kCalls, 0.02 * kCalls) << workload.name;
  }
}

TEST(Ycsb, AsksOnlyForRecordsThatAreThereAndMostOftenForTheLatest) {
  const YcsbWorkload& latest = kYcsbWorkloads.at(3);
  ASSERT_TRUE(latest.latest);
  YcsbCalls calls(latest, kRecords, 7);
  std::uint64_t records = kRecords;
  int reads = 0, of_the_latest = 0;
  for (int i = 0; i < kCalls; ++i) {
    const YcsbCall call = calls.next();
    if (call.kind == YcsbKind::insert) {
      EXPECT_EQ(call.record, records++);
      continue;
    }
    ASSERT_LT(call.record, records);
    ++reads;
    of_the_latest += call.record + 10 >= records ? 1 : 0;
  }
  EXPECT_GT(of_the_latest, reads / 4);
}

}  // namespace
}  // namespace dunlin::bench
