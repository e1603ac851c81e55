#include <array>
#include <csignal>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <dunlin/join.hpp>

#include "fabric/shm_group.hpp"
#include "support/process.hpp"

/// On the device that DUNLIN_VERBS_DEVICES names: in the emulated machine of tests/verbs.
namespace dunlin {
namespace {

using test::contains;
using test::fresh_group;
using test::Parent;
using test::poll_politely;
using test::Process;
using test::what_is_thrown_by;

std::string device() {
  const char* const named = std::getenv("DUNLIN_VERBS_DEVICES");
  return named == nullptr ? "" : named;
}

#define SKIP_WITHOUT_A_DEVICE() \
  if (device().empty()) GTEST_SKIP() << "DUNLIN_VERBS_DEVICES names no RDMA device"

JoinOptions on_this_host(const std::string& group, std::uint32_t members,
                         std::uint32_t silence_timeout_ms = 0) {
  return {.network = "verbs",
          .group = group,
          .members = members,
          .timeout_ms = 60'000,
          .silence_timeout_ms = silence_timeout_ms,
          .rendezvous = "unix:" + group,
          .secret = "only these tests know it",
          .device = device()};
}

std::string refusal(const JoinOptions& options) {
  return what_is_thrown_by([&] { static_cast<void>(join(options)); });
}

/// Says a word to the first member and polls, because a member must, until that one is gone.
Process polling_member(const JoinOptions& options) {
  return Process([options](Parent& parent) {
    const auto fabric = join(options);
    const std::array<std::byte, 1> word{};
    while (fabric->send(0, 0, word) == Refusal::queue_full) poll_politely(*fabric);
    parent.send_line("in");
    while (!fabric->failed(0)) poll_politely(*fabric);
    return 0;
  });
}

/// In a process of its own, since its parent shall not have used the device.
void in_a_process(const std::function<int(Parent&)>& body) {
  Process child(body);
  EXPECT_EQ(child.receive_all_lines(), "");
  EXPECT_EQ(child.exit_code(), 0);
}

TEST(VerbsJoin, SaysWhatThereIsIfTheDeviceOrTheAddressIsNot) {
  JoinOptions options = on_this_host(fresh_group(), 1);
  options.device = "mlx77_0";
  const std::string text = refusal(options);
  if (device().empty()) {
    EXPECT_NE(text, "");  // no such device, or no way to ask for one
    return;
  }
  EXPECT_TRUE(contains(text, "'mlx77_0'"));
  for (const std::string& place : devices_of("verbs")) EXPECT_TRUE(contains(text, place)) << text;
  options.device = device();
  options.address = "203.0.113.7";  // an example's; nobody has it
  EXPECT_TRUE(contains(refusal(options), "203.0.113.7"));
}

TEST(VerbsJoin, SaysWhichDeviceItChoseAndWhatItPromises) {
  SKIP_WITHOUT_A_DEVICE();
  const auto fabric = join(on_this_host(fresh_group(), 1));
  const std::string text = fabric->description();
  EXPECT_TRUE(contains(text, device())) << text;
  EXPECT_TRUE(contains(text, "as asked")) << text;
  EXPECT_TRUE(contains(text, "atomics")) << text;
  EXPECT_FALSE(contains(text, "children")) << text;
  EXPECT_EQ(fabric->kind(), "verbs");
  EXPECT_EQ(fabric->properties().native_atomics, contains(text, "atomics native"));
  EXPECT_FALSE(fabric->properties().native_atomics &&
               fabric->properties().atomics_coherent_with_cpu);
}

TEST(VerbsLimits, OfLockedMemoryAreNamedWithWhatRaisesThem) {
  SKIP_WITHOUT_A_DEVICE();
  const auto options = on_this_host(fresh_group(), 1);
  in_a_process([&](Parent& parent) {
    const rlimit little{1 << 16, 1 << 16};
    setrlimit(RLIMIT_MEMLOCK, &little);
    // The limit does not bind whoever has the capability, so lay it down.
    if (setgid(65534) != 0 || setuid(65534) != 0) return 0;
    const std::string text = what_is_thrown_by([&] {
      const auto fabric = join(options);
      const Region large = fabric->allocate({.name = "large", .bytes = 1 << 20});
      fabric->announce(large);
    });
    const bool named =
        contains(text, "ulimit -l") || contains(text, "/dev/infiniband") || contains(text, "RDMA");
    if (!named) parent.send_line("it said: " + text);
    return named ? 0 : 1;
  });
}

/// Enough for soft-iWARP to hand out the address that its own library refuses (connections.cpp).
TEST(VerbsMesh, FormsOfTenProcessesOnOneDevice) {
  SKIP_WITHOUT_A_DEVICE();
  constexpr Rank kMembers = 10;
  const auto options = on_this_host(fresh_group(), kMembers);
  in_a_process([&](Parent& parent) {
    std::vector<Process> others;
    for (Rank rank = 1; rank < kMembers; ++rank) {
      JoinOptions other = options;
      other.rank = rank;
      others.push_back(polling_member(other));
    }
    JoinOptions first = options;
    first.rank = 0;
    const auto fabric = join(first);
    for (Process& other : others)
      if (const std::string said = other.receive_line(); said != "in")
        parent.send_line("a member said " + said);
    return 0;
  });
}

void expect_failure_of(const std::function<void(Process&)>& harm, std::uint32_t silence_timeout_ms,
                       const std::string& because) {
  const auto options = on_this_host(fresh_group(), 2, silence_timeout_ms);
  in_a_process([&](Parent& parent) {
    JoinOptions first = options;
    first.rank = 0;
    JoinOptions second = options;
    second.rank = 1;
    Process peer = polling_member(second);
    const auto fabric = join(first);
    if (peer.receive_line() != "in") return 1;
    bool heard = false;
    int told = 0;
    const auto events = fabric->subscribe([&](const Event& event) {
      if (event.kind == Event::Kind::peer_failed) ++told;
    });
    fabric->receive(0, [&](Rank, std::span<const std::byte>) { heard = true; });
    while (!heard) poll_politely(*fabric);  // else it would have all the time there is to join
    harm(peer);
    while (!fabric->failed(1)) poll_politely(*fabric);
    for (int i = 0; i < 100; ++i) poll_politely(*fabric);
    if (told != 1) parent.send_line("told " + std::to_string(told) + " times");
    const std::string& text = fabric->failure_text(1);
    if (!contains(text, because)) parent.send_line(text);
    peer.signal(SIGKILL);
    return 0;
  });
}

TEST(VerbsDeath, OfAKilledPeerIsToldOnceWithoutAnyHeartbeat) {
  SKIP_WITHOUT_A_DEVICE();
  expect_failure_of([](Process& peer) { peer.kill(); }, 0, "connection");
}

TEST(VerbsDeath, OfAStoppedPeerIsToldOnceAfterItsSilence) {
  SKIP_WITHOUT_A_DEVICE();
  expect_failure_of([](Process& peer) { peer.signal(SIGSTOP); }, 3'000, "no sign of life");
}

/// Two members with a box each; `use` is what the first does with the box of the second.
void with_a_box_at_a_peer(const std::function<int(std::unique_ptr<Fabric>&, Region&)>& use) {
  const auto options = on_this_host(fresh_group(), 2);
  in_a_process([&](Parent&) {
    const auto join = [&](Rank rank) {
      JoinOptions mine = options;
      mine.rank = rank;
      return dunlin::join(mine);
    };
    const Process peer([&](Parent&) {
      const auto fabric = join(1);
      const Region box = fabric->allocate({.name = "box", .bytes = 4096});
      fabric->announce(box);
      while (!fabric->failed(0)) poll_politely(*fabric);
      return 0;
    });
    auto fabric = join(0);
    Region box = fabric->allocate({.name = "box", .bytes = 4096});
    fabric->announce(box);
    while (!fabric->connected(1, box.id())) poll_politely(*fabric);
    return use(fabric, box);
  });
}

/// By VRB-V2 the fabric forgets its callers before its queue pairs are destroyed.
TEST(VerbsDeath, OfTheFabricGivesNobodyResultsWhoMayBeGone) {
  SKIP_WITHOUT_A_DEVICE();
  with_a_box_at_a_peer([](std::unique_ptr<Fabric>& fabric, Region& box) {
    void* const page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 1;
    auto* const done = new (page) Completion;
    std::byte* const target = static_cast<std::byte*>(page) + 64;
    for (int i = 0; i < 8; ++i)
      if (!fabric->post(read(1, box.id(), 0, target, 64).notify(*done)).all()) return 2;
    munmap(page, 4096);
    box = Region();
    fabric.reset();
    return 0;
  });
}

TEST(VerbsDeath, OfChildrenThatRanAProgramTakesNothingFromTheDevice) {
  SKIP_WITHOUT_A_DEVICE();
  with_a_box_at_a_peer([](std::unique_ptr<Fabric>& fabric, const Region& box) {
    alignas(8) std::array<std::byte, 1000> sent{};
    alignas(8) std::array<std::byte, 1000> back{};
    for (unsigned round = 1; round <= 10; ++round) {
      sent.fill(static_cast<std::byte>(round));
      Completion done;
      if (!fabric->post(put(1, box.id(), 0, sent.data(), 1000).notify(done, Notify::remotely))
               .all())
        return 1;
      if (std::system("true") != 0) return 2;
      while (!done.finished()) poll_politely(*fabric);
      if (!fabric->post(read(1, box.id(), 0, back.data(), 1000).notify(done)).all()) return 3;
      if (std::system("true") != 0) return 4;
      while (!done.finished()) poll_politely(*fabric);
      if (done.failed() || back != sent) return 5;
    }
    return 0;
  });
}

}  // namespace
}  // namespace dunlin
