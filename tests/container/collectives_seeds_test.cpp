#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "container/clusters.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Members that meet in the simulator: what their calls post, and what becomes of these when
/// members die at any moment.
namespace dunlin {
namespace {

using container::CollectiveKind;
using container::CollectiveOutcome;
using remote::Status;

constexpr std::array kKinds{CollectiveKind::barrier, CollectiveKind::all_reduce,
                            CollectiveKind::broadcast, CollectiveKind::gather,
                            CollectiveKind::all_gather};

/// CON-L5, and what the page says of costs.
TEST(CollectivesInSimulator, PostAsManyOperationsAsTheirTreesHaveEdges) {
  for (const std::uint32_t members : {1U, 2U, 3U, 4U, 7U, 16U, 100U, test::rounds(1024)}) {
    test::SimContainers cluster(sim::profile("ib100"), members);
    std::vector<std::unique_ptr<Collectives>> teams;
    for (Rank rank = 0; rank < members; ++rank)
      teams.push_back(std::make_unique<Collectives>(
          cluster[rank], CollectivesOptions{.name = "team", .bytes = std::max(8 * members, 64U)}));
    std::vector<std::vector<std::uint64_t>> all(members, std::vector<std::uint64_t>(members));
    const auto posted_by = [&](const auto& begin) {
      const std::uint64_t before = cluster.world.operations();
      std::vector<decltype(begin(Rank{0}))> calls;
      for (Rank rank = 0; rank < members; ++rank) calls.push_back(begin(rank));
      for (auto& call : calls) EXPECT_EQ(cluster.end_of(call), Status::ok);
      return cluster.world.operations() - before;
    };
    const auto barrier = [&](Rank rank) { return teams[rank]->barrier(); };
    posted_by(barrier);  // the regions are connected then
    EXPECT_EQ(posted_by(barrier), members * std::bit_width(members - 1)) << members;
    const bool doubles = std::has_single_bit(members);
    EXPECT_EQ(posted_by([&](Rank rank) { return teams[rank]->all_reduce(rank, std::plus<>()); }),
              doubles ? members * std::bit_width(members - 1) : 2 * (members - 1));
    std::vector<std::array<std::uint64_t, 8>> lines(members);
    EXPECT_EQ(posted_by([&](Rank rank) {
                return teams[rank]->all_reduce(std::span(lines[rank]), std::plus<>());
              }),
              4 * (members - 1))
        << "a message of more than a line takes two operations";
    const Rank root = members / 2;
    EXPECT_EQ(posted_by([&](Rank rank) { return teams[rank]->broadcast(root, rank); }),
              members - 1);
    const auto gather = [&](Rank rank) {
      return teams[rank]->gather(root, std::uint64_t{rank}, all[rank]);
    };
    const std::uint64_t gathered = posted_by(gather);
    EXPECT_GE(gathered, members - 1);  // a message of more than a line takes two operations
    EXPECT_LE(gathered, 2 * (members - 1));
    EXPECT_EQ(all[root].back(), members - 1);
  }
}

// --- an audit ------------------------------------------------------------------------------------

struct Element {
  std::uint64_t factor = 1, term = 0;
  std::array<std::uint64_t, 6> more{};  // a line and more
  friend bool operator==(const Element&, const Element&) = default;
};
constexpr auto kOneThenOther = [](const Element& first, const Element& then) {
  Element both{first.factor * then.factor, then.factor * first.term + then.term, {}};
  both.more.fill(both.term);
  return both;
};

/// Less than a line.
struct Pair {
  std::uint64_t factor = 1, term = 0;
};
constexpr auto kOnePairThenOther = [](const Pair& first, const Pair& then) {
  return Pair{first.factor * then.factor, then.factor * first.term + then.term};
};

/// A set, as the auditor knows it: its members, and how often they have made it.
using SetName = std::pair<std::vector<Rank>, std::uint32_t>;

struct Seen {
  std::uint64_t ok = 0, lost = 0, given_up = 0, sets = 0;
};

struct Auditor;

class MeetingMember : public test::ContainerMember {
 public:
  MeetingMember(Auditor& auditor, Rank rank, std::uint64_t seed)
      : ContainerMember(fabric_of(auditor, rank)), auditor_(auditor), rank_(rank), draws_(seed) {}
  std::size_t step();
  void make();
  void close() {
    call_ = {};
    reduced_ = {};
    pair_ = {};
    team_.reset();
  }
  [[nodiscard]] bool has_met(std::uint64_t calls) const {
    return calls_ >= calls && team_->size() == 1 + others_left_;
  }
  void expect_members(std::uint32_t left) { others_left_ = left - 1; }
  [[nodiscard]] std::string state() const { return team_->describe(); }

 private:
  static Fabric& fabric_of(Auditor& auditor, Rank rank);
  void begin();
  void end();
  [[nodiscard]] bool finished() const {
    return call_.finished() && reduced_.finished() && pair_.finished();
  }

  Auditor& auditor_;
  Rank rank_;
  test::Draws draws_;
  std::optional<Collectives> team_;
  SetName set_;
  std::uint64_t calls_ = 0;  // ended
  std::uint32_t others_left_ = UINT32_MAX - 1;
  bool in_call_ = false;
  std::uint64_t next_at_ns_ = 0;
  CollectiveKind kind_ = CollectiveKind::barrier;
  Rank root_ = 0;
  bool is_short_ = false;                 // what is reduced
  remote::Call<CollectiveOutcome> call_;  // of the three, one is under way at most
  remote::Call<Collected<Element>> reduced_;
  remote::Call<Collected<Pair>> pair_;
  std::vector<Element> values_;
};

struct Auditor {
  Auditor(std::uint64_t seed, Seen& what)
      : seen(what),
        draws(seed),
        count(1 + draws.below(6)),
        world(test::unfavourable_network(draws), count, seed),
        gone(count),
        number(seed) {
    for (Rank rank = 0; rank < count; ++rank) {
      members.push_back(std::make_unique<MeetingMember>(*this, rank, seed * 89 + rank));
      MeetingMember& member = *members.back();
      member.make();
      world.attach(rank, [&member] { return member.progress.poll() + member.step(); });
    }
  }

  void run() {
    for (std::uint32_t troubles = draws.below(4); troubles > 0; --troubles) {
      world.run_for(1 + draws.below(draws.below(2) == 0 ? 10'000 : 300'000));
      test::trouble(world, draws, gone);
    }
    world.run_for(300'000);
    test::heal_all(world, count);
    gives_up = false;
    // Those that are left make sets until one has all of them, and meet there.
    const bool all_meet = world.run_until([&] { return all_have_met(); }, 2'000'000'000);
    EXPECT_TRUE(all_meet) << "CON-L4: a call hangs" << states();
    for (Rank rank = 0; rank < count; ++rank) world.detach_all(rank);
    for (const auto& member : members) member->close();
  }

  bool all_have_met() {
    std::uint32_t left = 0;
    for (Rank rank = 0; rank < count; ++rank)
      left += !gone[rank] && members[rank]->is_member() ? 1 : 0;
    for (Rank rank = 0; rank < count; ++rank) {
      if (gone[rank] || !members[rank]->is_member()) continue;
      members[rank]->expect_members(left);
      if (!members[rank]->has_met(6)) return false;
    }
    return true;
  }
  std::string states() {
    std::string all;
    for (Rank rank = 0; rank < count; ++rank)
      all += "\n  " + std::to_string(rank) + (gone[rank] ? " gone" : "") +
             (members[rank]->is_member() ? " " : " no member ") + members[rank]->state();
    return all;
  }

  Seen& seen;
  test::Draws draws;
  std::uint32_t count;
  sim::World world;
  std::vector<bool> gone;  // crashed or hung
  std::uint64_t number;
  bool gives_up = true;
  std::map<std::vector<Rank>, std::vector<std::uint32_t>> made;  // by each
  std::map<std::pair<SetName, std::uint64_t>, std::set<Rank>> begun;
  std::vector<std::unique_ptr<MeetingMember>> members;
};

Fabric& MeetingMember::fabric_of(Auditor& auditor, Rank rank) { return auditor.world.fabric(rank); }

Element value_of(Rank rank, std::uint64_t call) {
  Element element{2 * rank + 3, rank + call, {}};
  element.more.fill(element.term);
  return element;
}

void MeetingMember::make() {
  team_.reset();
  team_.emplace(containers, CollectivesOptions{.name = "team", .bytes = 1 << 14});
  set_.first.assign(team_->members().begin(), team_->members().end());
  std::vector<std::uint32_t>& made = auditor_.made[set_.first];
  made.resize(auditor_.count);
  set_.second = ++made[rank_];
  calls_ = 0;
  ++auditor_.seen.sets;
}

std::size_t MeetingMember::step() {
  if (!is_member()) return 0;
  if (in_call_ && finished()) {
    end();
    return 1;
  }
  if (in_call_) {
    // Not before all have made the set: who makes it later would wait for ever.
    bool all_made = true;
    for (const Rank rank : set_.first) all_made &= auditor_.made[set_.first][rank] >= set_.second;
    if (!auditor_.gives_up || !all_made || draws_.below(400) != 0) return 0;
    call_.abandon();
    reduced_.abandon();
    pair_.abandon();
    ++auditor_.seen.given_up;
    in_call_ = false;
    make();
    return 1;
  }
  const std::uint64_t now = progress.fabric().now_ns();
  if (now < next_at_ns_) {
    progress.fabric().wake_at(next_at_ns_);
    return 0;
  }
  begin();
  next_at_ns_ = now + (draws_.below(2) == 0 ? 0 : draws_.below(5'000));
  return 1;
}

/// What the members call is a function of the seed and the call's number.
void MeetingMember::begin() {
  test::Draws what(auditor_.number * 1'000 + calls_ / 3);
  kind_ = kKinds.at(what.below(kKinds.size()));
  root_ = set_.first[what.below(static_cast<std::uint32_t>(set_.first.size()))];
  is_short_ = kind_ == CollectiveKind::all_reduce && what.below(2) == 0;
  auditor_.begun[{set_, calls_}].insert(rank_);
  in_call_ = true;
  const Element mine = value_of(rank_, calls_);
  values_.assign(set_.first.size(), {});
  switch (kind_) {
    case CollectiveKind::barrier:
      call_ = team_->barrier();
      return;
    case CollectiveKind::all_reduce:
      if (is_short_)
        pair_ = team_->all_reduce(Pair{mine.factor, mine.term}, kOnePairThenOther);
      else
        reduced_ = team_->all_reduce(mine, kOneThenOther);
      return;
    case CollectiveKind::broadcast:
      reduced_ = team_->broadcast(root_, mine);
      return;
    case CollectiveKind::gather:
      call_ = team_->gather(root_, mine, values_);
      return;
    case CollectiveKind::all_gather:
      call_ = team_->all_gather(mine, values_);
      return;
  }
}

void MeetingMember::end() {
  in_call_ = false;
  const bool has_value = kind_ == CollectiveKind::all_reduce || kind_ == CollectiveKind::broadcast;
  const Status of_value = is_short_ ? pair_.status() : reduced_.status();
  const Status status = has_value ? of_value : call_.status();
  if (status != Status::ok) {
    EXPECT_EQ(status, Status::lost);
    EXPECT_EQ(team_->barrier().status(), Status::lost) << "CON-L4: the set is over";
    ++auditor_.seen.lost;
    return make();
  }
  ++auditor_.seen.ok;
  const std::set<Rank>& begun = auditor_.begun[{set_, calls_}];
  std::vector<Element> given;
  for (const Rank rank : set_.first) given.push_back(value_of(rank, calls_));
  if (kind_ != CollectiveKind::broadcast && kind_ != CollectiveKind::gather) {
    EXPECT_EQ(begun.size(), set_.first.size()) << "CON-L1: not all have begun call " << calls_;
  }
  if (kind_ == CollectiveKind::all_reduce) {
    Element all = given.front();
    for (std::size_t i = 1; i < given.size(); ++i) all = kOneThenOther(all, given[i]);
    if (is_short_) {
      EXPECT_EQ(pair_.result().value().factor, all.factor) << "CON-L2";
      EXPECT_EQ(pair_.result().value().term, all.term) << "CON-L2";
    } else {
      EXPECT_EQ(reduced_.result().value(), all) << "CON-L2";
    }
  }
  if (kind_ == CollectiveKind::broadcast) {
    EXPECT_EQ(reduced_.result().value(), value_of(root_, calls_)) << "CON-L3";
  }
  if (kind_ == CollectiveKind::all_gather || (kind_ == CollectiveKind::gather && root_ == rank_)) {
    EXPECT_EQ(values_, given) << "CON-L3";
  }
  ++calls_;
}

TEST(CollectivesInSimulator, KeepTheirPromisesWhateverHappens) {
  const test::Seeds seeds(test::rounds(1'000));
  Seen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { Auditor(seed, seen).run(); });
  for (const std::uint64_t count : {seen.ok, seen.lost, seen.given_up})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.ok << " calls ok, " << seen.lost << " lost, " << seen.given_up << " given up, "
            << seen.sets << " sets made\n";
}

// --- deaths at each moment -----------------------------------------------------------------------

/// Members of a group that make the same calls of one kind, until one of them dies.
struct DyingMembers {
  static constexpr std::uint32_t kMembers = 5;

  explicit DyingMembers(CollectiveKind its_kind)
      : kind(its_kind), world(sim::profile("ib100"), kMembers, 1) {
    for (Rank rank = 0; rank < kMembers; ++rank) {
      members.push_back(std::make_unique<test::ContainerMember>(world.fabric(rank)));
      teams.push_back(
          std::make_unique<Collectives>(members[rank]->containers, CollectivesOptions{"team"}));
      values.emplace_back(kMembers);
      calls.emplace_back();
      world.attach(rank, [this, rank] { return members[rank]->containers.poll() + step(rank); });
    }
  }
  ~DyingMembers() {
    for (Rank rank = 0; rank < kMembers; ++rank) world.detach_all(rank);
    calls.clear();
    teams.clear();
    members.clear();
  }

  std::size_t step(Rank rank) {
    if (!calls[rank].finished() || statuses[rank] != Status::ok) return 0;
    statuses[rank] = calls[rank].status();
    ends[rank] += statuses[rank] == Status::ok ? 1 : 0;
    if (statuses[rank] == Status::ok) begin(rank);
    return 1;
  }
  void begin(Rank rank) {
    Collectives& team = *teams[rank];
    const std::span<std::uint64_t> all(values[rank]);
    if (kind == CollectiveKind::barrier) calls[rank] = team.barrier();
    if (kind == CollectiveKind::all_reduce) calls[rank] = team.all_reduce(all, std::plus<>());
    if (kind == CollectiveKind::broadcast) calls[rank] = team.broadcast(team.members()[1], all);
    if (kind == CollectiveKind::gather) calls[rank] = team.gather(team.members()[1], all[0], all);
    if (kind == CollectiveKind::all_gather) calls[rank] = team.all_gather(all[0], all);
  }
  bool all_left(Rank dead, const std::function<bool(Rank)>& condition) {
    for (Rank rank = 0; rank < kMembers; ++rank)
      if (rank != dead && !condition(rank)) return false;
    return true;
  }

  CollectiveKind kind;
  sim::World world;
  std::vector<std::unique_ptr<test::ContainerMember>> members;
  std::vector<std::unique_ptr<Collectives>> teams;
  std::vector<std::vector<std::uint64_t>> values;
  std::array<Status, kMembers> statuses{Status::ok, Status::ok, Status::ok, Status::ok, Status::ok};
  std::array<std::uint64_t, kMembers> ends{};
  std::vector<remote::Call<CollectiveOutcome>> calls;
};

/// Some microseconds are several calls.
TEST(CollectivesInSimulator, EndLostAtWhateverMomentAMemberDies) {
  constexpr std::uint64_t kMomentNs = 157;
  const std::uint32_t moments = test::rounds(200);
  for (const CollectiveKind kind : kKinds)
    for (std::uint32_t moment = 0; moment < moments; ++moment) {
      const Rank dead = moment % DyingMembers::kMembers;
      DyingMembers all(kind);
      all.world.run_for(30'000 + moment * kMomentNs);
      all.world.crash(dead);
      const auto ended_lost = [&](Rank rank) { return all.statuses.at(rank) == Status::lost; };
      ASSERT_TRUE(
          all.world.run_until([&] { return all.all_left(dead, ended_lost); }, 1'000'000'000))
          << "CON-L4: a call hangs: " << static_cast<int>(kind) << ", moment " << moment;
      for (Rank rank = 0; rank < DyingMembers::kMembers; ++rank)
        for (Rank other = 0; other < rank && kind == CollectiveKind::barrier; ++other)
          EXPECT_LE(std::max(all.ends.at(rank), all.ends.at(other)),
                    std::min(all.ends.at(rank), all.ends.at(other)) + 1);
      // Those that are left know of the death, or will; and make a set without the dead one.
      const auto knows = [&](Rank rank) { return !all.members[rank]->progress.contains(dead); };
      ASSERT_TRUE(all.world.run_until([&] { return all.all_left(dead, knows); }, 1'000'000'000));
      for (Rank rank = 0; rank < DyingMembers::kMembers; ++rank) {
        if (rank == dead) continue;
        EXPECT_EQ(all.teams[rank]->barrier().status(), Status::lost);
        all.teams[rank] = nullptr;
        all.teams[rank] = std::make_unique<Collectives>(all.members[rank]->containers,
                                                        CollectivesOptions{"team"});
        EXPECT_EQ(all.teams[rank]->size(), DyingMembers::kMembers - 1);
        all.ends.at(rank) = 0;
        all.statuses.at(rank) = Status::ok;
        all.begin(rank);
      }
      const auto has_met = [&](Rank rank) { return all.ends.at(rank) >= 3; };
      ASSERT_TRUE(all.world.run_until([&] { return all.all_left(dead, has_met); }, 1'000'000'000));
    }
}

}  // namespace
}  // namespace dunlin
