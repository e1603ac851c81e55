#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "container/clusters.hpp"
#include "support/errors.hpp"

/// Updates of a map by a function of the program's, at the key's home.
namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

struct Updates : test::OnContainers {
  using Map = test::CountMap;
  using Mix = Update<std::uint64_t, std::uint32_t, std::uint32_t>;
  std::vector<std::unique_ptr<Map>> maps;
  std::vector<std::unique_ptr<Mix>> mixes;

  /// Neither commutes nor is it one of the map's own calls.
  static std::uint32_t mix(const std::optional<std::uint32_t>& former, std::uint32_t value) {
    if (value == kThrows) throw std::runtime_error("no such value");
    return former ? 3 * *former + value : value;
  }
  static constexpr std::uint32_t kThrows = 1'000'000;

  /// False on fabrics where a home must not change its slots beside the fabric's atomics.
  bool start_maps(std::uint32_t members, std::uint32_t slots, std::uint32_t grow_to = 0) {
    start(members);
    maps = make<Map>(MapOptions{.name = "map", .slots = slots, .grow_to = grow_to});
    const bool coherent = (*cluster)[0].fabric().properties().atomics_coherent_with_cpu;
    if (!coherent && GetParam().style != Style::message) {
      EXPECT_TRUE(
          contains(what_is_thrown_by([&] { const Mix one(*maps[0], {.name = "mix"}, mix); }),
                   "update 'mix' of map 'map': on this fabric, atomics and the processor "
                   "do not exclude each other; make the map with Style::message"));
      return false;
    }
    for (const auto& map : maps)
      mixes.push_back(std::make_unique<Mix>(*map, FunctionOptions{.name = "mix"}, mix));
    return true;
  }
  auto update(Rank by, std::uint64_t key, std::uint32_t value) {
    auto call = maps[by]->update(key, *mixes[by], value);
    cluster->end_of(call);
    return call;
  }
};

DUNLIN_RUN_ON(test::map_cases(), Updates);

TEST_P(Updates, InsertOrCombineBesideTheOtherCalls) {
  if (!start_maps(3, 4, 64)) return;
  std::map<std::uint64_t, std::uint32_t> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 600; ++i) {
    const Rank by = static_cast<Rank>(random() % 3);
    const std::uint64_t key = random() % 40;
    const auto value = static_cast<std::uint32_t>(random() % 1'000);
    const auto before = model.find(key);
    const bool there = before != model.end();
    if (random() % 4 == 0) {
      EXPECT_EQ(cluster->end_of(maps[by]->erase(key)), Status::ok);
      model.erase(key);
    } else if (random() % 4 == 0) {
      EXPECT_EQ(cluster->end_of(maps[by]->assign(key, value)), Status::ok);
      model[key] = value;
    } else {
      const auto call = update(by, key, value);
      EXPECT_EQ(call.describe(), "done");
      EXPECT_EQ(call.result().found(), there) << i;
      EXPECT_EQ(call.result().inserted(), !there) << i;
      model[key] = mix(there ? std::optional(before->second) : std::nullopt, value);
      EXPECT_EQ(call.result().value(), model[key]) << i;
    }
  }
  std::map<std::uint64_t, std::uint32_t> all;
  for (const auto& map : maps)
    map->for_each_local([&](std::uint64_t key, std::uint32_t value) { all[key] = value; });
  EXPECT_EQ(all, model);
}

/// CON-F5: no update is lost among those of others, and among adds.
TEST_P(Updates, ManyAtOnceAreAllCounted) {
  start(3);
  maps = make<Map>(MapOptions{.name = "map", .slots = 20});
  const bool coherent = (*cluster)[0].fabric().properties().atomics_coherent_with_cpu;
  if (!coherent && GetParam().style != Style::message) return;
  std::vector<std::unique_ptr<Update<std::uint64_t, std::uint32_t>>> counts;
  for (const auto& map : maps)
    counts.push_back(std::make_unique<Update<std::uint64_t, std::uint32_t>>(
        *map, FunctionOptions{.name = "count"},
        [](const std::optional<std::uint32_t>& former) { return former.value_or(0) + 1; }));
  std::map<std::uint64_t, std::uint32_t> expected;
  for (int round = 0; round < 10; ++round) {
    std::vector<remote::Call<Updated<std::uint32_t>>> updates;
    std::vector<Map::Operation> adds;
    for (std::uint64_t i = 0; i < 30; ++i) {
      const std::uint64_t key = i % 2;
      updates.push_back(maps[i % 3]->update(key, *counts[i % 3]));
      adds.push_back(maps[(i + 1) % 3]->add(key, 100));
      expected[key] += 101;
    }
    for (auto& call : updates) EXPECT_EQ(cluster->end_of(call), Status::ok);
    for (auto& call : adds) EXPECT_EQ(cluster->end_of(call), Status::ok);
  }
  for (const auto& [key, sum] : expected) {
    auto found = maps[0]->find(key);
    EXPECT_EQ(cluster->end_of(found), Status::ok);
    EXPECT_EQ(found.result().value(), sum);
  }
}

TEST_P(Updates, ThatThrowChangeNothing) {
  if (!start_maps(2, 20)) return;
  for (std::uint64_t key = 0; key < 8; ++key) {
    const bool there = key % 2 == 0;
    if (there) {
      EXPECT_TRUE(update(0, key, 7).ok());
    }
    const auto call = update(1, key, kThrows);
    EXPECT_EQ(call.status(), Status::threw);
    EXPECT_TRUE(contains(call.describe(), "update 'mix' at member "));
    EXPECT_TRUE(call.describe().ends_with(": no such value")) << call.describe();
    auto found = maps[1]->find(key);
    EXPECT_EQ(cluster->end_of(found), Status::ok);
    EXPECT_EQ(found.result().found(), there);
    if (there) {
      EXPECT_EQ(found.result().value(), 7U);
    }
  }
}

TEST_P(Updates, UseTheSlotsOfErasedKeysAndEndFullWithoutThem) {
  if (!start_maps(1, 6)) return;
  for (std::uint64_t key = 0; key < 6; ++key) EXPECT_TRUE(update(0, key, 1).result().inserted());
  EXPECT_EQ(update(0, 6, 1).status(), Status::full);
  EXPECT_EQ(update(0, 5, 1).result().value(), 4U);
  EXPECT_EQ(cluster->end_of(maps[0]->erase(3)), Status::ok);
  if (GetParam().packed) {
    EXPECT_EQ(update(0, 6, 1).status(), Status::full);  // CON-K3
    EXPECT_TRUE(update(0, 3, 9).result().inserted());
    return;
  }
  const auto call = update(0, 6, 9);
  EXPECT_EQ(call.describe(), "done");
  EXPECT_TRUE(call.result().inserted());
  EXPECT_EQ(call.result().value(), 9U);
}

/// CON-F3.
TEST_P(Updates, ThatBeginACallChangeNothing) {
  if (!start_maps(2, 20)) return;
  std::vector<std::unique_ptr<Update<std::uint64_t, std::uint32_t>>> peeks;
  for (Rank rank = 0; rank < 2; ++rank)
    peeks.push_back(std::make_unique<Update<std::uint64_t, std::uint32_t>>(
        *maps[rank], FunctionOptions{.name = "peek"},
        [&, rank](const std::optional<std::uint32_t>&) -> std::uint32_t {
          static_cast<void>(what_is_thrown_by([&] { static_cast<void>(maps[rank]->find(1)); }));
          return 9;
        }));
  for (std::uint64_t key = 0; key < 8; ++key) {
    if (key % 2 == 0) {
      EXPECT_TRUE(update(0, key, 7).ok());
    }
    EXPECT_EQ(cluster->end_of(maps[1]->update(key, *peeks[1])), Status::not_allowed);
    auto found = maps[1]->find(key);
    EXPECT_EQ(cluster->end_of(found), Status::ok);
    EXPECT_EQ(found.result().found(), key % 2 == 0);
    if (found.result().found()) {
      EXPECT_EQ(found.result().value(), 7U);
    }
  }
}

/// However often others change the value meanwhile, the home goes on with its poll.
TEST(UpdatesOnShm, LetTheirHomePollThoughOthersChangeTheValueAllTheTime) {
  constexpr int kChanges = 500;
  test::RealContainers cluster(test::backend_of("Shm"), 2);
  const MapOptions options{.name = "map", .slots = 20, .packed = true};
  test::CountMap here(cluster[0], options), there(cluster[1], options);
  std::uint64_t key = 0;
  while (here.home_of(key) != 0) ++key;
  int runs = 0;
  using Count = Update<std::uint64_t, std::uint32_t>;
  const auto count = [&](const std::optional<std::uint32_t>& former) {
    if (++runs <= kChanges) static_cast<void>(there.add(key, 1));
    return former.value_or(0) + 1;
  };
  Count at_home(here, {.name = "count"}, count), at_other(there, {.name = "count"}, count);
  EXPECT_EQ(cluster.end_of(there.add(key, 1)), Status::ok);  // they are connected
  auto update = there.update(key, at_other);
  int most = 0;
  while (!update.finished()) {
    const int before = runs;
    cluster[0].poll();
    most = std::max(most, runs - before);
    cluster[1].poll();
  }
  EXPECT_EQ(update.status(), Status::ok);
  EXPECT_EQ(update.result().value(), kChanges + 2U);
  EXPECT_LT(most, 100);
}

struct UpdatesOfTexts : test::OnContainers {
  using Map = HashMap<std::string, std::string>;
  using Append = Update<std::string, std::string, std::string>;
  static std::string append(const std::optional<std::string>& former, const std::string& more) {
    return former.value_or("") + more;
  }
};

DUNLIN_RUN_ON(test::container_cases({Style::message}), UpdatesOfTexts);

/// In slots of several lines, and, beyond what a message has room for, through buffers.
TEST_P(UpdatesOfTexts, TakeValuesOfAnyLengthThatFitsIntoTheirSlots) {
  start(2);
  const auto maps =
      make<Map>(MapOptions{.name = "texts", .slots = 20, .key_bytes = 30, .value_bytes = 700});
  const bool coherent = (*cluster)[0].fabric().properties().atomics_coherent_with_cpu;
  if (!coherent) {  // so long values go one-sided at all members
    EXPECT_TRUE(
        contains(what_is_thrown_by([&] { const Append one(*maps[0], {.name = "append"}, append); }),
                 "atomics and the processor do not exclude each other"));
    return;
  }
  std::vector<std::unique_ptr<Append>> appends;
  for (const auto& map : maps)
    appends.push_back(std::make_unique<Append>(*map, FunctionOptions{.name = "append"}, append));
  std::map<std::string, std::string> model;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::string key = "key " + std::to_string(i % 5),
                      more(i * 7 % 100, i % 2 == 0 ? 'a' : 'b');
    const bool fits = model[key].size() + more.size() <= 700;
    auto call = maps[i % 2]->update(key, *appends[i % 2], more);
    cluster->end_of(call);
    EXPECT_EQ(call.status(), fits ? Status::ok : Status::too_long) << i << call.describe();
    if (!fits) continue;
    model[key] += more;
    EXPECT_EQ(call.result().value(), model[key]) << i;
  }
  std::map<std::string, std::string> all;
  for (const auto& map : maps)
    map->for_each_local(
        [&](const std::string& key, const std::string& value) { all[key] = value; });
  EXPECT_EQ(all, model);
  EXPECT_EQ(cluster->end_of(maps[0]->update(std::string(31, 'k'), *appends[0], "")),
            Status::too_long);
}

/// Without the option `bytes`.
TEST_P(UpdatesOfTexts, TakeTheLongestKeys) {
  start(2);
  const auto maps = make<HashMap<std::string, std::uint32_t>>(
      MapOptions{.name = "keys", .slots = 20, .key_bytes = 300});
  if (!(*cluster)[0].fabric().properties().atomics_coherent_with_cpu) return;
  std::vector<std::unique_ptr<Update<std::string, std::uint32_t>>> counts;
  for (const auto& map : maps)
    counts.push_back(std::make_unique<Update<std::string, std::uint32_t>>(
        *map, FunctionOptions{.name = "count"},
        [](const std::optional<std::uint32_t>& former) { return former.value_or(0) + 1; }));
  for (const std::size_t bytes : {300U, 301U})
    EXPECT_EQ(cluster->end_of(maps[0]->update(std::string(bytes, 'k'), *counts[0])),
              bytes == 300 ? Status::ok : Status::too_long);
}

TEST(UpdatesMisused, ThrowErrorsThatSayWhatToDo) {
  test::SimContainers cluster(test::wild_profile(), 1);
  HashMap<int, std::string> pooled(
      cluster[0], {.name = "pooled", .slots = 10, .value_bytes = 1'000, .pool_bytes = 1 << 20});
  const auto same = [](const std::optional<std::string>& text) { return text.value_or(""); };
  EXPECT_TRUE(contains(what_is_thrown_by([&] {
                         const Update<int, std::string> one(pooled, {.name = "same"}, same);
                       }),
                       "update 'same' of map 'pooled': the map has a pool (pool_bytes)"));
}

/// As a batch's, an update's promise is looked at by the home.
TEST(UpdatesOfCheckedMaps, DoNotMeetCallsWhosePromiseForbidsThem) {
  test::SimContainers cluster(test::wild_profile(), 3);
  std::vector<std::unique_ptr<HashMap<int, int>>> maps;
  std::vector<std::unique_ptr<Update<int, int>>> counts;
  for (Rank rank = 0; rank < 3; ++rank) {
    maps.push_back(std::make_unique<HashMap<int, int>>(
        cluster[rank], MapOptions{.name = "map", .slots = 10, .checked = true}));
    counts.push_back(std::make_unique<Update<int, int>>(
        *maps[rank], FunctionOptions{.name = "count"},
        [](const std::optional<int>& former) { return former.value_or(0) + 1; }));
  }
  int key = 0, counted = 0, broken = 0;
  while (maps[0]->home_of(key) != 2) ++key;
  for (int events = 0; events < 60; ++events) {
    auto find = maps[0]->find(key, Promise::reads);
    cluster.pass(events);
    auto update = maps[1]->update(key, *counts[1]);
    cluster.end_of(find);
    const bool is_broken = cluster.end_of(update) == Status::broken_promise;
    if (!is_broken) {
      EXPECT_EQ(update.result().value(), ++counted);
    }
    broken += is_broken ? 1 : 0;
  }
  EXPECT_GT(broken, 0);
  EXPECT_GT(counted, 0);
  EXPECT_TRUE(contains(cluster[2].broken_promise(), "'reads' forbids that"));
}

}  // namespace
}  // namespace dunlin
