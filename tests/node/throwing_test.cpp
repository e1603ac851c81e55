#include <atomic>
#include <future>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/nodes.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"

/// Functions of the program that throw, or that meet another node: what a hostile review has shown.
namespace dunlin {
namespace {

using test::contains;
using test::found;
using test::fresh_group;
using test::node_options;

struct Row {
  Cell<int> step;
};

/// Options that count what on_exception is told.
NodeOptions counting(const std::string& group, std::uint32_t members, std::atomic<int>& told) {
  NodeOptions options = node_options(group, members);
  options.on_exception = [&told](std::exception_ptr) { ++told; };
  return options;
}

TEST(NodeThrowing, OneThatComesAsksAnotherMemberIfSaveThrows) {
  std::atomic<int> told{0}, saves{0}, loads{0};
  const std::string group = fresh_group();
  std::vector<Node> nodes =
      found(group, 2, [&](NodeOptions& options) { options = counting(group, 2, told); });
  const auto setup = [&] {
    MulticastSetup made;
    made.save = [&]() -> std::vector<std::byte> {
      if (saves++ == 0) throw std::runtime_error("this member cannot save");
      return std::vector<std::byte>(8);
    };
    made.load = [&](std::span<const std::byte> state) {
      EXPECT_EQ(state.size(), 8U);
      ++loads;
    };
    return made;
  };
  std::vector<MulticastHandle> orders;
  for (Node& node : nodes) orders.push_back(node.multicast("orders", setup()));
  for (MulticastHandle& one : orders) one.wait_until_joined();
  const int loads_before = loads, saves_before = saves;
  told = 0;
  saves = 0;
  Node late = Node::join(counting(group, 2, told));
  MulticastHandle its = late.multicast("orders", setup());
  its.wait_until_joined();
  EXPECT_EQ(loads, loads_before + 1) << saves_before;
  EXPECT_EQ(saves, 2);
  EXPECT_EQ(told, 1);
  for (Node& node : nodes) EXPECT_FALSE(node.ended()) << node.why_ended();
}

TEST(NodeThrowing, APredicateEndsItsWait) {
  std::atomic<int> told{0};
  Node node = Node::join(counting(fresh_group(), 1, told));
  auto table = node.table<Row>("steps");
  const auto throws = [](const Table<Row>& rows) -> bool {
    if (rows.size() == 1) throw std::runtime_error("no");
    return false;
  };
  const Result<void> ended = table.until(throws).result();
  EXPECT_EQ(ended.status(), remote::Status::threw);
  EXPECT_TRUE(contains(ended.error().text, "a predicate threw: no")) << ended.error().text;
  std::atomic<int> triggers{0};
  table.when(throws, [&](Table<Row>&) { ++triggers; });
  table.update([](Row& mine) { mine.step = 1; }, &Row::step);
  table.until(all(&Row::step) >= 1).get();
  while (told == 0) std::this_thread::yield();
  table.update([](Row& mine) { mine.step = 2; }, &Row::step);
  table.until(all(&Row::step) >= 2).get();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(triggers, 0);
  EXPECT_FALSE(node.ended()) << node.why_ended();
}

TEST(NodeThrowing, AnUpdaterLeavesTheKeyAsItIs) {
  std::atomic<int> told{0};
  Node node = Node::join(counting(fresh_group(), 1, told));
  StoreHandle store = node.store();
  store.put("key", "value").get();
  const StoreChange change = store
                                 .update("key",
                                         [](auto) -> StoreUpdate {
                                           throw std::runtime_error("it does not know the value");
                                         })
                                 .get();
  EXPECT_FALSE(change.changed);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(store.get("key").get()->text(), "value");
}

struct Add {
  std::uint32_t more;
};
struct Sum {
  std::uint64_t sum = 0;
  std::uint64_t apply(const Add& add) { return sum += add.more; }
  [[nodiscard]] std::string save() const { return std::to_string(sum); }
  void load(std::string_view saved) { sum = std::stoull(std::string(saved)); }
};

TEST(NodeThrowing, CommandsOfASubgroupThatRefusesThisMemberEnd) {
  std::vector<Node> nodes = found(fresh_group(), 2);
  MulticastSetup setup;
  setup.options.mode = multicast::Mode::unordered;
  MulticastHandle plain = nodes[0].multicast("name", setup);
  plain.wait_until_joined();
  auto sum = nodes[1].replicated<Sum, Add>("name");
  for (int i = 0; i < 3; ++i) {
    const Result<std::uint64_t> result = sum.apply(Add{1}).result();
    ASSERT_EQ(result.status(), remote::Status::stopped);
    EXPECT_TRUE(contains(result.error().text, "unordered")) << result.error().text;
  }
  EXPECT_FALSE(nodes[1].ended()) << nodes[1].why_ended();
}

struct Old {
  std::uint32_t a;
};
struct New {
  std::uint64_t a;
};

TEST(NodeThrowing, SamplesThatARefusedWriterHadAcceptedAreTold) {
  std::mutex mutex;
  std::string news;
  std::vector<Node> nodes = found(fresh_group(), 2, [&](NodeOptions& options) {
    options.on_news = [&](std::string_view text) {
      const std::lock_guard lock(mutex);
      news += std::string(text) + '\n';
    };
  });
  auto before = nodes[0].topic<Old>("topic");
  while (before.write({1}) != pubsub::WriteResult::written) std::this_thread::yield();
  while (before.take().empty()) std::this_thread::yield();  // the topic has its type
  auto other = nodes[1].topic<New>("topic");
  int accepted = 0;
  pubsub::WriteResult result;
  while ((result = other.write({2})) != pubsub::WriteResult::refused)
    accepted += result == pubsub::WriteResult::written ? 1 : 0;
  nodes.clear();
  const std::lock_guard lock(mutex);
  int told = 0;
  const std::regex number("'topic': ([0-9]+) samples that were accepted");
  for (std::sregex_iterator at(news.begin(), news.end(), number), end; at != end; ++at)
    told += std::stoi((*at)[1].str());
  EXPECT_EQ(told, accepted) << news;
}

TEST(NodeThrowing, ItsTimeMayBeTheLongest) {
  const std::string group = fresh_group();
  std::promise<void> waits;
  std::atomic<bool> has_told{false};
  std::jthread first([&] {
    NodeOptions options = node_options(group, 2);
    options.network.timeout_ms = UINT32_MAX;
    options.on_news = [&](std::string_view) {
      if (!has_told.exchange(true)) waits.set_value();
    };
    EXPECT_NO_THROW({ const Node node = Node::join(options); });
  });
  waits.get_future().wait();  // it has waited for a second
  const Node second = Node::join(node_options(group, 2));
}

TEST(NodeThrowing, TwoNodesLookAtEachOthersViewsInCallbacks) {
  constexpr int kMessages = 2'000;
  std::vector<Node> nodes = found(fresh_group(), 2);
  std::array<std::atomic<int>, 2> delivered{};
  std::vector<MulticastHandle> orders;
  for (std::size_t i = 0; i < 2; ++i) {
    MulticastSetup setup;
    setup.on_delivery = [&, i](const NodeMessage&) {
      delivered[i] += nodes[1 - i].view().members.empty() ? 0 : 1;
    };
    orders.push_back(nodes[i].multicast("orders", std::move(setup)));
  }
  for (MulticastHandle& one : orders) one.wait_until_joined();
  for (int message = 0; message < kMessages; ++message)
    while (orders[static_cast<std::size_t>(message % 2)].send("x") != multicast::SendResult::sent)
      std::this_thread::yield();
  // The one that joined last need not have those that were sent before.
  while (std::max<int>(delivered[0], delivered[1]) < kMessages) std::this_thread::yield();
}

TEST(NodeThrowing, ForkedChildrenAreToldThatTheirCallsHaveStopped) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has locks of its own, which a child inherits";
  Node node = Node::join(node_options(fresh_group(), 1));
  StoreHandle store = node.store();
  store.put("key", "value").get();
  std::atomic<bool> ends{false};
  std::jthread calls([&] {
    while (!ends) store.get("key").then([](const auto&) {});
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      int status = 1;
      store.get("key").then(
          [&](const auto& got) { status = got.status() == remote::Status::stopped ? 0 : 2; });
      _exit(status);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  ends = true;
}

}  // namespace
}  // namespace dunlin
