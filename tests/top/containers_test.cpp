#include "top/containers.hpp"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <dunlin/dunlin.hpp>

#include "command.hpp"
#include "container/statistics_page_format.hpp"
#include "support/fresh_group.hpp"
#include "top/fake_group.hpp"
#include "top/json.hpp"
#include "top/text.hpp"

namespace dunlin::top {
namespace {

using container_page::Kind;
using container_page::Slot;
using container_page::Way;
using nlohmann::json;

void mark(container_page::Page& page) {
  page.magic = container_page::kMagic;
  page.version = container_page::kVersion;
}

Slot& fill(container_page::Page& page, std::size_t place, Kind kind, std::string_view name) {
  Slot& slot = page.slots.at(place);
  slot.kind = static_cast<std::uint32_t>(kind);
  slot.name_bytes = static_cast<std::uint32_t>(name.size());
  std::memcpy(slot.name.data(), name.data(), name.size());
  slot.entries = slot.capacity = container_page::kUnknown;
  ++page.containers;
  return slot;
}

std::uint64_t& calls(Slot& slot, Way way) { return slot.calls[static_cast<std::size_t>(way)]; }

struct TopContainers : testing::Test {
  TopContainers() {
    for (container_page::Page* const page : {&of_a, &of_b}) mark(*page);
  }
  FakeMember a{0, 2};
  FakeMember b{1, 2};
  container_page::Page& of_a = a.publish<container_page::Page>("containers:12");
  container_page::Page& of_b = b.publish<container_page::Page>("containers:12");
};

TEST_F(TopContainers, PrintsEachContainerWithItsMembers) {
  fill(of_b, 0, Kind::map, "prices").capacity = 1'000;
  Slot& host = fill(of_a, 0, Kind::queue, "work");
  host.entries = 17;
  host.capacity = 64;
  Slot& map = fill(of_a, 5, Kind::map, "prices");
  map.entries = 450;
  map.capacity = 1'000;
  of_a.in_flight = 3;
  of_b.containers = container_page::kMaxShown + 2;
  const Sample before = take_sample(segments_of({&a, &b}), kNow - kSecondNs, asleep);
  calls(map, Way::one_sided) = 5'000;
  calls(map, Way::by_message) = 300;
  calls(map, Way::local) = 40;
  calls(host, Way::served) = 20;
  Sample after = take_sample(segments_of({&a, &b}), kNow, asleep);
  compare(before, after);
  std::string text = "\n";
  bool is_shown = false;
  for (const Line& line : describe(after, {.width = 100})) {
    is_shown |= line.text.starts_with("containers ");
    if (is_shown) text += line.text + "\n";
  }
  EXPECT_EQ(text, R"(
containers of channel 12
  CONTAINER   MEMBER  ENTRIES  CAPACITY  ONE-SIDED/s  MESSAGE/s  LOCAL/s  SERVED/s
  map prices  node0       450      1000        5.0 k        300       40         0
  map prices  node1         -      1000            0          0        0         0
  queue work  node0        17        64            0          0        0        20
  in flight: node0 3, node1 0
  2 more containers
)");
  const auto shown = to_json(after)["groups"][0]["containers"][0];
  EXPECT_EQ(shown["channel"], "12");
  EXPECT_EQ(shown["members"][0]["in_flight"], 3);
  EXPECT_EQ(shown["members"][1]["containers_not_shown"], 2);
  EXPECT_EQ(shown["containers"][0]["kind"], "map");
  EXPECT_EQ(shown["containers"][0]["one_sided_per_s"], 5'000);
  EXPECT_TRUE(shown["containers"][1]["entries"].is_null());
}

TEST(TopContainersPage, LosesDamagedSlotsAndNoOthers) {
  const FakeMemory memory(sizeof(container_page::Page));
  auto& page = *reinterpret_cast<container_page::Page*>(memory.data());
  EXPECT_FALSE(read_containers(memory.span())) << "zeros";
  mark(page);
  ASSERT_TRUE(read_containers(memory.span()));
  EXPECT_TRUE(read_containers(memory.span())->containers.empty());
  fill(page, 0, Kind::map, "good");
  fill(page, 1, static_cast<Kind>(7), "of no kind");
  fill(page, 2, Kind::set, "long").name_bytes = kMaxContainerNameBytes + 1;
  fill(page, 63, Kind::counter, "last");
  page.containers = UINT64_MAX;
  const auto seen = read_containers(memory.span());
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->containers.size(), 2U);
  EXPECT_EQ(seen->containers[0].name, "good");
  EXPECT_EQ(seen->containers[1].name, "last");
  EXPECT_EQ(seen->not_shown, UINT64_MAX - container_page::kMaxShown);
  EXPECT_FALSE(read_containers(memory.span().first(sizeof(container_page::Page) - 1))) << "short";
  page.version = 2;
  EXPECT_FALSE(read_containers(memory.span())) << "another version";
}

TEST(TopContainersOnShm, SeesTheContainersOfThisHost) {
  const std::string group = test::fresh_group();
  const auto fabric = shm::join({.group = group, .members = 1, .silence_timeout_ms = 0});
  Containers containers(*fabric);
  HashMap<int, int> map(containers, {.name = "prices", .slots = 100});
  for (int key = 0; key < 5; ++key) map.insert(key, key).wait();
  const std::vector<const char*> words{"dunlin",     "top",  "--once",     "--json",
                                       "--interval", "0.01", group.c_str()};
  json line;
  do {
    containers.poll();
    testing::internal::CaptureStdout();
    EXPECT_EQ(app::run(static_cast<int>(words.size()), words.data()), app::Status::ok);
    const json seen = json::parse(testing::internal::GetCapturedStdout());
    line = seen.at("groups").at(0).at("containers").at(0).at("containers").at(0);
  } while (line.at("entries") != 5);
  EXPECT_EQ(line["name"], "prices");
  EXPECT_EQ(line["capacity"], 100);
  EXPECT_EQ(line["local"], 5);
}

}  // namespace
}  // namespace dunlin::top
