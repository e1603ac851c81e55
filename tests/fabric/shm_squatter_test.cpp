#include <cstddef>
#include <vector>

#include <grp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <dunlin/limits.hpp>

#include "fabric/shm/address.hpp"
#include "fabric/shm_group.hpp"
#include "support/process.hpp"

/// A process of another user holds names that members need.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

constexpr uid_t kNobody = 65534;
constexpr std::uint32_t kLongMs = 60'000;
constexpr std::uint32_t kSoonMs = 500;  // of joins that are meant to fail

enum class Squats : std::uint8_t { listening, deaf };

shm::Descriptor bound(const std::string& name, Squats how) {
  shm::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un abstract{.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(abstract.sun_path + 1, name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&abstract), bytes) != 0) return {};
  if (how == Squats::listening && listen(socket.get(), 16) != 0) return {};
  return socket;
}

/// Holds all these until it is killed.
Process squatter(const std::vector<std::string>& names, Squats how) {
  return Process([names, how](Parent& parent) {
    if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0) return 2;
    std::vector<shm::Descriptor> held;
    for (const std::string& name : names) held.push_back(bound(name, how));
    bool all = true;
    for (const shm::Descriptor& one : held) all = all && one;
    parent.send_line(all ? "held" : "not all");
    static_cast<void>(parent.receive_line());
    return 0;
  });
}

class ShmSquatter : public testing::TestWithParam<Squats> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
  [[nodiscard]] shm::Address address(Rank rank) const {
    return shm::address_of(shm::access_for(""), group_, rank);
  }
  [[nodiscard]] Process member(Rank rank) const {
    return Process([options = options(rank, kLongMs)](Parent& parent) {
      const auto fabric = join(options);
      parent.send_line("in");
      static_cast<void>(parent.receive_line());
      return 0;
    });
  }
  [[nodiscard]] JoinOptions options(Rank rank, std::uint32_t timeout_ms) const {
    return {.group = group_, .members = 2, .rank = rank, .timeout_ms = timeout_ms};
  }

  const std::string group_ = fresh_group();
};

INSTANTIATE_TEST_SUITE_P(That, ShmSquatter, testing::Values(Squats::listening, Squats::deaf),
                         [](const auto& how) {
                           return std::string(how.param == Squats::deaf ? "IsDeaf" : "Listens");
                         });

TEST_P(ShmSquatter, IsSkipped) {
  Process other = squatter({address(0).name, address(1).name_number(0)}, GetParam());
  ASSERT_EQ(other.receive_line(), "held");
  Process zero = member(0), one = member(1);
  EXPECT_EQ(zero.receive_line(), "in");
  EXPECT_EQ(one.receive_line(), "in");
}

/// The place of a member at a spare name is not free when the squatter has gone.
TEST_P(ShmSquatter, LeavesNoPlaceForASecondMemberOfARank) {
  Process other = squatter({address(0).name}, GetParam());
  ASSERT_EQ(other.receive_line(), "held");
  Process zero = member(0), one = member(1);
  EXPECT_EQ(zero.receive_line(), "in");
  EXPECT_EQ(one.receive_line(), "in");
  other.kill();
  EXPECT_TRUE(contains(what_is_thrown_by([&] { static_cast<void>(join(options(0, kSoonMs))); }),
                       "pid " + std::to_string(zero.pid())));
}

TEST_P(ShmSquatter, IsNamedIfItHoldsAllNames) {
  std::vector<std::string> names;
  for (unsigned number = 0; number <= shm::kSpareNames; ++number)
    names.push_back(address(0).name_number(number));
  Process other = squatter(names, GetParam());
  ASSERT_EQ(other.receive_line(), "held");
  const std::string text = what_is_thrown_by([&] { static_cast<void>(join(options(0, kSoonMs))); });
  EXPECT_TRUE(contains(text, GetParam() == Squats::deaf
                                 ? "an unknown process"
                                 : "pid " + std::to_string(other.pid()) + " of user 65534"))
      << text;
}

TEST_P(ShmSquatter, DoesNotKeepListenersClosed) {
  std::vector<std::string> names;
  for (Rank listener = 0; listener < kMaxViewMembers; ++listener)
    names.push_back(shm::address_of(shm::access_for(""), group_ + ".join", listener).name);
  Process other = squatter(names, GetParam());
  ASSERT_EQ(other.receive_line(), "held");
  const std::shared_ptr<Rendezvous> place = make_rendezvous({.group = group_});
  const std::unique_ptr<PendingJoin> accepting = place->accept();
  std::unique_ptr<PendingJoin> connect = place->connect();
  std::unique_ptr<Fabric> inside, outside;
  while (!inside || !outside) {
    if (!inside) inside = accepting->poll();
    try {
      if (!outside) outside = connect->poll();
    } catch (const Error&) {
      connect = place->connect();
    }
  }
  EXPECT_EQ(outside->size(), 2u);
}

TEST(ShmDescriptorLimit, AGroupOfOneNeedsNoMoreThanItUses) {
  Process member([](Parent&) {
    const rlimit limit{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
    const auto fabric = join({.group = fresh_group(), .members = 1});
    const Region region = fabric->allocate({.name = "some", .bytes = 64});
    return region.memory().size() >= 64 ? 0 : 1;
  });
  EXPECT_EQ(member.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin
