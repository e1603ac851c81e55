#include "top/sample.hpp"

#include <random>

#include <gtest/gtest.h>

#include "top/fake_group.hpp"
#include "top/json.hpp"
#include "top/table_reader.hpp"
#include "top/text.hpp"

namespace dunlin::top {
namespace {

constexpr std::uint64_t kNow = 100 * kSecondNs;

Sample sample_of(const std::vector<const FakeMember*>& members) {
  return take_sample(segments_of(members), kNow, asleep);
}
const Table& table_of(const Sample& sample) { return sample.groups.at(0).tables.at(0); }

TEST(TopSample, PutsMembersAndTablesTogether) {
  FakeMember a(0, 2);
  FakeMember b(1, 2);
  b.base().sleeping = 1;
  b.base().last_watch_ns = kNow - 5;
  b.base().failed_peers[0] = 1;
  const Sample sample = sample_of({&b, &a});
  ASSERT_EQ(sample.groups.size(), 1U);
  const Group& group = sample.groups[0];
  ASSERT_EQ(group.members.size(), 2U);
  EXPECT_EQ(group.members[1].name, "node1");
  EXPECT_EQ(group.members[1].process->state, 'S');
  EXPECT_TRUE(group.members[1].loop->asleep);
  EXPECT_EQ(group.members[1].loop->failed_peers, std::vector<Rank>{0});
  ASSERT_EQ(group.tables.size(), 1U);
  EXPECT_EQ(group.tables[0].layout, layout_of<FakeRow>());
  EXPECT_EQ(group.tables[0].ranks, (std::vector<Rank>{0, 1}));
  EXPECT_EQ(group.tables[0].nodes.size(), 2U);
  EXPECT_TRUE(sample.remarks.empty());
}

TEST(TopSample, ReadsEachRowFromItsOwnersMemory) {
  FakeMember a(0, 2);
  FakeMember b(1, 2);
  a.mine().step = 3;
  a.row(1).step = 4;  // behind what b has
  b.mine().step = 5;
  const Sample sample = sample_of({&a, &b});
  const auto& rows = table_of(sample).rows;
  EXPECT_EQ(std::get<std::int64_t>(rows.at(0).values.at(0).entries.at(0)), 3);
  EXPECT_EQ(std::get<std::int64_t>(rows.at(1).values.at(0).entries.at(0)), 5);
  EXPECT_EQ(rows.at(1).read_from, Rank{1});
}

TEST(TopSample, ReadsTheRowOfALostNodeFromASurvivor) {
  FakeMember a(0, 2);
  a.row(1).step = 4;
  a.set_state(1, RowState::failed);
  a.since_ns(1) = kNow - kSecondNs;
  const Sample sample = sample_of({&a});
  const Row& row = table_of(sample).rows.at(1);
  EXPECT_EQ(std::get<std::int64_t>(row.values.at(0).entries.at(0)), 4);
  EXPECT_EQ(row.read_from, Rank{0});
  ASSERT_EQ(row.seen.size(), 1U);
  EXPECT_EQ(row.seen[0].status.state, RowState::failed);
  EXPECT_EQ(row.seen[0].status.since_ns, kNow - kSecondNs);
}

TEST(TopSample, KnowsARowsAgeFromItsOwnersLastPush) {
  FakeMember a(0, 2);
  FakeMember b(1, 2);
  a.refreshed_ns(0) = kNow - 3 * kSecondNs;
  b.refreshed_ns(0) = kNow - 9 * kSecondNs;  // means nothing in this mode
  const Sample sample = sample_of({&a, &b});
  EXPECT_EQ(table_of(sample).rows.at(0).age_ns, 3 * kSecondNs);
  EXPECT_EQ(table_of(sample).rows.at(1).age_ns, std::nullopt) << "never pushed";
}

TEST(TopSample, KnowsAPulledRowsAgeFromItsSlowestReader) {
  std::vector<FakeMember> members;
  for (Rank rank = 0; rank < 4; ++rank) {
    members.emplace_back(rank, 4);
    members.back().pull_instead_of_push();
  }
  members[1].refreshed_ns(0) = kNow - kSecondNs;
  members[2].refreshed_ns(0) = kNow - 2 * kSecondNs;
  members[3].refreshed_ns(0) = kNow - 7 * kSecondNs;
  members[3].set_state(0, RowState::failed);  // reads no more
  const Sample sample = sample_of({&members[0], &members[1], &members[2], &members[3]});
  EXPECT_EQ(table_of(sample).rows.at(0).age_ns, 2 * kSecondNs);
}

TEST(TopSample, CountsEvaluationsFromThePredicatesFirstPassOn) {
  FakeMember a(0, 1);
  a.passes() = 100;
  a.show_predicate(8, "later", PredicateKind::once, 0, 101);
  a.show_predicate(7, "early", PredicateKind::recurrent, 4, 11);
  const Sample sample = sample_of({&a});
  const auto& predicates = table_of(sample).nodes.at(0).counters->predicates;
  ASSERT_EQ(predicates.size(), 2U);
  EXPECT_EQ(predicates[0].name, "early") << "in order of registration";
  EXPECT_EQ(predicates[0].evaluations.total, 90U);
  EXPECT_EQ(predicates[0].firings.total, 4U);
  EXPECT_EQ(predicates[1].evaluations.total, 0U);
}

TEST(TopSample, ComparedWithAnEarlierOneHasRates) {
  FakeMember a(0, 1);
  a.passes() = 100;
  std::uint64_t& firings = a.show_predicate(1, "old", PredicateKind::recurrent, 4);
  const Sample before = sample_of({&a});
  a.passes() = 300;
  a.pushes() = 50;
  firings = 14;
  a.show_predicate(2, "new", PredicateKind::recurrent, 6, 201);
  const auto busy = [](pid_t pid) {
    auto process = asleep(pid);
    process->cpu_ticks += 100;
    return process;
  };
  Sample after = take_sample(segments_of({&a}), kNow + 2 * kSecondNs, busy);
  compare(before, after);
  EXPECT_EQ(after.interval_s, 2);
  EXPECT_EQ(after.groups[0].members[0].cpu_percent,
            100 * 50.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  const TableSample& page = *table_of(after).nodes[0].counters;
  EXPECT_EQ(page.passes.per_s, 100);
  EXPECT_EQ(page.pushes.per_s, 25);
  EXPECT_EQ(page.predicates[0].firings.per_s, 5);
  EXPECT_EQ(page.predicates[1].evaluations.per_s, 50);
  EXPECT_EQ(page.predicates[1].firings.per_s, 3);
}

TEST(TopSample, HasNoRatesOfAProcessThatIsNotTheSame) {
  FakeMember a(0, 1);
  const Sample before = sample_of({&a});
  const auto reborn = [](pid_t pid) {
    auto process = asleep(pid);
    process->born_ticks += 1;
    return process;
  };
  Sample after = take_sample(segments_of({&a}), kNow + kSecondNs, reborn);
  compare(before, after);
  EXPECT_EQ(after.groups[0].members[0].cpu_percent, std::nullopt);
}

TEST(TopSample, KeepsGroupsOfOneNameAndDifferentUsersApart) {
  const FakeMember a(0, 1);
  std::vector<Segment> segments = segments_of({&a, &a});
  for (std::size_t i = 0; i < 3; ++i) segments[i].access = "user bob";
  EXPECT_EQ(take_sample(segments, kNow, asleep).groups.size(), 2U);
}

TEST(TopSample, SaysWhichMemoryIsDamaged) {
  FakeMember a(0, 1);
  a.counters().version = 99;
  const Sample sample = sample_of({&a});
  ASSERT_EQ(sample.remarks.size(), 1U);
  EXPECT_EQ(sample.remarks[0],
            "The counters of process 100 (rank 0 of group 'rack7') are damaged, or of another "
            "version.");
  EXPECT_EQ(table_of(sample).rows.size(), 1U) << "the rows can be read all the same";
}

TEST(TopSample, PassesOverRegionsThatAreNoTables) {
  const FakeMember a(0, 1);
  std::vector<Segment> segments = a.segments();
  for (const char* text : {"", "row", "row 64\n", "what row 64\nmembers 0\nrefresh writes\n",
                           "step i32 word @0 x1 =4 /4 +4\nrow 64\nmembers 0 x\nrefresh writes\n",
                           "step i32 word @0 x1 =4 /4 +4\nrow 64\nmembers 0\nrefresh often\n"}) {
    segments[1].info.layout_text = text;
    EXPECT_TRUE(take_sample(segments, kNow, asleep).groups.at(0).tables.empty()) << text;
  }
}

TEST(TopSample, RefusesARegionThatIsSmallerThanItsRows) {
  const FakeMember a(0, 2);
  std::vector<Segment> segments = a.segments();
  segments[1].payload = segments[1].payload.first(sizeof(FakeRow) * 2 - 1);
  const Sample sample = take_sample(segments, kNow, asleep);
  EXPECT_TRUE(sample.groups.at(0).tables.empty());
  EXPECT_EQ(sample.remarks.size(), 1U);
}

/// Whatever the bytes are, all of this ends, and the sanitizers see no access outside.
void print_all(const Sample& sample) {
  const nlohmann::ordered_json json = to_json(sample);
  EXPECT_FALSE(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).empty());
  for (const std::size_t width : {std::size_t{1}, std::size_t{80}, SIZE_MAX}) {
    EXPECT_FALSE(describe(sample, {.width = width}).empty());
  }
}

TEST(TopSample, SurvivesDamagedMemory) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    FakeMember a(0, 3);
    a.show_predicate(1, "p", PredicateKind::recurrent, 4);
    a.passes() = 100;
    for (const FakeMemory* memory : {&a.page(), &a.region()}) {
      // The first lines of the counters' page hold all that is used as a size or a place.
      const std::size_t bytes = std::min<std::size_t>(
          memory->span().size(), memory == &a.page() && round % 2 == 0 ? 2560 : SIZE_MAX);
      for (std::uint32_t changes = random() % 8; changes > 0; --changes) {
        memory->data()[random() % bytes] = static_cast<std::byte>(random());
      }
    }
    Sample sample = sample_of({&a});
    compare(sample_of({&a}), sample);
    print_all(sample);
  }
}

TEST(TopSample, SurvivesDamagedDescriptions) {
  std::mt19937 random(2);
  const FakeMember a(0, 3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Segment> segments = a.segments();
    std::string& text = segments[1].info.layout_text;
    for (std::uint32_t changes = random() % 4 + 1; changes > 0; --changes) {
      const char digits[] = "0123456789 @x=/+\n-";
      text[random() % text.size()] = digits[random() % (sizeof digits - 1)];
    }
    print_all(take_sample(segments, kNow, asleep));
  }
}

}  // namespace
}  // namespace dunlin::top
