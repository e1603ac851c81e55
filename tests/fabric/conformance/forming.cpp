#include <array>
#include <memory>
#include <vector>

#include <poll.h>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/real_group.hpp"

/// A fabric that is formed step by step (by Backend::begin): nobody waits in poll(), so one thread
/// does for all.
namespace dunlin::conformance {

namespace {

struct Joiner {
  std::unique_ptr<PendingJoin> pending_join;
  std::unique_ptr<Fabric> fabric;

  /// Whether it is in.
  bool go_on() {
    if (!fabric) fabric = pending_join->poll();
    return fabric != nullptr;
  }
};

bool readable(const PendingJoin& pending_join, int timeout_ms) {
  pollfd look{pending_join.wait_descriptor(), POLLIN, 0};
  return ::poll(&look, 1, timeout_ms) > 0;
}

class Newcomers {
 public:
  Newcomers(const Backend& backend, std::uint32_t size) : backend_(backend), joiners_(size) {}

  void begin(Rank rank) {
    joiners_[rank].pending_join =
        backend_.begin(name_, rank, static_cast<std::uint32_t>(joiners_.size()));
  }
  void begin_all() {
    for (Rank rank = 0; rank < joiners_.size(); ++rank) begin(rank);
  }
  Joiner& operator[](Rank rank) { return joiners_[rank]; }
  bool go_on() {
    bool all = true;
    for (Joiner& joiner : joiners_)
      if (joiner.pending_join) all = joiner.go_on() && all;
    return all;
  }
  /// Polls those only that have something to do.
  bool go_on_if_readable() {
    constexpr int kPatienceMs = 60'000;
    std::vector<pollfd> watched;
    for (const Joiner& joiner : joiners_)
      if (!joiner.fabric) watched.push_back({joiner.pending_join->wait_descriptor(), POLLIN, 0});
    if (watched.empty()) return true;
    if (::poll(watched.data(), watched.size(), kPatienceMs) <= 0) return false;
    for (Joiner& joiner : joiners_)
      if (!joiner.fabric && readable(*joiner.pending_join, 0)) joiner.go_on();
    return true;
  }
  bool all_in() {
    for (const Joiner& joiner : joiners_)
      if (!joiner.fabric) return false;
    return true;
  }
  /// Each has announced a word, and written into everyone's.
  bool work() {
    std::vector<Region> boxes;
    for (Joiner& joiner : joiners_) {
      boxes.push_back(joiner.fabric->allocate({.name = "new box", .bytes = 1024}));
      joiner.fabric->announce(boxes.back());
    }
    const std::uint64_t one = 1;
    std::vector<char> written(joiners_.size() * joiners_.size());
    const std::uint64_t started = steady_now_ns();
    while (!patience_ends(started)) {
      std::size_t arrived = 0;
      for (Rank from = 0; from < joiners_.size(); ++from) {
        joiners_[from].fabric->poll();
        for (Rank to = 0; to < joiners_.size(); ++to) {
          char& done = written[from * joiners_.size() + to];
          if (done == 0 &&
              joiners_[from].fabric->post(write(to, boxes[from].id(), 8 * from, &one, 8)).all())
            done = 1;
          const auto* words = reinterpret_cast<const std::uint64_t*>(boxes[to].memory().data());
          arrived += memory::load(words[from]);
        }
      }
      if (arrived == written.size()) return true;
    }
    return false;
  }

 private:
  const Backend& backend_;
  std::string name_ = fresh_group_name();
  std::vector<Joiner> joiners_;
};

}  // namespace

/// FAB-J1 says when poll() returns the fabric, and that it is over then.
TEST_P(Forming, OfAllMembersIsDoneByOneThread) {
  Newcomers all(GetParam(), 4);
  all.begin_all();
  const std::uint64_t started = steady_now_ns();
  while (!all.go_on()) ASSERT_FALSE(patience_ends(started));
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(all[rank].fabric->rank(), rank);
    EXPECT_EQ(all[rank].fabric->size(), 4U);
    EXPECT_THROW(static_cast<void>(all[rank].pending_join->poll()), Error) << "it is over";
    all[rank].pending_join.reset();  // which changes nothing for the fabric
  }
  EXPECT_TRUE(all.work());
}

TEST_P(Forming, GoesOnBesideAFabricThatWorks) {
  start(2);
  const Shared box = share("box", 64);
  Newcomers all(GetParam(), 3);
  all.begin(0);
  all.begin(1);
  std::uint64_t written = 0;
  const auto write_once = [&] {
    ++written;
    post_and_finish(0, write(1, box.id(0), 0, &written, 8));
  };
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(all.go_on()) << "the third has not begun";
    write_once();
  }
  all.begin(2);
  const std::uint64_t started = steady_now_ns();
  while (!all.go_on()) {
    write_once();
    ASSERT_FALSE(patience_ends(started));
  }
  EXPECT_TRUE(all.work());
  write_once();
  EXPECT_EQ(box.load(1, 0), written);
  EXPECT_FALSE(node(0).failed(1) || node(1).failed(0));
}

/// FAB-J3 promises what this test checks.
TEST_P(Forming, NeedsNoPollBeforeItsDescriptorIsReadable) {
  Newcomers all(GetParam(), 3);
  all.begin_all();
  const int first = all[0].pending_join->wait_descriptor();
  while (!all.all_in()) ASSERT_TRUE(all.go_on_if_readable()) << "a wake-up was lost";
  EXPECT_EQ(all[0].pending_join->wait_descriptor(), first);
  EXPECT_TRUE(all.work());
}

TEST_P(Forming, LetsAMemberSleepThatWaitsForOthers) {
  Newcomers all(GetParam(), 2);
  all.begin(0);
  const std::uint64_t started = steady_now_ns();
  do {
    ASSERT_FALSE(all[0].go_on());
    ASSERT_FALSE(patience_ends(started)) << "there is always something to do";
  } while (readable(*all[0].pending_join, 0));
  all.begin(1);
  while (!all.all_in()) ASSERT_TRUE(all.go_on_if_readable());
}

/// FAB-J2 promises what this test checks.
TEST_P(Forming, GivenUpMakesRoomForAnother) {
  for (const Rank leaver : {0U, 1U}) {
    Newcomers all(GetParam(), 3);
    all.begin(0);
    all.begin(1);
    for (int i = 0; i < 200; ++i) ASSERT_FALSE(all.go_on());
    all[leaver].pending_join.reset();
    for (int i = 0; i < 200; ++i) static_cast<void>(all.go_on());
    all.begin(leaver);
    all.begin(2);
    const std::uint64_t started = steady_now_ns();
    while (!all.go_on()) ASSERT_FALSE(patience_ends(started));
    EXPECT_TRUE(all.work());
  }
}

}  // namespace dunlin::conformance
