// What hostile programs have found: each test failed before its mend.
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "node/nodes.hpp"

namespace dunlin {
namespace {

using test::found;
using test::fresh_group;
using test::node_options;

struct Row {
  Cell<int> step;
};

TEST(NodeMishaps, ATableMayBeMadeBeforeTheThreadHasPolled) {
  for (int i = 0; i < 20; ++i) {
    Node node = Node::join(node_options(fresh_group(), 1));
    auto table = node.table<Row>("steps");
    table.update([](Row& mine) { mine.step = 1; }, &Row::step);
    table.until(all(&Row::step) >= 1).get();
    EXPECT_FALSE(node.ended()) << node.why_ended();
  }
}

struct Add {
  std::uint32_t more;
};
struct Sum {
  std::uint64_t sum = 0;
  std::uint64_t apply(const Add& add) {
    if (add.more == 13) throw 13;
    return sum += add.more;
  }
  [[nodiscard]] std::string save() const { return std::to_string(sum); }
  void load(std::string_view saved) { sum = std::stoull(std::string(saved)); }
};

TEST(NodeMishaps, CommandsEndOnceWhenTheNodeEnds) {
  for (int i = 0; i < 10; ++i) {
    std::optional<Node> node(Node::join(node_options(fresh_group(), 1)));
    auto sum = node->replicated<Sum, Add>("sum");
    sum.wait_until_joined();
    std::atomic<std::uint32_t> applied{0};
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread)
      threads.emplace_back([&] {
        for (;;) {
          const remote::Status status = sum.apply(Add{1}).result().status();
          if (status == remote::Status::stopped) return;
          ++applied;
        }
      });
    while (applied < 100) std::this_thread::yield();
    node.reset();
  }
}

TEST(NodeMishaps, WhatApplyThrowsEndsItsCall) {
  NodeOptions options = node_options(fresh_group(), 1);
  options.on_exception = [](std::exception_ptr) {};
  Node node = Node::join(options);
  auto sum = node.replicated<Sum, Add>("sum");
  sum.wait_until_joined();
  EXPECT_EQ(sum.apply(Add{13}).result().status(), remote::Status::threw);
  EXPECT_EQ(sum.apply(Add{1}).get(), 1U);
}

TEST(NodeMishaps, ACallbackMayBeginTheNextCallForEver) {
  Node node = Node::join(node_options(fresh_group(), 1));
  StoreHandle store = node.store();
  constexpr int kCalls = 100'000;
  std::promise<void> done;
  int calls = 0;
  std::function<void()> next = [&] {
    if (++calls == kCalls) return done.set_value();
    store.put("key", "value").then([&](const Result<StoreChange>&) { next(); });
  };
  next();
  done.get_future().wait();
}

TEST(NodeMishaps, CallbacksOfAnEndedNodeDoNotCallThemselves) {
  std::optional<Node> node(Node::join(node_options(fresh_group(), 1)));
  StoreHandle store = node->store();
  node.reset();
  int calls = 0;
  std::function<void()> next = [&] {
    if (++calls < 100'000)
      store.put("key", "value").then([&](const Result<StoreChange>&) { next(); });
  };
  next();
  EXPECT_EQ(calls, 100'000);
}

TEST(NodeMishaps, TakingSamplesLetsTheWriterGoOn) {
  struct Sample {
    std::uint64_t number;
  };
  std::vector<Node> nodes = found(fresh_group(), 2);
  TopicSetup<Sample> writes, reads;
  for (TopicSetup<Sample>* setup : {&writes, &reads}) {
    setup->topic.ring_bytes = 1 << 14;
    setup->reader.history = pubsub::History::keep_all();
    setup->reader.reliability = pubsub::Reliability::reliable();
    setup->writer.reliability = pubsub::Reliability::reliable();
  }
  writes.reads = false;
  reads.writes = false;
  auto writer = nodes[0].topic<Sample>("samples", writes);
  auto reader = nodes[1].topic<Sample>("samples", reads);
  while (writer.matched() < 1) std::this_thread::yield();
  constexpr std::uint64_t kSamples = 50'000;
  std::jthread writing([&] {
    for (std::uint64_t i = 0; i < kSamples; ++i)
      while (writer.write({i}) != pubsub::WriteResult::written) std::this_thread::yield();
  });
  for (std::uint64_t seen = 0; seen < kSamples; std::this_thread::yield())
    for (const Sample& sample : reader.take()) EXPECT_EQ(sample.number, seen++);
}

TEST(NodeMishaps, WhatTheCoreIsToldWakesTheNode) {
  Node node = Node::join(node_options(fresh_group(), 1));
  node.with_core([](Group& group, remote::Progress&) { group.leave(); });
  EXPECT_TRUE(node.wait_for_end());
}

TEST(NodeMishaps, AFunctionThatHasTheTurnCannotWait) {
  auto node = std::make_unique<Node>(Node::join(node_options(fresh_group(), 1)));
  auto queue = node->queue<int>("queue", {.capacity = 8});
  auto table = node->table<Row>("steps");
  EXPECT_THROW(table.update([&](Row&) { static_cast<void>(queue.pop(remote::kForever).get()); }),
               Error);
  EXPECT_THROW(
      node->with_core([&](Group&, remote::Progress&) { static_cast<void>(node->wait_for_end()); }),
      Error);
  node->with_core([&](Group&, remote::Progress&) { node.reset(); });
  EXPECT_EQ(queue.pop(remote::kForever).result().status(), remote::Status::stopped);
}

TEST(NodeMishaps, CallsWithTheTurnDoNotOvertakeThoseInTheQueue) {
  Node node = Node::join(node_options(fresh_group(), 1));
  StoreHandle store = node.store();
  for (int round = 0; round < 50; ++round) {
    std::optional<Future<StoreChange>> first, second;
    node.with_core([&](Group&, remote::Progress&) {
      std::jthread other([&] { first.emplace(store.put("key", "first")); });  // into the queue
      other.join();
      second.emplace(store.put("key", "second"));
    });
    first->get();
    second->get();
    EXPECT_EQ(store.get("key").get()->text(), "second");
  }
}

TEST(NodeMishaps, AMemberThatDoesNotSendIsToldSo) {
  Node node = Node::join(node_options(fresh_group(), 1));
  auto words = node.multicast("words", {.sends = false});
  words.wait_until_joined();
  EXPECT_EQ(words.send("word"), multicast::SendResult::not_a_sender);
  node.with_core([&](Group&, remote::Progress&) {
    std::jthread other([&] { EXPECT_EQ(words.send("word"), multicast::SendResult::not_a_sender); });
  });
}

TEST(NodeMishaps, AFutureIsUsedOnce) {
  Node node = Node::join(node_options(fresh_group(), 1));
  StoreHandle store = node.store();
  Future<StoreChange> put = store.put("key", "value");
  EXPECT_TRUE(put.get().changed);
  EXPECT_THROW(put.get(), Error);
  EXPECT_THROW(put.then([](const Result<StoreChange>&) {}), Error);
  Future<StoreChange> moved = store.put("key", "value");
  const Future<StoreChange> other = std::move(moved);
  EXPECT_THROW(static_cast<void>(moved.result()), Error);
}

TEST(NodeMishaps, ElementsMayBeLarge) {
  struct alignas(64) Large {
    std::array<std::uint64_t, 80> words;
  };
  Node node = Node::join(node_options(fresh_group(), 1));
  auto queue = node.queue<Large>("queue", {.capacity = 8});
  std::optional<Future<bool>> pushed;
  node.with_core([&](Group&, remote::Progress&) {
    std::jthread other([&] {
      pushed.emplace(queue.push({.words = {1, 2, 3}}));
    });  // into the queue
  });
  EXPECT_TRUE(pushed->get());
  EXPECT_EQ(queue.pop().get()->words[2], 3U);
}

TEST(NodeMishaps, NodesThatUseEachOthersHandlesInCallbacksSayThatTheyWait) {
  NodeOptions options = node_options(fresh_group(), 1);
  std::atomic<std::uint32_t> told{0};
  options.on_exception = [&](std::exception_ptr) { ++told; };
  Node a = Node::join(options);
  options.group = fresh_group();
  Node b = Node::join(options);
  auto table_a = a.table<Row>("steps"), table_b = b.table<Row>("steps");
  std::atomic<std::uint32_t> delivered{0};
  const auto passing_on = [&delivered](TableHandle<Row>& table) {
    return [&](const NodeMessage&) {
      struct Count {  // behind the update: then the test ends, and with it the handle
        ~Count() { ++delivered; }
        std::atomic<std::uint32_t>& delivered;
      } const count{delivered};
      table.update([](Row& mine) { mine.step = mine.step + 1; }, &Row::step);
    };
  };
  auto words_a = a.multicast("words", {.on_delivery = passing_on(table_b)});
  auto words_b = b.multicast("words", {.on_delivery = passing_on(table_a)});
  words_a.wait_until_joined();
  words_b.wait_until_joined();
  constexpr std::uint32_t kWords = 10;
  {
    std::jthread sending([&] {
      for (std::uint32_t i = 0; i < kWords; ++i)
        while (words_a.send("word") != multicast::SendResult::sent) std::this_thread::yield();
    });
    for (std::uint32_t i = 0; i < kWords; ++i)
      while (words_b.send("word") != multicast::SendResult::sent) std::this_thread::yield();
  }
  while (delivered < 2 * kWords) std::this_thread::yield();
}

}  // namespace
}  // namespace dunlin
