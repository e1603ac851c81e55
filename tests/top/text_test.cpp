#include "top/text.hpp"

#include <gtest/gtest.h>

#include "top/fake_group.hpp"
#include "top/json.hpp"
#include "top/viewer.hpp"

namespace dunlin::top {
namespace {

constexpr std::uint64_t kNow = 1000 * kSecondNs;

std::string text_of(const std::vector<Line>& lines) {
  std::string text = "\n";
  for (const Line& line : lines) text += line.text + "\n";
  return text;
}

/// Two members; the third was lost.
class ThreeMembers {
 public:
  ThreeMembers() {
    for (FakeMember* m : {&a_, &b_}) {
      m->base().last_watch_ns = kNow - kSecondNs / 50;
      m->level("table.made_ns", FakeMember::kLabels) = kNow - 90 * kSecondNs;
      m->passes() = 1000;
      m->show_predicate(1, "all(step) >= 1", PredicateKind::once, 1);
      m->set_state(2, RowState::failed);
      m->since_ns(2) = kNow - 12 * kSecondNs;
      m->row(2).step = 7;
    }
    a_.base().sleeping = 1;
    a_.mine().step = 3;
    a_.mine().city = std::array<char, 8>{'O', 's', 'l', 'o'};
    a_.refreshed_ns(0) = kNow - kSecondNs / 4;
    b_.set_state(0, RowState::behind);
    EXPECT_TRUE(b_.mine().events.append(40));
    EXPECT_TRUE(b_.mine().events.append(41));
  }
  [[nodiscard]] Sample sample() const {
    Sample before = take_sample(segments_of({&a_, &b_}), kNow - kSecondNs, asleep);
    Sample after = take_sample(segments_of({&a_, &b_}), kNow, asleep);
    TableSample& counted = *before.groups[0].tables[0].nodes[0].counters;
    counted.passes.total = counted.predicates[0].evaluations.total = 0;
    compare(before, after);
    return after;
  }
  FakeMember& a() { return a_; }

 private:
  FakeMember a_{0, 3};
  FakeMember b_{1, 3};
};

TEST(TopText, ShowsAGroup) {
  EXPECT_EQ(text_of(describe(ThreeMembers().sample(), {.width = 80})), R"(
group rack7 (shm, user alice), 2 of 3 members here
  RANK  NAME   PID  COMMAND  PROCESS  CPU %  LOOP     POLLED
     0  node0  100  worker   asleep     0.0  waiting   20 ms
     1  node1  101  worker   asleep     0.0  polling   20 ms
     2           -  -        absent       -  -             -

table load: 3 rows of 320 bytes, pushed, made 1 min ago
  ROW  NODE   STATE               AGE  PUSH/s  step  load  votes  city
    0  node0  behind           250 ms       0     3  0.25  0 0 0  Oslo
    1  node1  connected             -       0     0  0.25  0 0 0  ""
    2  2      failed 12 s ago       -       -     7  0.25  0 0 0  ""
  2 more columns: stamps events

  NODE   PREDICATE       KIND  EVAL/s  FIRED  FIRED/s
  node0  all(step) >= 1  once   1.0 k      1        0
  node1  all(step) >= 1  once       0      1        0
)");
}

TEST(TopText, ScrollsTheColumnsOfARowAndKeepsWhoseItIs) {
  const std::string text = text_of(describe(ThreeMembers().sample(), {60, 5}));
  EXPECT_NE(text.find("  ROW  NODE   STATE               AGE  PUSH/s  events\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("node1  connected             -       0  [0..2) 40 41\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("5 more columns: step load votes city stamps\n"), std::string::npos) << text;
}

TEST(TopText, SaysHowManyHoldANodeForFailed) {
  ThreeMembers three;
  three.a().set_state(2, RowState::connected);
  const std::string text = text_of(describe(three.sample(), {}));
  EXPECT_NE(text.find("failed 12 s ago (1 of 2)"), std::string::npos) << text;
}

TEST(TopText, MarksWhatNeedsALook) {
  const std::vector<Line> lines = describe(ThreeMembers().sample(), {});
  std::string alarms;
  for (const Line& line : lines) {
    if (line.style == Style::alarm) alarms += line.text.substr(2, 9) + "\n";
  }
  EXPECT_EQ(alarms, "   2     \n  2  2   \n");
}

TEST(TopText, ShowsAllGroupsInShortAndWhatIsHidden) {
  const FakeMember a(0, 1);
  const FakeMember b(0, 1, "lab");
  Sample sample = take_sample(segments_of({&a, &b}), kNow, asleep);
  sample.remarks.emplace_back("Something is hidden.");
  EXPECT_EQ(text_of(describe(sample, {.width = 80})), R"(
group lab (shm, user alice), 1 of 1 member here
  RANK  NAME   PID  COMMAND  PROCESS  CPU %  LOOP     POLLED
     0  node0  100  worker   asleep       -  joining       -
  tables: load (1 row)

group rack7 (shm, user alice), 1 of 1 member here
  RANK  NAME   PID  COMMAND  PROCESS  CPU %  LOOP     POLLED
     0  node0  100  worker   asleep       -  joining       -
  tables: load (1 row)

Something is hidden.
)");
}

TEST(TopText, SaysThatNothingIsThere) {
  EXPECT_EQ(text_of(describe({}, {})),
            "\nNo Dunlin group that you may look at runs on this host.\n");
}

TEST(TopJson, HoldsWhatTheTextHolds) {
  const nlohmann::ordered_json json = to_json(ThreeMembers().sample());
  EXPECT_EQ(json["schema"], "dunlin-top-2");
  EXPECT_EQ(json["interval_ms"], 1000);
  const auto& group = json["groups"][0];
  EXPECT_EQ(group["name"], "rack7");
  EXPECT_EQ(group["absent_ranks"], nlohmann::ordered_json::array({2}));
  EXPECT_EQ(group["members"][0]["process_state"], "S");
  EXPECT_EQ(group["members"][0]["waiting"], true);
  EXPECT_EQ(group["members"][0]["polled_ms_ago"], 20);
  const auto& table = group["tables"][0];
  EXPECT_EQ(table["refresh"], "writes");
  EXPECT_EQ(table["columns"][5]["kind"], "list");
  EXPECT_EQ(table["rows"][0]["age_ms"], 250);
  EXPECT_EQ(table["rows"][0]["values"]["city"], "Oslo");
  EXPECT_EQ(table["rows"][0]["values"]["votes"], nlohmann::ordered_json::array({0, 0, 0}));
  EXPECT_EQ(table["rows"][1]["values"]["events"]["end"], 2);
  EXPECT_EQ(table["rows"][1]["values"]["events"]["last"], nlohmann::ordered_json::array({40, 41}));
  EXPECT_EQ(table["rows"][2]["pid"], nullptr);
  EXPECT_EQ(table["rows"][2]["seen_by"][1]["state"], "failed");
  EXPECT_EQ(table["rows"][2]["seen_by"][1]["since_ms_ago"], 12000);
  const auto& predicate = table["nodes"][0]["predicates"][0];
  EXPECT_EQ(predicate["name"], "all(step) >= 1");
  EXPECT_EQ(predicate["evaluations_per_s"], 1000);
  EXPECT_EQ(predicate["firings"], 1);
}

TEST(TopJson, HasNullsForWhatIsNotKnown) {
  const FakeMember a(0, 1);
  const Sample sample =
      take_sample(segments_of({&a}), kNow, [](pid_t) { return std::optional<ProcessSample>(); });
  const nlohmann::ordered_json json = to_json(sample);
  EXPECT_EQ(json["interval_ms"], nullptr);
  EXPECT_EQ(json["groups"][0]["members"][0]["process_state"], nullptr);
  EXPECT_EQ(json["groups"][0]["tables"][0]["rows"][0]["age_ms"], nullptr);
  EXPECT_EQ(json["groups"][0]["tables"][0]["rows"][0]["pushes_per_s"], nullptr);
}

// --- the live view -------------------------------------------------------------------------------

constexpr ScreenSize kSmall{.rows = 6, .columns = 60};

std::string first_line(const Viewer& viewer) { return viewer.lines(kSmall).at(0).text; }

TEST(TopViewer, ShowsAsManyLinesAsThereIsRoomForAndScrolls) {
  Viewer viewer;
  viewer.update(ThreeMembers().sample());
  EXPECT_EQ(viewer.lines(kSmall).size(), 5U) << "the last one is for the status";
  EXPECT_TRUE(viewer.press(Key::down, kSmall));
  EXPECT_EQ(first_line(viewer).substr(0, 6), "  RANK");
  EXPECT_TRUE(viewer.press(Key::end, kSmall));
  EXPECT_TRUE(viewer.press(Key::page_down, kSmall));
  EXPECT_EQ(viewer.lines(kSmall).back().text.substr(0, 7), "  node1");
  EXPECT_TRUE(viewer.press(Key::home, kSmall));
  EXPECT_TRUE(viewer.press(Key::up, kSmall));
  EXPECT_EQ(first_line(viewer).substr(0, 11), "group rack7");
  EXPECT_FALSE(viewer.press(Key::quit, kSmall));
}

TEST(TopViewer, GoesFromAllGroupsToEachAndBack) {
  const FakeMember a(0, 1);
  const FakeMember b(0, 1, "lab");
  const ScreenSize tall{.rows = 50, .columns = 80};
  Viewer viewer;
  viewer.update(take_sample(segments_of({&a, &b}), kNow, asleep));
  const std::string all = text_of(viewer.lines(tall));
  EXPECT_NE(all.find("group rack7"), std::string::npos);
  EXPECT_TRUE(viewer.press(Key::next, tall));
  const std::string lab = text_of(viewer.lines(tall));
  EXPECT_EQ(lab.find("group rack7"), std::string::npos);
  EXPECT_NE(lab.find("table load"), std::string::npos);
  EXPECT_TRUE(viewer.press(Key::next, tall));
  EXPECT_NE(text_of(viewer.lines(tall)).find("group rack7"), std::string::npos);
  viewer.update(take_sample(segments_of({&b}), kNow, asleep));
  EXPECT_EQ(text_of(viewer.lines(tall)), lab) << "what it looked at is gone";
  viewer.update(take_sample(segments_of({&a, &b}), kNow, asleep));
  EXPECT_TRUE(viewer.press(Key::next, tall));
  EXPECT_EQ(text_of(viewer.lines(tall)), all);
}

TEST(TopTerminal, KnowsTheKeysAndPassesOverTheOthers) {
  std::string_view input = "\x1b[A\x1bOBjz\tq\x1b[99~";
  std::vector<Key> keys;
  while (!input.empty()) keys.push_back(take_key(input));
  EXPECT_EQ(keys, (std::vector<Key>{Key::up, Key::down, Key::down, Key::none, Key::next, Key::quit,
                                    Key::none}));
}

TEST(TopTerminal, FillsTheScreenAndNoMore) {
  const std::vector<Line> lines{{"first"}, {"second line", Style::alarm}};
  EXPECT_EQ(frame(lines, "status", {.rows = 4, .columns = 8}),
            "\x1b[H"
            "first\x1b[0m\x1b[K\r\n"
            "\x1b[31msecond l\x1b[0m\x1b[K\r\n"
            "\x1b[K\r\n"
            "\x1b[7mstatus  \x1b[0m\x1b[J");
}

}  // namespace
}  // namespace dunlin::top
