#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/store.hpp>

/// Calls of several members on keys of one store, in the simulator, that go on while something
/// befalls it. Each call checks what it returns.
namespace dunlin::test {

/// One member changes a key: change after change, each of which says what was there before. All
/// members read it. So a get may return what a change of the range leaves that begins with the last
/// one that had ended, or was seen, when the get began.
class Traffic {
 public:
  using StoreAt = std::function<Store&(Rank)>;
  Traffic(sim::World& world, StoreAt at, const std::vector<Rank>& callers, std::size_t keys)
      : world_(world), at_(std::move(at)), keys_(keys) {
    for (const Rank rank : callers) callers_.emplace_back(rank);
  }
  static std::string name_of(std::size_t key) { return "busy " + std::to_string(key); }

  /// Looks at the calls that have ended, and begins others.
  void step() {
    for (std::size_t i = 0; i < callers_.size(); ++i) {
      Caller& caller = callers_[i];
      if (caller.is_dead) continue;
      if (caller.changes && caller.change.finished()) end_change(caller);
      if (caller.reads && caller.get.finished()) end_get(caller);
      if (is_stopped_ || testing::Test::HasFailure()) continue;
      if (!caller.changes) begin_change(caller, i);
      if (!caller.reads) begin_get(caller, drawn() % keys_.size());
    }
  }
  bool run_until(const std::function<bool()>& ready, std::uint64_t patience_ns = 100'000'000) {
    return world_.run_until([&] { return step(), ready(); }, patience_ns);
  }
  void run_for(std::uint64_t ns) {
    const std::uint64_t until = world_.now_ns() + ns;
    while (world_.now_ns() < until) {
      step();
      world_.run_for(std::min<std::uint64_t>(1'000, until - world_.now_ns()));
    }
  }
  /// That member has died; what it had under way may still come to pass.
  void forget(Rank rank) {
    for (Caller& caller : callers_) caller.is_dead = caller.is_dead || caller.rank == rank;
  }
  /// Each member that is left ends what it has under way, and begins nothing more.
  void stop() {
    is_stopped_ = true;
    EXPECT_TRUE(run_until([&] { return is_idle(); })) << "STO-4, STO-5: a call hangs";
  }
  void go_on() { is_stopped_ = false; }
  /// After stop().
  void read_all(Rank by) {
    const auto found = std::ranges::find(callers_, by, &Caller::rank);
    ASSERT_NE(found, callers_.end());
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      begin_get(*found, key);
      ASSERT_TRUE(run_until([&] { return !found->reads; })) << "STO-5: a get hangs";
    }
  }
  /// After stop(), if nobody has died: so many keys are there.
  [[nodiscard]] std::size_t present() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(keys_, [](const Key& key) { return !is_absent(key.ended); }));
  }
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

 private:
  struct Key {
    std::uint64_t begun = 0, ended = 0;  // numbers of changes
    std::uint64_t seen = 0;              // the latest of which a caller knows
    std::uint64_t version = 0;
  };
  struct Caller {
    explicit Caller(Rank its_rank) : rank(its_rank) {}
    Rank rank;
    bool is_dead = false;
    bool changes = false, reads = false;
    StoreOperation change, get;
    std::size_t changed_key = 0, read_key = 0, next = 0;
    std::uint64_t least = 0;  // that the get may return
    std::string value, saw;   // of an update
  };
  /// The fourth change erases the key, and the fifth one inserts it again.
  static bool is_absent(std::uint64_t change) { return change % 4 == 0; }
  static std::string value_of(std::size_t key, std::uint64_t change) {
    const std::size_t length = (key + change) % 9 == 0 ? 2'500 : key * 20 % 400;
    return std::to_string(change) + "/" + std::to_string(key) + std::string(length, 'v');
  }
  std::uint64_t drawn() {
    return drawn_ = drawn_ * 6364136223846793005U + 1442695040888963407U, drawn_ >> 33;
  }
  [[nodiscard]] bool is_idle() const {
    return std::ranges::all_of(callers_, [](const Caller& caller) {
      return caller.is_dead || (!caller.changes && !caller.reads);
    });
  }

  void begin_change(Caller& caller, std::size_t index) {
    const std::size_t own = (keys_.size() - index + callers_.size() - 1) / callers_.size();
    if (own == 0) return;
    caller.changed_key = index + callers_.size() * (caller.next++ % own);
    const std::size_t key = caller.changed_key;
    const std::uint64_t change = ++keys_[key].begun;
    caller.value = value_of(key, change);
    caller.saw.clear();
    caller.changes = true;
    Store& store = at_(caller.rank);
    const auto bytes = std::as_bytes(std::span(caller.value));
    switch (change % 4) {
      case 0:
        return store.erase(caller.change, name_of(key));
      case 1:
        return store.insert(caller.change, name_of(key), bytes);
      case 2:
        return store.put(caller.change, name_of(key), bytes);
      default:
        return store.update(
            caller.change, name_of(key), [&caller](std::optional<std::span<const std::byte>> now) {
              caller.saw = "absent";
              if (now) caller.saw.assign(reinterpret_cast<const char*>(now->data()), now->size());
              return StoreUpdate::put(caller.value);
            });
    }
  }
  void end_change(Caller& caller) {
    caller.changes = false;
    Key& key = keys_[caller.changed_key];
    const std::uint64_t change = key.begun;
    SCOPED_TRACE("change " + std::to_string(change) + " of key " +
                 std::to_string(caller.changed_key) + " by member " + std::to_string(caller.rank));
    ASSERT_EQ(remote::describe(caller.change.status()), "done") << "STO-M9";
    EXPECT_TRUE(caller.change.changed()) << "STO-C1: happened twice, or a change before was lost";
    if (change % 4 == 2) {
      EXPECT_TRUE(caller.change.found()) << "STO-C1: an insert was lost";
    }
    if (change % 4 == 3) {
      EXPECT_EQ(caller.saw, value_of(caller.changed_key, change - 1)) << "STO-C1: a put was lost";
    }
    if (!is_absent(change)) {
      EXPECT_GT(caller.change.version(), key.version) << "STO-M3: a version is given twice";
      key.version = caller.change.version();
    }
    key.ended = change;
    key.seen = std::max(key.seen, change);
    ++changes_;
  }
  void begin_get(Caller& caller, std::size_t key) {
    caller.read_key = key;
    caller.least = keys_[key].seen;
    caller.reads = true;
    at_(caller.rank).get(caller.get, name_of(key));
  }
  void end_get(Caller& caller) {
    caller.reads = false;
    Key& key = keys_[caller.read_key];
    SCOPED_TRACE("a get of key " + std::to_string(caller.read_key) + " by member " +
                 std::to_string(caller.rank));
    ASSERT_EQ(remote::describe(caller.get.status()), "done") << "STO-M9";
    std::uint64_t change = caller.least;
    if (caller.get.found()) {
      const std::string text(caller.get.text());
      change = std::stoull(text);
      EXPECT_EQ(text, value_of(caller.read_key, change)) << "STO-3";
      EXPECT_FALSE(is_absent(change));
    } else {
      while (!is_absent(change)) ++change;
    }
    EXPECT_GE(change, caller.least) << "STO-C2, STO-P10: an older value";
    EXPECT_LE(change, key.begun) << (caller.get.found()
                                         ? "STO-3"
                                         : "STO-C1, STO-P9, STO-P11: the key is lost");
    key.seen = std::max(key.seen, change);
  }

  sim::World& world_;
  StoreAt at_;
  std::vector<Key> keys_;
  std::deque<Caller> callers_;
  std::uint64_t drawn_ = 1, changes_ = 0;
  bool is_stopped_ = false;
};

}  // namespace dunlin::test
