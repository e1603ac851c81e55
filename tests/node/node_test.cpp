#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "node/nodes.hpp"

namespace dunlin {
namespace {

using test::found;
using test::node_options;

TEST(Node, OneMemberUsesAllHandles) {
  Node node = Node::join(node_options(test::fresh_group(), 1));
  StoreHandle store = node.store();
  EXPECT_TRUE(store.put("key", "value").get().changed);
  EXPECT_EQ(store.get("key").get()->text(), "value");
  EXPECT_EQ(store.get("other").get(), std::nullopt);
  EXPECT_EQ(store.count().get(), 1U);

  std::map<std::string, std::string> seen;
  StoreCursor cursor = 0;
  do {
    const StorePiece piece = store.scan(cursor).get();
    for (const StorePiece::Entry& entry : piece.entries) seen.emplace(entry.key, entry.value);
    cursor = piece.next;
  } while (cursor != 0);
  EXPECT_EQ(seen, (std::map<std::string, std::string>{{"key", "value"}}));

  auto map = node.map<std::uint64_t, double>("prices", {.slots = 100});
  EXPECT_TRUE(map.insert(7, 1.5).get());
  EXPECT_FALSE(map.insert(7, 2.5).get());
  EXPECT_EQ(map.find(7).get(), 1.5);
  EXPECT_EQ(map.find(8).get(), std::nullopt);

  auto queue = node.queue<std::uint64_t>("tasks", {.capacity = 2});
  EXPECT_TRUE(queue.push(1).get());
  EXPECT_TRUE(queue.push(2).get());
  EXPECT_FALSE(queue.push(3).get());
  EXPECT_EQ(queue.pop().get(), 1U);
  EXPECT_EQ(queue.pop().get(), 2U);
  EXPECT_EQ(queue.pop().get(), std::nullopt);

  SegmentsHandle segments = node.segments();
  std::uint64_t value = 42;
  const Key key = segments.allocate({.bytes = 8, .name = "answer"}).get();
  segments.put(key, bytes_of(value)).get();
  value = 0;
  segments.get(segments.find("answer").get(), bytes_of(value)).get();
  EXPECT_EQ(value, 42U);
  EXPECT_EQ(segments.find("question").result().status(), remote::Status::unknown);
}

/// How often the threads of this process have gone to sleep, but for the first one.
std::uint64_t sleeps_of_other_threads() {
  std::uint64_t sleeps = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    std::ifstream status(task.path() / "status");
    std::string line;
    const std::string name = "voluntary_ctxt_switches:";
    while (std::getline(status, line))
      if (line.starts_with(name)) sleeps += std::stoull(line.substr(name.size()));
  }
  return sleeps;
}

TEST(Node, PutsIntoASegmentOfMappedMemoryLeaveItsMemberAsleep) {
  std::vector<Node> nodes = found(test::fresh_group(), 2);
  SegmentsHandle segments = nodes[0].segments();
  static_cast<void>(nodes[1].segments());
  for (const Coherence coherence : {Coherence::null, Coherence::write}) {
    const Key key =
        segments.allocate({.bytes = 8, .coherence = coherence, .placement = Placement::on(1)})
            .get();
    std::uint64_t value = 0;
    segments.put(key, bytes_of(value)).get();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that both threads sleep
    constexpr std::uint64_t kPuts = 100;
    const std::uint64_t before = sleeps_of_other_threads();
    while (value++ < kPuts) {
      segments.put(key, bytes_of(value)).get();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_LT(sleeps_of_other_threads() - before, kPuts / 2);
  }
}

TEST(Node, MembersShareStoreTableAndMessages) {
  struct Row {
    Cell<int> step;
    Cell<double> load;
  };
  std::vector<Node> nodes = found(test::fresh_group(), 3);
  std::atomic<int> delivered{0};
  std::vector<MulticastHandle> orders;
  for (Node& node : nodes)
    orders.push_back(node.multicast("orders", {.on_delivery = [&](const NodeMessage& message) {
                                      if (message.text() == "hello") ++delivered;
                                    }}));
  for (MulticastHandle& order : orders) order.wait_until_joined();
  for (MulticastHandle& order : orders)
    while (order.send("hello") == multicast::SendResult::no_room) std::this_thread::yield();
  while (delivered < 9) std::this_thread::yield();

  std::vector<TableHandle<Row>> tables;
  for (Node& node : nodes) tables.push_back(node.table<Row>("loads"));
  Future<void> all_there = tables[0].until(all(&Row::step) >= 1);
  for (TableHandle<Row>& table : tables) table.update([](Row& mine) { mine.step = 1; }, &Row::step);
  all_there.get();
  for (TableHandle<Row>& table : tables) table.until(all(&Row::step) >= 1).get();

  std::vector<StoreHandle> stores;
  for (Node& node : nodes) stores.push_back(node.store("blocks"));
  stores[0].put("key", "value").get();
  EXPECT_EQ(stores[2].get("key").get()->text(), "value");
}

struct Put {
  std::string key, value;
};
struct Erase {
  std::string key;
};
struct Entries {
  std::map<std::string, std::string> entries;
  bool apply(const Put& put) { return entries.insert_or_assign(put.key, put.value).second; }
  bool apply(const Erase& erase) { return entries.erase(erase.key) > 0; }
  [[nodiscard]] std::string save() const {
    std::string text;
    for (const auto& [key, value] : entries) (((text += key) += '=') += value) += '\n';
    return text;
  }
  void load(std::string_view saved) {
    for (std::size_t at = 0; at < saved.size();) {
      const std::size_t end = saved.find('\n', at), mark = saved.find('=', at);
      entries[std::string(saved.substr(at, mark - at))] = saved.substr(mark + 1, end - mark - 1);
      at = end + 1;
    }
  }
};

TEST(Node, ALaterMemberGetsTheStateOfAReplicatedObject) {
  const std::string group = test::fresh_group();
  std::vector<Node> nodes = found(group, 2);
  auto first = nodes[0].replicated<Entries, Put, Erase>("entries");
  auto second = nodes[1].replicated<Entries, Put, Erase>("entries");
  first.wait_until_joined();
  second.wait_until_joined();
  EXPECT_TRUE(first.apply(Put{"a", "1"}).get());
  EXPECT_FALSE(second.apply(Put{"a", "2"}).get());
  EXPECT_TRUE(first.apply(Put{"b", "3"}).get());
  EXPECT_TRUE(second.apply(Erase{"b"}).get());

  Node late = Node::join(node_options(group, 2));
  EXPECT_EQ(late.view().members.size(), 3U);
  auto third = late.replicated<Entries, Put, Erase>("entries");
  third.wait_until_joined();
  EXPECT_EQ(third.look([](const Entries& entries) { return entries.entries; }),
            (std::map<std::string, std::string>{{"a", "2"}}));
  EXPECT_TRUE(third.apply(Put{"c", "4"}).get());
}

TEST(Node, ALaterMemberMayStartBeforeTheFounders) {
  const std::string group = test::fresh_group();
  std::optional<Node> late;
  std::jthread early([&] {
    NodeOptions options = node_options(group, 2);
    options.may_found = false;
    late.emplace(Node::join(options));
  });
  const std::vector<Node> founders = found(group, 2);
  early.join();
  EXPECT_EQ(late->view().members.size(), 3U);
  EXPECT_EQ(late->rank(), 2U);
}

TEST(Node, NobodyFoundsAGroupThatRunsWithoutItsFounders) {
  const std::string group = test::fresh_group();
  std::vector<Node> founders = found(group, 2);
  std::vector<Node> later;
  for (int i = 0; i < 2; ++i) later.push_back(Node::join(node_options(group, 2)));
  founders.clear();
  while (later[0].view().members.size() > 2) std::this_thread::yield();
  const std::vector<Node> more = found(group, 2);  // as many as could found it
  while (later[0].view().members.size() < 4) std::this_thread::yield();
  while (more[0].view().members.size() < 4) std::this_thread::yield();  // it may come there later
}

TEST(Node, MembersMeetOverTcp) {
  const std::string group = test::fresh_group();
  const auto join = [&](const std::string& name) {
    NodeOptions options = node_options(group, 1);
    options.names = {"a", "b"};
    options.name = name;
    options.network.network = "tcp";
    options.network.rendezvous = "unix:" + group;
    options.network.secret = "a secret of sixteen bytes or more";
    options.listen = "unix:" + group + "." + name;
    for (const std::string other : {"a", "b"})
      options.contacts.push_back("unix:" + group + "." + other);
    return Node::join(options);
  };
  std::optional<Node> a;
  std::jthread founding([&] { a.emplace(join("a")); });
  Node b = join("b");
  founding.join();
  StoreHandle at_a = a->store(), at_b = b.store();
  EXPECT_TRUE(at_a.put("key", "value").get().changed);
  EXPECT_EQ(at_b.get("key").get()->text(), "value");
  const Node c = join("c");
  EXPECT_EQ(c.view().members, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(c.name(), "c");
}

struct PlainRow {
  int step;
  double load;
};

/// Before the node's thread has come to the view, or after it.
TEST(Node, MakesOneTableForAView) {
  for (int round = 1; round <= 20; ++round) {
    Node node = Node::join(node_options(test::fresh_group(), 1));
    auto table = node.table<PlainRow>("rows");
    for (int step = 1; step <= 20; ++step) {
      table.update([&](PlainRow& mine) { mine.step = step; }, &PlainRow::step);
      ASSERT_TRUE(table.until(all(&PlainRow::step) >= step).result().has_value());
    }
    EXPECT_EQ(node.why_ended(), "");
  }
}

TEST(Node, CarriesPlainMembersIntoTheNextView) {
  const std::string group = test::fresh_group();
  std::vector<Node> nodes = found(group, 2);
  auto first = nodes[0].table<PlainRow>("rows");
  auto second = nodes[1].table<PlainRow>("rows");
  first.update([](PlainRow& mine) { mine = {.step = 3, .load = 0.5}; });
  second.update([](PlainRow& mine) { mine.step = 4; });
  Node late = Node::join(node_options(group, 2));
  auto third = late.table<PlainRow>("rows");
  third.update([](PlainRow& mine) { mine.step = 5; });
  third.until(sum(&PlainRow::step) == 12).get();
  EXPECT_EQ(third.snapshot()[first.my_row()].load, 0.5);
}

TEST(Node, AMemberThatLeavesLetsTheOthersGoOn) {
  std::vector<Node> nodes = found(test::fresh_group(), 3);
  nodes[1].leave();
  EXPECT_TRUE(nodes[1].wait_for_end());
  while (nodes[0].view().members.size() > 2) std::this_thread::yield();
  EXPECT_NE(nodes[1].why_ended(), "");
  EXPECT_EQ(nodes[0].why_ended(), "");
  EXPECT_THROW(static_cast<void>(nodes[1].store()), Error);
}

}  // namespace
}  // namespace dunlin
