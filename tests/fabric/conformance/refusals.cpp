#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"

/// Each Refusal is given for its reason, and for no other; nothing of a refused operation happens.
namespace dunlin::conformance {

namespace {

constexpr std::uint64_t kFar = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_P(Refusals, AreDescribedEachInItsOwnWords) {
  std::set<std::string_view> texts;
  for (int r = 0; r <= static_cast<int>(Refusal::unknown_region); ++r) {
    const std::string_view text = describe(static_cast<Refusal>(r));
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
}

TEST_P(Refusals, OperationsPastTheEndAreOutOfBounds) {
  start(2);
  const Shared box = share("box", 128);
  alignas(64) std::array<std::byte, 256> mine{};
  const auto refusal = [&](const Operation& op) { return node(0).post(op).refusal; };
  for (const auto& make : {put, write}) {
    EXPECT_EQ(refusal(make(1, box.id(0), 128, mine.data(), 1)), Refusal::out_of_bounds);
    EXPECT_EQ(refusal(make(1, box.id(0), 120, mine.data(), 9)), Refusal::out_of_bounds);
    EXPECT_EQ(refusal(make(1, box.id(0), 0, mine.data(), 129)), Refusal::out_of_bounds);
    EXPECT_EQ(refusal(make(1, box.id(0), 1 << 20, mine.data(), 8)), Refusal::out_of_bounds);
    EXPECT_EQ(refusal(make(1, box.id(0), 136, mine.data(), 0)), Refusal::out_of_bounds);
  }
  EXPECT_EQ(refusal(read(1, box.id(0), 128, mine.data(), 1)), Refusal::out_of_bounds);
  EXPECT_EQ(refusal(read(1, box.id(0), 120, mine.data(), 9)), Refusal::out_of_bounds);
  EXPECT_EQ(refusal(fetch_add(1, box.id(0), 128, 1, nullptr)), Refusal::out_of_bounds);
  EXPECT_EQ(refusal(compare_swap(1, box.id(0), 128, 0, 1, nullptr)), Refusal::out_of_bounds);
}

TEST_P(Refusals, BoundsHoldWhereTheSumOfOffsetAndSizeOverflows) {
  start(2);
  const Shared box = share("box", 128);
  alignas(64) std::array<std::byte, 64> mine{};
  const auto refusal = [&](const Operation& op) { return node(0).post(op).refusal; };
  for (const std::uint64_t offset : {kFar - 7, kFar - 15, kFar - 63, std::uint64_t{1} << 63}) {
    for (const std::size_t bytes : {8U, 16U, 64U}) {
      EXPECT_EQ(refusal(put(1, box.id(0), offset, mine.data(), bytes)), Refusal::out_of_bounds);
      EXPECT_EQ(refusal(write(1, box.id(0), offset, mine.data(), bytes)), Refusal::out_of_bounds);
      EXPECT_EQ(refusal(read(1, box.id(0), offset, mine.data(), bytes)), Refusal::out_of_bounds);
    }
    EXPECT_EQ(refusal(fetch_add(1, box.id(0), offset, 1, nullptr)), Refusal::out_of_bounds);
    EXPECT_EQ(refusal(compare_swap(1, box.id(0), offset, 0, 1, nullptr)), Refusal::out_of_bounds);
  }
  const std::size_t all = std::numeric_limits<std::size_t>::max() - 7;
  EXPECT_EQ(refusal(put(1, box.id(0), 64, mine.data(), all)), Refusal::out_of_bounds);
  EXPECT_EQ(refusal(write(1, box.id(0), 64, mine.data(), all)), Refusal::out_of_bounds);
  EXPECT_EQ(refusal(read(1, box.id(0), 64, mine.data(), all)), Refusal::out_of_bounds);
}

TEST_P(Refusals, BoundsAreThoseOfThePeersRegion) {
  start(2);
  const Region& large = group().allocate(0, {.name = "box", .bytes = 4096});
  const Region& small = group().allocate(1, {.name = "box", .bytes = 64});
  node(0).announce(large);
  node(1).announce(small);
  until("both are connected",
        [&] { return node(0).connected(1, large.id()) && node(1).connected(0, small.id()); });
  const std::uint64_t value = 3;
  EXPECT_EQ(node(0).post(write(1, large.id(), 64, &value, 8)).refusal, Refusal::out_of_bounds);
  post_and_finish(1, write(0, small.id(), 4088, &value, 8));
  const auto& last = *reinterpret_cast<const std::uint64_t*>(large.memory().data() + 4088);
  EXPECT_EQ(memory::load(last), 3U);
}

TEST_P(Refusals, AtomicsOffAWordAreMisaligned) {
  start(2);
  const Shared box = share("box", 128);
  for (const std::uint64_t offset : {1U, 2U, 4U, 7U, 60U, 113U}) {
    EXPECT_EQ(node(0).post(fetch_add(1, box.id(0), offset, 1, nullptr)).refusal,
              Refusal::misaligned);
    EXPECT_EQ(node(0).post(compare_swap(1, box.id(0), offset, 0, 1, nullptr)).refusal,
              Refusal::misaligned);
  }
  let_time_pass();
  for (std::size_t at = 0; at < 128; at += 8) EXPECT_EQ(box.load(1, at), 0U);
}

TEST_P(Refusals, AtomicsWhoseResultWouldSplitAWordAreMisaligned) {
  start(2);
  const Shared box = share("box", 128);
  alignas(8) std::array<std::byte, 16> result{};
  for (const Operation& right :
       {fetch_add(1, box.id(0), 0, 1, nullptr), compare_swap(1, box.id(0), 0, 0, 1, nullptr)}) {
    Operation operation = right;
    operation.local = result.data() + 4;
    EXPECT_EQ(node(0).post(operation).refusal, Refusal::misaligned);
  }
  let_time_pass();
  EXPECT_EQ(box.load(1, 0), 0U);
}

TEST_P(Refusals, AtomicsTouchAWordWhateverTheirBytesSay) {
  start(2);
  const Shared box = share("box", 128);
  Operation operation = fetch_add(1, box.id(0), 128, 1, nullptr);
  operation.bytes = 0;
  EXPECT_EQ(node(0).post(operation).refusal, Refusal::out_of_bounds);
  operation.offset = 120;
  operation.bytes = 4096;
  post_and_finish(0, operation);
  EXPECT_EQ(box.load(1, 120), 1U);
}

TEST_P(Refusals, WritesAndReadsThatWouldSplitEntriesAreMisaligned) {
  start(2);
  const Shared box = share("box", 128);
  alignas(64) std::array<std::byte, 128> mine{};
  for (std::size_t shift = 1; shift < 8; ++shift) {
    std::byte* const at = mine.data() + shift;
    EXPECT_EQ(node(0).post(write(1, box.id(0), 8, at, 16)).refusal, Refusal::misaligned);
    EXPECT_EQ(node(0).post(read(1, box.id(0), 8, at, 16)).refusal, Refusal::misaligned);
    EXPECT_EQ(node(0).post(write(1, box.id(0), 8 + shift, mine.data(), 8)).refusal,
              Refusal::misaligned);
    post_and_finish(0, write(1, box.id(0), 8 + shift, at, 16));
    post_and_finish(0, read(1, box.id(0), 8 + shift, at, 16));
    post_and_finish(0, put(1, box.id(0), 8, at, 16));
  }
}

TEST_P(Refusals, MessagesOverTheLimitAreTooLarge) {
  start(2);
  std::uint64_t heard = 0;
  node(1).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  const std::vector<std::byte> message(kMaxMessageBytes * 40);
  const std::span all(message);
  EXPECT_EQ(node(0).send(1, 0, all.first(kMaxMessageBytes + 1)), Refusal::too_large);
  EXPECT_EQ(node(0).send(1, 0, all), Refusal::too_large);
  send(0, 1, 0, all.first(kMaxMessageBytes));
  until("the largest is heard", [&] { return heard > 0; });
  let_time_pass();
  EXPECT_EQ(heard, 1U);
}

TEST_P(Refusals, MessagesOnChannelsThatDoNotExistAreTooLarge) {
  start(2);
  std::uint64_t heard = 0;
  node(1).receive(0, [&](Rank, std::span<const std::byte>) { ++heard; });
  EXPECT_EQ(node(0).send(1, kMaxChannels, {}), Refusal::too_large);
  EXPECT_EQ(node(0).send(1, UINT32_MAX, {}), Refusal::too_large);
  EXPECT_EQ(node(0).send(0, kMaxChannels, {}), Refusal::too_large);
  send(0, 1, 0, {});  // it has nothing before it that would hold it back
  until("the message is heard", [&] { return heard == 1; });
}

TEST_P(Refusals, RanksThatDoNotExistAreUnknown) {
  start(2);
  const Shared box = share("box", 64);
  const std::array<std::byte, 8> message{};
  std::uint64_t word = 0;
  for (const Rank rank : {2U, 3U, 1000U, UINT32_MAX}) {
    EXPECT_EQ(node(0).post(write(rank, box.id(0), 0, &word, 8)).refusal, Refusal::unknown_peer);
    EXPECT_EQ(node(0).post(put(rank, box.id(0), 0, &word, 8)).refusal, Refusal::unknown_peer);
    EXPECT_EQ(node(0).post(read(rank, box.id(0), 0, &word, 8)).refusal, Refusal::unknown_peer);
    EXPECT_EQ(node(0).post(fetch_add(rank, box.id(0), 0, 1, &word)).refusal, Refusal::unknown_peer);
    EXPECT_EQ(node(0).send(rank, 0, message), Refusal::unknown_peer);
    EXPECT_FALSE(node(0).connected(rank, box.id(0)));
    EXPECT_FALSE(node(0).failed(rank));
  }
}

TEST_P(Refusals, RegionsThatDoNotExistAreUnknown) {
  start(2);
  const Shared box = share("box", 64);
  std::uint64_t word = 0;
  for (const RegionId id : {RegionId{}, RegionId{kMaxRegions}, RegionId{kMaxRegions - 1}}) {
    EXPECT_EQ(node(0).post(write(1, id, 0, &word, 8)).refusal, Refusal::unknown_region);
    EXPECT_EQ(node(0).post(read(1, id, 0, &word, 8)).refusal, Refusal::unknown_region);
    EXPECT_EQ(node(0).post(fetch_add(1, id, 0, 1, &word)).refusal, Refusal::unknown_region);
    EXPECT_FALSE(node(0).connected(1, id));
  }
  const RegionId released = box.id(0);
  group().release(0, released);
  EXPECT_EQ(node(0).post(write(1, released, 0, &word, 8)).refusal, Refusal::unknown_region);
  EXPECT_FALSE(node(0).connected(1, released));
}

TEST_P(Refusals, RegionsThatThePeerHasNotAnnouncedAreNotConnected) {
  start(2);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64});
  std::uint64_t word = 1;
  const auto refusal = [&] { return node(0).post(write(1, mine.id(), 0, &word, 8)).refusal; };
  node(0).announce(mine);
  let_time_pass();
  EXPECT_EQ(refusal(), Refusal::not_connected);
  const Region& theirs = group().allocate(1, {.name = "box", .bytes = 64});
  let_time_pass();
  EXPECT_EQ(refusal(), Refusal::not_connected);
  EXPECT_EQ(theirs.memory()[0], std::byte{0});
  node(1).announce(theirs);
  until("it is connected", [&] { return node(0).connected(1, mine.id()); });
  EXPECT_EQ(refusal(), Refusal::none);
  group().release(1, theirs.id());
  until("it is withdrawn", [&] { return !node(0).connected(1, mine.id()); });
  EXPECT_EQ(refusal(), Refusal::not_connected);
}

TEST_P(Refusals, RegionsForObserversAreReachedByNoPeer) {
  start(2);
  const Region observed = node(0).publish({.name = "shown", .bytes = 64});
  const Region& mine = group().allocate(1, {.name = "shown", .bytes = 64});
  node(1).announce(mine);
  let_time_pass();
  const std::uint64_t word = 1;
  EXPECT_FALSE(node(1).connected(0, mine.id()));
  EXPECT_EQ(node(1).post(write(0, mine.id(), 0, &word, 8)).refusal, Refusal::not_connected);
  EXPECT_EQ(observed.memory().size(), 64U);
}

}  // namespace dunlin::conformance
