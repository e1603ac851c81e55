#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/group.hpp>
#include <dunlin/join.hpp>
#include <dunlin/multicast.hpp>
#include <dunlin/run.hpp>

#include "support/fresh_group.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"

/// Real processes that come into a group of others, with their state.
namespace dunlin {
namespace {

using test::fresh_group;
using test::kPatienceMs;
using test::Parent;
using test::Process;

/// A member whose state is all that was delivered, as one text. It tells its parent each view, and
/// the text whenever it has as many messages as the parent waits for.
class Diary {
 public:
  Diary(Parent& parent, std::unique_ptr<Group> group)
      : parent_(parent), group_(std::move(group)), multicast_(*group_, "diary") {
    group_->on_view([this](const View& view) {
      std::string text = "view " + std::to_string(view.number) + ":";
      for (const std::string& member : view.members) text += " " + member;
      parent_.send_line(text);
    });
    multicast_.on_delivery([this](std::span<const multicast::Delivery> batch) {
      for (const multicast::Delivery& delivery : batch)
        write({reinterpret_cast<const char*>(delivery.message.data()), delivery.message.size()});
    });
    multicast_.on_state(
        [this] {
          const auto bytes = std::as_bytes(std::span(text_));
          return std::vector<std::byte>(bytes.begin(), bytes.end());
        },
        [this](std::span<const std::byte> state) {
          write({reinterpret_cast<const char*>(state.data()), state.size()});
        });
  }

  /// Says these letters, one a message, and goes on until the text is so long; then again, until
  /// there are no more lengths.
  int live(const std::string& letters, const std::vector<std::size_t>& lengths) {
    std::size_t said = 0;
    for (const std::size_t length : lengths) {
      const auto enough = [&] {
        while (said < letters.size() && multicast_.send(std::as_bytes(std::span(letters).subspan(
                                            said, 1))) == multicast::SendResult::sent)
          ++said;
        return text_.size() >= length;
      };
      if (!run_until(*group_, enough, kPatienceMs)) {
        std::cerr << group_->describe();
        return 1;
      }
      parent_.send_line(text_);
    }
    run_until(
        *group_, [] { return false; }, kPatienceMs);
    return 0;
  }

 private:
  void write(const std::string& text) { text_ += text; }

  Parent& parent_;
  std::unique_ptr<Group> group_;
  Multicast multicast_;
  std::string text_;
};

struct JoiningProcesses : test::OnProcesses {
  [[nodiscard]] GroupOptions options(Rank rank) const {
    return {.subgroups = {{.name = "diary"}}, .rendezvous = rendezvous(rank)};
  }
  [[nodiscard]] Process founder(Rank rank, const std::string& letters,
                                const std::vector<std::size_t>& lengths) const {
    return Process([=, this](Parent& parent) {
      const auto fabric = join(rank);
      return Diary(parent, std::make_unique<Group>(*fabric, options(rank))).live(letters, lengths);
    });
  }
  [[nodiscard]] Process comer(const std::string& as, const std::string& letters,
                              const std::vector<std::size_t>& lengths) const {
    return Process([=, this](Parent& parent) {
      return Diary(parent, Group::join(as, options(members), kPatienceMs)).live(letters, lengths);
    });
  }
};

DUNLIN_RUN_ON(test::backends(), JoiningProcesses);

TEST_P(JoiningProcesses, TakeThePlaceOfOneThatWasKilled) {
  std::vector<Process> all;
  for (Rank rank = 0; rank < 3; ++rank)
    all.push_back(founder(rank, std::string(5, static_cast<char>('a' + rank)), {15, 20}));
  for (Process& process : all) EXPECT_EQ(process.receive_line(), "view 1: 0 1 2");
  const std::string before = all[1].receive_line();
  EXPECT_EQ(before.size(), 15U);
  EXPECT_EQ(all[0].receive_line(), before);
  EXPECT_EQ(all[2].receive_line(), before);
  all[0].kill();
  EXPECT_EQ(all[1].receive_line(), "view 2: 1 2");
  EXPECT_EQ(all[2].receive_line(), "view 2: 1 2");
  Process late = comer("late", "xxxxx", {20});
  for (Process* const process : {&all[1], &all[2], &late}) {
    EXPECT_EQ(process->receive_line(), "view 3: 1 2 late");
    EXPECT_EQ(process->receive_line(), before + "xxxxx");
  }
}

TEST_P(JoiningProcesses, MayHaveTheNameOfOneThatWasKilled) {
  std::vector<Process> all;
  for (Rank rank = 0; rank < 3; ++rank) all.push_back(founder(rank, "", {1}));
  for (Process& process : all) EXPECT_EQ(process.receive_line(), "view 1: 0 1 2");
  all[2].kill();
  Process again = comer("2", "y", {1});
  EXPECT_EQ(all[0].receive_line(), "view 2: 0 1");
  EXPECT_EQ(all[0].receive_line(), "view 3: 0 1 2");
  EXPECT_EQ(again.receive_line(), "view 3: 0 1 2");
  EXPECT_EQ(again.receive_line(), "y");
  EXPECT_EQ(all[0].receive_line(), "y");
}

TEST_P(JoiningProcesses, ComeInThoughTheLeaderWasStopped) {
  silence_timeout_ms = GetParam().silence_ms;
  std::vector<Process> all;
  for (Rank rank = 0; rank < 3; ++rank) all.push_back(founder(rank, "", {1}));
  for (Process& process : all) EXPECT_EQ(process.receive_line(), "view 1: 0 1 2");
  all[0].signal(SIGSTOP);
  for (const std::size_t rank : {1U, 2U}) EXPECT_EQ(all[rank].receive_line(), "view 2: 1 2");
  Process late = comer("late", "y", {1});
  for (Process* const process : {&all[1], &all[2], &late}) {
    EXPECT_EQ(process->receive_line(), "view 3: 1 2 late");
    EXPECT_EQ(process->receive_line(), "y");
  }
}

TEST(GroupInShm, SaysWhyNobodyCanComeInWhileItsListenersAreHeld) {
  const std::string name = fresh_group();
  const auto place = make_rendezvous({.group = name});
  std::vector<std::unique_ptr<PendingJoin>> held;
  for (std::uint32_t listener = 0; listener < kMaxViewMembers; ++listener)
    held.push_back(place->accept());
  const auto fabric = join({.group = name, .members = 1});
  Group group(*fabric, {.rendezvous = place});
  EXPECT_TRUE(run_until(
      group,
      [&] { return group.why_closed().find("listener addresses are held") != std::string::npos; },
      kPatienceMs));
  held.pop_back();
  EXPECT_TRUE(run_until(
      group, [&] { return group.why_closed().empty(); }, kPatienceMs));
}

}  // namespace
}  // namespace dunlin
