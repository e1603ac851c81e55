#include <algorithm>
#include <array>
#include <functional>
#include <list>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "fabric/core/core.hpp"

namespace dunlin {
namespace {

/// Moves nothing, and shows what the core asks of a backend.
class FakeBackend final : public FabricBackend {
 public:
  Posted post(std::span<const Operation> batch) noexcept { return {batch.size()}; }
  std::size_t poll() noexcept {
    if (!core().begin_poll()) return 0;
    if (within_poll) std::exchange(within_poll, nullptr)();
    if (core().has_duties()) core().perform_duties();
    return core().end_poll();
  }
  Refusal send(Rank, std::uint32_t, std::span<const std::byte>) noexcept override {
    return Refusal::none;
  }
  void forget(const Completion&) noexcept override {}
  void close(Rank peer) noexcept override { closed.push_back(peer); }
  void drain(Rank peer) override { drained.push_back(peer); }
  void admit(const Admission& admission) override { admitted.push_back(admission.first); }
  std::span<std::byte> map(RegionId, const LocalRegion& region) override {
    if (memory_is_full) throw Error("full");
    specs.push_back(region.spec);
    return memory_.emplace_back(region.spec.bytes);
  }
  void open(RegionId, const LocalRegion&, RemoteRegion&) override {
    if (cannot_open) throw Error("cannot open");
  }
  void announce(Rank peer, RegionId, const LocalRegion& region) override {
    announced.emplace_back(peer, region.number);
  }
  void withdraw(Rank, RegionId, const LocalRegion& region) noexcept override {
    withdrawn.push_back(region.number);
  }
  void unmap(RegionId id, const LocalRegion&) noexcept override { released.push_back(id); }
  void connect(Rank, RegionId, const RemoteRegion&) noexcept override { ++connections; }
  void disconnect(Rank, RegionId) noexcept override { --connections; }
  void let_go(Rank, RemoteRegion& there) noexcept override { let_go_of.push_back(there.number); }
  std::uint64_t now_ns() const noexcept override { return 0; }
  FabricCore& the_core() const { return core(); }

  std::function<void()> within_poll;
  std::vector<RegionSpec> specs;
  std::vector<RegionId> released;
  std::vector<std::pair<Rank, std::uint64_t>> announced;
  std::vector<std::uint64_t> withdrawn;
  std::vector<std::uint64_t> let_go_of;
  std::vector<Rank> closed;
  std::vector<Rank> drained;
  std::vector<Rank> admitted;
  int connections = 0;
  bool memory_is_full = false;
  bool cannot_open = false;

 private:
  std::list<std::vector<std::byte>> memory_;
};

struct FakeFabric {
  explicit FakeFabric(std::uint32_t size,
                      std::unique_ptr<FakeBackend> made = std::make_unique<FakeBackend>())
      : backend(*made),
        fabric(
            make_fabric({.kind = "fake", .group = "test", .names = {size, ""}}, std::move(made))) {}
  Fabric* operator->() const { return fabric.get(); }
  [[nodiscard]] Region allocate(const RegionSpec& spec) const { return fabric->allocate(spec); }
  /// The backend finds something while it polls.
  void poll(std::function<void(FabricCore&)> found) const {
    backend.within_poll = [this, found] { found(backend.the_core()); };
    fabric->poll();
  }
  void emit() const {
    poll([](FabricCore& core) {
      EXPECT_EQ(
          core.on_announcement(1, {.number = 700, .bytes = 8, .generation = 1, .name = "event"}),
          nullptr);
      EXPECT_EQ(core.on_withdrawal(1, 700), nullptr);
    });
  }

  FakeBackend& backend;
  std::unique_ptr<Fabric> fabric;
};

void expect_error(const std::function<void()>& action, std::string_view part) {
  try {
    action();
    ADD_FAILURE() << "no Error; expected one with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
  }
}

TEST(Fabric, CountsTheAllocationsOfANameAsItsGeneration) {
  FakeFabric fabric(1);
  { Region first = fabric.allocate({.name = "table", .bytes = 8}); }
  Region second = fabric.allocate({.name = "table", .bytes = 8});
  Region other = fabric.allocate({.name = "other", .bytes = 8});
  Region stated = fabric.allocate({.name = "table", .bytes = 8, .generation = 17});
  ASSERT_EQ(fabric.backend.specs.size(), 4u);
  EXPECT_EQ(fabric.backend.specs[0].generation, 1u);
  EXPECT_EQ(fabric.backend.specs[1].generation, 2u);
  EXPECT_EQ(fabric.backend.specs[2].generation, 1u);
  EXPECT_EQ(fabric.backend.specs[3].generation, 17u);
}

TEST(Fabric, DoesNotCountAnAllocationThatFailed) {
  FakeFabric fabric(1);
  fabric.backend.memory_is_full = true;
  expect_error([&] { auto lost = fabric.allocate({.name = "table", .bytes = 8}); }, "full");
  fabric.backend.memory_is_full = false;
  Region region = fabric.allocate({.name = "table", .bytes = 8});
  EXPECT_EQ(fabric.backend.specs.at(0).generation, 1u);
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
  EXPECT_TRUE(fabric.backend.released.empty());
  kept = Region();
  EXPECT_EQ(fabric.backend.released, std::vector<RegionId>{id});
}

TEST(Fabric, ReleasesARegionThatIsAssignedOverAtOnce) {
  FakeFabric fabric(1);
  Region kept = fabric.allocate({.name = "old", .bytes = 8});
  Region fresh = fabric.allocate({.name = "new", .bytes = 8});
  const RegionId old = kept.id();
  kept = std::move(fresh);
  EXPECT_EQ(fabric.backend.released, std::vector<RegionId>{old});
  Region& self = kept;
  kept = std::move(self);
  EXPECT_EQ(fabric.backend.released.size(), 1u);
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
  EXPECT_TRUE(fabric.backend.specs.empty());
}

TEST(Fabric, RefusesASecondRegionOfTheSameNameAndGeneration) {
  FakeFabric fabric(1);
  std::optional<Region> region = fabric.allocate({.name = "a", .bytes = 8, .generation = 3});
  expect_error([&] { auto r = fabric.allocate({.name = "a", .bytes = 8, .generation = 3}); },
               "generation 3");
  region.reset();
  region = fabric.allocate({.name = "a", .bytes = 8, .generation = 3});
  EXPECT_EQ(fabric.backend.specs.size(), 2u);
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
  Subscription subscription = fabric->subscribe([&](const Event& event) {
    EXPECT_EQ(event.kind, Event::Kind::peer_failed);
    EXPECT_EQ(event.peer, 2u);
    heard.emplace_back(event.text);
  });
  fabric.poll([](FabricCore& core) {
    core.fail(2, "it hung up");
    core.fail(2, "it is silent");
  });
  ASSERT_EQ(heard, std::vector<std::string>{"member of rank 2 failed: it hung up"});
  EXPECT_TRUE(fabric->failed(2));
  EXPECT_FALSE(fabric->failed(1));
  EXPECT_FALSE(fabric->failed(99));
  EXPECT_EQ(fabric->failure_text(2), heard[0]);
  EXPECT_EQ(fabric.backend.closed, std::vector<Rank>{2});
  EXPECT_EQ(fabric.backend.drained, std::vector<Rank>{2}) << "before it was closed";
}

TEST(Fabric, FailsAPeerOnceThoughAHandlerExpelsItMeanwhile) {
  FakeFabric fabric(2);
  int events = 0;
  Subscription subscription = fabric->subscribe([&](const Event&) {
    ++events;
    fabric->expel(1, "too late");
  });
  fabric.poll([](FabricCore& core) { core.fail_soon(1, "it hung up"); });
  fabric->poll();
  EXPECT_EQ(events, 1);
  EXPECT_EQ(fabric.backend.closed.size(), 1u);
}

TEST(Fabric, PartsFromAPeerAtOnceThatAHandlerExpelsWhileItFails) {
  FakeFabric fabric(2);
  Region region = fabric.allocate({.name = "a", .bytes = 8});
  bool parted = false;
  std::string heard;
  Subscription subscription = fabric->subscribe([&](const Event& event) {
    heard += event.text;
    if (event.kind != Event::Kind::region_refused) return;
    fabric->expel(1, "voted out");
    parted = fabric.backend.closed == std::vector<Rank>{1};
  });
  fabric.poll([&](FabricCore& core) {
    const auto announce = [&](std::uint64_t number, const char* name) {
      EXPECT_EQ(core.on_announcement(1, {.number = number,
                                         .bytes = 8,
                                         .generation = 1,
                                         .layout_hash = 5,
                                         .name = name,
                                         .layout_text = "theirs"}),
                nullptr);
    };
    announce(kMaxRegions, "b");
    announce(kMaxRegions + 1, "c");
  });
  Region b = fabric.allocate({.name = "b", .bytes = 8, .layout_text = "ours"});
  Region c = fabric.allocate({.name = "c", .bytes = 8, .layout_hash = 5, .layout_text = "theirs"});
  fabric.poll([](FabricCore& core) { core.fail(1, "it hung up"); });
  EXPECT_TRUE(parted);
  EXPECT_FALSE(fabric->connected(1, c.id())) << "its announcements go nowhere";
  EXPECT_EQ(fabric.backend.closed.size(), 1u);
  EXPECT_EQ(fabric.backend.let_go_of.size(), 2u);
  EXPECT_EQ(fabric->failure_text(1), "voted out");
}

TEST(Fabric, PartsFromAnExpelledPeerAtOnceAndSaysSoInTheNextPoll) {
  FakeFabric fabric(2);
  std::string heard;
  Subscription subscription = fabric->subscribe([&](const Event& event) { heard += event.text; });
  fabric->expel(1, "voted out");
  EXPECT_TRUE(fabric->failed(1));
  EXPECT_EQ(fabric.backend.closed, std::vector<Rank>{1});
  EXPECT_EQ(heard, "");
  fabric->poll();
  EXPECT_EQ(heard, "voted out");
}

TEST(Fabric, ConnectsRegionsWhicheverSideCameFirst) {
  FakeFabric fabric(3);
  std::vector<Event::Kind> events;
  Subscription subscription =
      fabric->subscribe([&](const Event& event) { events.push_back(event.kind); });
  fabric.poll([](FabricCore& core) {
    EXPECT_EQ(
        core.on_announcement(1, {.number = kMaxRegions, .bytes = 8, .generation = 1, .name = "a"}),
        nullptr);
  });
  EXPECT_TRUE(events.empty());
  Region region = fabric.allocate({.name = "a", .bytes = 8});
  EXPECT_FALSE(fabric->connected(1, region.id())) << "only a poll tells of it";
  fabric->poll();
  EXPECT_TRUE(fabric->connected(1, region.id()));
  fabric.poll([](FabricCore& core) {
    EXPECT_EQ(
        core.on_announcement(2, {.number = kMaxRegions, .bytes = 8, .generation = 1, .name = "a"}),
        nullptr);
  });
  EXPECT_TRUE(fabric->connected(2, region.id()));
  EXPECT_EQ(fabric.backend.connections, 2);
  fabric.poll([](FabricCore& core) { EXPECT_EQ(core.on_withdrawal(1, kMaxRegions), nullptr); });
  EXPECT_FALSE(fabric->connected(1, region.id()));
  EXPECT_EQ(fabric.backend.let_go_of, std::vector<std::uint64_t>{kMaxRegions});
  using enum Event::Kind;
  EXPECT_EQ(events, (std::vector{region_connected, region_connected, region_withdrawn}));
}

TEST(Fabric, ConnectsAReleasedRegionsSuccessorOfTheSameName) {
  FakeFabric fabric(2);
  std::optional<Region> region = fabric.allocate({.name = "a", .bytes = 8, .generation = 3});
  fabric.poll([](FabricCore& core) {
    EXPECT_EQ(
        core.on_announcement(1, {.number = kMaxRegions, .bytes = 8, .generation = 3, .name = "a"}),
        nullptr);
  });
  EXPECT_EQ(fabric.backend.connections, 1);
  region.reset();
  EXPECT_EQ(fabric.backend.connections, 0);
  region = fabric.allocate({.name = "a", .bytes = 8, .generation = 3});
  fabric->poll();
  EXPECT_TRUE(fabric->connected(1, region->id()));
}

TEST(Fabric, RefusesARegionOfAnotherLayoutAndNamesBothSides) {
  FakeFabric fabric(2);
  std::string heard;
  Subscription subscription = fabric->subscribe([&](const Event& event) {
    EXPECT_EQ(event.kind, Event::Kind::region_refused);
    heard += event.text;
  });
  Region region =
      fabric.allocate({.name = "a", .bytes = 8, .layout_hash = 1, .layout_text = "one"});
  fabric.poll([](FabricCore& core) {
    const auto fault = core.on_announcement(1, {.number = kMaxRegions,
                                                .bytes = 8,
                                                .generation = 1,
                                                .layout_hash = 2,
                                                .name = "a",
                                                .layout_text = "two"});
    EXPECT_EQ(fault, nullptr);
  });
  EXPECT_FALSE(fabric->connected(1, region.id()));
  for (const char* part : {"rank 0", "rank 1", "one", "two"})
    EXPECT_NE(heard.find(part), std::string::npos) << heard;
}

TEST(Fabric, BelievesNoAnnouncementThatCannotBe) {
  FakeFabric fabric(2);
  fabric.poll([](FabricCore& core) {
    EXPECT_NE(core.on_withdrawal(1, kMaxRegions), nullptr);
    for (std::uint64_t number = kMaxRegions; number < 2 * kMaxRegions; ++number)
      EXPECT_EQ(core.on_announcement(1, {.number = number, .bytes = 8, .name = "a"}), nullptr);
    EXPECT_NE(core.on_announcement(1, {.number = 2 * kMaxRegions, .bytes = 8, .name = "a"}),
              nullptr);
    EXPECT_EQ(core.on_withdrawal(1, kMaxRegions + 1), nullptr);
    EXPECT_NE(core.on_announcement(1, {.number = kMaxRegions, .bytes = 8, .name = "a"}), nullptr);
  });
}

TEST(Fabric, TellsTheNumberOfAReleasedRegionFromOneThatNeverWas) {
  FakeFabric fabric(2);
  std::uint64_t number = 0;
  bool known = false;
  {
    Region region = fabric.allocate({.name = "a", .bytes = 8});
    fabric->announce(region);
    number = fabric.backend.announced.at(0).second;
    EXPECT_NE(fabric.backend.the_core().find(number, known), nullptr);
  }
  EXPECT_EQ(fabric.backend.withdrawn, std::vector<std::uint64_t>{number});
  EXPECT_EQ(fabric.backend.the_core().find(number, known), nullptr);
  EXPECT_TRUE(known);
  EXPECT_EQ(fabric.backend.the_core().find(number + kMaxRegions, known), nullptr);
  EXPECT_FALSE(known);
}

TEST(Fabric, CanAnnounceARegionAgainAfterTheBackendCouldNot) {
  FakeFabric fabric(2);
  Region region = fabric.allocate({.name = "a", .bytes = 8});
  fabric.backend.cannot_open = true;
  expect_error([&] { fabric->announce(region); }, "cannot open");
  EXPECT_FALSE(fabric->connected(0, region.id()));
  fabric.backend.cannot_open = false;
  fabric->announce(region);
  fabric->announce(region);
  EXPECT_EQ(fabric.backend.announced.size(), 1u);
  EXPECT_TRUE(fabric->connected(0, region.id()));
}

TEST(Fabric, LetsAHandlerUnsubscribeItselfAndOthers) {
  FakeFabric fabric(2);
  Region region = fabric.allocate({.name = "event", .bytes = 8});
  int first = 0, second = 0, third = 0;
  Subscription b;
  Subscription a = fabric->subscribe([&](const Event&) {
    ++first;
    a = Subscription();
    b = Subscription();
  });
  b = fabric->subscribe([&](const Event&) { ++second; });
  Subscription c = fabric->subscribe([&](const Event&) { ++third; });
  fabric.emit();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  EXPECT_EQ(third, 2);
}

TEST(Fabric, TellsANewSubscriberOnlyOfLaterEvents) {
  FakeFabric fabric(2);
  Region region = fabric.allocate({.name = "event", .bytes = 8});
  int late = 0;
  std::list<Subscription> subscriptions;
  subscriptions.push_back(fabric->subscribe([&](const Event& event) {
    if (event.kind != Event::Kind::region_withdrawn) return;
    while (subscriptions.size() < 100)
      subscriptions.push_back(fabric->subscribe([&](const Event&) { ++late; }));
  }));
  fabric.emit();
  EXPECT_EQ(late, 0);
  fabric.emit();
  EXPECT_EQ(late, 2 * 99);
}

TEST(Fabric, HoldsMessagesBackUntilTheChannelHasAHandler) {
  FakeFabric fabric(2);
  const std::array<std::byte, 3> text{};
  fabric.poll([&](FabricCore& core) { EXPECT_FALSE(core.deliver(1, 5, text)); });
  std::size_t heard = 0;
  fabric->receive(5, [&](Rank from, std::span<const std::byte> message) {
    EXPECT_EQ(from, 1u);
    heard += message.size();
  });
  EXPECT_TRUE(fabric.backend.drained.empty()) << "handlers run in poll() only";
  fabric->poll();
  EXPECT_EQ(fabric.backend.drained, (std::vector<Rank>{0, 1}));
  fabric.poll([&](FabricCore& core) {
    EXPECT_TRUE(core.deliver(1, 5, text));
    EXPECT_FALSE(core.deliver(1, 6, text));
  });
  EXPECT_EQ(heard, 3u);
}

TEST(Fabric, LetsAMessageHandlerReplaceItself) {
  FakeFabric fabric(2);
  std::string heard;
  std::string text(100, 'x');  // on the heap: a destroyed handler would show under the sanitizer
  fabric->receive(0, [&fabric, &heard, text](Rank, std::span<const std::byte>) {
    fabric->receive(0, [&heard](Rank, std::span<const std::byte>) { heard += "second"; });
    heard += text.substr(0, 1);
  });
  fabric.poll([](FabricCore& core) {
    EXPECT_TRUE(core.deliver(1, 0, {}));
    EXPECT_TRUE(core.deliver(1, 0, {}));
  });
  EXPECT_EQ(heard, "xsecond");
}

TEST(Fabric, PollsNotWithinAPoll) {
  FakeFabric fabric(2);
  int inner = 0;
  fabric.poll([&](FabricCore&) {
    fabric.backend.within_poll = [&] { ++inner; };
    EXPECT_EQ(fabric->poll(), 0u);
  });
  EXPECT_EQ(inner, 0);
}

TEST(Fabric, RefusesAChannelOverTheLimit) {
  FakeFabric fabric(1);
  expect_error([&] { fabric->receive(kMaxChannels, [](Rank, std::span<const std::byte>) {}); },
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
