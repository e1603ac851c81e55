#include "fabric/shm/late_release.hpp"

#include <cerrno>
#include <vector>

#include <sys/mman.h>

#include "fabric/shm_group.hpp"
#include "support/private_shm.hpp"
#include "support/process.hpp"

namespace dunlin::shm {
namespace {

constexpr std::uint64_t kNow = 5'000'000;

std::shared_ptr<const mapping::Mapping> fresh_mapping(std::size_t bytes) {
  return mapping::create_mapping({.bytes = bytes}, std::nullopt).mapping;
}

std::weak_ptr<const mapping::Mapping> add_to(LateRelease& late, std::size_t bytes) {
  auto mapping = fresh_mapping(bytes);
  std::weak_ptr<const mapping::Mapping> known = mapping;
  late.add(std::move(mapping), kNow);
  return known;
}

TEST(LateRelease, GivesMemoryBackAfterARestAndOnePieceAtATime) {
  LateRelease late;
  EXPECT_EQ(late.due_ns(), UINT64_MAX);
  const auto first = add_to(late, 8192), second = add_to(late, 8192);
  EXPECT_EQ(late.due_ns(), kNow + LateRelease::kRestNs);
  late.look(late.due_ns() - 1);
  EXPECT_FALSE(first.expired());
  late.look(late.due_ns());
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  EXPECT_EQ(late.due_ns(), kNow + 2 * LateRelease::kRestNs);
  late.look(late.due_ns());
  EXPECT_TRUE(second.expired());
  EXPECT_EQ(late.due_ns(), UINT64_MAX);
}

TEST(LateRelease, KeepsNoMoreThanItsLimit) {
  LateRelease late;
  constexpr std::size_t kPart = LateRelease::kMostBytes / 4;
  std::vector<std::weak_ptr<const mapping::Mapping>> parts;
  for (int i = 0; i < 5; ++i) parts.push_back(add_to(late, kPart));
  EXPECT_TRUE(parts[0].expired()) << "the oldest makes room";
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(parts[static_cast<std::size_t>(i)].expired());
  EXPECT_TRUE(add_to(late, LateRelease::kMostBytes + 4096).expired()) << "too large to keep";
  EXPECT_FALSE(parts[1].expired()) << "which costs nobody else its place";
}

TEST(LateRelease, GivesAllBackAtOnceIfAsked) {
  LateRelease late;
  EXPECT_FALSE(late.give_all_back());
  const auto first = add_to(late, 8192), second = add_to(late, 8192);
  EXPECT_TRUE(late.give_all_back());
  EXPECT_TRUE(first.expired() && second.expired());
  EXPECT_EQ(late.due_ns(), UINT64_MAX);
}

TEST(LateRelease, TakesNoMapping) {
  LateRelease late;
  late.add(nullptr, kNow);
  EXPECT_EQ(late.due_ns(), UINT64_MAX);
}

[[nodiscard]] bool is_mapped(std::byte* at) {
  return ::msync(at, 4096, MS_ASYNC) == 0 || errno != ENOMEM;
}

TEST(LateRelease, AFabricThatSleepsWakesToGiveMemoryBack) {
  const auto fabric = join({.group = test::fresh_group(), .members = 1});
  Region region = fabric->allocate({.name = "large", .bytes = std::size_t{1} << 20});
  std::byte* const at = region.memory().data();
  fabric->announce(region);
  ASSERT_TRUE(is_mapped(at));
  region = Region();
  while (is_mapped(at)) {  // for ever, if nothing wakes it
    fabric->prepare_sleep();
    if (fabric->poll() == 0 && is_mapped(at))
      fabric->sleep(UINT64_MAX);
    else
      fabric->cancel_sleep();
  }
}

/// Of 8 MB, six are given back, and asked for again while they rest.
TEST(LateRelease, MemoryThatRestsIsThereForWhoNeedsIt) {
  constexpr std::size_t kBytes = std::size_t{6} << 20;
  test::Process world([](test::Parent& parent) {
    if (const auto why_not = test::mount_private_shm(8 << 20)) {
      parent.send_line("skip " + *why_not);
      return 0;
    }
    const auto fabric = join({.group = test::fresh_group(), .members = 1});
    Region region = fabric->allocate({.name = "first", .bytes = kBytes});
    std::byte* const at = region.memory().data();
    region = Region();
    parent.send_line(is_mapped(at) ? "rests" : "has gone");
    region = fabric->allocate({.name = "second", .bytes = kBytes});
    parent.send_line("fits");
    parent.send_line(test::what_is_thrown_by(
        [&] { (void)fabric->allocate({.name = "third", .bytes = kBytes}); }));
    return 0;
  });
  const std::string text = world.receive_line();
  if (text.starts_with("skip")) GTEST_SKIP() << text;
  EXPECT_EQ(text, "rests");
  EXPECT_EQ(world.receive_line(), "fits");
  EXPECT_TRUE(test::contains(world.receive_line(), "not enough shared memory for region 'third'"))
      << "what nobody has given back is not there";
}

}  // namespace
}  // namespace dunlin::shm
