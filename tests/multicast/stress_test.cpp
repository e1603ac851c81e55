#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/run.hpp>

#include "fabric/hash.hpp"
#include "multicast/subgroup_view.hpp"
#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"

/// Members that are threads, on every backend, sending as fast as it goes: all deliver the same,
/// also when the view ends in the middle, and the thread sanitizer finds no race.
namespace dunlin::multicast {
namespace {

using test::kPatienceMs;
using test::NodeBackend;

struct Stress : testing::TestWithParam<std::tuple<NodeBackend, Mode>> {
  void SetUp() override { DUNLIN_SKIP_WITHOUT(backend); }

  const NodeBackend backend = std::get<0>(GetParam());
  const Mode mode = std::get<1>(GetParam());
};

INSTANTIATE_TEST_SUITE_P(On, Stress,
                         testing::Combine(testing::ValuesIn(test::backends()),
                                          testing::Values(Mode::ordered, Mode::unordered)),
                         [](const auto& of) {
                           const bool ordered = std::get<1>(of.param) == Mode::ordered;
                           return std::get<0>(of.param).name +
                                  (ordered ? "_ordered" : "_unordered");
                         });

constexpr std::uint32_t kMembers = 3;

/// A message says what it is, and is filled accordingly.
std::vector<std::byte> message_of(std::uint64_t sender, std::uint64_t count) {
  const std::size_t bytes = 16 + (count * 131 + sender) % (count % 50 == 0 ? 9'000 : 300);
  std::vector<std::byte> message(bytes, static_cast<std::byte>(count + sender));
  std::memcpy(message.data(), &sender, 8);
  std::memcpy(message.data() + 8, &count, 8);
  return message;
}

/// What one member has delivered: how many of each sender, and in what order.
struct Heard {
  std::array<std::uint64_t, kMembers> counts{};
  std::vector<std::uint32_t> order;

  void take(std::span<const Delivery> batch) {
    for (const Delivery& delivery : batch) {
      std::uint64_t& count = counts[delivery.sender];
      const auto expected = message_of(delivery.sender, count++);
      ASSERT_TRUE(std::ranges::equal(delivery.message, expected))
          << "message " << count - 1 << " of " << delivery.sender;
      order.push_back(delivery.sender);
    }
  }
};

/// Runs the body as each member; all poll on until the last one's has ended.
void run_members(const NodeBackend& backend, Mode mode,
                 const std::function<void(SubgroupView&, Loop&, Heard&, std::uint32_t me)>& body) {
  const std::string group = test::fresh_group();
  std::atomic<std::uint32_t> done{0};
  std::vector<std::jthread> threads;
  for (Rank rank = 0; rank < kMembers; ++rank) {
    threads.emplace_back([&, rank] {
      const auto fabric = backend.join({.group = group, .nodes = kMembers, .rank = rank});
      Heard heard;
      SubgroupView view(*fabric,
                        {.name = "busy",
                         .generation = 1,
                         .members = {0, 1, 2},
                         .senders = {0, 1, 2},
                         .mode = mode,
                         .ring_bytes = 8192},
                        [&](std::span<const Delivery> batch) { heard.take(batch); });
      Loop loop(*fabric);
      loop.add(view);
      body(view, loop, heard, rank);
      ++done;
      Loop last(*fabric, {.wait = Wait::spin});
      last.add(view);
      EXPECT_TRUE(last.run_until([&] { return done == kMembers; }, kPatienceMs));
    });
  }
}

/// Sends message after message until there are so many; run_until() asks this again and again.
struct Sending {
  SubgroupView& view;
  std::uint32_t me;
  std::uint64_t goal;
  std::uint64_t count = 0;

  bool go_on() {
    while (count < goal && view.send(message_of(me, count)) == SendResult::sent) ++count;
    return count == goal;
  }
};

TEST_P(Stress, AllDeliverTheSame) {
  static constexpr std::uint64_t kMessages = 4'000;
  std::array<Heard, kMembers> all;
  run_members(backend, mode, [&](SubgroupView& view, Loop& loop, Heard& heard, std::uint32_t me) {
    Sending sending{view, me, kMessages};
    EXPECT_TRUE(loop.run_until(
        [&] {
          const bool sent = sending.go_on();
          return testing::Test::HasFatalFailure() ||
                 (sent && std::ranges::all_of(heard.counts, [](auto n) { return n == kMessages; }));
        },
        kPatienceMs));
    all[me] = heard;
  });
  if (mode == Mode::unordered) return;
  EXPECT_EQ(all[1].order, all[0].order);
  EXPECT_EQ(all[2].order, all[0].order);
}

TEST_P(Stress, AllDeliverTheSameWhenTheViewEnds) {
  std::mutex mutex;
  std::vector<std::uint64_t> trim(kMembers, UINT64_MAX);
  std::atomic<bool> ending{false};
  std::atomic<std::uint32_t> wedged{0};
  std::array<Heard, kMembers> all;
  std::array<std::uint64_t, kMembers> sent{};
  std::array<SubgroupView::Remains, kMembers> remains;
  run_members(backend, mode, [&](SubgroupView& view, Loop&, Heard& heard, std::uint32_t me) {
    Sending sending{view, me, UINT64_MAX};
    Loop spinning(view.fabric(), {.wait = Wait::spin});
    spinning.add(view);
    // Each in the middle of something else.
    EXPECT_TRUE(spinning.run_until(
        [&] {
          sending.go_on();
          if (heard.counts[me] >= 1'000) ending = true;
          return ending.load();
        },
        kPatienceMs));
    view.wedge();
    {
      const std::lock_guard lock(mutex);
      for (std::size_t s = 0; s < kMembers; ++s) trim[s] = std::min(trim[s], view.received()[s]);
    }
    ++wedged;
    EXPECT_TRUE(spinning.run_until([&] { return wedged == kMembers; }, kPatienceMs));
    remains[me] = view.finish(trim);
    sent[me] = sending.count;
    all[me] = heard;
  });
  if (mode == Mode::ordered) {
    EXPECT_EQ(all[1].order, all[0].order);
    EXPECT_EQ(all[2].order, all[0].order);
  }
  for (std::size_t s = 0; s < kMembers; ++s) {
    std::uint64_t counted = sent[s] - remains[s].again.size();
    for (std::size_t member = 0; member < kMembers; ++member) {
      const std::uint64_t ahead = mode == Mode::ordered ? 0 : remains[member].ahead[s];
      EXPECT_EQ(all[member].counts[s] - ahead, counted);
    }
    for (const auto& message : remains[s].again) EXPECT_EQ(message, message_of(s, counted++));
  }
}

}  // namespace
}  // namespace dunlin::multicast
