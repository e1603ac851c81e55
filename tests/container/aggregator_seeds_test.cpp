#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "support/group_member.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Members of random groups in the simulator push to each other and flush, with handlers that take
/// a part of a batch at a time, while some members crash, pause, or are cut off.
namespace dunlin {
namespace {

using container::Handled;
using remote::Status;

const std::uint64_t kAggregatorSeeds = test::rounds(200);

struct AggregatorAuditor;

struct AggregatorsSeen {
  std::uint64_t pushed = 0, taken = 0, in_parts = 0, flushed = 0, lost = 0, complete = 0;
};

struct Element {  // of some lines, so that a batch takes a while
  std::array<std::uint64_t, 10> words;
};

/// A member: its element number n for a target has n in all words.
class AuditedOrigin : public test::GroupMember {
 public:
  AuditedOrigin(AggregatorAuditor& its_auditor, Rank its_rank, std::uint64_t seed);
  std::size_t step();
  void will_flush() {
    flushing_ = true;
    flush_ = {};
  }
  void stop() { stopping_ = true; }
  [[nodiscard]] bool idle() const { return !flushing_; }
  [[nodiscard]] bool has_flushed() const { return flush_.status() == Status::ok; }
  [[nodiscard]] bool sees(Rank other) const {
    return progress.members().contains(other) && !progress.fabric().failed(other);
  }
  [[nodiscard]] bool sees_all() const;

 private:
  Handled take(Rank from, std::span<const Element> elements);
  void begin_flush();
  void end_flush();
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }

  AggregatorAuditor& auditor_;
  Rank rank_;
  test::Draws draws_;
  std::vector<std::uint64_t> pushed_;  // to each member
  std::vector<std::uint64_t> before_flush_;
  std::vector<std::uint64_t> taken_;  // from each member
  bool stopping_ = false, flushing_ = false;

 public:
  std::unique_ptr<Containers> containers;
  std::unique_ptr<Aggregator<Element>> aggregator;
  std::uint64_t refused = 0;  // of all elements that this member has taken

 private:
  remote::Call<Status> flush_;
};

struct AggregatorAuditor {
  AggregatorAuditor(std::uint64_t seed, AggregatorsSeen& what)
      : seen(what),
        draws(seed),
        count(2 + below(3)),
        world(test::unfavourable_network(draws), count, seed),
        gone(count) {
    options = {.name = "elements", .elements = 1 + below(6), .batches = 1 + below(3)};
    for (Rank rank = 0; rank < count; ++rank) {
      members.push_back(std::make_unique<AuditedOrigin>(*this, rank, seed * 89 + rank));
      AuditedOrigin& member = *members.back();
      world.attach(rank, [&member] { return member.progress.poll() + member.step(); });
    }
  }

  void run() {
    for (std::uint32_t troubles = below(3); troubles > 0; --troubles) {
      world.run_for(1 + below(100'000));
      test::trouble(world, draws, gone);
    }
    world.run_for(100'000);
    test::heal_all(world, count);
    for (const auto& member : members) member->stop();
    EXPECT_TRUE(world.run_until([&] { return all_idle(); }, 1'000'000'000))
        << "CON-P4: a flush hangs";
    for (Rank rank = 0; rank < count; ++rank) {
      if (gone[rank]) continue;
      members[rank]->will_flush();
      world.on(rank, [this, rank] { members[rank]->step(); });
    }
    EXPECT_TRUE(world.run_until([&] { return all_idle(); }, 1'000'000'000))
        << "CON-P4: the last flush hangs";
    const bool none_is_gone = std::ranges::none_of(gone, [](bool one) { return one; });
    if (none_is_gone && std::ranges::all_of(members, [](const auto& member) {
          return member->sees_all() && member->has_flushed();
        }))
      check_refused();
  }

  void check_refused() {
    ++seen.complete;
    std::uint64_t told = 0, refused = 0;
    for (const auto& member : members) {
      told += member->aggregator->refused();
      refused += member->refused;
    }
    EXPECT_EQ(told, refused) << "CON-B2: refused elements";
  }

  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && members[rank]->is_member() && !members[rank]->idle()) return false;
    return true;
  }

  std::uint32_t below(std::uint32_t limit) { return draws.below(limit); }

  AggregatorsSeen& seen;
  test::Draws draws;
  std::uint32_t count;
  sim::World world;
  std::vector<bool> gone;  // crashed or hung
  AggregatorOptions options;
  std::vector<std::unique_ptr<AuditedOrigin>> members;
};

AuditedOrigin::AuditedOrigin(AggregatorAuditor& its_auditor, Rank its_rank, std::uint64_t seed)
    : GroupMember(its_auditor.world.fabric(its_rank)),
      auditor_(its_auditor),
      rank_(its_rank),
      draws_(seed),
      pushed_(auditor_.count),
      taken_(auditor_.count) {
  containers = std::make_unique<Containers>(progress);
  aggregator = std::make_unique<Aggregator<Element>>(
      *containers, auditor_.options,
      [this](Rank from, std::span<const Element> elements) { return take(from, elements); });
}

bool AuditedOrigin::sees_all() const {
  for (Rank other = 0; other < auditor_.count; ++other)
    if (!is_member() || !sees(other)) return false;
  return true;
}

std::size_t AuditedOrigin::step() {
  if (flushing_ && !flush_.begun()) begin_flush();
  if (flushing_ && flush_.finished()) end_flush();
  if (stopping_) return 0;
  std::size_t done = 0;
  for (std::uint32_t pushes = below(4); pushes > 0; --pushes) {
    const Rank to = below(auditor_.count);
    Element element;
    element.words.fill(pushed_[to] + 1);
    if (!aggregator->push(to, element)) continue;
    ++pushed_[to];
    ++auditor_.seen.pushed;
    ++done;
  }
  if (!flushing_ && below(20) == 0) begin_flush();
  progress.fabric().wake_at(progress.fabric().now_ns() + 1 + below(4'000));
  return done;
}

/// Some of the elements, or none; and some of these are refused.
Handled AuditedOrigin::take(Rank from, std::span<const Element> elements) {
  const std::size_t most = elements.size();
  const std::size_t takes = below(2) == 0 ? most : below(static_cast<std::uint32_t>(most) + 1);
  Handled handled{.taken = takes};
  for (const Element& element : elements.first(takes)) {
    ++taken_[from];
    for (const std::uint64_t word : element.words)
      EXPECT_EQ(word, taken_[from]) << "CON-B1: another element than the next";
    handled.refused += below(8) == 0 ? 1 : 0;
  }
  refused += handled.refused;
  auditor_.seen.taken += takes;
  auditor_.seen.in_parts += takes < most ? 1 : 0;
  return handled;
}

void AuditedOrigin::begin_flush() {
  before_flush_ = pushed_;
  flush_ = aggregator->begin_flush();
  flushing_ = true;
}

void AuditedOrigin::end_flush() {
  flushing_ = false;
  if (flush_.status() != Status::ok) {
    EXPECT_TRUE(flush_.status() == Status::lost || flush_.status() == Status::stopped)
        << remote::describe(flush_.status());
    ++auditor_.seen.lost;
    return;
  }
  ++auditor_.seen.flushed;
  for (Rank to = 0; to < auditor_.count; ++to)
    EXPECT_TRUE(!sees(to) || auditor_.members[to]->taken_[rank_] >= before_flush_[to])
        << "CON-B2: a flush ended, and not all that was pushed before it is taken";
}

/// Members die meanwhile, so the auditor checks CON-B3, too.
TEST(AggregatorsInSimulator, LoseAndDoubleNothingWhateverHappens) {
  const test::Seeds seeds(kAggregatorSeeds);
  AggregatorsSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { AggregatorAuditor(seed, seen).run(); });
  for (const std::uint64_t count :
       {seen.taken, seen.in_parts, seen.flushed, seen.lost, seen.complete})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.pushed << " pushed, " << seen.taken << " taken, " << seen.in_parts
            << " batches in parts, " << seen.flushed << " flushes, " << seen.lost << " lost, "
            << seen.complete << " groups complete\n";
}

}  // namespace
}  // namespace dunlin
