#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "multicast/row.hpp"
#include "top/fake_group.hpp"
#include "top/json.hpp"
#include "top/text.hpp"

/// What `dunlin top` says of a multicast.
namespace dunlin::top {
namespace {

using multicast::Mode;

constexpr std::uint64_t kNow = 1000 * kSecondNs;
constexpr std::uint32_t kMembers = 2;

/// The rows of a subgroup `orders` in two members' memory, which are on one host.
class FakeMulticast {
 public:
  explicit FakeMulticast(Mode mode = Mode::ordered)
      : layout_(multicast::row::layout(kMembers, mode)) {
    for (Rank rank = 0; rank < kMembers; ++rank) memories_.emplace_back(kMembers * stride());
  }

  /// In the member's own row.
  void set(Rank member, const std::string& column, std::uint64_t value) {
    for (const Column& c : layout_.columns)
      if (c.name == column)
        std::memcpy(memories_[member].data() + member * stride() + c.offset, &value, sizeof value);
  }
  void count(Rank member, const std::string& name, std::uint64_t value) {
    members_[member].total("multicast." + name, "multicast=orders\ngeneration=3") = value;
  }
  [[nodiscard]] Sample look(std::uint64_t now_ns) const {
    std::vector<Segment> segments = segments_of({&members_[0], &members_[1]});
    for (Segment& segment : segments) {
      if (segment.info.kind != mapping::MappingKind::region) continue;
      const FakeMemory& memory = memories_[segment.info.owner_rank];
      segment.info.region = "cast:orders";
      segment.info.generation = 3;
      segment.info.layout_text = layout_.text() + "members 0 1\nrefresh writes\n";
      segment.payload = memory.span();
      segment.mapping = memory.holder();
    }
    return take_sample(segments, now_ns, asleep);
  }

 private:
  [[nodiscard]] std::size_t stride() const { return round_up(layout_.row_bytes, kCacheLineBytes); }
  Layout layout_;
  std::vector<FakeMemory> memories_;
  std::array<FakeMember, kMembers> members_{FakeMember(0, kMembers), FakeMember(1, kMembers)};
};

/// Two looks a second apart, between which node0 has worked and node1 has fallen behind.
Sample two_looks() {
  FakeMulticast cast;
  for (const Rank member : {0U, 1U})
    for (const char* const name : {"messages", "bytes", "nulls", "no_room_ns"})
      cast.count(member, name, 0);
  cast.count(0, "messages", 1'000);
  const Sample before = cast.look(kNow - kSecondNs);
  cast.count(0, "messages", 61'000);
  cast.count(0, "bytes", 6'000'000);
  cast.count(0, "deliver_batches", 5'000);
  cast.count(0, "nulls", 310);
  cast.count(0, "no_room", 7);
  cast.count(0, "no_room_ns", kSecondNs / 4);
  cast.count(0, "own_ns", 55'800);
  cast.count(0, "own_timed", 1);
  cast.set(0, "received", 500);
  cast.set(1, "received", 380);
  Sample after = cast.look(kNow);
  compare(before, after);
  return after;
}

std::string text_of(const Sample& sample, const Page& page) {
  std::string text;
  for (const Line& line : describe(sample, page)) text += line.text + "\n";
  return text;
}

TEST(TopMulticast, ShowsWhatAnOperatorAsks) {
  const std::string text = text_of(two_looks(), {.width = 90});
  EXPECT_NE(text.find(R"(
multicast orders: view 3, 2 members; slowest: node1
  MEMBER  STATE  MSG/s  BYTES/s  MSG/BATCH  NULLS/s  LATENCY  NO ROOM  BEHIND
  node0   alone   60 k    6.0 M       12.0      310    56 us   25.0 %       0
  node1   alone      0        0          -        0        -    0.0 %     120
)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("table cast:"), std::string::npos) << text;
}

TEST(TopMulticast, ShowsTheColumnsOnRequest) {
  const std::string text = text_of(two_looks(), {.raw = true});
  EXPECT_NE(text.find("table cast:orders: 2 rows of"), std::string::npos) << text;
  EXPECT_NE(text.find("inlined_at"), std::string::npos) << text;
  EXPECT_EQ(text.find("multicast orders"), std::string::npos) << text;
}

TEST(TopMulticast, HasNoSlowestMemberIfAllHaveTheSame) {
  const FakeMulticast cast;
  EXPECT_EQ(cast.look(kNow).groups.at(0).tables.at(0).slowest(), std::nullopt);
}

/// By what a member has: on its disk, or of each sender.
TEST(TopMulticast, KnowsTheSlowestMemberInEachMode) {
  for (const auto& [mode, column] : {std::pair{Mode::ordered, "received"},
                                     {Mode::unordered, "consumed"},
                                     {Mode::durable, "persisted"}}) {
    FakeMulticast cast(mode);
    cast.set(1, column, 5);
    EXPECT_EQ(cast.look(kNow).groups.at(0).tables.at(0).slowest(), Rank{0}) << column;
  }
}

TEST(TopMulticast, IsInJsonBesideItsTable) {
  const nlohmann::ordered_json json = to_json(two_looks());
  const auto& table = json["groups"][0]["tables"][0];
  EXPECT_EQ(table["name"], "cast:orders");
  const auto& cast = table["multicast"];
  EXPECT_EQ(cast["subgroup"], "orders");
  EXPECT_EQ(cast["view"], 3);
  EXPECT_EQ(cast["slowest_rank"], 1);
  const auto& member = cast["members"][0];
  EXPECT_EQ(member["messages"], 61'000);
  EXPECT_EQ(member["messages_per_s"], 60'000);
  EXPECT_EQ(member["messages_per_batch"], 12);
  EXPECT_EQ(member["latency_us"], 55.8);
  EXPECT_EQ(member["no_room_percent"], 25);
  EXPECT_EQ(member["behind"], 0);
  EXPECT_EQ(cast["members"][1]["latency_us"], nullptr);
}

TEST(TopMulticast, IsNotAnyTableOfSuchAName) {
  const FakeMember a(0, 1);
  std::vector<Segment> segments = segments_of({&a});
  for (Segment& segment : segments)
    if (segment.info.kind == mapping::MappingKind::region) segment.info.region = "cast:load";
  const std::string text = text_of(take_sample(segments, kNow, asleep), {});
  EXPECT_NE(text.find("table cast:load"), std::string::npos) << text;
}

/// The hash behind it is for the group's members to compare.
TEST(TopMulticast, HeadsAColumnOfAGroupWithItsNameOnly) {
  const FakeMember a(0, 1);
  std::vector<Segment> segments = segments_of({&a});
  for (Segment& segment : segments) {
    std::string& text = segment.info.layout_text;
    if (segment.info.kind == mapping::MappingKind::region)
      text.replace(text.find("step"), 4, "step:10190063578864070084");
  }
  const Sample sample = take_sample(segments, kNow, asleep);
  EXPECT_EQ(sample.groups.at(0).tables.at(0).layout.columns.at(0).name, "step");
}

}  // namespace
}  // namespace dunlin::top
