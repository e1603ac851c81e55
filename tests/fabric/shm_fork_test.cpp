#include <memory>

#include <poll.h>

#include "fabric/shm_group.hpp"
#include "support/process.hpp"

/// A member may fork; its child is no member.
namespace dunlin {
namespace {

using test::fresh_group;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;

TEST(ShmFork, AChildThatUnwindsDoesNotTakeItsParentOut) {
  const std::string group = fresh_group();
  Process forking([&](Parent& parent) {
    auto member = std::make_unique<Member>(
        shm::JoinOptions{.group = group, .members = 2, .rank = 1, .timeout_ms = 60'000});
    Process child([&](Parent&) {
      member.reset();
      return 0;
    });
    if (child.exit_code() != 0) return 1;
    const Region after = member->fabric->allocate({.name = "after", .bytes = 64});
    member->fabric->announce(after);
    while (!member->fabric->connected(0, after.id()) && !member->fabric->failed(0))
      poll_politely(*member->fabric);
    parent.send_line(member->fabric->failed(0) ? "given up" : "connected");
    static_cast<void>(parent.receive_line());
    return 0;
  });
  Member member({.group = group, .members = 2, .rank = 0, .timeout_ms = 60'000});
  const Region after = member.fabric->allocate({.name = "after", .bytes = 64});
  member.fabric->announce(after);
  while (!member.fabric->connected(1, after.id()) && !member.fabric->failed(1))
    poll_politely(*member.fabric);
  EXPECT_EQ(member.failure_text, "");
  EXPECT_TRUE(member.fabric->connected(1, member.box.id()));
  while (!member.fabric->failed(1)) {  // so that it sees our region
    poll_politely(*member.fabric);
    if (pollfd line{forking.descriptor(), POLLIN, 0}; ::poll(&line, 1, 0) == 1) break;
  }
  EXPECT_EQ(forking.receive_line(), "connected");
}

TEST(ShmFork, AChildDoesNotKeepAFailedPeersSocketReadable) {
  const std::string group = fresh_group();
  Process peer([&](Parent& parent) {
    Member member({.group = group, .members = 2, .rank = 1, .silence_timeout_ms = 0});
    static_cast<void>(parent.receive_line());
    return 0;
  });
  Member member({.group = group, .members = 2, .rank = 0, .silence_timeout_ms = 0});
  Process child([](Parent& parent) {
    parent.send_line("here");
    static_cast<void>(parent.receive_line());
    return 0;
  });
  ASSERT_EQ(child.receive_line(), "here");
  peer.send_line("leave");
  while (!member.fabric->failed(1)) poll_politely(*member.fabric);
  member.fabric->prepare_sleep();
  member.fabric->poll();
  pollfd waited{member.fabric->wait_descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 0), 0) << "a sleep would end at once, for ever";
  member.fabric->cancel_sleep();
}

}  // namespace
}  // namespace dunlin
