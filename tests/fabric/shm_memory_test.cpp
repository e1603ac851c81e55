#include <array>
#include <map>
#include <numeric>

#include "fabric/shm_group.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;
using test::run_members;

std::span<const std::byte> bytes_of(const std::uint64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}

TEST(ShmMemory, WhoSeesTheSignalSeesThePut) {
  constexpr std::size_t kWords = 256;
  run_members(2, [](Member& member) {
    const Rank me = member.fabric->rank(), other = 1 - me;
    std::array<std::uint64_t, kWords> block{};
    const auto* received =
        reinterpret_cast<const std::uint64_t*>(member.box.memory().data()) + kWords;
    for (std::uint64_t round = 1; round <= 2'000; ++round) {
      block.fill(round);
      const std::array<Operation, 2> batch{
          put(other, member.box.id(), sizeof block, block.data(), sizeof block),
          write(other, member.box.id(), 0, &round, 8)};
      ASSERT_TRUE(member.fabric->post(batch).all());
      while (member.word(0) != round) poll_politely(*member.fabric);
      // Plain reads: nothing but the signal orders them, which is what the sanitizer checks.
      const std::uint64_t sum = std::accumulate(received, received + kWords, std::uint64_t{0});
      ASSERT_EQ(sum, round * kWords);
      member.write_word(other, 1, round);  // the other may overwrite it now
      while (member.word(1) != round) poll_politely(*member.fabric);
    }
  });
}

TEST(ShmMemory, WhoSeesTheMessageSeesThePut) {
  run_members(2, [](Member& member) {
    const Rank other = 1 - member.fabric->rank();
    std::uint64_t seen = 0, wrong = 0;
    const auto* mine = reinterpret_cast<const std::uint64_t*>(member.box.memory().data());
    member.fabric->receive(1, [&](Rank, std::span<const std::byte> message) {
      std::memcpy(&seen, message.data(), sizeof seen);
      wrong += mine[seen] != seen;
    });
    for (std::uint64_t i = 1; i < 500; ++i) {
      ASSERT_TRUE(member.fabric->post(put(other, member.box.id(), i * 8, &i, 8)).all());
      while (member.fabric->send(other, 1, bytes_of(i)) == Refusal::queue_full)
        poll_politely(*member.fabric);
    }
    while (seen != 499) poll_politely(*member.fabric);
    EXPECT_EQ(wrong, 0u);
  });
}

TEST(ShmMemory, MessagesWaitForTheirHandler) {
  run_members(2, [](Member& member) {
    Fabric& fabric = *member.fabric;
    const Rank other = 1 - fabric.rank();
    std::vector<std::uint64_t> heard;
    const std::uint64_t one = 1, two = 2;
    EXPECT_EQ(fabric.send(other, 5, bytes_of(one)), Refusal::none);
    EXPECT_EQ(fabric.send(other, 6, bytes_of(two)), Refusal::none);
    member.write_word(other, 0, 1);
    while (member.word(0) == 0) poll_politely(fabric);
    const auto note = [&](Rank, std::span<const std::byte> message) {
      std::memcpy(&heard.emplace_back(), message.data(), 8);
    };
    fabric.receive(6, note);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(fabric.poll(), 0u);
    EXPECT_TRUE(heard.empty()) << "the first message waits, and holds back the second";
    fabric.receive(5, note);
    while (heard.size() < 2) poll_politely(fabric);
    EXPECT_EQ(heard, (std::vector<std::uint64_t>{1, 2}));
    member.write_word(other, 1, 1);
    while (member.word(1) == 0) poll_politely(fabric);
  });
}

TEST(ShmMemory, AFullRingIsBackPressure) {
  const auto fabric = join({.group = fresh_group(), .members = 1});
  const std::array<std::byte, kMaxMessageBytes> large{};
  std::size_t sent = 0, heard = 0;
  while (fabric->send(0, 0, large) == Refusal::none) ++sent;
  EXPECT_EQ(fabric->send(0, 0, large), Refusal::queue_full);
  fabric->receive(0, [&](Rank from, std::span<const std::byte> message) {
    EXPECT_EQ(from, 0u);
    heard += message.size() == large.size();
  });
  fabric->poll();
  EXPECT_EQ(heard, sent);
  EXPECT_EQ(fabric->send(0, 0, large), Refusal::none);
}

TEST(ShmMemory, OnesOwnMemoryIsReachedLikeAPeers) {
  const auto fabric = join({.group = fresh_group(), .members = 1});
  const Region box = fabric->allocate({.name = "box", .bytes = 64});
  const std::uint64_t value = 5;
  EXPECT_EQ(fabric->post(write(0, box.id(), 0, &value, 8)).refusal, Refusal::not_connected);
  fabric->announce(box);
  std::uint64_t former = 99, fetched = 0;
  const std::array<Operation, 3> batch{write(0, box.id(), 8, &value, 8),
                                       fetch_add(0, box.id(), 8, 2, &former),
                                       read(0, box.id(), 8, &fetched, 8)};
  EXPECT_TRUE(fabric->post(batch).all());
  EXPECT_EQ(former, 5u);
  EXPECT_EQ(fetched, 7u);
}

TEST(ShmMemory, ReleasedMemoryIsWithdrawnFromThePeers) {
  run_members(2, [](Member& member) {
    Fabric& fabric = *member.fabric;
    const Rank other = 1 - fabric.rank();
    std::size_t connected = 0, withdrawn = 0;
    const Subscription subscription = fabric.subscribe([&](const Event& event) {
      connected += event.kind == Event::Kind::region_connected;
      withdrawn += event.kind == Event::Kind::region_withdrawn;
    });
    Region brief = fabric.allocate({.name = "brief", .bytes = 64});
    fabric.announce(brief);
    fabric.announce(brief);  // once is enough
    while (connected == 0) poll_politely(fabric);
    EXPECT_TRUE(fabric.connected(other, brief.id()));
    member.write_word(other, 0, 1);
    while (member.word(0) == 0) poll_politely(fabric);
    if (fabric.rank() == 0) {
      const RegionId id = brief.id();
      brief = Region();
      const std::uint64_t value = 0;
      EXPECT_EQ(fabric.post(write(1, id, 0, &value, 8)).refusal, Refusal::unknown_region);
    } else {
      while (withdrawn == 0) poll_politely(fabric);
      EXPECT_FALSE(fabric.connected(other, brief.id()));
      EXPECT_EQ(connected, 1u);
    }
    member.write_word(other, 1, 1);
    while (member.word(1) == 0) poll_politely(fabric);
  });
}

TEST(ShmMemory, ARegionOfAnotherLayoutIsRefusedByBothSides) {
  run_members(2, [](Member& member) {
    Fabric& fabric = *member.fabric;
    const Rank me = fabric.rank(), other = 1 - me;
    std::string refused;
    const Subscription subscription = fabric.subscribe([&](const Event& event) {
      if (event.kind == Event::Kind::region_refused) refused = event.text;
    });
    const Region odd = fabric.allocate({.name = "odd",
                                        .bytes = 64,
                                        .layout_hash = 100 + me,
                                        .layout_text = "layout of " + std::to_string(me)});
    fabric.announce(odd);
    while (refused.empty()) poll_politely(fabric);
    EXPECT_TRUE(contains(refused, "region 'odd'"));
    EXPECT_TRUE(contains(refused, "'layout' is 'of " + std::to_string(other) + "' there and 'of " +
                                      std::to_string(me) + "' here"))
        << refused;
    EXPECT_FALSE(fabric.connected(other, odd.id()));
    member.write_word(other, 1, 1);
    while (member.word(1) == 0) poll_politely(fabric);
  });
}

TEST(ShmMemory, ManyAnnouncementsDeviceAPeerThatDoesNotPoll) {
  run_members(2, [](Member& member) {
    Fabric& fabric = *member.fabric;
    const Rank other = 1 - fabric.rank();
    if (fabric.rank() == 0) {
      for (int i = 0; i < 400; ++i) {  // far more than the socket holds
        const Region brief = fabric.allocate({.name = "brief", .bytes = 8});
        fabric.announce(brief);
      }
    }
    const Region last = fabric.allocate({.name = "last", .bytes = 8});
    fabric.announce(last);
    if (fabric.rank() == 0) member.write_word(other, 0, 1);
    while (fabric.rank() == 1 && member.word(0) == 0) std::this_thread::yield();
    while (!fabric.connected(other, last.id())) poll_politely(fabric);
    member.write_word(other, 1, 1);
    while (member.word(1) == 0) poll_politely(fabric);
    EXPECT_TRUE(member.failures.empty()) << member.failure_text;
  });
}

TEST(ShmMemory, AnnouncingWhatIsNotOnesOwnIsAnError) {
  const auto fabric = join({.group = fresh_group(), .members = 1});
  EXPECT_TRUE(contains(test::what_is_thrown_by([&] { fabric->announce(Region()); }), "allocated"));
  const Region published = fabric->publish({.name = "board", .bytes = 64});
  EXPECT_TRUE(contains(test::what_is_thrown_by([&] { fabric->announce(published); }), "'board'"));
}

TEST(ShmMemory, ProcessesShareIt) {
  const std::string group = fresh_group();
  Process adder([&](Parent&) {
    Member member({.group = group, .members = 2, .rank = 1});
    for (int i = 0; i < 10'000; ++i)
      static_cast<void>(member.fabric->post(fetch_add(0, member.box.id(), 0, 1, nullptr)));
    member.write_word(0, 1, 1);
    while (member.failures.empty()) poll_politely(*member.fabric);
    return 0;
  });
  {
    Member member({.group = group, .members = 2, .rank = 0});
    for (int i = 0; i < 10'000; ++i)
      static_cast<void>(member.fabric->post(fetch_add(0, member.box.id(), 0, 1, nullptr)));
    while (member.word(1) == 0) poll_politely(*member.fabric);
    EXPECT_EQ(member.word(0), 20'000u);
  }
  EXPECT_EQ(adder.exit_code(), 0);
}

TEST(ShmMemory, AbandonedCompletionsMayBeFreed) {
  const auto fabric = join({.group = fresh_group(), .members = 1});
  const Region box = fabric->allocate({.name = "box", .bytes = 64});
  fabric->announce(box);
  {
    const auto completion = std::make_unique<Completion>();
    const auto value = std::make_unique<std::uint64_t>(3);
    EXPECT_TRUE(fabric->post(write(0, box.id(), 0, value.get(), 8).notify(*completion)).all());
    fabric->abandon(*completion);
    EXPECT_TRUE(completion->finished());
  }
  for (int i = 0; i < 1000; ++i) fabric->poll();
}

}  // namespace
}  // namespace dunlin
