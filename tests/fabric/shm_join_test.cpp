#include <algorithm>
#include <array>
#include <set>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "fabric/shm/address.hpp"
#include "fabric/shm/packet.hpp"
#include "fabric/shm_group.hpp"
#include "support/process.hpp"

namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Parent;
using test::Process;
using test::what_is_thrown_by;

constexpr std::uint32_t kSoonMs = 150;  // of joins that are meant to fail

/// A process that joins, says "in", and stays until it is told to go.
Process member_process(const JoinOptions& options) {
  return Process([options](Parent& parent) {
    const auto fabric = join(options);
    parent.send_line("in " + std::to_string(fabric->rank()));
    static_cast<void>(parent.receive_line());
    return 0;
  });
}

/// A process that joins and polls until it is killed.
Process polling_process(const JoinOptions& options) {
  return Process([options](Parent& parent) {
    const auto fabric = join(options);
    parent.send_line("in " + std::to_string(fabric->rank()));
    while (true) {
      fabric->prepare_sleep();
      fabric->poll() == 0 ? fabric->sleep(UINT64_MAX) : fabric->cancel_sleep();
    }
    return 0;
  });
}

TEST(ShmJoin, GivesEachMemberARankOfItsOwn) {
  const std::string group = fresh_group();
  std::vector<Process> members;
  for (int i = 0; i < 5; ++i) members.push_back(member_process({.group = group, .members = 5}));
  std::vector<std::string> heard;
  for (Process& member : members) heard.push_back(member.receive_line());
  std::sort(heard.begin(), heard.end());
  EXPECT_EQ(heard, (std::vector<std::string>{"in 0", "in 1", "in 2", "in 3", "in 4"}));
}

TEST(ShmJoin, GivesANamedMemberThePlaceOfItsName) {
  const std::string group = fresh_group();
  const std::vector<std::string> names{"ada", "bob", "cyd"};
  Process cyd = member_process({.group = group, .names = names, .name = "cyd"});
  Process ada = member_process({.group = group, .names = names, .name = "ada"});
  const auto bob = join({.group = group, .names = names, .name = "bob"});
  EXPECT_EQ(bob->rank(), 1u);
  EXPECT_EQ(bob->member_name(2), "cyd");
  EXPECT_EQ(ada.receive_line(), "in 0");
  EXPECT_EQ(cyd.receive_line(), "in 2");
}

TEST(ShmJoin, AGroupOfOneNeedsNobody) {
  const auto fabric = join({.group = fresh_group(), .members = 1});
  EXPECT_EQ(fabric->size(), 1u);
  EXPECT_EQ(fabric->kind(), "shm");
}

std::set<int> descriptors_without_cloexec() {
  std::set<int> found;
  for (int number = 0; number < 4096; ++number) {
    const int flags = fcntl(number, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) found.insert(number);
  }
  return found;
}

TEST(ShmJoin, LeavesNoDescriptorToProgramsThatItsProcessStarts) {
  const std::set<int> before = descriptors_without_cloexec();
  const auto fabric = join({.group = fresh_group(), .members = 1});
  const Region box = fabric->allocate({.name = "box", .bytes = 64});
  EXPECT_EQ(descriptors_without_cloexec(), before);
}

TEST(ShmJoin, NamesTheMissingMember) {
  const std::string group = fresh_group();
  const std::string text = what_is_thrown_by([&] {
    static_cast<void>(
        join({.group = group, .names = {"ada", "bob"}, .name = "ada", .timeout_ms = kSoonMs}));
  });
  EXPECT_TRUE(contains(text, "group '" + group + "'"));
  EXPECT_TRUE(contains(text, "1 of 2 members"));
  EXPECT_TRUE(contains(text, "missing: 'bob' (rank 1)"));
}

TEST(ShmJoin, NumbersTheMissingMembersOfACountedGroup) {
  const std::string group = fresh_group();
  Process other([&](Parent& parent) {
    parent.send_line("trying");
    static_cast<void>(join({.group = group, .members = 4, .rank = 2, .timeout_ms = 60'000}));
    return 0;
  });
  EXPECT_EQ(other.receive_line(), "trying");
  std::string text;
  do {  // until the other one has come
    text = what_is_thrown_by([&] {
      static_cast<void>(join({.group = group, .members = 4, .rank = 1, .timeout_ms = kSoonMs}));
    });
  } while (contains(text, "1 of 4 members"));
  EXPECT_TRUE(contains(text, "2 of 4 members"));
  EXPECT_TRUE(contains(text, "missing: rank 0, rank 3"));
}

TEST(ShmJoin, ReplacesAMemberThatDiedWhileTheGroupWasForming) {
  const std::string group = fresh_group();
  const auto options = [&](Rank rank) {
    return JoinOptions{.group = group, .members = 3, .rank = rank, .timeout_ms = 60'000};
  };
  Process first = member_process(options(0));
  for (int i = 0; i < 3; ++i) {
    Process doomed = member_process(options(1));
    const shm::Address address = shm::address_of(shm::access_for(""), group, 1);
    while (!shm::connect_to(address)) {  // until it has come
    }
    doomed.kill();
  }
  Process second = member_process(options(1));
  Process third = member_process(options(2));
  EXPECT_EQ(first.receive_line(), "in 0");
  EXPECT_EQ(second.receive_line(), "in 1");
  EXPECT_EQ(third.receive_line(), "in 2");
}

TEST(ShmJoin, RefusesARankThatIsTaken) {
  const std::string group = fresh_group();
  const auto fabric = join({.group = group, .members = 1});
  const std::string text = what_is_thrown_by(
      [&] { static_cast<void>(join({.group = group, .members = 2, .rank = 0})); });
  EXPECT_TRUE(contains(text, "rank 0 by pid " + std::to_string(getpid())));
}

/// The holder is a zombie, which counts as dying; a child of it keeps the place until it is called.
TEST(ShmJoin, WaitsForAHolderThatIsDying) {
  const std::string group = fresh_group();
  Process holder([&](Parent& parent) {
    const auto listener = shm::claim(shm::address_of(shm::access_for(""), group, 0));
    if (!listener) return 1;
    if (fork() == 0) {
      std::array<pollfd, 2> watched{pollfd{listener->get(), POLLIN, 0},
                                    pollfd{parent.descriptor(), POLLIN, 0}};
      ::poll(watched.data(), watched.size(), -1);
      _exit(0);
    }
    parent.send_line("listening");
    return 0;
  });
  ASSERT_EQ(holder.receive_line(), "listening");
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(holder.pid()), &ended, WEXITED | WNOWAIT), 0);
  const auto fabric = join({.group = group, .members = 1, .timeout_ms = 60'000});
  EXPECT_EQ(fabric->rank(), 0u);
}

TEST(ShmJoin, RefusesOneMoreThanThereArePlaces) {
  const std::string group = fresh_group();
  Process other = polling_process({.group = group, .members = 2});
  const auto fabric = join({.group = group, .members = 2});
  const std::string text =
      what_is_thrown_by([&] { static_cast<void>(join({.group = group, .members = 2})); });
  EXPECT_TRUE(contains(text, "already running"));
  EXPECT_TRUE(contains(text, "pid " + std::to_string(other.pid())));
}

/// The place of a dead member is free, but the group goes on without it.
void expect_latecomer_is_refused(Rank dead) {
  const std::string group = fresh_group();
  std::vector<Process> members;
  for (Rank rank = 0; rank < 3; ++rank)
    members.push_back(polling_process({.group = group, .members = 3, .rank = rank}));
  for (Process& member : members) EXPECT_TRUE(contains(member.receive_line(), "in "));
  members[dead].kill();
  const std::string text = what_is_thrown_by([&] {
    static_cast<void>(join({.group = group, .members = 3, .rank = dead, .timeout_ms = 60'000}));
  });
  EXPECT_TRUE(contains(text, "group '" + group + "' is already running"));
  EXPECT_TRUE(contains(text, "no late joiner"));
  EXPECT_TRUE(contains(text, "come in by Group::join"));
}

TEST(ShmJoin, RefusesALatecomerInTheHighestPlace) { expect_latecomer_is_refused(2); }
TEST(ShmJoin, RefusesALatecomerInTheLowestPlace) { expect_latecomer_is_refused(0); }

TEST(ShmJoin, TellsBothSidesWhenTheyExpectDifferentCounts) {
  const std::string group = fresh_group();
  Process two([&](Parent& parent) {
    std::string text;
    while (!contains(text, "expects 3"))  // until the other one has called
      text = what_is_thrown_by([&] {
        static_cast<void>(join({.group = group, .members = 2, .rank = 0, .timeout_ms = kSoonMs}));
      });
    parent.send_line(text);
    return 0;
  });
  const std::string three = what_is_thrown_by([&] {
    static_cast<void>(join({.group = group, .members = 3, .rank = 1, .timeout_ms = 60'000}));
  });
  EXPECT_TRUE(contains(three, "expects 2 members"));
  EXPECT_TRUE(contains(three, "expects 3"));
  EXPECT_TRUE(contains(two.receive_line(), "missing: rank 1"));
}

TEST(ShmJoin, TellsWhenTheNamesDiffer) {
  const std::string group = fresh_group();
  Process other([&](Parent&) {
    static_cast<void>(
        join({.group = group, .names = {"a", "b"}, .name = "a", .timeout_ms = 60'000}));
    return 0;
  });
  const auto joining = [&](const JoinOptions& options) {
    return what_is_thrown_by([&] { static_cast<void>(join(options)); });
  };
  EXPECT_TRUE(
      contains(joining({.group = group, .names = {"a", "c"}, .name = "c", .timeout_ms = 60'000}),
               "different lists of member names"));
  EXPECT_TRUE(contains(joining({.group = group, .members = 2, .rank = 1, .timeout_ms = 60'000}),
                       "by name"));
  const std::string text = joining({.group = group, .names = {"b", "a"}, .name = "b"});
  EXPECT_TRUE(contains(text, "pid " + std::to_string(other.pid()))) << text;
  EXPECT_TRUE(contains(text, "the same names in the same order")) << text;
}

TEST(ShmJoin, RefusesAnotherVersionOfTheProtocol) {
  const std::string group = fresh_group();
  const shm::Address address = shm::address_of(shm::access_for(""), group, 0);
  const auto listener = shm::claim(address);
  ASSERT_TRUE(listener.has_value());
  std::thread future([&] {  // a rank 0 of a later release
    shm::Descriptor caller;
    while (!caller) caller = shm::take_connection(*listener);
    shm::Packet hello;
    hello.version = shm::kProtocolVersion + 1;
    static_cast<void>(shm::send_packet(caller.get(), hello));
    while (shm::receive_packet(caller.get()).kind != shm::Received::Kind::closed)
      std::this_thread::yield();
  });
  const std::string text = what_is_thrown_by([&] {
    static_cast<void>(join({.group = group, .members = 2, .rank = 1, .timeout_ms = 60'000}));
  });
  future.join();
  EXPECT_TRUE(contains(text, "speaks version 2"));
  EXPECT_TRUE(contains(text, "this process 1"));
}

TEST(ShmJoin, IsNotDisturbedByStrangersAndGarbage) {
  const std::string group = fresh_group();
  Process first = member_process({.group = group, .members = 2, .rank = 0, .timeout_ms = 60'000});
  const shm::Address address = shm::address_of(shm::access_for(""), group, 0);
  std::vector<shm::Descriptor> strangers;
  while (strangers.size() < 200) {
    auto stranger = shm::connect_to(address);
    if (!stranger) continue;
    const std::size_t kind = strangers.size() % 4;
    shm::Packet packet;  // an empty introduction
    if (kind == 0) static_cast<void>(send(stranger->get(), "garbage", 7, MSG_NOSIGNAL));
    if (kind == 1) static_cast<void>(shm::send_packet(stranger->get(), packet));
    packet.rank = 1;
    packet.members = 2;
    packet.incarnation = 5;
    std::copy(group.begin(), group.end(), packet.group.begin());
    if (kind == 2)  // with something else than a base segment and a doorbell
      static_cast<void>(shm::send_packet(stranger->get(), packet, 0, stranger->get()));
    strangers.push_back(std::move(*stranger));  // and the rest never say a word
  }
  const auto second = join({.group = group, .members = 2, .rank = 1, .timeout_ms = 60'000});
  EXPECT_EQ(first.receive_line(), "in 0");
}

TEST(ShmJoin, RefusesOptionsThatMakeNoSense) {
  const auto joining = [](const JoinOptions& options) {
    return what_is_thrown_by([&] { static_cast<void>(join(options)); });
  };
  EXPECT_TRUE(contains(joining({.group = "", .members = 1}), "group name ''"));
  EXPECT_TRUE(contains(joining({.group = "a/b", .members = 1}), "kMaxGroupNameBytes"));
  EXPECT_TRUE(contains(joining({.group = "a"}), "say how many"));
  EXPECT_TRUE(contains(joining({.group = "a", .members = 257}), "kMaxHostMembers"));
  EXPECT_TRUE(contains(joining({.group = "a", .members = 2, .rank = 2}), "ranks are 0 to 1"));
  EXPECT_TRUE(contains(joining({.group = "a", .names = {"x", "y"}}), "no member ''"));
  EXPECT_TRUE(contains(joining({.group = "a", .names = {"x", "x"}, .name = "x"}), "twice"));
  EXPECT_TRUE(contains(joining({.group = "a", .names = {"x "}, .name = "x "}), "member name"));
  EXPECT_TRUE(
      contains(joining({.group = "a", .names = {"x"}, .name = "x", .rank = 0}), "not both"));
  EXPECT_TRUE(contains(joining({.group = "a", .members = 1, .access_group = "no such group"}),
                       "'no such group'"));
}

TEST(ShmJoin, AnAccessGroupIsAWorldOfItsOwn) {
  const group* own = getgrgid(getegid());
  if (own == nullptr) GTEST_SKIP() << "the group of this process has no name";
  const std::string access = own->gr_name, group = fresh_group();
  Process other =
      member_process({.group = group, .members = 2, .timeout_ms = 60'000, .access_group = access});
  const auto alone = join({.group = group, .members = 1});  // the same name, for this user only
  const auto fabric =
      join({.group = group, .members = 2, .timeout_ms = 60'000, .access_group = access});
  EXPECT_TRUE(contains(other.receive_line(), "in "));
}

TEST(ShmJoin, TwoUsersDoNotCollide) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
  const std::string group = fresh_group();
  const auto as_user = [&](uid_t user) {
    return Process([user, group](Parent& parent) {
      if (setgid(user) != 0 || setuid(user) != 0) return 2;
      const auto fabric = join({.group = group, .members = 1});
      parent.send_line("in");
      static_cast<void>(parent.receive_line());
      return 0;
    });
  };
  Process nobody = as_user(65534), somebody = as_user(12345);
  const auto root = join({.group = group, .members = 1});
  EXPECT_EQ(nobody.receive_line(), "in");
  EXPECT_EQ(somebody.receive_line(), "in");
}

/// Whoever holds the address of another user's group is seen through by the kernel's word.
TEST(ShmJoin, DoesNotSpeakWithAnotherUserWhoPretends) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const std::string group = fresh_group();
  const shm::Address address = shm::address_of(shm::access_for(""), group, 0);
  Process impostor([&](Parent& parent) {
    if (setgid(65534) != 0 || setuid(65534) != 0) return 2;
    const auto listener = shm::claim(address);
    parent.send_line(listener ? "listening" : "no");
    static_cast<void>(parent.receive_line());
    return shm::take_connection(*listener) ? 0 : 1;
  });
  ASSERT_EQ(impostor.receive_line(), "listening");
  const std::string text = what_is_thrown_by([&] {
    static_cast<void>(join({.group = group, .members = 2, .rank = 1, .timeout_ms = kSoonMs}));
  });
  EXPECT_TRUE(contains(text, "pid " + std::to_string(impostor.pid()) + " of user 65534"));
}

}  // namespace
}  // namespace dunlin
