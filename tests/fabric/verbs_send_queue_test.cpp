#include <array>
#include <cerrno>

#include <gtest/gtest.h>

#include "fabric/verbs/device.hpp"
#include "fabric/verbs/send_queue.hpp"

/// What needs no device: nothing reaches a queue pair here.
namespace dunlin::verbs {
namespace {

using Kind = Record::Kind;

class SendQueueTest : public testing::Test {
 protected:
  SendQueueTest() { queue_.open(nullptr, 64, staging_, 7); }

  void add(const Record& record, ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
    queue_.add(opcode, {}, record, 0);
    EXPECT_EQ(queue_.ring(), 0);
  }

  alignas(kCacheLineBytes) std::array<std::byte, kStagingBytes> staging_{};
  SendQueue queue_;
};

TEST_F(SendQueueTest, KnowsWhatIsFinishedFromALaterOne) {
  add({.kind = Kind::silent});
  add({.kind = Kind::result}, IBV_WR_RDMA_READ);
  EXPECT_EQ(queue_.fetches(), 2U);
  add({.kind = Kind::silent});
  const std::uint64_t released = queue_.added();
  EXPECT_EQ(released, 3U);
  queue_.retire(1, [](const Record&) {});
  EXPECT_EQ(queue_.retired(), queue_.fetches());
  EXPECT_LT(queue_.retired(), released) << "nobody has heard of the last write";
  std::byte frame{};
  add({.kind = Kind::frame, .to = &frame}, IBV_WR_SEND);
  queue_.retire(3, [](const Record&) {});
  EXPECT_GE(queue_.retired(), released);
}

TEST_F(SendQueueTest, ForgetsWhoAskedButNotWhoseBufferAFrameIsIn) {
  Completion done;
  std::byte frame{};
  std::byte result{};
  add({.kind = Kind::result, .to = &result, .completion = &done}, IBV_WR_RDMA_READ);
  add({.kind = Kind::done, .completion = &done});
  add({.kind = Kind::frame, .to = &frame}, IBV_WR_SEND);
  queue_.each([](Record& record) { record.forget(); });
  std::size_t frames = 0;
  queue_.retire(2, [&](const Record& record) {
    EXPECT_EQ(record.completion, nullptr);
    EXPECT_EQ(record.to, record.kind == Kind::frame ? &frame : nullptr);
    if (record.kind == Kind::frame) ++frames;
  });
  EXPECT_EQ(frames, 1U);
}

/// The device refuses the first chain; what was added after it must not go out, and all of it fits.
TEST(SendQueueOfADevice, RemembersThatItRefusedAChain) {
  static int rings = 0;
  static int answer = 0;
  rings = 0;
  answer = ENOTCONN;
  ibv_context device{};
  device.ops.post_send = [](ibv_qp*, ibv_send_wr*, ibv_send_wr**) {
    ++rings;
    return answer;
  };
  ibv_qp pair{};
  pair.context = &device;
  alignas(kCacheLineBytes) std::array<std::byte, kStagingBytes> staging{};
  SendQueue queue;
  queue.open(&pair, 256, staging, 7);
  for (int i = 0; i < 200; ++i) queue.add(IBV_WR_RDMA_WRITE, {}, {.kind = Kind::silent}, 0);
  EXPECT_EQ(rings, 1);
  EXPECT_EQ(queue.ring(), ENOTCONN);
  answer = 0;
  queue.clear();
  EXPECT_EQ(queue.ring(), 0) << "there is nothing to ring for";
  EXPECT_EQ(rings, 1);
  queue.add(IBV_WR_RDMA_WRITE, {}, {.kind = Kind::silent}, 0);
  EXPECT_EQ(queue.ring(), 0);
  EXPECT_EQ(rings, 2);
}

TEST(VerbsDepths, AreWhatTheDeviceCanAndIsOfUse) {
  ibv_device_attr limits{};
  limits.max_qp_init_rd_atom = 4;
  limits.max_qp_rd_atom = 128;
  EXPECT_EQ(depths_of(limits).initiator, 4);
  EXPECT_EQ(depths_of(limits).responder, 16);
  limits.max_qp_init_rd_atom = -1;
  limits.max_qp_rd_atom = 0;
  EXPECT_EQ(depths_of(limits).initiator, 0);
  EXPECT_EQ(depths_of(limits).responder, 0);
}

/// Who asks for more than the other side keeps ready breaks the connection.
TEST(VerbsDepths, AreTheLesserOfBothSides) {
  const Depths both = agreed({.initiator = 16, .responder = 8}, {.initiator = 4, .responder = 16});
  EXPECT_EQ(both.initiator, 4);
  EXPECT_EQ(both.responder, 8);
  const Depths unsaid = agreed({.initiator = 16, .responder = 8}, {});
  EXPECT_EQ(unsaid.initiator, 16);
  EXPECT_EQ(unsaid.responder, 8);
}

}  // namespace
}  // namespace dunlin::verbs
