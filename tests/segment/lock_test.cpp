#include <array>
#include <memory>
#include <vector>

#include "segment/growing_spaces.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;

struct SegmentLocks : test::OnSpaces {};
DUNLIN_RUN_ON(test::space_backends(), SegmentLocks);

/// REM-9 gives waiters the lock in the order in which they came.
TEST_P(SegmentLocks, OneHoldsAndTheOthersWaitInOrder) {
  start(4);
  const Key key = spaces->make(0, {.bytes = 8, .placement = {1}});
  for (Rank rank = 0; rank < 4; ++rank) EXPECT_EQ(spaces->get(rank, key), 0U);
  ASSERT_TRUE(spaces->end_of(at(3).lock(key)).ok());
  std::vector<std::unique_ptr<SegmentOperation>> waiters;
  std::vector<Rank> order;
  for (const Rank rank : {2U, 0U, 1U}) {
    waiters.push_back(test::begin([&] { return at(rank).lock(key); }));
    waiters.back()->then([&, rank] {
      order.push_back(rank);
      EXPECT_EQ(at(rank).unlock(key).status(), Status::ok);
    });
    // In the queue once a try finds the lock taken with the same answer a little later.
    EXPECT_EQ(spaces->end_of(at(3).try_lock(key)).status, Status::already_held);
    for (int i = 0; i < 20; ++i) {
      std::uint64_t unused = 0;
      spaces->end_of(at(3).get(key, bytes_of(unused)));
    }
  }
  EXPECT_TRUE(order.empty());
  ASSERT_EQ(at(3).unlock(key).status(), Status::ok);
  EXPECT_TRUE(spaces->until([&] { return order.size() == 3; }));
  EXPECT_EQ(order, (std::vector<Rank>{2, 0, 1}));
}

TEST_P(SegmentLocks, TryAndDeadlineEndWithoutTheLock) {
  start(2);
  const Key key = spaces->make(0, {.bytes = 8, .placement = {0}});
  ASSERT_TRUE(spaces->end_of(at(0).lock(key)).ok());
  EXPECT_EQ(spaces->end_of(at(1).try_lock(key)).status, Status::busy);
  EXPECT_EQ(spaces->end_of(at(1).lock(key, 100'000)).status, Status::timed_out);
  EXPECT_EQ(spaces->end_of(at(0).lock(key)).status, Status::already_held);
  ASSERT_EQ(at(0).unlock(key).status(), Status::ok);
  // What timed out gives its place in the queue away when its turn comes.
  EXPECT_TRUE(spaces->end_of(at(0).lock(key)).ok());
  ASSERT_EQ(at(0).unlock(key).status(), Status::ok);
  EXPECT_TRUE(spaces->end_of(at(1).lock(key)).ok());
}

TEST_P(SegmentLocks, AnAbandonedOperationLeavesTheLockFree) {
  start(2);
  const Key key = spaces->make(0, {.bytes = 8, .placement = {0}});
  EXPECT_EQ(spaces->get(1, key), 0U);
  for (int i = 0; i < 50; ++i) {
    std::uint64_t value = 1;
    auto put = test::begin([&] { return at(1).put(key, bytes_of(value)); });
    spaces->pass(i);
    put.reset();
    value = 2;                                      // nothing reads it any more
    EXPECT_EQ(spaces->put(0, key, 3), Status::ok);  // of the whole, so it repairs what was cut off
    EXPECT_EQ(spaces->get(0, key), 3U);
  }
}

TEST_P(SegmentLocks, UnderItsOwnLockAProcessGetsAndPuts) {
  start(2);
  for (const Coherence coherence : {Coherence::read, Coherence::write, Coherence::strict}) {
    const Key key = spaces->make(0, {.bytes = 8, .coherence = coherence, .placement = {1}});
    ASSERT_TRUE(spaces->end_of(at(0).lock(key)).ok());
    auto other = at(1).lock(key);
    EXPECT_EQ(spaces->put(0, key, spaces->get(0, key) + 1), Status::ok);
    EXPECT_FALSE(other.finished());
    ASSERT_EQ(at(0).unlock(key).status(), Status::ok);
    EXPECT_TRUE(spaces->end_of(other).ok());
    EXPECT_EQ(spaces->get(1, key), 1U);
  }
}

/// All members add to one counter under its lock.
class Adder {
 public:
  Adder(SegmentSpace& space, Key key, int wanted) : space_(space), key_(key), left_(wanted) {}
  [[nodiscard]] bool done() const { return left_ == 0 && !step_; }
  void go_on() {
    if (step_ && !step_->finished()) return;
    if (!step_) {
      if (left_ > 0) begin([&] { return space_.lock(key_); }, 0);
      return;
    }
    ASSERT_TRUE(step_->ok()) << step_->describe();
    switch (state_) {
      case 0:
        return begin([&] { return space_.get(key_, bytes_of(value_)); }, 1);
      case 1:
        ++value_;
        return begin([&] { return space_.put(key_, bytes_of(value_)); }, 2);
      default:
        ASSERT_EQ(space_.unlock(key_).status(), Status::ok);
        --left_;
        step_.reset();
    }
  }

 private:
  template <class Make>
  void begin(const Make& make, int state) {
    step_.reset();
    step_ = test::begin(make);
    state_ = state;
  }
  SegmentSpace& space_;
  Key key_;
  int left_;
  int state_ = 0;
  std::uint64_t value_ = 0;
  std::unique_ptr<SegmentOperation> step_;
};

TEST_P(SegmentLocks, NoAdditionUnderALockIsLost) {
  constexpr int kEach = 60;
  start(4);
  const Key key = spaces->make(0, {.bytes = 8, .placement = {1}});
  std::vector<Adder> adders;
  adders.reserve(4);
  for (Rank rank = 0; rank < 4; ++rank) adders.emplace_back(at(rank), key, kEach);
  EXPECT_TRUE(spaces->until([&] {
    bool all = true;
    for (Adder& adder : adders) {
      adder.go_on();
      all = all && adder.done();
    }
    return all || HasFatalFailure();
  }));
  EXPECT_EQ(spaces->get(2, key), 4U * kEach);
}

}  // namespace
}  // namespace dunlin
