#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/join.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/run.hpp>

#include "multicast/changing_group.hpp"
#include "support/fresh_group.hpp"
#include "support/own_directory.hpp"

/// A member that ends, or leaves, loses nothing of what send() has taken.
namespace dunlin::test {
namespace {

using multicast::Mode;
using multicast::SendResult;

constexpr std::uint32_t kPatienceMs = 60'000;
constexpr std::uint64_t kMessages = 1'000;

/// One of three members, in a thread.
class Member {
 public:
  Member(const std::string& group_name, const std::string& name, MulticastOptions options)
      : fabric_(join({.group = group_name, .names = {"a", "b", "c"}, .name = name})),
        group(*fabric_, {.subgroups = {{.name = "casts"}}}),
        casts(group, "casts", std::move(options)) {}
  bool until(const std::function<bool()>& condition) {
    return run_until(group, condition, kPatienceMs);
  }

 private:
  std::unique_ptr<Fabric> fabric_;

 public:
  Group group;
  Multicast casts;
};

/// Messages of 8 bytes and more; the last one is of so many bytes.
[[nodiscard]] bool send(Multicast& casts, std::uint64_t number, std::size_t last_bytes) {
  std::vector<std::byte> message(number + 1 == kMessages ? last_bytes : 32);
  std::memcpy(message.data(), &number, sizeof number);
  return casts.send(message) == SendResult::sent;
}

/// Member a sends and ends, without a poll in between; returns what b and c were given.
std::array<std::uint64_t, 2> given_of_a_member_that_ends(
    const std::function<MulticastOptions(const std::string& name)>& options,
    std::size_t last_bytes) {
  const std::string group = fresh_group();
  std::array<std::uint64_t, 2> given{};
  std::atomic<int> done = 0;
  const auto receive = [&](const std::string& name, std::uint64_t& count) {
    Member member(group, name, options(name));
    member.casts.on_delivery([&](std::span<const multicast::Delivery> batch) {
      for (const multicast::Delivery& delivery : batch) {
        std::uint64_t number = 0;
        std::memcpy(&number, delivery.message.data(), sizeof number);
        count += number == count ? 1 : 0;
      }
    });
    bool is_done = false;
    member.until([&] {
      if (!is_done && count == kMessages) {
        is_done = true;
        ++done;
      }
      return done == 2;
    });
    done = 2;  // if the time is up
  };
  {
    const std::jthread b([&] { receive("b", given[0]); });
    const std::jthread c([&] { receive("c", given[1]); });
    Member a(group, "a", options("a"));
    std::uint64_t sent = 0;
    EXPECT_TRUE(a.until([&] {
      while (sent < kMessages && send(a.casts, sent, last_bytes)) ++sent;
      return sent == kMessages;
    }));
  }
  return given;
}

using Given = std::array<std::uint64_t, 2>;
constexpr Given kAll{kMessages, kMessages};

/// MC-O8 promises what this test checks.
TEST(HandOver, AMemberThatEndsLosesNothingThatItSent) {
  EXPECT_EQ(given_of_a_member_that_ends([](const auto&) { return MulticastOptions(); }, 32), kAll);
}

TEST(HandOver, AMemberOfAnUnorderedSubgroupThatEndsLosesNothing) {
  const auto options = [](const auto&) { return MulticastOptions{.mode = Mode::unordered}; };
  EXPECT_EQ(given_of_a_member_that_ends(options, 32), kAll);
}

TEST(HandOver, AMemberOfADurableSubgroupThatEndsLosesNothing) {
  const OwnDirectory logs;
  const auto options = [&](const std::string& name) {
    return MulticastOptions{.mode = Mode::durable, .log_directory = logs / name};
  };
  EXPECT_EQ(given_of_a_member_that_ends(options, 32), kAll);
}

/// It has room in the rings piece by piece only, as members deliver.
TEST(HandOver, AMemberThatEndsLosesNoMessageThatIsLongerThanARing) {
  constexpr std::size_t kRing = std::size_t{1} << 16U;
  EXPECT_EQ(given_of_a_member_that_ends(
                [](const auto&) { return MulticastOptions{.ring_bytes = kRing}; }, 8 * kRing),
            kAll);
}

/// Nobody polls but the member that ends.
TEST(HandOver, EndsWhenItsTimeIsUp) {
  const std::string name = fresh_group();
  std::atomic<bool> over = false;
  const auto idle = [&](const std::string& member) {
    auto fabric = join({.group = name, .names = {"a", "b", "c"}, .name = member});
    over.wait(false);
  };
  const std::jthread b([&] { idle("b"); });
  const std::jthread c([&] { idle("c"); });
  {
    Member a(name, "a", {.hand_over_ms = 10});
    EXPECT_TRUE(a.casts.acknowledged()) << "nothing was sent";
    EXPECT_TRUE(a.until([&] { return send(a.casts, 0, 32); }));
    EXPECT_FALSE(a.casts.acknowledged());
    EXPECT_FALSE(a.casts.hand_over(10));
  }
  over = true;
  over.notify_all();
}

// --- leaving, in the simulator -------------------------------------------------------------------

class Leaving : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    for (Rank rank = 0; rank < 3; ++rank) cluster[rank].join("topic", {.mode = GetParam()});
    ASSERT_TRUE(cluster.until([&] {
      for (Rank rank = 0; rank < 3; ++rank)
        if (cluster[rank].in("topic")->generations.empty() ||
            cluster[rank].in("topic")->generations.back().members.size() != 3)
          return false;
      return true;
    }));
  }
  /// Node 2 sends, and leaves at once.
  void send_and(const std::function<void()>& leave) {
    ChangingMember& leaver = *cluster[2].in("topic");
    cluster.world.on(2, [&leaver, leave] {
      for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(leaver.send());
      EXPECT_FALSE(leaver.multicast->acknowledged());
      leave();
    });
  }
  void expect_all_at_the_others() {
    ASSERT_TRUE(cluster.until([&] {
      return cluster[0].in("topic")->history.size() == 100 &&
             cluster[1].in("topic")->history.size() == 100;
    }));
  }
  ChangingGroup cluster{3};
};

TEST_P(Leaving, AGroupHandsOverWhatWasSent) {
  send_and([&] { cluster[2].group->leave(); });
  expect_all_at_the_others();
  ASSERT_TRUE(cluster.until([&] { return cluster[2].group->ended(); }));
  EXPECT_EQ(cluster[2].group->why_ended(), "group 'sim', member 'node2': it has left the group");
}

TEST_P(Leaving, ASubgroupHandsOverWhatWasSent) {
  ChangingMember& leaver = *cluster[2].in("topic");
  cluster.world.pause(1, 500'000);  // its ring has them, and it has not received them
  send_and([&] { leaver.multicast->leave(); });
  expect_all_at_the_others();
  ASSERT_TRUE(cluster.until([&] { return leaver.multicast->left(); }));
  EXPECT_EQ(leaver.history.size(), 100U);
  EXPECT_EQ(leaver.multicast->why_left(), "");
}

TEST_P(Leaving, ASubgroupHandsOverWhatWasSentAlsoToAMemberThatComesBackAtOnce) {
  ChangingMember& leaver = *cluster[2].in("topic");
  cluster.world.pause(1, 500'000);
  const std::uint32_t first = leaver.membership;
  send_and([&] {
    leaver.multicast->leave();
    cluster[2].join("topic", {.mode = GetParam()});
  });
  expect_all_at_the_others();
  ASSERT_TRUE(cluster.until([&] {
    const ChangingMember& again = *cluster[2].in("topic");
    return again.membership != first && again.multicast->joined();
  }));
  EXPECT_EQ(std::ranges::count(cluster[2].in("topic")->history, first, &Said::membership), 100);
}

/// What is sent behind what was handed over would be nobody's.
TEST_P(Leaving, AGroupTakesNothingMoreToSend) {
  ChangingMember& leaver = *cluster[2].in("topic");
  bool leaves = false;
  std::uint64_t refused = 0;
  cluster.world.attach(2, [&]() -> std::size_t {
    if (!leaves || cluster[2].group->ended()) return 0;
    refused += leaver.send() ? 0 : 1;
    return 1;
  });
  send_and([&] {
    cluster[2].group->leave();
    leaves = true;
  });
  ASSERT_TRUE(cluster.until([&] { return cluster[2].group->ended(); }));
  cluster.world.run_for(5'000'000);
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(cluster[0].in("topic")->history.size(), leaver.accepted);
  EXPECT_EQ(cluster[1].in("topic")->history.size(), leaver.accepted);
}

INSTANTIATE_TEST_SUITE_P(HandOver, Leaving, testing::Values(Mode::ordered, Mode::unordered),
                         [](const auto& mode) {
                           return mode.param == Mode::ordered ? "Ordered" : "Unordered";
                         });

/// With so many subgroups there is hardly a moment at which none owes a receipt.
TEST(HandOver, EndsWhenItsTimeIsUpAlsoWhileTheOthersSendWithoutAPause) {
  constexpr std::uint32_t kTopics = 20;
  constexpr std::uint32_t kHandOverMs = 10;
  constexpr std::uint64_t kViewChangeNs = 2'000'000;
  ChangingGroup cluster(3);
  std::vector<std::array<ChangingMember*, 3>> topics;
  for (std::uint32_t i = 0; i < kTopics; ++i) {
    auto& topic = topics.emplace_back();
    for (Rank rank = 0; rank < 3; ++rank)
      topic[rank] = &cluster[rank].join("topic" + std::to_string(i), {.hand_over_ms = kHandOverMs});
  }
  ASSERT_TRUE(cluster.until([&] {
    return std::ranges::all_of(topics, [](const auto& topic) {
      return std::ranges::all_of(topic, [](const ChangingMember* member) {
        return member->multicast->subgroup().members.size() == 3;
      });
    });
  }));
  std::array<std::uint32_t, 3> turn{0, 7, 14};
  for (Rank rank = 0; rank < 3; ++rank)
    cluster.world.attach(rank, [&, rank]() -> std::size_t {
      if (cluster[rank].group->ended()) return 0;
      static_cast<void>(topics[turn[rank]++ % kTopics][rank]->send());
      return 1;
    });
  cluster.world.run_for(100'000);
  cluster.world.on(2, [&] { cluster[2].group->leave(); });
  EXPECT_TRUE(cluster.world.run_until([&] { return cluster[2].group->ended(); },
                                      kHandOverMs * 1'000'000 + kViewChangeNs));
}

}  // namespace
}  // namespace dunlin::test
