// All handles, from eight threads at once.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "node/nodes.hpp"

namespace dunlin {
namespace {

using test::found;
using test::fresh_group;

struct Add {
  std::uint64_t more;
};
struct Sum {
  std::uint64_t sum = 0, commands = 0;
  std::uint64_t apply(const Add& add) {
    ++commands;
    return sum += add.more;
  }
  [[nodiscard]] std::string save() const {
    return std::to_string(sum) + " " + std::to_string(commands);
  }
  void load(std::string_view saved) { sum = std::stoull(std::string(saved)); }
};
struct Sample {
  std::uint32_t thread, number;
};
struct Row {
  Cell<std::uint64_t> steps;
};

constexpr std::uint32_t kThreads = 8;

class NodeThreads : public ::testing::Test {
 protected:
  /// Runs `work(node, thread)` in eight threads, each of which uses one of the nodes.
  template <class Work>
  void run(const Work& work) {
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] { work(nodes[thread % nodes.size()], thread); });
  }
  std::vector<Node> nodes = found(fresh_group(), 2);
};

TEST_F(NodeThreads, CallTheStore) {
  run([](Node& node, std::uint32_t thread) {
    StoreHandle store = node.store();
    for (std::uint64_t i = 0; i < 200; ++i) {
      const std::uint64_t key = thread * 1'000 + i % 10;
      EXPECT_TRUE(store.put(key, std::to_string(i)).get().changed);
      EXPECT_EQ(store.get(key).get()->text(), std::to_string(i));
      static_cast<void>(store.put("shared", std::to_string(i)).get());
    }
  });
  EXPECT_EQ(nodes[0].store().count().get(), kThreads * 10 + 1);
}

TEST_F(NodeThreads, CountInAMapAndPassElementsOnInAQueue) {
  std::atomic<std::uint64_t> popped{0}, sum{0};
  run([&](Node& node, std::uint32_t thread) {
    auto counts = node.map<std::uint64_t, std::uint64_t>("counts", {.slots = 1'000});
    auto queue = node.queue<std::uint64_t>("queue", {.capacity = 64});
    for (std::uint64_t i = 0; i < 200; ++i) {
      static_cast<void>(counts.add(i % 7, 1).get());
      if (thread < kThreads / 2) {
        EXPECT_TRUE(queue.push(i, remote::kForever).get());
      } else {
        sum += *queue.pop(remote::kForever).get();
        ++popped;
      }
    }
  });
  EXPECT_EQ(popped, kThreads / 2 * 200);
  EXPECT_EQ(sum, kThreads / 2 * (199 * 200 / 2));
  auto counts = nodes[1].map<std::uint64_t, std::uint64_t>("counts", {.slots = 1'000});
  std::uint64_t counted = 0;
  for (std::uint64_t key = 0; key < 7; ++key) counted += counts.find(key).get().value_or(0);
  EXPECT_EQ(counted, kThreads * 200);
}

TEST_F(NodeThreads, SendMessagesInTheOrderOfEachThread) {
  constexpr std::uint32_t kMessages = 2'000;
  std::vector<std::vector<std::vector<std::uint32_t>>> seen(
      nodes.size(), std::vector<std::vector<std::uint32_t>>(kThreads));
  std::vector<std::atomic<std::uint32_t>> delivered(nodes.size());
  std::vector<MulticastHandle> all;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    all.push_back(nodes[i].multicast("words", {.on_delivery = [&, i](const NodeMessage& message) {
                                       Sample sample{};
                                       std::memcpy(&sample, message.bytes.data(), sizeof sample);
                                       seen[i][sample.thread].push_back(sample.number);
                                       delivered[i].fetch_add(1, std::memory_order_release);
                                     }}));
  for (MulticastHandle& one : all) one.wait_until_joined();
  run([](Node& node, std::uint32_t thread) {
    auto words = node.multicast("words");
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const Sample sample{thread, i};
      while (words.send(std::as_bytes(std::span(&sample, 1))) != multicast::SendResult::sent)
        std::this_thread::yield();
    }
  });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    while (delivered[i].load(std::memory_order_acquire) < kThreads * kMessages)
      std::this_thread::yield();
    for (const auto& of_thread : seen[i]) {
      ASSERT_EQ(of_thread.size(), kMessages);
      EXPECT_TRUE(std::ranges::is_sorted(of_thread));
    }
  }
}

TEST_F(NodeThreads, ApplyCommandsToAReplicatedObject) {
  for (Node& node : nodes) node.replicated<Sum, Add>("sum").wait_until_joined();
  run([](Node& node, std::uint32_t) {
    auto sum = node.replicated<Sum, Add>("sum");
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const std::uint64_t now = sum.apply(Add{1}).get();
      EXPECT_GT(now, last);
      last = now;
    }
  });
  for (Node& node : nodes) {
    auto sum = node.replicated<Sum, Add>("sum");
    while (sum.look([](const Sum& all) { return all.sum; }) < kThreads * 100)
      std::this_thread::yield();
    EXPECT_EQ(sum.look([](const Sum& all) { return all.commands; }), kThreads * 100);
  }
}

TEST_F(NodeThreads, WriteSamplesAndChangeRows) {
  std::atomic<std::uint32_t> samples{0};
  std::vector<TopicHandle<Sample>> topics;
  for (Node& node : nodes)
    topics.push_back(node.topic<Sample>(
        "samples", {.on_sample = [&](const Sample&, const pubsub::SampleInfo&) { ++samples; }}));
  for (TopicHandle<Sample>& topic : topics)
    while (topic.matched() < 2) std::this_thread::yield();
  run([](Node& node, std::uint32_t thread) {
    auto topic = node.topic<Sample>("samples");
    auto table = node.table<Row>("steps");
    for (std::uint32_t i = 0; i < 200; ++i) {
      while (topic.write({thread, i}) != pubsub::WriteResult::written) std::this_thread::yield();
      table.update([](Row& mine) { mine.steps = mine.steps + 1; }, &Row::steps);
      static_cast<void>(table.snapshot());
    }
  });
  while (samples < kThreads * 200 * nodes.size()) std::this_thread::yield();
  for (Node& node : nodes)
    node.table<Row>("steps").until(min(&Row::steps) >= kThreads / 2 * 200).get();
}

TEST_F(NodeThreads, FindTheirCallsEndedWhenTheNodeEnds) {
  for (Node& node : nodes) {  // its keys and elements are at both
    static_cast<void>(node.store());
    static_cast<void>(node.queue<int>("queue", {.capacity = 8}));
  }
  std::atomic<std::uint32_t> calling{0};
  std::jthread ending([&] {
    while (calling < kThreads * 20) std::this_thread::yield();
    nodes[1].leave();
  });
  run([&](Node& node, std::uint32_t thread) {
    if (thread % 2 == 0) {
      calling += 20;
      return;
    }
    try {
      StoreHandle store = node.store();
      auto queue = node.queue<int>("queue", {.capacity = 8});
      for (std::uint64_t i = 0;; ++i) {
        static_cast<void>(store.put(i % 100, "value").get());
        static_cast<void>(queue.pop(1'000).get());
        ++calling;
      }
    } catch (const Error&) {
      EXPECT_TRUE(node.ended());
    }
  });
  EXPECT_TRUE(nodes[1].wait_for_end());
}

}  // namespace
}  // namespace dunlin
