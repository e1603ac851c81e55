#include "top/relays.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <dunlin/dunlin.hpp>
#include <dunlin/relay.hpp>
#include <dunlin/relay/relay.hpp>

#include "command.hpp"
#include "relay/statistics_page_format.hpp"
#include "support/fresh_group.hpp"
#include "top/fake_group.hpp"
#include "top/json.hpp"
#include "top/text.hpp"

namespace dunlin::top {
namespace {

using nlohmann::json;
using relay_page::Count;

void mark(relay_page::Page& page) {
  page.magic = relay_page::kMagic;
  page.version = relay_page::kVersion;
  page.most_clients = 1000;
}

relay_page::Page& publish_relay(FakeMember& member, const std::string& at) {
  auto& page = member.publish<relay_page::Page>("relay-stats:" + at);
  mark(page);
  return page;
}

std::uint64_t& count(relay_page::Page& page, Count what) {
  return page.counts[static_cast<std::size_t>(what)];
}

struct TopRelays : testing::Test {
  FakeMember a{0, 2};
  FakeMember b{1, 2};
  relay_page::Page& local = publish_relay(a, "10.0.0.9:7");
  relay_page::Page& open = publish_relay(b, "[::9]:80");
};

TEST_F(TopRelays, PrintsTheClientsOfEachRelayAndWhatItCarries) {
  local.clients = 12;
  local.blocked_clients = 1;
  local.waiting_bytes = 40'000;
  count(local, Count::dropped) = 3;
  count(local, Count::resumed) = 4;
  count(local, Count::rejected) = 5;
  count(local, Count::damaged) = 1;
  const Sample before = take_sample(segments_of({&a, &b}), kNow - kSecondNs, asleep);
  count(local, Count::published) = 500;
  count(local, Count::published_bytes) = 32'000;
  count(local, Count::delivered) = 6'000;
  count(local, Count::delivered_bytes) = 384'000;
  count(local, Count::skipped) = 20;
  Sample sample = take_sample(segments_of({&a, &b}), kNow, asleep);
  dunlin::top::compare(before, sample);
  std::string text = "\n";
  bool is_shown = false;
  for (const Line& line : describe(sample, {.width = 130})) {
    is_shown |= line.text.starts_with("relays");
    if (is_shown) text += line.text + "\n";
  }
  EXPECT_EQ(text, R"(
relays
  AT          MEMBER  CLIENTS  HELD  QUEUED  IN/s  BYTES/s  OUT/s  BYTES/s  SKIP/s  SLOW  BACK  BAD
  10.0.0.9:7  node0        12     1   40000   500     32 k  6.0 k    384 k      20     3     4    5
  [::9]:80    node1         0     0       0     0        0      0        0       0     0     0    0
)");
}

TEST_F(TopRelays, AreInJsonWithAllTheirCounters) {
  open.is_encrypted = 1;
  open.clients = 2;
  open.most_waiting_bytes = 7;
  for (std::size_t i = 0; i < open.counts.size(); ++i) open.counts[i] = i + 1;
  const json seen =
      to_json(take_sample(segments_of({&a, &b}), kNow, asleep))["groups"][0]["relays"];
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0]["address"], "10.0.0.9:7");
  EXPECT_EQ(seen[0]["encrypted"], false);
  const json& relay = seen[1];
  EXPECT_EQ(relay["address"], "[::9]:80");
  EXPECT_EQ(relay["name"], "node1");
  EXPECT_EQ(relay["encrypted"], true);
  EXPECT_EQ(relay["clients"], 2);
  EXPECT_EQ(relay["most_clients"], 1000);
  EXPECT_EQ(relay["most_waiting_bytes"], 7);
  std::uint64_t number = 0;
  for (const char* const name :
       {"accepted", "rejected", "damaged", "dropped", "resumed", "published", "published_bytes",
        "repeated", "delivered", "delivered_bytes", "skipped"}) {
    EXPECT_EQ(relay[name], ++number) << name;
    EXPECT_TRUE(relay[std::string(name) + "_per_s"].is_null()) << "one look";
  }
}

TEST_F(TopRelays, AreNamedWhereAllGroupsAreShown) {
  const FakeMember other(0, 1, "lab");
  const Sample sample = take_sample(segments_of({&a, &b, &other}), kNow, asleep);
  bool is_named = false;
  for (const Line& line : describe(sample, {}))
    is_named |= line.text.ends_with(", relay 10.0.0.9:7, relay [::9]:80");
  EXPECT_TRUE(is_named);
}

TEST_F(TopRelays, LeaveOutADamagedPageWithARemark) {
  open.version = 2;
  const Sample sample = take_sample(segments_of({&a, &b}), kNow, asleep);
  EXPECT_EQ(sample.groups[0].relays.size(), 1U);
  ASSERT_EQ(sample.remarks.size(), 1U);
  EXPECT_EQ(sample.remarks[0],
            "group rack7: the statistics of the relay at '[::9]:80' of process 101 are "
            "damaged, or of another version");
}

TEST(TopRelayPage, IsNotBelievedIfItContradictsItself) {
  const FakeMemory memory(sizeof(relay_page::Page));
  auto& page = *reinterpret_cast<relay_page::Page*>(memory.data());
  EXPECT_FALSE(read_relay(memory.span())) << "zeros";
  mark(page);
  page.clients = 1000;
  page.counts.fill(UINT64_MAX);  // odd, but harmless
  ASSERT_TRUE(read_relay(memory.span()));
  EXPECT_FALSE(read_relay(memory.span().first(sizeof(relay_page::Page) - 1))) << "short";
  EXPECT_FALSE(read_relay(memory.span().subspan(1))) << "not aligned";
  page.clients = 1001;
  EXPECT_FALSE(read_relay(memory.span())) << "more clients than it takes";
  page.clients = 0;
  page.magic ^= 1;
  EXPECT_FALSE(read_relay(memory.span())) << "another magic";
}

struct Reading {
  std::int32_t sensor = 0;
  double celsius = 0;
};

TEST(TopRelaysOnShm, SeesARelayOfThisHost) {
  const std::string name = test::fresh_group();
  const auto fabric = shm::join({.group = name, .members = 1, .silence_timeout_ms = 0});
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
  const std::vector<const char*> words{"dunlin",     "top",  "--once",    "--json",
                                       "--interval", "0.01", name.c_str()};
  json seen;
  do {
    participant.poll();
    relay.poll();
    testing::internal::CaptureStdout();
    EXPECT_EQ(app::run(static_cast<int>(words.size()), words.data()), app::Status::ok);
    seen = json::parse(testing::internal::GetCapturedStdout()).at("groups").at(0).at("relays");
  } while (seen.at(0).at("delivered") != 5);
  EXPECT_EQ(seen[0]["address"], place);
  EXPECT_EQ(seen[0]["clients"], 1);
  EXPECT_EQ(seen[0]["most_clients"], 10);
  EXPECT_EQ(seen[0]["accepted"], 1);
  EXPECT_EQ(seen[0]["resumed"], 0);
  EXPECT_EQ(seen[0]["published"], 5);
  EXPECT_EQ(seen[0]["published_bytes"], 5 * sizeof(Reading));
  EXPECT_EQ(seen[0]["delivered_bytes"], 5 * sizeof(Reading));
}

}  // namespace
}  // namespace dunlin::top
