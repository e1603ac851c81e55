#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>

#include "fabric/bytes.hpp"
#include "log/simulated_disk.hpp"
#include "multicast/log_agreement.hpp"

/// What the members of a durable subgroup believe of a peer that says what no member would say,
/// while they make their logs equal.
namespace dunlin::multicast {
namespace {

using Kind = LogAgreement::Kind;

const Subgroup kOrders{
    .name = "orders", .view = 2, .members = {0, 1, 2}, .senders = {0, 1, 2}, .had_members = false};
const std::vector<std::string> kNames{"a", "b", "c"};

/// A member as it should be: its log, and the agreement on it.
struct Honest {
  Honest(sim::World& world, Rank rank, std::uint64_t messages) : disk(rank + 1) {
    disk.latency(1'000, 1'000);
    {
      Journal before(share(disk), "log", "sim/orders");
      if (messages > 0) before.begin_view(1, {"a"});
      for (std::uint64_t slot = 0; slot < messages; ++slot)
        before.append(
            0,
            {.message = std::as_bytes(std::span("one of many")), .slot = slot, .continues = false});
      before.finish();
    }
    journal.emplace(share(disk), "log", "sim/orders");
    journal->wake(&world.fabric(rank));
    agreement.emplace(world.fabric(rank), kOrders, *journal,
                      LogAgreement::Member{.names = kNames, .given_up = {}});
    world.attach(rank, [this] { return step(); });
  }
  ~Honest() { journal->finish(); }
  Honest(const Honest&) = delete;
  Honest& operator=(const Honest&) = delete;

  static std::shared_ptr<log::Disk> share(log::SimulatedDisk& disk) {
    return {std::shared_ptr<void>(), &disk};
  }
  /// As DurableLog does.
  std::size_t step() {
    std::size_t done = agreement->poll();
    if (agreement->equal() && !appended) {
      journal->begin_view(agreement->last_view() + 1, kNames);
      agreement->appended();
      appended = true;
      ++done;
    }
    return done;
  }
  [[nodiscard]] bool has_on_disk(std::uint64_t records) const {
    return journal->durable() > records;
  }

  log::SimulatedDisk disk;
  std::optional<Journal> journal;
  std::optional<LogAgreement> agreement;
  bool appended = false;
};

/// Sends what it is told to, each as soon as there is room.
struct Liar {
  explicit Liar(sim::World& world) : view(world.fabric(2), LogAgreement::channel_of(kOrders)) {
    world.attach(2, [this] {
      while (const std::optional<Delivery> message = view.next())
        if (Reader(message->message).u32() == static_cast<std::uint32_t>(Kind::end)) end = true;
      std::size_t done = view.poll();
      while (!to_say.empty() && view.send(to_say.front()) == SendResult::sent) {
        to_say.erase(to_say.begin());
        ++done;
      }
      return done;
    });
  }
  void say(Kind kind, const std::vector<std::uint64_t>& words = {}) {
    Writer writer(to_say.emplace_back());
    writer.u32(static_cast<std::uint32_t>(kind));
    for (const std::uint64_t word : words) writer.u64(word);
  }
  /// That its log is empty.
  void report() {
    Writer writer(to_say.emplace_back());
    writer.u32(static_cast<std::uint32_t>(Kind::report));
    writer.u32(0);                                                   // not live
    writer.u64(0);                                                   // saw no view begin
    for (const std::uint32_t word : {0U, 0U, 0U}) writer.u32(word);  // no past, nobody has departed
    for (const std::uint64_t word : {1U, 0U, 1U, 0U})
      writer.u64(word);  // end and first: an empty log
    writer.u32(0);       // no views
    writer.u32(0);       // nobody is given up
  }

  SubgroupView view;
  std::vector<std::vector<std::byte>> to_say;
  bool end = false;
};

constexpr std::uint64_t kMessages = 20;
constexpr std::uint64_t kRecords = kMessages + 1;  // and the view's

/// The first member has a log; the second one and the liar have none.
struct LogAgreementPeer : testing::TestWithParam<int> {
  sim::World world{sim::profile("ib100"), 3, 1};
  Honest first{world, 0, kMessages};
  Honest second{world, 1, 0};
  Liar liar{world};

  bool run_until(const std::function<bool()>& condition) {
    return world.run_until(condition, 1'000'000'000);
  }
  void wake_all() {
    for (Rank rank = 0; rank < 3; ++rank) world.on(rank, [] {});
  }
};
INSTANTIATE_TEST_SUITE_P(, LogAgreementPeer, testing::Values(1, 2, 5),
                         [](const auto& times) { return std::to_string(times.param) + "times"; });

/// Each counts once: neither in place of another member, nor below zero.
TEST_P(LogAgreementPeer, CountsOnceHoweverOftenItSaysThatItHasStored) {
  second.disk.latency(5'000'000, 5'000'000);
  liar.report();
  wake_all();
  ASSERT_TRUE(run_until([&] { return liar.end; }));
  for (int i = 0; i < GetParam(); ++i) liar.say(Kind::stored);
  wake_all();
  ASSERT_TRUE(run_until([&] { return first.agreement->equal(); }));
  EXPECT_TRUE(second.has_on_disk(kRecords)) << "MC-L6";

  for (int i = 0; i < GetParam(); ++i) liar.say(Kind::begun);
  wake_all();
  ASSERT_TRUE(run_until([&] { return first.agreement->begun(); }));
  EXPECT_TRUE(first.has_on_disk(kRecords + 1) && second.has_on_disk(kRecords + 1)) << "MC-L1";
  ASSERT_TRUE(run_until([&] { return second.agreement->begun(); }));
  EXPECT_EQ(first.agreement->refusal(), "");
  EXPECT_EQ(second.agreement->refusal(), "");
}

/// Before there is a plan nobody has anything to store.
TEST_P(LogAgreementPeer, IsNotBelievedBeforeItsTime) {
  for (int i = 0; i < GetParam(); ++i) {
    liar.say(Kind::stored);
    liar.say(Kind::begun);
    liar.say(Kind::end);
    liar.say(Kind::plan, {1, 1, 1});
    liar.say(Kind::record, {1, 1});
    liar.report();
  }
  wake_all();
  ASSERT_TRUE(run_until([&] { return liar.end; }));
  world.run_for(10'000'000);
  EXPECT_FALSE(first.agreement->equal() || second.agreement->equal());
  liar.say(Kind::stored);
  wake_all();
  ASSERT_TRUE(run_until([&] { return first.agreement->equal() && second.agreement->equal(); }));
  EXPECT_EQ(second.journal->next(), first.journal->next());
  EXPECT_FALSE(first.agreement->begun());
}

TEST_P(LogAgreementPeer, IsNamedIfItsReportCannotBeRead) {
  liar.say(Kind::report, {7});
  wake_all();
  ASSERT_TRUE(run_until(
      [&] { return !first.agreement->refusal().empty() && !second.agreement->refusal().empty(); }));
  EXPECT_EQ(first.agreement->refusal(),
            "log 'sim/orders': cannot read the report of 'c' on its log");
}

}  // namespace
}  // namespace dunlin::multicast
