// What happens to programs that break the rules, and to calls whose node ends.
#include <atomic>
#include <coroutine>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "node/nodes.hpp"

namespace dunlin {
namespace {

using test::fresh_group;
using test::node_options;

/// Keeps the node's lock until it is told to go on.
class HeldTurn {
 public:
  explicit HeldTurn(Node& node) {
    std::promise<void> taken;
    thread_ = std::jthread([&node, &taken, this] {
      node.with_core([&](Group&, remote::Progress&) {
        taken.set_value();
        go_on_.get_future().wait();
      });
    });
    taken.get_future().wait();
  }
  ~HeldTurn() { go_on_.set_value(); }

 private:
  std::promise<void> go_on_;
  std::jthread thread_;
};

TEST(NodeRules, AWaitInACallbackOfTheNodesThreadIsRefusedWithASentence) {
  Node node = Node::join(node_options(fresh_group(), 1));
  StoreHandle store = node.store();
  auto queue = node.queue<int>("queue", {.capacity = 8});
  std::promise<std::string> said;
  queue.pop(remote::kForever).then([&](const Result<std::optional<int>>&) {
    try {
      static_cast<void>(queue.pop(remote::kForever).get());
    } catch (const Error& error) {
      said.set_value(error.what());
    }
  });
  queue.push(1).get();
  EXPECT_NE(said.get_future().get().find("cannot wait"), std::string::npos);
}

TEST(NodeRules, WhatACallbackThrowsIsToldAndTheNodeGoesOn) {
  std::promise<std::string> told;
  NodeOptions options = node_options(fresh_group(), 1);
  options.on_exception = [&](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      told.set_value(error.what());
    }
  };
  Node node = Node::join(options);
  auto words = node.multicast("words", {.on_delivery = [](const NodeMessage& message) {
                                if (message.text() == "bad")
                                  throw std::runtime_error("no such word");
                              }});
  words.wait_until_joined();
  EXPECT_EQ(words.send("bad"), multicast::SendResult::sent);
  EXPECT_EQ(told.get_future().get(), "no such word");
  EXPECT_TRUE(node.store().put("key", "value").get().changed);
}

TEST(NodeRules, HandlesAndFuturesOutliveTheirNode) {
  std::optional<Node> node(Node::join(node_options(fresh_group(), 1)));
  StoreHandle store = node->store();
  auto queue = node->queue<int>("queue", {.capacity = 8});
  auto words = node->multicast("words");
  Future<std::optional<int>> pop = queue.pop(remote::kForever);
  std::promise<remote::Status> continued;
  queue.pop(remote::kForever).then([&](const Result<std::optional<int>>& popped) {
    continued.set_value(popped.status());
  });
  node.reset();
  EXPECT_EQ(pop.result().status(), remote::Status::stopped);
  EXPECT_EQ(continued.get_future().get(), remote::Status::stopped);
  const Result<std::optional<StoreValue>> got = store.get("key").result();
  EXPECT_EQ(got.status(), remote::Status::stopped);
  EXPECT_NE(got.error().text.find("it leaves the group"), std::string::npos) << got.error().text;
  EXPECT_EQ(words.send("late"), multicast::SendResult::ended);
}

TEST(NodeRules, ANodeMayBeDestroyedInItsOwnCallback) {
  auto node = std::make_unique<Node>(Node::join(node_options(fresh_group(), 1)));
  auto queue = node->queue<int>("queue", {.capacity = 8});
  std::promise<void> destroyed;
  queue.pop(remote::kForever).then([&](const Result<std::optional<int>>&) {
    node.reset();
    destroyed.set_value();
  });
  queue.push(1).get();
  destroyed.get_future().wait();
  EXPECT_EQ(queue.pop(remote::kForever).result().status(), remote::Status::stopped);
}

TEST(NodeRules, AFullQueueRefusesCallsAndLosesNone) {
  NodeOptions options = node_options(fresh_group(), 1);
  options.queue_bytes = 1'024;
  Node node = Node::join(options);
  auto map = node.map<int, int>("map", {.slots = 100});
  std::vector<Future<bool>> accepted;
  std::uint32_t refused = 0;
  {
    const HeldTurn held(node);
    for (int key = 0; key < 30; ++key) {
      Future<bool> inserted = map.insert(key, key);
      if (!inserted.ready())
        accepted.push_back(std::move(inserted));
      else if (inserted.result().status() == remote::Status::overloaded)
        ++refused;
    }
  }
  EXPECT_GT(accepted.size(), 0U);
  EXPECT_EQ(accepted.size() + refused, 30U);
  EXPECT_GT(refused, 0U);
  for (Future<bool>& one : accepted) EXPECT_TRUE(one.get());
}

TEST(NodeRules, ACallIsGivenUpInTheQueueAndUnderWay) {
  Node node = Node::join(node_options(fresh_group(), 1));
  auto queue = node.queue<int>("queue", {.capacity = 8});
  Future<std::optional<int>> under_way = queue.pop(remote::kForever);
  EXPECT_EQ(under_way.get_for(1'000'000), std::nullopt);
  under_way.cancel();
  EXPECT_EQ(under_way.result().status(), remote::Status::abandoned);
  std::optional<Future<std::optional<int>>> queued;
  std::jthread canceller;
  {
    const HeldTurn held(node);
    queued.emplace(queue.pop(remote::kForever));
    canceller = std::jthread([&] { queued->cancel(); });  // waits for the lock
  }
  canceller.join();
  EXPECT_EQ(queued->result().status(), remote::Status::abandoned);
  EXPECT_TRUE(queue.push(7).get());
  EXPECT_EQ(queue.pop().get(), 7);  // no call that was given up has it
}

TEST(NodeRules, ACallWithABufferOfTheCallersIsGivenUpWithItsFuture) {
  Node node = Node::join(node_options(fresh_group(), 1));
  SegmentsHandle segments = node.segments();
  const Key key = segments.allocate({.bytes = 8}).get();
  std::jthread dropper;
  {
    const HeldTurn held(node);
    dropper = std::jthread([&] {
      std::uint64_t buffer = 0;
      static_cast<void>(segments.get(key, bytes_of(buffer)));  // waits until it is given up
    });
  }
  dropper.join();
  std::uint64_t value = 3;
  EXPECT_EQ(segments.put(key, bytes_of(value)).result().status(), remote::Status::ok);
}

TEST(NodeRules, CallbacksRunOnTheExecutorInOrder) {
  std::mutex mutex;
  std::deque<std::function<void()>> work;
  NodeOptions options = node_options(fresh_group(), 1);
  options.executor = [&](std::function<void()> one) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(one));
  };
  Node node = Node::join(options);
  std::vector<std::string> seen;
  auto words = node.multicast(
      "words", {.on_delivery = [&](const NodeMessage& m) { seen.emplace_back(m.text()); }});
  words.wait_until_joined();
  for (const char* word : {"a", "b", "c"}) EXPECT_EQ(words.send(word), multicast::SendResult::sent);
  while (seen.size() < 3) {
    std::function<void()> next;
    {
      const std::lock_guard lock(mutex);
      if (!work.empty()) {
        next = std::move(work.front());
        work.pop_front();
      }
    }
    if (next)
      next();
    else
      std::this_thread::yield();
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
}

Detached add_up(StoreHandle& store, std::promise<int>& sum) {
  static_cast<void>(co_await store.put("a", "20"));
  static_cast<void>(co_await store.put("b", "22"));
  const Result<std::optional<StoreValue>> a = co_await store.get("a");
  const Result<std::optional<StoreValue>> b = co_await store.get("b");
  sum.set_value(std::stoi((*a)->text()) + std::stoi((*b)->text()));
}

TEST(NodeRules, ACoroutineAwaitsFutures) {
  Node node = Node::join(node_options(fresh_group(), 1));
  StoreHandle store = node.store();
  std::promise<int> sum;
  add_up(store, sum);
  EXPECT_EQ(sum.get_future().get(), 42);
}

TEST(NodeRules, ATransactionMovesMoneyBetweenKeysOfSeveralThreads) {
  Node node = Node::join(node_options(fresh_group(), 1));
  StoreHandle store = node.store();
  store.put("alice", "1000").get();
  store.put("bob", "1000").get();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int transfers = 0; transfers < 50; ++transfers)
          store
              .transact([](StoreHandle::Transaction& t) {
                const int alice = std::stoi(*t.get("alice")), bob = std::stoi(*t.get("bob"));
                t.put("alice", std::to_string(alice - 1));
                t.put("bob", std::to_string(bob + 1));
              })
              .value();
      });
  }
  EXPECT_EQ(store.get("alice").get()->text(), "800");
  EXPECT_EQ(store.get("bob").get()->text(), "1200");
  EXPECT_EQ(store.transact([](StoreHandle::Transaction& t) { t.cancel(); }).status(),
            remote::Status::abandoned);
}

TEST(NodeRules, ATransactionThatWaitsAsksTheProgramWhetherItGoesOn) {
  std::vector<Node> nodes = test::found(fresh_group(), 2);
  StoreHandle store = nodes[0].store();  // the other node makes no store: its keys are waited for
  const auto read_all = [](StoreHandle::Transaction& t) {
    for (int key = 0; key < 32; ++key) static_cast<void>(t.get(std::to_string(key)));
  };
  const auto give_up = [] { throw std::runtime_error("the program gives up"); };
  EXPECT_THROW(static_cast<void>(store.transact(read_all, 1, give_up)), std::runtime_error);
}

TEST(NodeRules, OptionsThatMakeNoSenseAreRefusedWithASentence) {
  const auto refusal = [](const std::function<void(NodeOptions&)>& change) -> std::string {
    NodeOptions options = node_options(fresh_group(), 1);
    change(options);
    try {
      const Node node = Node::join(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "it joined";
  };
  EXPECT_NE(refusal([](NodeOptions& o) { o.members = 0; }).find("`members` is 0"),
            std::string::npos);
  EXPECT_NE(refusal([](NodeOptions& o) { o.members = 65; }).find("`most_members`"),
            std::string::npos);
  EXPECT_NE(refusal([](NodeOptions& o) { o.name = "a"; }).find("`names` is not"),
            std::string::npos);
  EXPECT_NE(refusal([](NodeOptions& o) { o.names = {"a"}; }).find("`name` is not"),
            std::string::npos);
  EXPECT_NE(refusal([](NodeOptions& o) { o.queue_bytes = 1'000; }).find("`queue_bytes` is 1000"),
            std::string::npos);
  EXPECT_NE(refusal([](NodeOptions& o) { o.thread.core = 9'999; }).find("cannot pin"),
            std::string::npos);
  EXPECT_NE(refusal([](NodeOptions& o) { o.group = ""; }).find("group"), std::string::npos);
  const std::string missing = refusal([](NodeOptions& o) {
    o.members = 2;
    o.network.timeout_ms = 100;
  });
  EXPECT_NE(missing.find("waited 100 ms for rank 1"), std::string::npos) << missing;
}

}  // namespace
}  // namespace dunlin
