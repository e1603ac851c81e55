// Members that are killed, stopped, forked and told to end by a signal, while threads call.
#include "support/process.hpp"

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/nodes.hpp"

namespace dunlin {
namespace {

using test::fresh_group;
using test::node_options;
using test::Parent;
using test::Process;

NodeOptions member_options(const std::string& group, std::uint32_t members) {
  NodeOptions options = node_options(group, members);
  options.network.silence_timeout_ms = 10'000;
  return options;
}

/// A member with threads that put, get and send until the process ends.
int call_for_ever(Parent& parent, const std::string& group, std::uint32_t members) {
  Node node = Node::join(member_options(group, members));
  StoreHandle store = node.store("store", {.copies = 2});
  auto words = node.multicast("words");
  words.wait_until_joined();
  std::atomic<std::uint64_t> calls{0};
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread](const std::stop_token& stop) {
      for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
        static_cast<void>(
            store.put(node.rank() * 1'000 + thread * 100 + i % 100, "value").result());
        static_cast<void>(store.get(i % 100).result());
        static_cast<void>(words.send("word"));
        if (++calls == 200) parent.send_line("calls");
      }
    });
  static_cast<void>(parent.receive_line());
  return 0;
}

TEST(NodeProcesses, OthersGoOnWhenAMemberIsKilledWhileItsThreadsCall) {
  const std::string group = fresh_group();
  std::vector<std::unique_ptr<Process>> members;
  for (int i = 0; i < 2; ++i)
    members.push_back(
        std::make_unique<Process>([&](Parent& parent) { return call_for_ever(parent, group, 3); }));
  Node node = Node::join(member_options(group, 3));
  StoreHandle store = node.store("store", {.copies = 2});
  auto words = node.multicast("words");
  words.wait_until_joined();
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> lost{0};
  std::jthread caller([&] {
    for (std::uint64_t i = 0; !ends; ++i) {
      const auto put = store.put(50'000 + i % 500, std::to_string(i)).result();
      if (!put) ++lost;
    }
  });
  EXPECT_EQ(members[0]->receive_line(), "calls");
  EXPECT_EQ(members[1]->receive_line(), "calls");
  members[1]->kill();
  while (node.view().members.size() == 3) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(store.put("after", std::to_string(i)).get().changed);
  ends = true;
  caller.join();
  EXPECT_EQ(lost, 0U);  // each key has a second copy
  members[0]->send_line("end");
  EXPECT_EQ(members[0]->exit_code(), 0);
}

TEST(NodeProcesses, AMemberThatWasKilledComesBackIntoItsGroup) {
  const std::string group = fresh_group();
  const auto member = [&group](Parent& parent) {
    static_cast<void>(parent.receive_line());
    Node node = Node::join(member_options(group, 3));
    parent.send_line(std::to_string(node.view().members.size()));
    static_cast<void>(parent.receive_line());
    return 0;
  };
  Process other(member);
  Process killed(member);
  Process back(member);
  other.send_line("join");
  killed.send_line("join");
  Node node = Node::join(member_options(group, 3));
  EXPECT_EQ(killed.receive_line(), "3");
  killed.kill();
  while (node.view().members.size() == 3) std::this_thread::yield();
  back.send_line("join");
  EXPECT_EQ(back.receive_line(), "3");
  for (Process* one : {&back, &other}) one->send_line("end");
  EXPECT_EQ(back.exit_code(), 0);
  EXPECT_EQ(other.exit_code(), 0);
}

TEST(NodeProcesses, AMemberThatIsStoppedIsLeftBehindAndLearnsThatLater) {
  const std::string group = fresh_group();
  const auto options = [&group] {
    NodeOptions all = node_options(group, 3);
    all.network.silence_timeout_ms = 1'000;
    return all;
  };
  const auto member = [&](Parent& parent) {
    Node node = Node::join(options());
    StoreHandle store = node.store("store", {.copies = 2});
    std::atomic<bool> ends{false};
    std::jthread caller([&] {
      for (std::uint64_t i = 0; !ends; ++i) static_cast<void>(store.put(i % 100, "value").result());
    });
    parent.send_line("calls");
    std::jthread listener([&] {
      static_cast<void>(parent.receive_line());
      node.leave();
    });
    static_cast<void>(node.wait_for_end());
    ends = true;
    parent.send_line(node.why_ended());
    return 0;
  };
  Process other(member);
  Process stopped(member);
  Node node = Node::join(options());
  StoreHandle store = node.store("store", {.copies = 2});
  EXPECT_EQ(other.receive_line(), "calls");
  EXPECT_EQ(stopped.receive_line(), "calls");
  stopped.signal(SIGSTOP);
  while (node.view().members.size() == 3) std::this_thread::yield();
  EXPECT_TRUE(store.put("after", "value").get().changed);
  stopped.signal(SIGCONT);
  // It is killed, so that it can change no memory any more (Fabric::fence), or has given it up.
  const std::string said = stopped.receive_line();
  if (!said.empty()) {
    EXPECT_NE(said.find("the node has ended"), std::string::npos) << said;
  }
  other.send_line("end");
  EXPECT_NE(other.receive_line().find("it leaves the group"), std::string::npos);
  EXPECT_EQ(other.exit_code(), 0);
  stopped.send_line("end");
  static_cast<void>(stopped.exit_code());
}

std::optional<Node> told_node;

TEST(NodeProcesses, ASignalHandlerMayAskTheNodeToLeave) {
  const std::string group = fresh_group();
  Process told([&](Parent& parent) {
    told_node.emplace(Node::join(member_options(group, 1)));
    struct sigaction action {};
    action.sa_handler = [](int) { told_node->leave(); };
    sigaction(SIGTERM, &action, nullptr);
    parent.send_line("joined");
    const bool ended = told_node->wait_for_end();
    parent.send_line(told_node->why_ended());
    told_node.reset();
    return ended ? 0 : 1;
  });
  EXPECT_EQ(told.receive_line(), "joined");
  told.signal(SIGTERM);
  EXPECT_NE(told.receive_line().find("it leaves the group"), std::string::npos);
  EXPECT_EQ(told.exit_code(), 0);
}

TEST(NodeProcesses, AForkedChildIsNoMemberAndItsCallsSaySo) {
  Process parent_process([](Parent& parent) {
    Node node = Node::join(member_options(fresh_group(), 1));
    StoreHandle store = node.store();
    store.put("key", "value").get();
    auto queue = node.queue<int>("queue", {.capacity = 8});
    Future<std::optional<int>> pop = queue.pop(remote::kForever);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto got = store.get("key").result();
      const bool says = got.status() == remote::Status::stopped &&
                        got.error().text.find("child") != std::string::npos;
      bool throws = false;
      try {
        static_cast<void>(pop.get());
      } catch (const Error&) {
        throws = true;
      }
      pop.cancel();
      node.leave();
      ::_exit(says && throws && node.ended() && node.wait_for_end() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    parent.send_line(status == 0 ? "the child was told" : "the child was not told");
    parent.send_line(store.get("key").get()->text());
    return queue.push(5).get() && pop.get() == 5 ? 0 : 1;
  });
  EXPECT_EQ(parent_process.receive_line(), "the child was told");
  EXPECT_EQ(parent_process.receive_line(), "value");
  EXPECT_EQ(parent_process.exit_code(), 0);
}

TEST(NodeProcesses, AProcessEndsWhileItsNodeLives) {
  const std::string group = fresh_group();
  Process ends([&](Parent&) -> int {
    static Node its_node = Node::join(member_options(group, 2));
    static StoreHandle its_store = its_node.store();
    its_store.put("key", "value").get();
    std::exit(0);  // static objects are destroyed: the node leaves
  });
  Node node = Node::join(member_options(group, 2));
  const StoreHandle store = node.store();
  EXPECT_EQ(ends.exit_code(), 0);
  while (node.view().members.size() == 2) std::this_thread::yield();
  EXPECT_EQ(node.why_ended(), "");
}

}  // namespace
}  // namespace dunlin
