#include "top/counters.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <dunlin/dunlin.hpp>
#include <dunlin/relay.hpp>
#include <dunlin/relay/relay.hpp>

#include "command.hpp"
#include "support/fresh_group.hpp"
#include "top/fake_group.hpp"
#include "top/json.hpp"
#include "top/text.hpp"

namespace dunlin::top {
namespace {

using nlohmann::json;

constexpr std::uint64_t kNow = 1000 * kSecondNs;

/// A store with a home and a client, and a space.
struct TopCounters : testing::Test {
  TopCounters() {
    home.level("store.keys", kStore) = 250;
    home.level("store.limit_bytes", kStore) = SharedCounter::kUnknown;
    for (FakeMember* const member : {&home, &client})
      for (const char* const name : {"store.gets", "store.cache_hits", "store.cache_misses",
                                     "store.cache_stale", "store.repaired_locks"})
        member->total(name, kStore) = 0;
  }
  /// What is seen a second after `change`, and by how much it has changed.
  template <class Change>
  Sample seen_after(const Change& change) {
    const Sample before = take_sample(segments_of({&home, &client}), kNow - kSecondNs, asleep);
    change();
    Sample after = take_sample(segments_of({&home, &client}), kNow, asleep);
    dunlin::top::compare(before, after);
    return after;
  }
  static constexpr const char* kStore = "store=cache";
  FakeMember home{0, 2};
  FakeMember client{1, 2};
};

TEST_F(TopCounters, ArePrintedByLayerObjectAndMember) {
  const Sample sample = seen_after([&] {
    client.total("store.gets", kStore) = 4'000;
    client.total("store.cache_hits", kStore) = 3'000;
    client.total("store.cache_misses", kStore) = 900;
    client.total("store.cache_stale", kStore) = 100;
    home.level("container.entries", "container=prices\nkind=map") = 17;
    client.level("container.entries", "container=prices\nkind=map") = 3;
    home.level("container.entries", "container=jobs\nkind=queue") = 5;
  });
  std::string text = "\n";
  bool is_shown = false;
  for (const Line& line : describe(sample, {.width = 120})) {
    is_shown |= line.text.starts_with("container:");
    if (is_shown) text += line.text + "\n";
  }
  EXPECT_EQ(text, R"(
container:
  CONTAINER  KIND   MEMBER  ENTRIES
  jobs       queue  node0         5
  prices     map    node0        17
  prices     map    node1         3

store:
  STORE  MEMBER  KEYS  LIMIT BYTES  GETS/s  CACHE HITS/s  CACHE MISSES/s  CACHE STALE/s  HIT PERCENT
  cache  node0    250            -       0             0               0              0            -
  cache  node1      -            -   4.0 k         3.0 k             900            100         75.0
)") << "without repaired_locks, which is 0";
}

TEST_F(TopCounters, AreInJsonOneByOne) {
  const json seen = to_json(seen_after([&] { client.total("store.gets", kStore) = 500; }))
                        .at("groups")
                        .at(0)
                        .at("counters");
  std::vector<json> gets;
  for (const json& counter : seen)
    if (counter["name"] == "store.gets") gets.push_back(counter);
  ASSERT_EQ(gets.size(), 2U);
  EXPECT_EQ(gets[1]["labels"], (json{{"store", "cache"}}));
  EXPECT_EQ(gets[1]["member"], "node1");
  EXPECT_EQ(gets[1]["kind"], "total");
  EXPECT_EQ(gets[1]["unit"], "count");
  EXPECT_EQ(gets[1]["value"], 500);
  EXPECT_EQ(gets[1]["per_s"], 500);
  for (const json& counter : seen) {
    if (counter["name"] != "store.limit_bytes") continue;
    EXPECT_TRUE(counter["value"].is_null()) << "unknown";
    EXPECT_FALSE(counter.contains("per_s")) << "a level";
  }
}

TEST_F(TopCounters, HaveNoRatesIfAnotherCounterHasTakenTheirPlace) {
  const Sample sample = seen_after([&] {
    client.counters().records.back() = {};
    for (counter_page::Record& d : client.counters().records)
      if (d.serial != 0) d.serial += 1'000;
    client.total("store.gets", kStore) = 500;
  });
  for (const MemberCounter& counter : sample.groups[0].counters) {
    if (counter.rank == 0) continue;
    EXPECT_EQ(counter.per_s, std::nullopt) << counter.view.name;
  }
}

TEST_F(TopCounters, OfEventsAreShownAsHowOftenTheyHappened) {
  home.counter("relay.dropped", "relay=9:7", CounterKind::event).front() = 3;
  const Sample sample = seen_after([] {});
  std::vector<std::string> lines;
  for (const Line& line : describe(sample, {})) lines.push_back(line.text);
  const auto title = std::ranges::find(lines, "relay:");
  ASSERT_GT(lines.end() - title, 2);
  EXPECT_EQ(title[1], "  RELAY  MEMBER  DROPPED");
  EXPECT_EQ(title[2], "  9:7    node0         3");
}

TEST_F(TopCounters, OfMulticastsAreShownOnRequest) {
  home.total("multicast.send_batches", "multicast=orders\ngeneration=3") = 5;
  const Sample sample = seen_after([] {});
  const auto has_title = [](const std::vector<Line>& lines) {
    return std::ranges::any_of(lines, [](const Line& line) { return line.text == "multicast:"; });
  };
  EXPECT_TRUE(has_title(describe(sample, {.raw = true})));
  EXPECT_FALSE(has_title(describe(sample, {})));
}

TEST_F(TopCounters, HaveWhatIsReckonedFromThemInJson) {
  const json seen = to_json(seen_after([&] {
                      client.total("store.cache_hits", kStore) = 30;
                      client.total("store.cache_misses", kStore) = 10;
                    }))
                        .at("groups")
                        .at(0)
                        .at("counters");
  std::vector<json> found;
  for (const json& counter : seen)
    if (counter["name"] == "store.hit_percent") found.push_back(counter["value"]);
  EXPECT_EQ(found, (std::vector<json>{nullptr, 75.0}));
}

TEST_F(TopCounters, LeaveOutDamagedRecordsWithARemark) {
  client.counters().records[0].words = counter_page::kWords + 1;
  const Sample sample = take_sample(segments_of({&home, &client}), kNow, asleep);
  ASSERT_EQ(sample.remarks.size(), 1U);
  EXPECT_EQ(sample.remarks[0],
            "Some counters of process 101 (rank 1 of group 'rack7') are damaged, or of another "
            "version.");
  EXPECT_FALSE(blocks_of(sample.groups[0].counters).empty()) << "the others are shown";
}

TEST_F(TopCounters, NameTheirObjectsWhereAllGroupsAreShown) {
  const FakeMember other(0, 1, "lab");
  const Sample sample = take_sample(segments_of({&home, &client, &other}), kNow, asleep);
  bool is_named = false;
  for (const Line& line : describe(sample, {}))
    is_named |= line.text.ends_with("load (2 rows), store cache");
  EXPECT_TRUE(is_named);
}

TEST_F(TopCounters, OfADamagedPageAreLeftOutWithARemark) {
  client.counters().version = 2;
  const Sample sample = take_sample(segments_of({&home, &client}), kNow, asleep);
  for (const MemberCounter& counter : sample.groups[0].counters) EXPECT_EQ(counter.rank, 0U);
  ASSERT_EQ(sample.remarks.size(), 1U);
  EXPECT_EQ(sample.remarks[0],
            "The counters of process 101 (rank 1 of group 'rack7') are damaged, or of another "
            "version.");
}

TEST_F(TopCounters, TellHowFragmentedAPoolIs) {
  home.level("segment.pool_bytes", "space=loads") = 1000;
  home.level("segment.used_bytes", "space=loads") = 400;
  home.level("segment.largest_free_bytes", "space=loads") = 300;
  const Sample sample = seen_after([] {});
  const CounterBlock block = blocks_of(sample.groups[0].counters).at(0);
  EXPECT_EQ(block.layer, "segment");
  EXPECT_EQ(reckoned().at(1).value(block.rows.at(0)), 50);
}

// --- of running members --------------------------------------------------------------------------

/// The counters of a group with one member, by name, as `dunlin top` sees them.
std::map<std::string, json> look_at(const std::string& group) {
  const std::vector<const char*> words{"dunlin",     "top",  "--once",     "--json",
                                       "--interval", "0.01", group.c_str()};
  testing::internal::CaptureStdout();
  EXPECT_EQ(app::run(static_cast<int>(words.size()), words.data()), app::Status::ok);
  const json seen = json::parse(testing::internal::GetCapturedStdout());
  std::map<std::string, json> counters;
  for (const json& counter : seen.at("groups").at(0).at("counters"))
    counters[counter.at("name")] = counter;
  return counters;
}

TEST(TopCountersOnShm, ShowAStore) {
  const std::string group = test::fresh_group();
  const auto fabric = join({.group = group, .members = 1, .silence_timeout_ms = 0});
  Store store(*fabric, {.name = "sessions", .memory_bytes = 4 << 20});
  for (std::uint64_t key = 0; key < 5; ++key) store.put(key, "value").wait();
  std::map<std::string, json> seen;
  do {
    store.poll();
    seen = look_at(group);
  } while (seen["store.keys"]["value"] != 5);
  EXPECT_EQ(seen["store.keys"]["labels"]["store"], "sessions");
  EXPECT_EQ(seen["store.puts"]["value"], 5);
  EXPECT_EQ(seen["store.in_flight"]["value"], 0);
  EXPECT_TRUE(seen["store.gets"]["per_s"].is_number());
}

TEST(TopCountersOnShm, ShowContainers) {
  const std::string group = test::fresh_group();
  const auto fabric = join({.group = group, .members = 1, .silence_timeout_ms = 0});
  Containers containers(*fabric);
  HashMap<int, int> map(containers, {.name = "prices", .slots = 100});
  for (int key = 0; key < 5; ++key) map.insert(key, key).wait();
  std::map<std::string, json> seen;
  do {
    containers.poll();
    seen = look_at(group);
  } while (seen["container.entries"]["value"] != 5);
  EXPECT_EQ(seen["container.entries"]["labels"]["container"], "prices");
  EXPECT_EQ(seen["container.entries"]["labels"]["kind"], "map");
  EXPECT_EQ(seen["container.capacity"]["value"], 100);
  EXPECT_EQ(seen["container.local"]["value"], 5);
}

struct Reading {
  std::int32_t sensor = 0;
  double celsius = 0;
};

TEST(TopCountersOnShm, ShowARelay) {
  const std::string name = test::fresh_group();
  const auto fabric = join({.group = name, .members = 1, .silence_timeout_ms = 0});
  dunlin::Group group(*fabric);
  pubsub::DomainParticipant participant(group);
  relay::Relay relay(participant, {.clients = 10});
  const std::string place = "127.0.0.1:" + std::to_string(relay.port());
  relay::RelayClient client({.relays = {place}});
  relay::RelayWriter<Reading> writer(client, "readings", pubsub::TopicQos{});
  relay::RelayReader<Reading> reader(client, "readings");
  std::uint64_t written = 0;
  std::uint64_t taken = 0;
  while (taken < 5) {
    participant.poll();
    relay.poll();
    client.poll();
    if (written < 5 && writer.ready() && reader.ready() &&
        writer.write({}) == pubsub::WriteResult::written)
      ++written;
    taken += reader.take().size();
  }
  std::map<std::string, json> seen = look_at(name);
  EXPECT_EQ(seen["relay.clients"]["labels"]["relay"], place);
  for (const auto& [counter, value] :
       std::map<std::string, std::uint64_t>{{"clients", 1},
                                            {"most_clients", 10},
                                            {"accepted", 1},
                                            {"resumed", 0},
                                            {"published", 5},
                                            {"published_bytes", 5 * sizeof(Reading)},
                                            {"delivered", 5},
                                            {"delivered_bytes", 5 * sizeof(Reading)},
                                            {"is_encrypted", 0}})
    EXPECT_EQ(seen["relay." + counter]["value"], value) << counter;
}

}  // namespace
}  // namespace dunlin::top
