#include "top/store.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <dunlin/dunlin.hpp>

#include "command.hpp"
#include "store/statistics_page_format.hpp"
#include "support/fresh_group.hpp"
#include "top/fake_group.hpp"
#include "top/json.hpp"
#include "top/text.hpp"

namespace dunlin::top {
namespace {

using nlohmann::json;
using store_page::Count;
using store_page::Page;

constexpr std::uint64_t kNow = 1000 * kSecondNs;

Page& publish_store(FakeMember& member, bool is_home) {
  auto& page = member.publish<Page>("store-stats:cache");
  page.magic = store_page::kMagic;
  page.version = store_page::kVersion;
  page.is_home = is_home ? 1 : 0;
  return page;
}

std::uint64_t& begun(Page& page, Count what) { return page.begun[static_cast<std::size_t>(what)]; }

/// A home and a client.
struct TopStores : testing::Test {
  TopStores() {
    home.part = {.keys = 250,
                 .value_bytes = 25'000,
                 .memory_bytes = 4 << 20,
                 .used_bytes = 32'000,
                 .limit_bytes = 8 << 20,
                 .evictions = 3,
                 .main_slots = 320,
                 .main_slots_used = 240,
                 .indirect_headers = 2,
                 .indirect_headers_free = 338,
                 .locked_chains = 1,
                 .held_bytes = 64 << 10};
  }
  /// What is seen a second after `change`, and by how much it has changed.
  template <class Change>
  Sample seen_after(const Change& change) {
    const Sample before = take_sample(segments_of({&a, &b}), kNow - kSecondNs, asleep);
    change();
    Sample after = take_sample(segments_of({&a, &b}), kNow, asleep);
    dunlin::top::compare(before, after);
    return after;
  }
  FakeMember a{0, 2};
  FakeMember b{1, 2};
  Page& home = publish_store(a, true);
  Page& client = publish_store(b, false);
};

TEST_F(TopStores, PrintsWhatMembersHoldAndWhatTheirProcessesDo) {
  const Sample sample = seen_after([&] {
    home.part.evictions += 20;
    home.in_flight = 2;
    begun(client, Count::gets) = 4'000;
    begun(client, Count::puts) = 500;
    begun(client, Count::erases) = 10;
    begun(client, Count::others) = 1;
    client.cache_hits = 3'000;
    client.cache_misses = 900;
    client.cache_stale = 100;
    client.lock_waits = 7;
    client.waits_for_room = 20;
  });
  std::string text = "\n";
  bool is_shown = false;
  for (const Line& line : describe(sample, {.width = 100})) {
    is_shown |= line.text.starts_with("store ");
    if (is_shown) text += line.text + "\n";
  }
  EXPECT_EQ(text, R"(
store cache
  MEMBER  KEYS  VALUES   SLOTS  INDIR.  FREE   MEMORY   USED  UNUSED    LIMIT  EVICT/s  LOCKED
  node0    250   25000  75.0 %       2   338  4194304  32000   33536  8388608       20       1

  MEMBER  GET/s  PUT/s  ERASE/s  OTHER/s    HITS  STALE/s  WAIT/s  ROOM/s  IN FLIGHT
  node0       0      0        0        0       -        0       0       0          2
  node1   4.0 k    500       10      1.0  75.0 %      100     7.0      20          0
)");
}

TEST_F(TopStores, AreNamedWhereAllGroupsAreShown) {
  const FakeMember other(0, 1, "lab");
  const Sample sample = take_sample(segments_of({&a, &b, &other}), kNow, asleep);
  bool is_named = false;
  for (const Line& line : describe(sample, {}))
    is_named |= line.text.ends_with("load (2 rows), store cache");
  EXPECT_TRUE(is_named);
}

TEST_F(TopStores, AClientHasNoPart) {
  client.part.keys = 5;  // whatever is there
  const auto seen = to_json(seen_after([] {}))["groups"][0]["stores"][0]["members"];
  EXPECT_EQ(seen[0]["part"]["keys"], 250);
  EXPECT_EQ(seen[0]["part"]["limit_bytes"], 8 << 20);
  EXPECT_EQ(seen[0]["part"]["held_bytes"], 64 << 10);
  EXPECT_TRUE(seen[1]["part"].is_null());
  EXPECT_TRUE(seen[1]["hit_percent"].is_null()) << "no lookups";
}

TEST_F(TopStores, LeaveOutADamagedPageWithARemark) {
  client.version = 2;
  const Sample sample = take_sample(segments_of({&a, &b}), kNow, asleep);
  ASSERT_EQ(sample.groups[0].stores.size(), 1U);
  EXPECT_EQ(sample.groups[0].stores[0].members.size(), 1U);
  ASSERT_EQ(sample.remarks.size(), 1U);
  EXPECT_EQ(sample.remarks[0],
            "group rack7: the statistics of store 'cache' of process 101 are damaged, or of "
            "another version");
}

TEST(TopStorePage, IsNotBelievedIfItContradictsItself) {
  const FakeMemory memory(sizeof(Page));
  auto& page = *reinterpret_cast<Page*>(memory.data());
  EXPECT_FALSE(read_store(memory.span())) << "zeros";
  page.magic = store_page::kMagic;
  page.version = store_page::kVersion;
  page.is_home = 1;
  page.part.memory_bytes = 1'000;
  page.part.used_bytes = 1'000;
  page.part.main_slots = 8;
  page.part.main_slots_used = 8;
  page.part.keys = UINT64_MAX;  // odd, but harmless
  ASSERT_TRUE(read_store(memory.span()));
  EXPECT_FALSE(read_store(memory.span().first(sizeof(Page) - 1))) << "short";
  EXPECT_FALSE(read_store(memory.span().subspan(1))) << "not aligned";
  page.part.used_bytes = 1'001;
  EXPECT_FALSE(read_store(memory.span())) << "more used than there is";
  page.part.used_bytes = 0;
  page.part.held_bytes = 1'001;
  EXPECT_FALSE(read_store(memory.span())) << "more held than there is";
  page.part.held_bytes = 0;
  page.part.main_slots_used = 9;
  EXPECT_FALSE(read_store(memory.span())) << "more slots used than there are";
  page.is_home = 0;
  EXPECT_TRUE(read_store(memory.span())) << "a client, whose part is not read";
  page.version = 2;
  EXPECT_FALSE(read_store(memory.span())) << "another version";
}

TEST(TopStoresOnShm, SeesAStoreOfThisHost) {
  const std::string group = test::fresh_group();
  const auto fabric = shm::join({.group = group, .members = 1, .silence_timeout_ms = 0});
  Store store(*fabric, {.name = "sessions", .memory_bytes = 4 << 20});
  for (std::uint64_t key = 0; key < 5; ++key) store.put(key, "value").wait();
  const std::vector<const char*> words{"dunlin",     "top",  "--once",     "--json",
                                       "--interval", "0.01", group.c_str()};
  json stores;
  do {
    store.poll();
    testing::internal::CaptureStdout();
    EXPECT_EQ(app::run(static_cast<int>(words.size()), words.data()), app::Status::ok);
    stores = json::parse(testing::internal::GetCapturedStdout()).at("groups").at(0).at("stores");
  } while (stores.at(0).at("members").at(0).at("part").at("keys") != 5);
  EXPECT_EQ(stores[0]["name"], "sessions");
  EXPECT_EQ(stores[0]["members"][0]["puts"], 5);
  EXPECT_EQ(stores[0]["members"][0]["in_flight"], 0);
  EXPECT_TRUE(stores[0]["members"][0]["gets_per_s"].is_number());
}

}  // namespace
}  // namespace dunlin::top
