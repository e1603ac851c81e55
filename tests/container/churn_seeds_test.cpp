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

void set_number(std::uint64_t& value, std::uint64_t number) { value = number; }
std::uint64_t number_of(std::uint64_t value) { return value; }

/// A key that two lines of a slot hold, of which the second tells it from others.
struct LongKey {
  std::array<std::uint64_t, 8> words;
};
void set_number(LongKey& key, std::uint64_t number) { key.words = {0, 0, 0, 0, 0, 0, 0, number}; }
std::uint64_t number_of(const LongKey& key) { return key.words[7]; }

template <class K>
const std::vector<K>& alike_keys() {
  static const std::vector<K> all = [] {
    std::vector<K> found;
    for (std::uint64_t number = 0; found.size() < 48; ++number) {
      K key{};
      set_number(key, number);
      if (container::fingerprint_of(container::hash_of(&key, sizeof key)) == 7)
        found.push_back(key);
    }
    return found;
  }();
  return all;
}

struct TwoLines {
  std::array<std::uint64_t, 10> words;
};
void set_number(TwoLines& value, std::uint64_t number) { value.words.fill(number); }
std::uint64_t number_of(const TwoLines& value) {
  for (const std::uint64_t word : value.words) EXPECT_EQ(word, value.words[0]) << "CON-S1: torn";
  return value.words[0];
}

struct ChurnSeen {
  std::uint64_t ended = 0, full = 0, half = 0, opened = 0;
};

template <class K, class V>
struct ChurningMember : test::ContainerMember {
  using Map = HashMap<K, V>;
  ChurningMember(Fabric& fabric, std::uint64_t seed, const MapOptions& options)
      : ContainerMember(fabric), map(containers, options), draws(seed) {}
  Map map;
  test::Draws draws;
  typename Map::Operation call;
  MapCall which = MapCall::find;
  std::size_t key = 0, event = 0;
  bool in_call = false;
};

template <class K, class V>
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
          std::make_unique<ChurningMember<K, V>>(world.fabric(rank), seed * 83 + rank, options));
      ChurningMember<K, V>& member = *members.back();
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
      EXPECT_TRUE(histories.at(key).linearizable())
          << "CON-P1: key " << number_of(alike_keys<K>()[key]) << "\n"
          << histories.at(key).text();
    for (Rank rank = 0; rank < count; ++rank) {
      if (gone[rank]) continue;
      seen.opened += members[rank]->map.local_use().windows - 1;
      std::map<std::uint64_t, int> times;
      members[rank]->map.for_each_local([&](const K& key, const V&) { ++times[number_of(key)]; });
      for (const auto& [key, found] : times) EXPECT_EQ(found, 1) << "CON-M2: key " << key;
    }
    for (auto& member : members) member->call = {};
  }

 private:
  std::size_t step(ChurningMember<K, V>& member) {
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
        test::begin_call(member.map, member.which, alike_keys<K>()[member.key], value, style);
    member.in_call = true;
    return 1;
  }

  void end(ChurningMember<K, V>& member) {
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
  std::vector<std::unique_ptr<ChurningMember<K, V>>> members;
};

template <class K, class V>
void audit_churn() {
  const test::Seeds seeds(kChurnSeeds);
  ChurnSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { ChurnAuditor<K, V>(seed, seen).run(); });
  std::cout << seen.ended << " calls have ended, " << seen.full << " full, " << seen.half
            << " half written, " << seen.opened << " windows were opened\n";
  for (const std::uint64_t count : {seen.ended, seen.full, seen.half, seen.opened})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
}

TEST(ChurningMapsInSimulator, AreLinearizableAndHaveNoKeyTwice) {
  audit_churn<std::uint64_t, std::uint64_t>();
}
TEST(ChurningMapsInSimulator, AreSoWithSlotsOfTwoLines) { audit_churn<LongKey, TwoLines>(); }

/// A part of 64 slots, in which two windows of 16 slots are full but for one erased slot, and two
/// members that insert the same key. One of them is held up after a number of events.
struct HeldUpInsert {
  using Map = HashMap<std::uint64_t, std::uint64_t>;
  static constexpr std::uint32_t kSlots = 64;
  HeldUpInsert() {
    for (Rank rank = 0; rank < 3; ++rank) {
      members.push_back(std::make_unique<test::ContainerMember>(world.fabric(rank)));
      test::ContainerMember& member = *members.back();
      maps.push_back(std::make_unique<Map>(member.containers, options));
      world.attach(rank, [&member] { return member.progress.poll(); });
    }
    const auto slot_of = [](std::uint64_t hash) {
      return container::scale(static_cast<std::uint32_t>(hash), kSlots);
    };
    for (std::uint64_t number = 0; near.size() < 16 || far.size() < 17 || key == 0; ++number) {
      const std::uint64_t hash = container::hash_of(&number, sizeof number);
      if (maps[0]->home_of(number) != 0 || slot_of(hash) % 32 != 0) continue;
      const bool is_near = slot_of(hash) == 0;
      if (is_near && slot_of(container::mixed(hash + 1)) == 16)
        key = number;  // its windows have no slot in common
      else
        (is_near ? near : far).push_back(number);
    }
    for (std::uint32_t i = 0; i < 16; ++i)
      for (const std::uint64_t one : {near[i], far[i]}) EXPECT_EQ(end(insert(1, one)), Status::ok);
    EXPECT_EQ(end(maps[1]->erase(near[15])), Status::ok);
  }
  Map::Operation insert(Rank by, std::uint64_t one, Promise promise = Promise::both) {
    return maps[by]->insert(one, by, promise);
  }
  Status end(Map::Operation&& call) {
    EXPECT_TRUE(world.run_until([&] { return call.finished(); }, 1'000'000'000));
    return call.status();
  }
  void open_a_window() {
    EXPECT_EQ(end(insert(2, far[16])), Status::ok);
    EXPECT_EQ(maps[0]->local_use().windows, 2U);
  }

  sim::World world{sim::profile("ib100"), 3, 1};
  const MapOptions options{.name = "map", .slots = kSlots, .style = Style::one_sided};
  std::vector<std::unique_ptr<test::ContainerMember>> members;
  std::vector<std::unique_ptr<Map>> maps;
  std::vector<std::uint64_t> near, far;  // keys of the first window and of the other one
  std::uint64_t key = 0;                 // a further one of the first window
};

void hold_up_inserts(Promise promise) {
  for (const bool opens_first : {true, false})
    for (std::uint64_t events = 0; events < 120 && !testing::Test::HasFailure(); ++events) {
      HeldUpInsert part;
      const std::uint64_t key = part.key;
      auto held_up = part.insert(1, key, promise);
      part.world.run_until([left = events]() mutable { return left-- == 0; }, 1'000'000);
      part.world.pause(1, 300'000);  // no longer than a member may be silent
      if (opens_first) part.open_a_window();
      auto other = part.insert(2, key, promise);
      part.world.run_until([&] { return other.finished(); }, 150'000);  // or it waits
      if (!opens_first) part.open_a_window();
      EXPECT_EQ(part.end(std::move(other)), Status::ok);
      EXPECT_EQ(part.end(std::move(held_up)), Status::ok);
      int times = 0;
      part.maps[0]->for_each_local([&](std::uint64_t one, std::uint64_t) { times += one == key; });
      EXPECT_EQ(times, 1) << "CON-M2, CON-G5: after " << events << " events";
    }
}

TEST(ChurningMapsInSimulator, HaveNoKeyTwiceThoughAnInsertIsHeldUpWhileAWindowIsOpened) {
  hold_up_inserts(Promise::both);
}
/// CON-S4: the slot is ready before it has the key, and has that of its former owner until then.
TEST(ChurningMapsInSimulator, HaveNoKeyTwiceThoughAnInsertHasTakenItsSlotAsReady) {
  hold_up_inserts(Promise::writes);
}

}  // namespace
}  // namespace dunlin
