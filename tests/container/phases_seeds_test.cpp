#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "support/group_member.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Phases of pushes and of pops in the simulator, with the promises that fit them, while a member
/// crashes: CON-P2 and CON-Q7.
namespace dunlin {
namespace {

using container::QueueCore;
using remote::Status;

const std::uint64_t kPhaseSeeds = test::rounds(1'000);
constexpr std::uint32_t kPhases = 6;
constexpr std::uint32_t kMost = 4;  // elements of a call

struct PhasesSeen {
  std::uint64_t pushes = 0, full = 0, pops = 0, empty = 0, crashed = 0;
};

/// Elements of three lines, so that a torn one shows.
using WideElement = std::array<std::uint64_t, 14>;

struct PhasedMember : test::GroupMember {
  PhasedMember(Fabric& fabric, std::uint32_t capacity, Rank host)
      : GroupMember(fabric),
        containers(progress),
        queue(containers, {.name = "queue",
                           .element_bytes = sizeof(WideElement),
                           .capacity = capacity,
                           .host = host,
                           .style = Style::one_sided}) {}

  Containers containers;
  QueueCore queue;
  remote::Call<container::PoppedElements> call;
  bool is_under_way = false;
  std::uint32_t calls_left = 0;
  std::vector<std::uint64_t> pushed;  // by the call that is under way
};

class PhaseAuditor {
 public:
  PhaseAuditor(std::uint64_t seed, PhasesSeen& seen)
      : seen_(seen),
        draws_(seed),
        world_(network(), 2 + below(4), seed),
        gone_(world_.size()),
        capacity_(1 + below(12)),
        crash_at_(below(2 * kPhases)) {
    const Rank host = below(world_.size());
    for (Rank rank = 0; rank < world_.size(); ++rank) {
      members_.push_back(std::make_unique<PhasedMember>(world_.fabric(rank), capacity_, host));
      PhasedMember& member = *members_.back();
      world_.attach(rank, [this, &member] { return member.progress.poll() + step(member); });
    }
    host_ = host;
  }
  ~PhaseAuditor() {
    for (Rank rank = 0; rank < world_.size(); ++rank) world_.detach_all(rank);
    members_.clear();
  }
  PhaseAuditor(const PhaseAuditor&) = delete;
  PhaseAuditor& operator=(const PhaseAuditor&) = delete;

  void run() {
    for (phase_ = 0; phase_ < kPhases && !gone_[host_] && !testing::Test::HasFailure(); ++phase_) {
      pushing_ = phase_ % 2 == 0;
      drained_ = !pushing_ && below(2) == 0;
      for (Rank rank = 0; rank < world_.size(); ++rank) start(rank, 1 + below(drained_ ? 40 : 6));
      if (phase_ == crash_at_) crash_one();
      ASSERT_TRUE(world_.run_until([&] { return has_ended(); }, 1'000'000'000))
          << "CON-P3, CON-Q8: a call of phase " << phase_ << " hangs";
    }
    if (gone_[host_] || !members_[host_]->is_member()) return;
    pushing_ = false;
    take_the_rest();
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  sim::Profile network() {
    sim::Profile profile = test::unfavourable_network(draws_);
    profile.native_atomics = below(2) == 0;
    return profile;
  }
  /// The members that are left have ended their calls, and know who is gone: as behind a barrier.
  bool has_ended() {
    for (Rank rank = 0; rank < world_.size(); ++rank) {
      if (gone_[rank]) continue;
      const PhasedMember& member = *members_[rank];
      if (!member.is_member()) continue;
      if (member.is_under_way || member.calls_left > 0) return false;
      for (Rank other = 0; other < world_.size(); ++other)
        if (gone_[other] && member.progress.contains(other)) return false;
    }
    return true;
  }
  void crash_one() {
    world_.run_for(below(20'000));
    const Rank rank = below(world_.size());
    gone_[rank] = true;
    world_.crash(rank);
    ++seen_.crashed;
    PhasedMember& member = *members_[rank];
    if (!member.is_under_way) return;
    if (pushing_)
      unknown_.insert(member.pushed.begin(), member.pushed.end());
    else
      lost_ += kMost;  // the tickets that it had taken, at most
  }
  /// Pops until the queue is empty: CON-Q1 and CON-Q3.
  void take_the_rest() {
    drained_ = true;
    for (Rank rank = 0; rank < world_.size(); ++rank) start(rank, 1'000);
    ASSERT_TRUE(world_.run_until([&] { return has_ended(); }, 1'000'000'000))
        << "CON-P3: a pop hangs";
    std::uint64_t missing = 0;
    for (const std::uint64_t element : pushed_) missing += popped_.contains(element) ? 0 : 1;
    EXPECT_LE(missing, lost_) << "CON-Q7: elements are lost";
  }

  void start(Rank rank, std::uint32_t calls) {
    if (gone_[rank] || !members_[rank]->is_member()) return;
    PhasedMember& member = *members_[rank];
    member.calls_left = calls;
    world_.on(rank, [this, &member] { step(member); });
  }
  std::size_t step(PhasedMember& member) {
    if (member.is_under_way && !member.call.finished()) return 0;
    if (member.is_under_way) end(member);
    if (member.calls_left == 0) return 0;
    begin(member);
    return 1;
  }
  void begin(PhasedMember& member) {
    --member.calls_left;
    member.is_under_way = true;
    const std::uint32_t count = 1 + below(std::min(kMost, capacity_));
    if (!pushing_) {
      const Promise promise = below(4) == 0 ? Promise::both : Promise::reads;
      member.call = {member.progress, member.queue.pop(count, {.promise = promise})};
      return;
    }
    std::array<WideElement, kMost> elements{};
    member.pushed.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      elements.at(i).fill(++last_element_);
      member.pushed.push_back(last_element_);
    }
    const Promise promise = below(4) == 0 ? Promise::both : Promise::writes;
    member.call = {member.progress, member.queue.push(std::as_bytes(std::span(elements)).data(),
                                                      count, {.promise = promise})};
  }
  void end(PhasedMember& member) {
    member.is_under_way = false;
    const Status status = member.call.status();
    const bool has_ended_so =
        status == Status::ok || status == Status::full || status == Status::empty;
    EXPECT_TRUE(has_ended_so || status == Status::stopped || status == Status::lost)
        << remote::describe(status);
    if (pushing_) {
      if (status == Status::ok) pushed_.insert(member.pushed.begin(), member.pushed.end());
      if (!has_ended_so) unknown_.insert(member.pushed.begin(), member.pushed.end());
      ++(status == Status::ok ? seen_.pushes : seen_.full);
      return;
    }
    if (!has_ended_so) lost_ += kMost;
    if (status != Status::ok) {
      ++seen_.empty;
      if (drained_ || status != Status::empty) member.calls_left = 0;
      return;
    }
    ++seen_.pops;
    for (std::uint32_t i = 0; i < member.call.result().count; ++i) {
      WideElement element;
      std::memcpy(element.data(), member.call.result().elements + i * sizeof element,
                  sizeof element);
      for (const std::uint64_t word : element) EXPECT_EQ(word, element[0]) << "CON-S1: torn";
      EXPECT_TRUE(pushed_.contains(element[0]) || unknown_.contains(element[0]))
          << "CON-P2: nobody has pushed " << element[0];
      EXPECT_TRUE(popped_.insert(element[0]).second) << "CON-Q1: popped twice: " << element[0];
    }
  }

  PhasesSeen& seen_;
  test::Draws draws_;
  sim::World world_;
  std::vector<bool> gone_;
  std::uint32_t capacity_;
  std::uint32_t crash_at_;  // the phase
  Rank host_ = 0;
  std::uint32_t phase_ = 0;
  bool pushing_ = true;
  bool drained_ = false;  // each member pops until the queue is empty
  std::uint64_t last_element_ = 0;
  std::uint64_t lost_ = 0;
  std::set<std::uint64_t> pushed_, unknown_, popped_;
  std::vector<std::unique_ptr<PhasedMember>> members_;
};

TEST(PhasesInSimulator, LoseNoElementAndPopNoneTwice) {
  const test::Seeds seeds(kPhaseSeeds);
  PhasesSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { PhaseAuditor(seed, seen).run(); });
  for (const std::uint64_t count : {seen.pushes, seen.full, seen.pops, seen.empty, seen.crashed})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.pushes << " pushes, " << seen.full << " full, " << seen.pops << " pops, "
            << seen.empty << " empty, " << seen.crashed << " crashes\n";
}

}  // namespace
}  // namespace dunlin
