#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include <dunlin/join.hpp>

#include "remote/control_channel.hpp"
#include "remote/counted_memory.hpp"
#include "remote/two_members.hpp"
#include "support/fresh_group.hpp"

/// The memory of protocols: frames, and nothing else.
namespace dunlin::remote {
namespace {

using test::allocations;
using test::NoMemory;

constexpr std::size_t kLargestKept = 63 * kCacheLineBytes - sizeof(void*);

bool is_on_a_line(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % kCacheLineBytes == 0;
}

TEST(Frames, AreTakenAgain) {
  FramePool pool;
  void* const first = pool.take(200);
  void* const second = pool.take(200);
  ASSERT_NE(first, nullptr);
  EXPECT_NE(first, second);
  EXPECT_TRUE(is_on_a_line(first) && is_on_a_line(second));
  FramePool::give_back(first, 200);
  FramePool::give_back(second, 200);
  const std::uint64_t before = allocations;
  EXPECT_EQ(pool.take(200), second);
  EXPECT_EQ(pool.take(190), first) << "sizes count in cache lines";
  EXPECT_EQ(allocations, before);
  FramePool::give_back(first, 190);
  FramePool::give_back(second, 200);
}

TEST(Frames, GoBackToTheirPool) {
  FramePool one, other;
  void* const frame = one.take(500);
  FramePool::give_back(frame, 500);
  void* const elsewhere = other.take(500);
  EXPECT_NE(elsewhere, frame);
  EXPECT_EQ(one.take(500), frame);
  FramePool::give_back(frame, 500);
  FramePool::give_back(elsewhere, 500);
}

TEST(Frames, LargeOnesAreNotKept) {
  FramePool pool;
  for (const std::size_t bytes : {kLargestKept, kLargestKept + 1, std::size_t{1} << 20}) {
    void* const frame = pool.take(bytes);
    ASSERT_NE(frame, nullptr);
    EXPECT_TRUE(is_on_a_line(frame));
    static_cast<std::byte*>(frame)[bytes - 1] = std::byte{1};
    FramePool::give_back(frame, bytes);
    const std::uint64_t before = allocations;
    void* const again = pool.take(bytes);
    EXPECT_EQ(allocations - before, bytes > kLargestKept ? 1U : 0U);
    FramePool::give_back(again, bytes);
  }
}

TEST(Frames, AreNullWithoutMemory) {
  FramePool pool;
  void* const frame = pool.take(100);
  const NoMemory no_memory;
  EXPECT_EQ(pool.take(100), nullptr);
  FramePool::give_back(frame, 100);
  EXPECT_EQ(pool.take(100), frame);
  FramePool::give_back(frame, 100);
}

struct FramesOfCalls : TwoMembers {
  Words reader = words();
};

/// REM-5: what a step allocates is a frame.
TEST_F(FramesOfCalls, AreTheOnlyMemory) {
  std::vector<Call<Word>> calls;
  calls.reserve(100);
  const auto some = [&] {
    for (int i = 0; i < 100; ++i) calls.push_back(reader.call(1, 10'000'000));
    calls.pop_back();  // gives it up
    while (in_flight() != 0) world.run_for(1'000);
    for (const auto& call : calls) EXPECT_TRUE(call.ok());
    calls.clear();
  };
  for (int i = 0; i < 10; ++i) some();  // the simulator's queues grow, too
  const std::uint64_t before = allocations;
  const NoMemory no_memory;
  some();
  EXPECT_LE(allocations - before, 0U);
}

struct Frugal {
  Progress& progress;
  bool open = false;
  std::vector<int> log = {};
  Runs runs{progress};

  Protocol<Status> large() {
    std::array<std::uint64_t, 1'000> numbers{1, 2, 3};  // a frame that is not kept
    co_await Until([this] { return open; });
    co_return numbers[2] == 3 && numbers[999] == 0 ? Status::ok : Status::conflict;
  }
  Protocol<Word> outer() {
    const Leaving leaving(log, 1);
    co_await Until([this] { return open; });
    const Status inner = co_await large();
    co_return Word{inner, 7};
  }
  Protocol<Status> aligned() {
    struct alignas(kCacheLineBytes) Line {
      std::uint64_t words[8] = {};
    };
    const std::uint8_t odd = 3;
    Line first;
    co_await Until([this] { return open; });
    Line second;
    first.words[7] = odd;
    second.words[0] = first.words[7];
    co_return is_on_a_line(&first) && is_on_a_line(&second) && second.words[0] == 3
        ? Status::ok
        : Status::misaligned;
  }
  Protocol<Status> allocating() {
    co_await Until([this] { return open; });
    throw std::bad_alloc();
  }
};

TEST_F(FramesOfCalls, ACallWithoutMemoryEndsAtOnce) {
  Frugal layer{*progress[0]};
  const NoMemory no_memory;
  Call<Word> call(*progress[0], layer.outer());
  EXPECT_EQ(call.status(), Status::no_memory);
  EXPECT_EQ(in_flight(), 0U);
  bool called = false;
  call.then([&] { called = true; });
  EXPECT_TRUE(called);
  EXPECT_FALSE(layer.runs.start(layer.large()));
  EXPECT_TRUE(layer.runs.empty());
}

TEST_F(FramesOfCalls, AStepWithoutMemoryHasThatResult) {
  Frugal layer{*progress[0]};
  const Call<Word> call(*progress[0], layer.outer());
  const NoMemory no_memory;
  layer.open = true;
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_EQ(call.status(), Status::no_memory);
  EXPECT_EQ(call.result().value, 7U) << "the outer one has ended by itself";
  EXPECT_EQ(layer.log, (std::vector{1}));
}

TEST_F(FramesOfCalls, AContainerWithoutMemoryEndsTheProtocol) {
  Frugal layer{*progress[0]};
  const Call<Status> call(*progress[0], layer.allocating());
  layer.open = true;
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_EQ(call.status(), Status::no_memory);
}

TEST_F(FramesOfCalls, LargeOnesWork) {
  Frugal layer{*progress[0]};
  const Call<Status> call(*progress[0], layer.large());
  layer.open = true;
  EXPECT_TRUE(until([&] { return call.finished(); }));
  EXPECT_TRUE(call.ok());
}

TEST_F(FramesOfCalls, HaveAlignedLocals) {
  Frugal layer{*progress[0]};
  const Call<Status> first(*progress[0], layer.aligned()), second(*progress[0], layer.aligned());
  layer.open = true;
  EXPECT_TRUE(until([&] { return first.finished() && second.finished(); }));
  EXPECT_TRUE(first.ok() && second.ok());
}

TEST(CallsOnShm, HaveEndedWhenTheyReturn) {
  const auto fabric = join({.group = test::fresh_group(), .members = 1});
  Progress progress(*fabric);
  const Region box = fabric->allocate({.name = "box", .bytes = 64});
  fabric->announce(box);
  Words words{progress, box.id()};
  const auto first = words.call(0);
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(progress.in_flight(), 0U);
  const NoMemory no_memory;  // so the first one's frame is free again
  const std::uint64_t before = allocations;
  EXPECT_TRUE(words.call(0).ok());
  EXPECT_EQ(words.call(0).wait(), Status::ok);
  EXPECT_EQ(allocations, before);
}

/// A network that has room for one message.
struct MessagesThatWait : TwoMembers {
  static sim::Profile narrow() {
    sim::Profile profile = sim::profile("ib100");
    profile.queue_slots = 1;
    return profile;
  }
  MessagesThatWait() : TwoMembers(narrow()) {}
};

TEST_F(MessagesThatWait, NeedNoMemoryIfTheyAreExpected) {
  world.detach_all(1);
  std::vector<std::uint64_t> handled;
  ControlChannel here(*progress[0], 3, [](Rank, std::span<const std::byte>) {});
  const ControlChannel there(*progress[1], 3, [&](Rank, std::span<const std::byte> message) {
    std::uint64_t number = 0;
    if (parse(message, number)) handled.push_back(number);
  });
  std::uint64_t sent = 0;
  while (sent < 1000) here.send(1, sent++);
  EXPECT_TRUE(here.expect_send());
  {
    const test::NoMemoryForObjects none;
    here.send(1, sent++);
    EXPECT_FALSE(here.expect_send());
  }
  world.attach(1, [&] { return progress[1]->poll(); });
  EXPECT_TRUE(until([&] {
    here.poll();
    return handled.size() == sent;
  }));
  EXPECT_TRUE(std::ranges::is_sorted(handled));
}

}  // namespace
}  // namespace dunlin::remote
