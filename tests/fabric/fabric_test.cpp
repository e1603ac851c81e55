#include <algorithm>
#include <array>
#include <functional>
#include <list>
#include <optional>

#include <gtest/gtest.h>

#include <dunlin/fabric.hpp>

namespace dunlin {
namespace {

/// Stands in for a backend, to see what the common part asks of one.
class FakeFabric final : public Fabric {
 public:
  explicit FakeFabric(std::uint32_t size) { peers_.resize(size); }

  std::string_view kind() const noexcept override { return "fake"; }
  bool connected(Rank, RegionId) const noexcept override { return false; }
  Posted post(std::span<const Operation> batch) noexcept override { return {batch.size()}; }
  Refusal send(Rank, std::uint32_t, std::span<const std::byte>) noexcept override {
    return Refusal::none;
  }
  std::size_t poll() noexcept override { return 0; }
  void abandon(Completion&) noexcept override {}
  std::uint64_t now_ns() const noexcept override { return 0; }
  void prepare_sleep() noexcept override {}
  void cancel_sleep() noexcept override {}
  void sleep(std::uint64_t) noexcept override {}
  void wake() noexcept override {}
  void wake_at(std::uint64_t) noexcept override {}

  using Fabric::deliver;
  using Fabric::emit;
  using Fabric::fail_peer;

  std::vector<RegionSpec> specs;
  std::vector<RegionId> released;
  std::vector<std::uint32_t> opened;
  bool memory_is_full = false;

 protected:
  std::span<std::byte> do_allocate(RegionId, const RegionSpec& spec, bool) override {
    if (memory_is_full) throw Error("full");
    specs.push_back(spec);
    return memory_.emplace_back(spec.bytes);
  }
  void do_announce(RegionId) override {}
  void do_release(RegionId id) noexcept override { released.push_back(id); }
  void channel_opened(std::uint32_t channel) noexcept override { opened.push_back(channel); }
  void part_with_expelled(Rank) noexcept override {}

 private:
  std::list<std::vector<std::byte>> memory_;
};

constexpr Event kSomething{Event::Kind::region_connected, 1, {}, "something"};

void expect_error(const std::function<void()>& action, std::string_view part) {
  try {
    action();
    ADD_FAILURE() << "no Error; expected one with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
  }
}

TEST(Fabric, CountsTheAllocationsOfANameAsItsEpoch) {
  FakeFabric fabric(1);
  { Region first = fabric.allocate({.name = "table", .bytes = 8}); }
  Region second = fabric.allocate({.name = "table", .bytes = 8});
  Region other = fabric.allocate({.name = "other", .bytes = 8});
  Region stated = fabric.allocate({.name = "table", .bytes = 8, .epoch = 17});
  ASSERT_EQ(fabric.specs.size(), 4u);
  EXPECT_EQ(fabric.specs[0].epoch, 1u);
  EXPECT_EQ(fabric.specs[1].epoch, 2u);
  EXPECT_EQ(fabric.specs[2].epoch, 1u);
  EXPECT_EQ(fabric.specs[3].epoch, 17u);
}

TEST(Fabric, DoesNotCountAnAllocationThatFailed) {
  FakeFabric fabric(1);
  fabric.memory_is_full = true;
  expect_error([&] { auto lost = fabric.allocate({.name = "table", .bytes = 8}); }, "full");
  fabric.memory_is_full = false;
  Region region = fabric.allocate({.name = "table", .bytes = 8});
  EXPECT_EQ(fabric.specs.at(0).epoch, 1u);
}

TEST(Fabric, ReleasesARegionOnceWhoeverHoldsItLast) {
  FakeFabric fabric(1);
  Region kept;
  RegionId id;
  {
    Region region = fabric.allocate({.name = "table", .bytes = 8});
    id = region.id();
    kept = std::move(region);
  }
  EXPECT_TRUE(fabric.released.empty());
  kept = Region();
  EXPECT_EQ(fabric.released, std::vector<RegionId>{id});
}

TEST(Fabric, ReleasesARegionThatIsAssignedOverAtOnce) {
  FakeFabric fabric(1);
  Region kept = fabric.allocate({.name = "old", .bytes = 8});
  Region fresh = fabric.allocate({.name = "new", .bytes = 8});
  const RegionId old = kept.id();
  kept = std::move(fresh);
  EXPECT_EQ(fabric.released, std::vector<RegionId>{old});
  Region& self = kept;
  kept = std::move(self);
  EXPECT_EQ(fabric.released.size(), 1u);
}

TEST(Fabric, DoesNotReuseTheIdOfAReleasedRegionAtOnce) {
  FakeFabric fabric(1);
  RegionId first;
  {
    Region region = fabric.allocate({.name = "a", .bytes = 8});
    first = region.id();
  }
  Region region = fabric.allocate({.name = "a", .bytes = 8});
  EXPECT_NE(region.id(), first);
}

TEST(Fabric, RefusesRegionsOverTheLimits) {
  FakeFabric fabric(1);
  expect_error([&] { auto r = fabric.allocate({.name = "", .bytes = 8}); }, "kMaxRegionNameBytes");
  expect_error([&] { auto r = fabric.allocate({.name = std::string(65, 'x'), .bytes = 8}); },
               "kMaxRegionNameBytes");
  expect_error([&] { auto r = fabric.allocate({.name = "a\nb", .bytes = 8}); }, "'a?b'");
  expect_error([&] { auto r = fabric.allocate({.name = "a"}); }, "at least one");
  expect_error([&] { auto r = fabric.allocate({.name = "a", .bytes = kMaxRegionBytes + 1}); },
               "kMaxRegionBytes");
  expect_error(
      [&] {
        auto r = fabric.allocate(
            {.name = "a", .bytes = 8, .layout_text = std::string(kMaxLayoutTextBytes + 1, 'x')});
      },
      "kMaxLayoutTextBytes");
  EXPECT_TRUE(fabric.specs.empty());
}

TEST(Fabric, RefusesASecondRegionOfTheSameNameAndEpoch) {
  FakeFabric fabric(1);
  std::optional<Region> region = fabric.allocate({.name = "a", .bytes = 8, .epoch = 3});
  expect_error([&] { auto r = fabric.allocate({.name = "a", .bytes = 8, .epoch = 3}); }, "epoch 3");
  region.reset();
  region = fabric.allocate({.name = "a", .bytes = 8, .epoch = 3});
  EXPECT_EQ(fabric.specs.size(), 2u);
}

TEST(Fabric, HoldsAtMostTheStatedNumberOfRegions) {
  FakeFabric fabric(1);
  std::vector<Region> regions;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i)
    regions.push_back(fabric.allocate({.name = "r", .bytes = 8}));
  expect_error([&] { auto r = fabric.allocate({.name = "r", .bytes = 8}); }, "kMaxRegions");
  regions.pop_back();
  regions.push_back(fabric.allocate({.name = "r", .bytes = 8}));
}

TEST(Fabric, AnnouncesAFailureOnce) {
  FakeFabric fabric(3);
  std::vector<std::string> heard;
  Subscription subscription = fabric.subscribe([&](const Event& event) {
    EXPECT_EQ(event.kind, Event::Kind::peer_failed);
    EXPECT_EQ(event.peer, 2u);
    heard.emplace_back(event.text);
  });
  fabric.fail_peer(2, "hung up");
  fabric.fail_peer(2, "silent");
  EXPECT_EQ(heard, std::vector<std::string>{"hung up"});
  EXPECT_TRUE(fabric.failed(2));
  EXPECT_FALSE(fabric.failed(1));
  EXPECT_FALSE(fabric.failed(99));
  EXPECT_EQ(fabric.failure_text(2), "hung up");
}

TEST(Fabric, LetsAHandlerUnsubscribeItselfAndOthers) {
  FakeFabric fabric(2);
  int first = 0, second = 0, third = 0;
  Subscription b;
  Subscription a = fabric.subscribe([&](const Event&) {
    ++first;
    a = Subscription();
    b = Subscription();
  });
  b = fabric.subscribe([&](const Event&) { ++second; });
  Subscription c = fabric.subscribe([&](const Event&) { ++third; });
  fabric.emit(kSomething);
  fabric.emit(kSomething);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  EXPECT_EQ(third, 2);
}

TEST(Fabric, TellsANewSubscriberOnlyOfLaterEvents) {
  FakeFabric fabric(2);
  int late = 0;
  std::list<Subscription> subscriptions;
  subscriptions.push_back(fabric.subscribe([&](const Event&) {
    while (subscriptions.size() < 100)
      subscriptions.push_back(fabric.subscribe([&](const Event&) { ++late; }));
  }));
  fabric.emit(kSomething);
  EXPECT_EQ(late, 0);
  fabric.emit(kSomething);
  EXPECT_EQ(late, 99);
}

TEST(Fabric, HoldsMessagesBackUntilTheChannelHasAHandler) {
  FakeFabric fabric(2);
  const std::array<std::byte, 3> text{};
  EXPECT_FALSE(fabric.deliver(1, 5, text));
  std::size_t heard = 0;
  fabric.receive(5, [&](Rank from, std::span<const std::byte> message) {
    EXPECT_EQ(from, 1u);
    heard += message.size();
  });
  EXPECT_EQ(fabric.opened, std::vector<std::uint32_t>{5});
  EXPECT_TRUE(fabric.deliver(1, 5, text));
  EXPECT_FALSE(fabric.deliver(1, 6, text));
  EXPECT_EQ(heard, 3u);
}

TEST(Fabric, LetsAMessageHandlerReplaceItself) {
  FakeFabric fabric(2);
  std::string heard;
  std::string text(100, 'x');  // on the heap: a destroyed handler would show under the sanitizer
  fabric.receive(0, [&fabric, &heard, text](Rank, std::span<const std::byte>) {
    fabric.receive(0, [&heard](Rank, std::span<const std::byte>) { heard += "second"; });
    heard += text.substr(0, 1);
  });
  EXPECT_TRUE(fabric.deliver(1, 0, {}));
  EXPECT_TRUE(fabric.deliver(1, 0, {}));
  EXPECT_EQ(heard, "xsecond");
}

TEST(Fabric, RefusesAChannelOverTheLimit) {
  FakeFabric fabric(1);
  expect_error([&] { fabric.receive(kMaxChannels, [](Rank, std::span<const std::byte>) {}); },
               "kMaxChannels");
}

TEST(Fabric, DescribesEveryRefusalDifferently) {
  std::vector<std::string_view> texts;
  for (int i = 0; i <= static_cast<int>(Refusal::unknown_region); ++i)
    texts.push_back(describe(static_cast<Refusal>(i)));
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end());
}

}  // namespace
}  // namespace dunlin
