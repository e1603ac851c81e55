#include <array>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "fabric/shm/address.hpp"
#include "fabric/shm/packet.hpp"
#include "fabric/shm_group.hpp"
#include "support/node_backend.hpp"
#include "support/process.hpp"

/// A process without free descriptors blames itself, not its peers.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::kPatienceMs;
using test::Member;
using test::Parent;
using test::poll_politely;
using test::Process;
using test::what_is_thrown_by;

/// From now on this process gets no descriptor.
bool forbid_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = 0;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(ShmDescriptors, APacketWhoseDescriptorsCouldNotBeTakenIsNoGarbage) {
  Process receiver([](Parent&) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) return 2;
    const shm::Packet packet;
    if (shm::send_packet(ends[0], packet, 0, 1) != shm::Sent::whole) return 3;
    if (!forbid_descriptors()) return 4;
    return shm::receive_packet(ends[1]).kind == shm::Received::Kind::no_descriptors ? 0 : 1;
  });
  EXPECT_EQ(receiver.exit_code(), 0);
}

TEST(ShmDescriptors, MoreDescriptorsThanAnyPacketHasAreGarbage) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
  const shm::Descriptor from(ends[0]), to(ends[1]);
  shm::Packet packet;
  const std::array<int, shm::kMaxDescriptors + 1> numbers{0, 1, 2, 0};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof numbers)> space{};
  iovec content{&packet, sizeof packet};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof numbers);
  std::memcpy(CMSG_DATA(part), numbers.data(), sizeof numbers);
  ASSERT_GT(sendmsg(from.get(), &message, 0), 0);
  EXPECT_EQ(shm::receive_packet(to.get()).kind, shm::Received::Kind::garbage);
}

TEST(ShmDescriptors, AMemberThatHasNoneLeftSaysSo) {
  const std::string group = fresh_group();
  Process poor([&](Parent& parent) {
    Member member({.group = group, .members = 2, .rank = 1});
    parent.send_line(forbid_descriptors() ? "ready" : "no");
    while (member.failures.empty()) poll_politely(*member.fabric);
    parent.send_line(member.failure_text);
    return 0;
  });
  Member member({.group = group, .members = 2, .rank = 0});
  ASSERT_EQ(poor.receive_line(), "ready");
  const Region region = member.fabric->allocate({.name = "more", .bytes = 64});
  member.fabric->announce(region);
  EXPECT_TRUE(contains(poor.receive_line(), "RLIMIT_NOFILE"));
}

/// It stops listening, or the caller that it cannot take would keep it from sleeping.
TEST(ShmDescriptors, AMemberThatHadNoneListensAgain) {
  const std::string group = fresh_group();
  Process poor([&](Parent& parent) {
    Member member({.group = group, .members = 1});
    rlimit before{};
    if (getrlimit(RLIMIT_NOFILE, &before) != 0 || !forbid_descriptors()) return 2;
    parent.send_line("ready");
    if (parent.receive_line() != "called") return 3;
    const std::uint64_t called_ns = member.fabric->now_ns();
    while (member.fabric->recent_ns() < called_ns + 2'000'000) poll_politely(*member.fabric);
    if (setrlimit(RLIMIT_NOFILE, &before) != 0) return 4;
    parent.send_line("free");
    for (;;) poll_politely(*member.fabric);
  });
  ASSERT_EQ(poor.receive_line(), "ready");
  const auto caller = shm::connect_to(shm::address_of(shm::access_for(""), group, 0));
  ASSERT_TRUE(caller);
  shm::Packet unasked;
  unasked.type = shm::PacketType::enter;
  ASSERT_EQ(shm::send_packet(caller->get(), unasked), shm::Sent::whole);
  poor.send_line("called");
  ASSERT_EQ(poor.receive_line(), "free");
  pollfd answer{.fd = caller->get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&answer, 1, static_cast<int>(kPatienceMs)), 1) << "nobody answers";
  EXPECT_EQ(shm::receive_packet(caller->get()).kind, shm::Received::Kind::closed);
}

TEST(ShmDescriptors, ThoseInUseCount) {
  Process member([](Parent& parent) {
    const rlimit limit{1024, 1024};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
    std::vector<shm::Descriptor> in_use;
    while (in_use.size() < 1000) in_use.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    parent.send_line(
        what_is_thrown_by([] { static_cast<void>(join({.group = fresh_group(), .members = 1})); }));
    return 0;
  });
  EXPECT_TRUE(contains(member.receive_line(), "only 1024"));
  EXPECT_EQ(member.exit_code(), 0);
}

}  // namespace
}  // namespace dunlin
