#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <sys/resource.h>

#include "fabric/mapping/observer.hpp"
#include "fabric/shm_group.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;

std::vector<mapping::Sighting> sightings_of(const std::string& group) {
  std::vector<mapping::Sighting> found = mapping::find_mappings();
  std::erase_if(found, [&](const mapping::Sighting& s) { return s.info.group != group; });
  return found;
}

TEST(ShmObserver, FindsAllSegmentsOfAGroupOnce) {
  const std::string group = fresh_group();
  Process other([&](Parent& parent) {
    Member member({.group = group, .members = 2, .rank = 1});
    parent.send_line("in");
    while (member.failures.empty()) poll_politely(*member.fabric);
    return 0;
  });
  Member member({.group = group, .members = 2, .rank = 0});
  const Region board = member.fabric->publish({.name = "board", .bytes = 128});
  EXPECT_EQ(other.receive_line(), "in");
  std::string seen;
  for (const mapping::Sighting& s : sightings_of(group)) {
    EXPECT_EQ(s.pid, s.info.owner_rank == 0 ? getpid() : other.pid());
    EXPECT_EQ(s.info.members, 2u);
    EXPECT_EQ(s.info.owner_uid, geteuid());
    seen += std::to_string(s.info.owner_rank) + ":" +
            std::to_string(static_cast<int>(s.info.kind)) + s.info.region + " ";
  }
  EXPECT_EQ(seen, "0:1 0:2box 0:3board 1:1 1:2box ");
}

TEST(ShmObserver, NamesTheOwnerThoughOthersHoldTheSegment) {
  const std::string group = fresh_group();
  Process owner([&](Parent& parent) {
    const auto fabric = join({.group = group, .members = 1});
    parent.send_line("in");
    static_cast<void>(parent.receive_line());
    return 0;
  });
  ASSERT_EQ(owner.receive_line(), "in");
  std::vector<mapping::Sighting> found = sightings_of(group);
  ASSERT_EQ(found.size(), 1u);
  const Descriptor held(open(found[0].path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(held);
  found = sightings_of(group);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, owner.pid());
}

TEST(ShmObserver, ReadsARegionWhileItsOwnerWritesAndAfterItsEnd) {
  const std::string group = fresh_group();
  Process owner([&](Parent& parent) {
    const auto fabric = join({.group = group, .members = 1});
    const Region board =
        fabric->publish({.name = "board", .bytes = 64, .layout_hash = 9, .layout_text = "what"});
    parent.send_line("published");
    static_cast<void>(parent.receive_line());
    memory::store(*reinterpret_cast<std::uint64_t*>(board.memory().data()), 42);
    parent.send_line("written");
    static_cast<void>(parent.receive_line());
    return 0;
  });
  EXPECT_EQ(owner.receive_line(), "published");
  const std::vector<mapping::Sighting> found = sightings_of(group);
  const auto board = std::find_if(found.begin(), found.end(), [](const mapping::Sighting& s) {
    return s.info.kind == mapping::MappingKind::published;
  });
  ASSERT_NE(board, found.end());
  const mapping::ObservedMapping segment(*board);
  EXPECT_EQ(segment.info().layout_text, "what");
  EXPECT_EQ(segment.info().layout_hash, 9u);
  owner.send_line("write");
  EXPECT_EQ(owner.receive_line(), "written");
  EXPECT_EQ(memory::load(*reinterpret_cast<const std::uint64_t*>(segment.memory().data())), 42u);
  owner.kill();
  EXPECT_EQ(memory::load(*reinterpret_cast<const std::uint64_t*>(segment.memory().data())), 42u);
  EXPECT_TRUE(sightings_of(group).empty());
  EXPECT_TRUE(
      contains(test::what_is_thrown_by([&] { const mapping::ObservedMapping gone(*board); }),
               "Has it ended"));
}

TEST(ShmObserver, AMemberRaisesItsLimitOfDescriptorsIfItMust) {
  Process member([](Parent& parent) {
    const rlimit low{32, 4096};
    if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 2;
    static_cast<void>(join({.group = fresh_group(), .members = 1}));
    rlimit now{};
    getrlimit(RLIMIT_NOFILE, &now);
    const rlimit too_low{32, 32};
    if (setrlimit(RLIMIT_NOFILE, &too_low) != 0) return 3;
    parent.send_line(test::what_is_thrown_by(
        [] { static_cast<void>(join({.group = fresh_group(), .members = 1})); }));
    return now.rlim_cur > 32 ? 0 : 1;
  });
  const std::string text = member.receive_line();
  EXPECT_TRUE(contains(text, "file descriptors"));
  EXPECT_TRUE(contains(text, "only 32"));
  EXPECT_EQ(member.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin
