#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>

#include "container/clusters.hpp"
#include "container/histories.hpp"
#include "container/map_slot.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"
#include "support/troubles.hpp"

/// Random histories in the simulator of maps with fewer slots than keys, so that slots go from key
/// to key, windows are opened, and tables are added, while members crash and calls are given up.
/// All keys have one fingerprint: a slot's word tells none of them from another.
namespace dunlin {
namespace {

using container::MapCall;
using remote::Status;
using test::KeyHistory;

const std::uint64_t kChurnSeeds = test::rounds(1'000);

const std::vector<std::uint64_t>& alike_keys() {
  static const std::vector<std::uint64_t> all = [] {
    std::vector<std::uint64_t> found;
    for (std::uint64_t key = 0; found.size() < 48; ++key)
      if (container::fingerprint_of(container::hash_of(&key, sizeof key)) == 7)
        found.push_back(key);
    return found;
  }();
  return all;
}

struct TwoLines {
  std::array<std::uint64_t, 10> words;
};
void set_number(TwoLines& value, std::uint64_t number) { value.words.fill(number); }
void set_number(std::uint64_t& value, std::uint64_t number) { value = number; }
std::uint64_t number_of(const TwoLines& value) {
  for (const std::uint64_t word : value.words) EXPECT_EQ(word, value.words[0]) << "CON-S1: torn";
  return value.words[0];
}
std::uint64_t number_of(std::uint64_t value) { return value; }

struct ChurnSeen {
  std::uint64_t ended = 0, full = 0, half = 0, opened = 0;
};

template <class V>
struct ChurningMember : test::ContainerMember {
  using Map = HashMap<std::uint64_t, V>;
  ChurningMember(Fabric& fabric, std::uint64_t seed, const MapOptions& options)
      : ContainerMember(fabric), map(containers, options), draws(seed) {}
  Map map;
  test::Draws draws;
  typename Map::Operation call;
  MapCall which = MapCall::find;
  std::size_t key = 0, event = 0;
  bool in_call = false;
};

template <class V>
struct ChurnAuditor {
  ChurnAuditor(std::uint64_t seed, ChurnSeen& what)
      : seen(what),
        draws(seed),
        count(2 + draws.below(3)),
        world(test::unfavourable_network(draws), count, seed),
        gone(count) {
    options = {.name = "map", .style = static_cast<Style>(draws.below(3))};
    const std::uint32_t shape = draws.below(3);
    if (shape == 0) options.slots = 1 + draws.below(4);
    if (shape == 1) options.slots = 17;  // a window, and one more slot
    if (shape == 2) options.slots = 1, options.grow_to = 2 + draws.below(9);
    keys = shape == 1 ? 48 : 12 + draws.below(12);
    for (Rank rank = 0; rank < count; ++rank) {
      members.push_back(
          std::make_unique<ChurningMember<V>>(world.fabric(rank), seed * 83 + rank, options));
      ChurningMember<V>& member = *members.back();
      world.attach(rank, [this, &member] { return member.progress.poll() + step(member); });
    }
  }

  void run() {
    for (std::uint32_t troubles = draws.below(3); troubles > 0; --troubles) {
      world.run_for(1 + draws.below(200'000));
      test::trouble(world, draws, gone);
    }
    world.run_for(2'000'000);
    test::heal_all(world, count);
    stopping = true;
    const auto all_idle = [&] {
      for (Rank rank = 0; rank < count; ++rank)
        if (!gone[rank] && members[rank]->in_call) return false;
      return true;
    };
    EXPECT_TRUE(world.run_until(all_idle, 1'000'000'000)) << "CON-P4, CON-P5: a call hangs";
    world.run_for(1'000'000);  // what is mended
    for (std::size_t key = 0; key < keys; ++key)
      EXPECT_TRUE(histories.at(key).linearizable()) << "CON-P1: key " << alike_keys()[key] << "\n"
                                                    << histories.at(key).text();
    for (Rank rank = 0; rank < count; ++rank) {
      if (gone[rank]) continue;
      seen.opened += members[rank]->map.local_use().windows - 1;
      std::map<std::uint64_t, int> times;
      members[rank]->map.for_each_local([&](std::uint64_t key, const V&) { ++times[key]; });
      for (const auto& [key, found] : times) EXPECT_EQ(found, 1) << "CON-M2: key " << key;
    }
    for (auto& member : members) member->call = {};
  }

 private:
  std::size_t step(ChurningMember<V>& member) {
    if (member.in_call && !stopping && member.draws.below(300) == 0) member.call.abandon();
    if (member.in_call && !member.call.finished()) return 0;
    if (std::exchange(member.in_call, false)) end(member);
    if (stopping) return 0;
    member.key = member.draws.below(static_cast<std::uint32_t>(keys));
    member.which = static_cast<MapCall>(member.draws.below(5) % 4);  // more inserts than others
    KeyHistory& history = histories.at(member.key);
    if (history.full()) return 0;
    ++numbers;
    member.event = history.add({.call = member.which, .value = numbers, .begin = ++events});
    V value;
    set_number(value, numbers);
    const auto style = static_cast<Style>(member.draws.below(3));
    member.call =
        test::begin_call(member.map, member.which, alike_keys()[member.key], value, style);
    member.in_call = true;
    return 1;
  }

  void end(ChurningMember<V>& member) {
    test::KeyEvent& event = histories.at(member.key)[member.event];
    const Status status = member.call.status();
    if (status == Status::full || status == Status::half_written) {  // and has done nothing
      EXPECT_TRUE(status == Status::full ? container::takes_slot(member.which)
                                         : member.which == MapCall::find);
      ++(status == Status::full ? seen.full : seen.half);
      event.call = MapCall::find;
      return;
    }
    if (status != Status::ok) {
      EXPECT_TRUE(status == Status::lost || status == Status::stopped ||
                  status == Status::abandoned)
          << remote::describe(status);
      return;
    }
    ++seen.ended;
    event.found = member.call.result().found();
    event.end = ++events;
    const bool has_value =
        event.found && (event.call == MapCall::find || event.call == MapCall::insert);
    if (has_value) event.value = number_of(member.call.result().value());
  }

  ChurnSeen& seen;
  test::Draws draws;
  std::uint32_t count;
  sim::World world;
  std::vector<bool> gone;
  MapOptions options;
  std::size_t keys = 0;
  bool stopping = false;
  std::uint64_t events = 0, numbers = 0;
  std::array<KeyHistory, 48> histories;
  std::vector<std::unique_ptr<ChurningMember<V>>> members;
};

template <class V>
void audit_churn() {
  const test::Seeds seeds(kChurnSeeds);
  ChurnSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { ChurnAuditor<V>(seed, seen).run(); });
  std::cout << seen.ended << " calls have ended, " << seen.full << " full, " << seen.half
            << " half written, " << seen.opened << " windows were opened\n";
  for (const std::uint64_t count : {seen.ended, seen.full, seen.half, seen.opened})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
}

TEST(ChurningMapsInSimulator, AreLinearizableAndHaveNoKeyTwice) { audit_churn<std::uint64_t>(); }
TEST(ChurningMapsInSimulator, AreSoWithSlotsOfTwoLines) { audit_churn<TwoLines>(); }

}  // namespace
}  // namespace dunlin
