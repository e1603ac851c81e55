#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/run.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"

/// Subgroups that come and go, in real processes, on every fabric.
namespace dunlin {
namespace {

using test::fresh_group;
using test::kPatienceMs;
using test::Parent;
using test::Process;

/// Counts a topic's messages, which their sender numbers: none twice, and none left out.
struct Counting {
  Counting(Group& group, const std::string& topic, bool sends)
      : multicast(Multicast::join(group, topic, {.ring_bytes = 4'096}, {.sends = sends})) {
    multicast->on_state(
        [this] {
          std::vector<std::byte> bytes(sizeof next);
          std::memcpy(bytes.data(), &next, sizeof next);
          return bytes;
        },
        [this](std::span<const std::byte> state) {
          std::memcpy(&next, state.data(), sizeof next);
        });
    multicast->on_delivery([this](std::span<const multicast::Delivery> batch) {
      for (const multicast::Delivery& delivery : batch) {
        std::uint64_t number = 0;
        std::memcpy(&number, delivery.message.data(), sizeof number);
        if (number != next++)
          throw Error("message " + std::to_string(number) + " came out of turn");
        ++live;
      }
    });
  }
  [[nodiscard]] std::string describe() const {
    const multicast::Counters counters = multicast->counters();
    return (multicast->joined() ? "(joined, " : "(not joined, ") + std::to_string(sent) +
           " sent, next " + std::to_string(next) + ", " +
           std::to_string(counters.records_announced) + " announced, " +
           std::to_string(counters.messages_delivered) + " delivered)" + multicast->why_left();
  }
  /// Sends its numbers from the next one on, as long as there is room.
  void send(std::uint64_t until) {
    while (sent < until) {
      const auto bytes = std::as_bytes(std::span(&sent, 1));
      if (multicast->send(bytes) != multicast::SendResult::sent) return;
      ++sent;
    }
  }

  std::unique_ptr<Multicast> multicast;
  std::uint64_t next = 0;
  std::uint64_t live = 0;
  std::uint64_t sent = 0;
};

struct ChangingProcesses : test::OnProcesses {
  [[nodiscard]] Process member(Rank rank,
                               const std::function<int(Group&, Parent&)>& program) const {
    return Process([=, this](Parent& parent) {
      const auto fabric = join(rank);
      Group group(*fabric);
      try {
        return program(group, parent);
      } catch (const Error& error) {
        parent.send_line(std::string("error: ") + error.what());
        return 1;
      }
    });
  }
};

DUNLIN_RUN_ON(test::backends(), ChangingProcesses);

TEST_P(ChangingProcesses, TakeInALateMemberBetweenTwoMessages) {
  constexpr std::uint64_t kMessages = 5'000;
  const auto writes = [](Group& group, Parent& parent) {
    Counting topic(group, "topic", true);
    bool told = false;
    const bool all = run_until(
        group,
        [&] {
          topic.send(kMessages);
          if (!told && topic.next > 500) parent.send_line("under way");
          told = told || topic.next > 500;
          return topic.next == kMessages && group.view().number == 2;  // the reader has gone
        },
        kPatienceMs);
    return all ? 0 : 1;
  };
  const auto reads = [](Group& group, Parent& parent) {
    if (parent.receive_line() != "come") return 1;
    Counting topic(group, "topic", false);
    if (!run_until(
            group, [&] { return topic.next == kMessages; }, kPatienceMs))
      return 1;
    parent.send_line("has all");
    topic.multicast->leave();
    return run_until(
               group, [&] { return topic.multicast->left(); }, kPatienceMs)
               ? 0
               : 1;
  };
  members = 2;
  Process writer = member(0, writes);
  Process reader = member(1, reads);
  reader.send_line("come");
  EXPECT_EQ(reader.receive_line(), "has all");
  EXPECT_EQ(writer.receive_line(), "under way");
  EXPECT_EQ(reader.exit_code(), 0);
  EXPECT_EQ(writer.exit_code(), 0);
}

TEST_P(ChangingProcesses, GoOnWhenAMemberIsKilledInTheMidstOfChanges) {
  static constexpr std::uint64_t kChanges = 10;
  const auto program = [](Group& group, Parent& parent) {
    Counting stays(group, "stays-" + group.view().members[group.view().me], true);
    std::unique_ptr<Counting> comes;
    std::uint64_t changes = 0;
    bool told = false;
    bool survived = false;
    bool went_on = false;
    const auto step = [&] {
      stays.send(stays.next + 1);
      if (comes && comes->multicast->joined()) comes.reset();
      if (!comes) {
        comes = std::make_unique<Counting>(group, "topic" + std::to_string(++changes % 3), true);
        if (!told && changes > kChanges) parent.send_line("changes");
        told = told || changes > kChanges;
      }
      if (!survived && group.view().number == 2) {
        survived = true;
        changes = 0;
      }
      if (!went_on && survived && changes > kChanges) parent.send_line("went on");
      went_on = went_on || (survived && changes > kChanges);
    };
    // Each time is for itself: three busy processes and all else share the processors.
    const auto runs_until = [&](const bool& what) {
      return run_until(
          group,
          [&] {
            step();
            return what;
          },
          kPatienceMs);
    };
    // The other survivor needs this one until both are killed.
    const bool never = false;
    static_cast<void>(runs_until(told) && runs_until(survived) && runs_until(went_on) &&
                      runs_until(never));
    std::cerr << "member " + group.view().members[group.view().me] + " waits in vain, after " +
                     std::to_string(changes) + " changes; asks for topic" +
                     std::to_string(changes % 3) + " " + comes->describe() + "; has " +
                     stays.describe() + "\n" + group.describe();
    parent.send_line("waits in vain");
    return 1;
  };
  for (Rank dead = 0; dead < members; ++dead) {
    name = fresh_group();
    std::vector<Process> all;
    for (Rank rank = 0; rank < members; ++rank) all.push_back(member(rank, program));
    for (Process& process : all) EXPECT_EQ(process.receive_line(), "changes");
    all[dead].kill();
    const std::vector<Rank> others{(dead + 1) % members, (dead + 2) % members};
    for (const Rank other : others) EXPECT_EQ(all[other].receive_line(), "went on");
    for (const Rank other : others) all[other].kill();
  }
}

}  // namespace
}  // namespace dunlin
