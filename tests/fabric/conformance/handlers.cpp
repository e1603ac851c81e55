#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/conformance/expect_error.hpp"
#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/pattern.hpp"

/// FAB-F5: handlers run inside poll() and nowhere else; messages wait for them in order.
namespace dunlin::conformance {

namespace {

using Texts = std::vector<std::string>;

Fabric::MessageHandler into(Texts& texts) {
  return [&texts](Rank, std::span<const std::byte> message) {
    texts.push_back(text_of_bytes(message));
  };
}

}  // namespace

TEST_P(Handlers, ThatComeLateFindTheirMessagesInOrder) {
  start(2);
  Texts expected;
  for (int i = 0; i < 6; ++i) {
    expected.push_back("message " + std::to_string(i));
    send(0, 1, 9, bytes_of(expected.back()));
  }
  let_time_pass();
  Texts heard;
  node(1).receive(9, into(heard));
  EXPECT_TRUE(heard.empty()) << "receive() is not poll()";
  until("all are heard", [&] { return heard.size() == expected.size(); });
  EXPECT_EQ(heard, expected);
}

TEST_P(Handlers, ThatAreMissingHoldBackWhatIsBehindFromTheSamePeerOnly) {
  start(3);
  Texts heard;
  node(1).receive(2, into(heard));
  send(0, 1, 1, bytes_of("first, for nobody yet"));
  send(0, 1, 2, bytes_of("second"));
  send(2, 1, 2, bytes_of("from another"));
  until("the other is heard", [&] { return heard.size() == 1; });
  let_time_pass();
  EXPECT_EQ(heard, Texts{"from another"});
  node(1).receive(1, into(heard));
  until("all are heard", [&] { return heard.size() == 3; });
  EXPECT_EQ(heard, (Texts{"from another", "first, for nobody yet", "second"}));
}

TEST_P(Handlers, AreToldTheSender) {
  start(4);
  std::vector<int> heard(4);
  node(0).receive(0, [&](Rank from, std::span<const std::byte> message) {
    EXPECT_EQ(text_of_bytes(message), std::to_string(from));
    ++heard.at(from);
  });
  for (const Rank from : {3U, 1U, 2U}) send(from, 0, 0, bytes_of(std::to_string(from)));
  until("all are heard", [&] { return heard[1] + heard[2] + heard[3] == 3; });
  EXPECT_EQ(heard, (std::vector<int>{0, 1, 1, 1}));
}

/// Up to the room that there is for any peer's messages, and again once they were heard.
TEST_P(Handlers, HearWhatTheirOwnNodeSends) {
  start(2);
  std::uint32_t sent = 0, heard = 0;
  node(0).receive(3, [&](Rank from, std::span<const std::byte> message) {
    EXPECT_EQ(from, 0U);
    EXPECT_EQ(text_of_bytes(message), std::to_string(heard++));
  });
  for (int round = 0; round < 2; ++round) {
    Refusal refusal = Refusal::none;
    while (refusal == Refusal::none) {
      const std::string text = std::to_string(sent);
      refusal = node(0).send(0, 3, bytes_of(text));
      if (refusal == Refusal::none) ++sent;
      ASSERT_LT(sent, 10'000'000U) << "there is room for ever";
    }
    EXPECT_EQ(refusal, Refusal::queue_full);
    until("all are heard", [&] { return heard == sent; });
  }
}

TEST_P(Handlers, OfChannelsAreKeptApart) {
  start(2);
  std::vector<std::uint32_t> heard;
  for (std::uint32_t channel = 0; channel < kMaxChannels; ++channel) {
    node(1).receive(channel, [&heard, channel](Rank, std::span<const std::byte> message) {
      EXPECT_EQ(text_of_bytes(message), std::to_string(channel));
      heard.push_back(channel);
    });
  }
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < kMaxChannels; ++i) {
    const std::uint32_t channel = (i * 7) % kMaxChannels;
    expected.push_back(channel);
    send(0, 1, channel, bytes_of(std::to_string(channel)));
  }
  until("all are heard", [&] { return heard.size() == expected.size(); });
  EXPECT_EQ(heard, expected);
}

TEST_P(Handlers, HearTheirOwnNodeInPoll) {
  start(2);
  Texts heard;
  node(0).receive(0, into(heard));
  send(0, 0, 0, bytes_of("one"));
  EXPECT_TRUE(heard.empty()) << "send() is not poll()";
  send(0, 0, 0, bytes_of("two"));
  until("both are heard", [&] { return heard.size() == 2; });
  EXPECT_EQ(heard, (Texts{"one", "two"}));
}

TEST_P(Handlers, MayReplaceThemselves) {
  start(2);
  Texts first;
  Texts second;
  const auto alive = std::make_shared<std::string>("first");
  node(1).receive(0, [&, alive](Rank, std::span<const std::byte> message) {
    node(1).receive(0, into(second));
    first.push_back(*alive + " " + text_of_bytes(message));  // still itself
  });
  for (const char* text : {"a", "b", "c"}) send(0, 1, 0, bytes_of(text));
  until("all are heard", [&] { return first.size() + second.size() == 3; });
  EXPECT_EQ(first, Texts{"first a"});
  EXPECT_EQ(second, (Texts{"b", "c"}));
  EXPECT_EQ(alive.use_count(), 1) << "the replaced handler is gone";
}

TEST_P(Handlers, MayEndAndLaterMessagesWaitAgain) {
  start(2);
  Texts heard;
  node(1).receive(0, [&](Rank, std::span<const std::byte> message) {
    heard.push_back(text_of_bytes(message));
    node(1).receive(0, nullptr);
  });
  send(0, 1, 0, bytes_of("a"));
  send(0, 1, 0, bytes_of("b"));
  until("the first is heard", [&] { return !heard.empty(); });
  let_time_pass();
  EXPECT_EQ(heard, Texts{"a"});
  node(1).receive(0, into(heard));
  until("the second is heard", [&] { return heard.size() == 2; });
  EXPECT_EQ(heard, (Texts{"a", "b"}));
}

TEST_P(Handlers, MayAnswerAndPost) {
  constexpr std::uint64_t kRounds = 300;
  start(2);
  const Shared box = share("box", 64);
  std::uint64_t answered = 0;
  const auto answer = [&](Rank self) {
    return [&, self](Rank from, std::span<const std::byte> message) {
      std::uint64_t round = 0;
      std::memcpy(&round, message.data(), 8);
      if (round >= kRounds) return;
      ++round;
      if (node(self).post(fetch_add(from, box.id(self), 0, 1, nullptr)).all() &&
          node(self).send(from, 0, std::as_bytes(std::span(&round, 1))) == Refusal::none) {
        answered = round;
      }
    };
  };
  node(0).receive(0, answer(0));
  node(1).receive(0, answer(1));
  const std::uint64_t zero = 0;
  send(0, 1, 0, std::as_bytes(std::span(&zero, 1)));
  until("the last answer is heard",
        [&] { return answered == kRounds && box.load(0, 0) + box.load(1, 0) == kRounds; });
  EXPECT_EQ(box.load(0, 0), kRounds / 2);
}

TEST_P(Handlers, OfEventsComeAndGoInsideEvents) {
  start(2);
  int first = 0;
  int second = 0;
  Subscription later;
  Subscription now;
  now = node(0).subscribe([&](const Event& e) {
    if (e.kind != Event::Kind::region_connected || e.peer != 1) return;
    ++first;
    later = node(0).subscribe([&](const Event& f) {
      if (f.kind == Event::Kind::region_connected && f.peer == 1) ++second;
    });
    now = Subscription();
  });
  share("one", 64);
  until("the first has run", [&] { return first == 1; });
  share("two", 64);
  until("the second has run", [&] { return second == 1; });
  later = Subscription();
  share("three", 64);
  let_time_pass();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST_P(Handlers, OfEventsRunInsidePollOnly) {
  start(2);
  int calls = 0;
  const Subscription subscription = node(0).subscribe([&](const Event&) { ++calls; });
  const Region& theirs = group().allocate(1, {.name = "box", .bytes = 64});
  node(1).announce(theirs);
  let_time_pass();
  EXPECT_EQ(calls, 0);
  const Region& mine = group().allocate(0, {.name = "box", .bytes = 64});
  node(0).announce(mine);
  EXPECT_EQ(calls, 0) << "neither allocate() nor announce() is poll()";
  until("the event is seen", [&] { return calls > 0; });
}

TEST_P(Handlers, AreForChannelsThatExist) {
  start(2);
  expect_error([&] { node(0).receive(kMaxChannels, nullptr); }, "kMaxChannels");
}

}  // namespace dunlin::conformance
