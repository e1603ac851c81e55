#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/container.hpp>
#include <dunlin/fabric/sim.hpp>

#include "container/clusters.hpp"
#include "container/histories.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Random histories in the simulator: members call a map whose long values lie in a pool, while
/// some crash, hang, pause, or are cut off, and some calls are abandoned.
namespace dunlin {
namespace {

using container::MapCall;
using remote::Status;
using test::KeyHistory;

const std::uint64_t kPoolSeeds = test::rounds(1'000);
constexpr std::uint32_t kPoolKeys = 4;
constexpr std::uint32_t kInlineWords = 3;  // in a slot
constexpr std::uint32_t kMostUnended = 8;  // of a key: the search for an order doubles with each

/// The number in each word, so many times: a few stay in the slot, and the others differ in size.
using PoolWords = std::vector<std::uint64_t>;
using PoolMap = HashMap<std::uint64_t, PoolWords>;

struct PoolAuditor;

struct PoolSeen {
  std::uint64_t calls = 0, long_values = 0, half = 0, no_room = 0, lost = 0, stopped = 0,
                abandoned = 0, counted = 0, unused = 0;
};

/// A member's program: a few calls at a time.
class PoolMember : public test::GroupMember {
 public:
  PoolMember(PoolAuditor& its_auditor, Rank its_rank, std::uint64_t seed);
  std::size_t step();
  void stop() { stopping_ = true; }
  void erase_each_key() { last_key_ = 0; }
  [[nodiscard]] bool has_erased() const { return last_key_ == kPoolKeys && idle(); }
  void close() {
    calls_.clear();
    map.reset();
    containers.reset();
  }
  [[nodiscard]] bool idle() const {
    return std::all_of(calls_.begin(), calls_.end(),
                       [](const Call& call) { return call.op.finished() && !call.runs; });
  }
  [[nodiscard]] std::size_t unknown_calls() const { return unknown_calls_; }

  PoolAuditor& auditor;
  Rank rank;
  std::unique_ptr<Containers> containers;
  std::unique_ptr<PoolMap> map;

 private:
  struct Call {
    PoolMap::Operation op;
    bool runs = false;
    MapCall call = MapCall::find;
    std::uint32_t key = 0;
    std::size_t event = 0;
  };
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  void begin(Call& call, MapCall kind, std::uint32_t key);
  void end(Call& call);

  test::Draws draws_;
  bool stopping_ = false;
  std::vector<Call> calls_;
  std::uint32_t last_key_ = kPoolKeys;
  std::uint64_t next_at_ns_ = 0;
  std::size_t unknown_calls_ = 0;  // under way, abandoned, lost or stopped
};

struct PoolAuditor {
  PoolAuditor(std::uint64_t seed, PoolSeen& what)
      : seen(what),
        draws(seed),
        count(2 + below(4)),
        world(test::unfavourable_network(draws), count, seed),
        gone(count) {
    style = std::array{Style::one_sided, Style::message, Style::automatic}.at(below(3));
    grows = seed % 3 == 0;
    is_narrow = seed % 5 == 0;
    patience = below(4) == 0 ? 20 : 300;
    if (below(2) == 0) first_trouble_ns = 6'000;  // amid the first inserts
    is_calm = seed % 4 == 1;
    for (Rank rank = 0; rank < count; ++rank) {
      members.push_back(std::make_unique<PoolMember>(*this, rank, seed * 97 + rank));
      PoolMember& member = *members.back();
      world.attach(rank, [&member] { return member.progress.poll() + member.step(); });
    }
  }

  void run() {
    for (std::uint32_t troubles = is_calm ? 0 : below(4); troubles > 0; --troubles) {
      world.run_for(1 + below(std::exchange(first_trouble_ns, 300'000)));
      test::trouble(world, draws, gone);
    }
    world.run_for(300'000);
    test::heal_all(world, count);
    for (const auto& member : members) member->stop();
    const bool all_ended = world.run_until([&] { return all_idle(); }, 1'000'000'000);
    for (Rank rank = 0; rank < count; ++rank)
      EXPECT_TRUE(all_ended || gone[rank] || members[rank]->idle())
          << "CON-P4, CON-P5: a call of member " << rank << " hangs, " << name_of(style);
    world.run_for(1'000'000);  // a call that was given up may change its key once more
    erase_each_key();
    for (std::uint32_t key = 0; key < kPoolKeys; ++key)
      EXPECT_TRUE(keys.at(key).linearizable()) << "CON-P1: " << name_of(style) << "\n"
                                               << keys.at(key).text();
    expect_no_blocks();
    for (const auto& member : members) member->close();
  }

  /// By a member that is left, and stays.
  void erase_each_key() {
    for (Rank rank = 0; rank < count; ++rank) {
      if (gone[rank] || !members[rank]->is_member()) continue;
      PoolMember& last = *members[rank];
      last.erase_each_key();
      world.on(rank, [&last] { last.step(); });
      const auto ended = [&] { return last.has_erased() || !last.is_member(); };
      EXPECT_TRUE(world.run_until(ended, 1'000'000'000)) << "CON-P4, CON-P5: the last call hangs";
      if (last.is_member()) return;
    }
  }

  /// Of a member that is gone, each call that did not end by itself leaves at most two blocks, and
  /// the last ones at each home that did may leave the former block: its free was on its way.
  void expect_no_blocks() {
    std::size_t left = 0;
    const auto settled = [&] {
      left = 0;
      for (Rank rank = 0; rank < count; ++rank)
        if (!gone[rank] && members[rank]->is_member())
          left += members[rank]->map->pool_use().blocks;
      return left == 0;
    };
    const bool is_empty = world.run_until(settled, 10'000'000);
    std::size_t most = 0;
    for (Rank rank = 0; rank < count; ++rank)
      if (gone[rank] || !members[rank]->is_member())
        most += 2 * members[rank]->unknown_calls() + count * kCallsAtOnce;
    EXPECT_LE(left, most) << "CON-V5: blocks that no value uses, " << name_of(style);
    ++seen.counted;
    seen.unused += is_empty ? 0 : left;
  }

  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && !members[rank]->idle()) return false;
    return true;
  }
  std::uint32_t below(std::uint32_t limit) { return draws.below(limit); }

  static constexpr std::size_t kCallsAtOnce = 2;  // of a member
  PoolSeen& seen;
  test::Draws draws;
  std::uint32_t count;
  sim::World world;
  std::vector<bool> gone;  // crashed or hung
  Style style = Style::automatic;
  std::uint32_t patience = 300;              // polls of a call, until it is abandoned
  std::uint32_t first_trouble_ns = 300'000;  // it comes before that
  bool grows = false;                        // from one slot a part
  bool is_narrow = false;                    // the pool
  bool is_calm = false;
  std::uint64_t events = 0, values = 0;
  std::array<KeyHistory, kPoolKeys> keys;
  std::array<std::uint32_t, kPoolKeys> unended{};
  std::vector<std::unique_ptr<PoolMember>> members;
};

PoolMember::PoolMember(PoolAuditor& its_auditor, Rank its_rank, std::uint64_t seed)
    : GroupMember(its_auditor.world.fabric(its_rank)),
      auditor(its_auditor),
      rank(its_rank),
      draws_(seed) {
  containers = std::make_unique<Containers>(progress);
  map = std::make_unique<PoolMap>(*containers,
                                  MapOptions{.name = "map",
                                             .slots = auditor.grows ? 1U : 12U,
                                             .style = auditor.style,
                                             .value_bytes = 8000,  // two of them in a slab
                                             .grow_to = auditor.grows ? 16U : 0U,
                                             .pool_bytes = auditor.is_narrow ? 45'000U : 500'000U,
                                             .inline_bytes = kInlineWords * 8});
  calls_.resize(PoolAuditor::kCallsAtOnce);
}

std::size_t PoolMember::step() {
  std::size_t done = 0;
  const std::uint64_t now = progress.fabric().now_ns();
  for (Call& call : calls_) {
    if (call.runs && !stopping_ && !call.op.finished() && below(auditor.patience) == 0 &&
        auditor.unended.at(call.key) < kMostUnended)
      call.op.abandon();
    if (call.runs && call.op.finished()) end(call), ++done;
    if (call.runs) continue;
    if (last_key_ < kPoolKeys) {
      begin(call, MapCall::erase, last_key_++), ++done;
    } else if (!stopping_ && now >= next_at_ns_) {
      const std::uint32_t key = below(kPoolKeys);
      if (!auditor.keys.at(key).full() && auditor.unended.at(key) < kMostUnended)
        begin(call, static_cast<MapCall>(below(4)), key), ++done;
    }
  }
  if (stopping_) return done;
  if (now >= next_at_ns_) next_at_ns_ = now + (below(2) == 0 ? 1 : 1 + below(10'000));
  progress.fabric().wake_at(next_at_ns_);
  return done;
}

void PoolMember::begin(Call& call, MapCall kind, std::uint32_t key) {
  call.call = kind;
  call.key = key;
  const std::uint64_t value = ++auditor.values;
  static constexpr std::array kLengths{1U, kInlineWords, kInlineWords + 1, 20U, 21U, 900U, 1000U};
  const PoolWords words(kLengths.at(below(kLengths.size())), value);
  call.event = auditor.keys.at(key).add({.call = kind, .value = value, .begin = ++auditor.events});
  call.runs = true;
  ++unknown_calls_;
  call.op = test::begin_call(*map, kind, key, words, static_cast<Style>(below(3)));
}

void PoolMember::end(Call& call) {
  call.runs = false;
  test::KeyEvent& event = auditor.keys.at(call.key)[call.event];
  PoolSeen& seen = auditor.seen;
  std::uint32_t& unended = auditor.unended.at(call.key);
  switch (call.op.status()) {
    case Status::ok:
      --unknown_calls_;
      break;
    case Status::half_written:
      ++seen.half;
      EXPECT_EQ(static_cast<int>(call.call), static_cast<int>(MapCall::find));
      return;
    case Status::no_room:  // and has changed nothing
      ++seen.no_room;
      EXPECT_TRUE(auditor.is_narrow);
      --unknown_calls_;
      event.call = MapCall::find;
      return;
    case Status::lost:
      ++seen.lost;
      ++unended;
      return;
    case Status::stopped:
      ++seen.stopped;
      ++unended;
      return;
    case Status::abandoned:
      ++seen.abandoned;
      ++unended;
      return;
    default:
      ADD_FAILURE() << remote::describe(call.op.status());
      return;
  }
  ++seen.calls;
  event.found = call.op.result().found();
  event.end = ++auditor.events;
  if (!event.found || (call.call != MapCall::find && call.call != MapCall::insert)) return;
  const PoolWords words = call.op.result().value();
  ASSERT_FALSE(words.empty()) << "CON-V3";
  for (const std::uint64_t word : words) ASSERT_EQ(word, words[0]) << "CON-V3: mixed";
  if (words.size() > kInlineWords) ++seen.long_values;
  event.value = words[0];
}

TEST(PooledValuesInSimulator, AreKeptWhateverHappens) {
  const test::Seeds seeds(kPoolSeeds);
  PoolSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { PoolAuditor(seed, seen).run(); });
  for (const std::uint64_t count : {seen.calls, seen.long_values, seen.no_room, seen.lost,
                                    seen.stopped, seen.abandoned, seen.counted})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.calls << " calls, " << seen.long_values << " long values found, " << seen.half
            << " half written, " << seen.no_room << " without room, " << seen.lost << " lost, "
            << seen.stopped << " stopped, " << seen.abandoned << " abandoned, " << seen.counted
            << " pools counted, " << seen.unused << " blocks of the dead\n";
}

/// A reader that stands still between the slot and the block, for as long as it takes.
TEST(PooledValuesInSimulator, AreReadAnewIfTheirBlockWasUsedMeanwhile) {
  std::uint64_t of_later = 0;
  for (std::uint64_t at_ns = 0; at_ns < 6'000; at_ns += 100) {
    test::SimContainers cluster(sim::profile("ib100"), 3);
    std::vector<std::unique_ptr<PoolMap>> maps;
    for (Rank rank = 0; rank < 3; ++rank)
      maps.push_back(std::make_unique<PoolMap>(
          cluster[rank], MapOptions{.name = "map",
                                    .slots = 12,
                                    .style = Style::one_sided,
                                    .value_bytes = 8000,  // two of them in a slab
                                    .pool_bytes = 100'000}));
    std::uint64_t key = 0;
    while (maps[0]->home_of(key) != 1) ++key;
    std::uint64_t other = key + 1;
    while (maps[0]->home_of(other) != 1) ++other;
    std::uint64_t value = 0;
    const auto assign = [&](std::uint64_t to) {
      EXPECT_EQ(cluster.end_of(maps[2]->assign(to, PoolWords(1000, to * 1000 + ++value))),
                Status::ok);
    };
    assign(key);
    assign(other);
    auto find = maps[0]->find(key);
    cluster.world.run_for(at_ns);
    cluster.world.pause(0, 200'000);
    assign(key);
    for (std::uint64_t i = 0; i < 3 + at_ns / 100 % 4; ++i) assign(other);
    ASSERT_EQ(cluster.end_of(find), Status::ok);
    const PoolWords words = find.result().value();
    ASSERT_EQ(words.size(), 1000U) << "CON-V3";
    for (const std::uint64_t word : words) ASSERT_EQ(word, words[0]) << "CON-V3: mixed";
    ASSERT_EQ(words[0] / 1000, key) << "CON-V3: of another key";
    of_later += words[0] % 1000 > 1 ? 1 : 0;
  }
  EXPECT_GT(of_later, 0U);
}

}  // namespace
}  // namespace dunlin
