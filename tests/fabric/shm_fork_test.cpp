#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/group.hpp>
#include <dunlin/run.hpp>
#include <dunlin/table.hpp>

#include "fabric/mapping/base.hpp"
#include "fabric/mapping/observer.hpp"
#include "fabric/shm_group.hpp"
#include "support/process.hpp"

/// A member may fork; its child is no member.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;
using test::what_is_thrown_by;

/// The library's handlers of forks are registered with its first memory, so behind this one.
class ShmForkHandlers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    pthread_atfork(nullptr, nullptr, [] {
      if (wanted == 0) return;
      taken = static_cast<std::byte*>(
          mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      std::fill_n(taken, wanted, kMark);
    });
  }
  static constexpr std::byte kMark{7};
  static inline std::size_t wanted = 0;
  static inline std::byte* taken = nullptr;
};

TEST_F(ShmForkHandlers, OfOthersKeepTheMemoryThatTheyGetInTheChild) {
  Member member({.group = fresh_group(), .members = 1});
  const Region region = member.fabric->allocate({.name = "large", .bytes = 1 << 20});
  wanted = 1 << 20;  // where the region is, if nothing is there
  Process child([&](Parent&) {
    const auto of_region = region.memory();
    return std::count(taken, taken + wanted, kMark) == std::ptrdiff_t{1} << 20 &&
                   std::ranges::count(of_region, std::byte{0}) == std::ssize(of_region)
               ? 0
               : 1;
  });
  wanted = 0;
  EXPECT_EQ(child.exit_code(), 0);
}

TEST(ShmFork, AChildThatUnwindsDoesNotTakeItsParentOut) {
  const std::string group = fresh_group();
  Process forking([&](Parent& parent) {
    auto member = std::make_unique<Member>(
        JoinOptions{.group = group, .members = 2, .rank = 1, .timeout_ms = 60'000});
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

struct Row {
  Cell<int> step;
};

/// Whether a thread sleeps in the fabric, as an observer sees it.
bool sleeps(const Fabric& fabric) {
  for (const mapping::Sighting& sighting : mapping::find_mappings()) {
    if (sighting.info.kind != mapping::MappingKind::base || sighting.info.group != fabric.group())
      continue;
    const mapping::ObservedMapping mapped(sighting);
    const auto& base = *reinterpret_cast<const mapping::Base*>(mapped.memory().data());
    if (memory::load(base.sleeping) != 0) return true;
  }
  return false;
}

/// The thread that sleeps in the fabric is not there in the child (FAB-T1).
TEST(ShmFork, AChildIsNoMemberAlsoIfAnotherThreadWasInACall) {
  const auto fabric = join({.group = fresh_group(), .members = 1, .silence_timeout_ms = 0});
  Table<Row> table(fabric);
  const RunnerThread runner(table, {.wait = Wait::block, .spin_us = 0});
  while (!sleeps(*fabric)) {
  }
  Process child([&](Parent& parent) {
    parent.send_line(what_is_thrown_by(
        [&] { static_cast<void>(fabric->allocate({.name = "after", .bytes = 64})); }));
    return 0;
  });
  const std::string thrown = child.receive_line();
  EXPECT_TRUE(contains(thrown, "was forked by a member of group")) << thrown;
  EXPECT_EQ(child.exit_code(), 0);
}

TEST(ShmFork, AChildThatIsForkedAmidAPollOfAnotherThreadIsNoMember) {
  const auto fabric = join({.group = fresh_group(), .names = {"a"}, .name = "a"});
  Group group(*fabric);
  std::atomic<bool> polls = false;
  std::atomic<bool> goes_on = false;
  group.on_view([&](const View&) {
    polls = true;
    polls.notify_one();
    goes_on.wait(false);
  });
  const std::jthread polling([&] { group.poll(); });
  polls.wait(false);
  Process child([&](Parent& parent) {
    parent.send_line(what_is_thrown_by([&] { group.poll(); }));
    return 0;
  });
  const std::string thrown = child.receive_line();
  EXPECT_TRUE(contains(thrown, "was forked")) << thrown;
  goes_on = true;
  goes_on.notify_one();
}

/// A child has only the thread that forks: what another one holds of this process would stay held.
TEST(ShmFork, AChildJoinsThoughAnotherThreadWasAboutTo) {
  const std::string group = fresh_group();
  std::atomic<bool> over = false;
  const std::jthread joining([&] {
    for (int i = 0; !over; ++i) Member({.group = group + "-" + std::to_string(i), .members = 1});
  });
  for (int i = 0; i < 100; ++i) {
    Process child([&](Parent&) {
      Member({.group = group + "-child", .members = 1});
      return 0;
    });
    EXPECT_EQ(child.exit_code(), 0);
  }
  over = true;
}

}  // namespace
}  // namespace dunlin
