#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/sim.hpp>
#include <dunlin/remote.hpp>

namespace dunlin::remote {

/// A word that was read, or why not.
struct Word {
  Status status = Status::ok;
  std::uint64_t value = 0;
};

/// Notes in a log that it is destroyed.
struct Leaving {
  std::vector<int>& log;
  int who;
  Leaving(std::vector<int>& its_log, int its_who) : log(its_log), who(its_who) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() { log.push_back(who); }
};

/// A layer that reads words of the members.
struct Words {
  Progress& progress;
  RegionId box;

  Protocol<Word> get(Rank peer) {
    std::uint64_t value = 0;
    const Status status = co_await post(progress.fabric(), read(peer, box, 0, &value, 8));
    co_return Word{status, value};
  }
  Protocol<Status> get_into(Rank peer, std::uint64_t& value) {
    co_return co_await post(progress.fabric(), read(peer, box, 0, &value, 8));
  }
  Call<Word> call(Rank peer, std::uint64_t timeout_ns = kForever) {
    return Call<Word>(progress, get(peer), timeout_ns);
  }
};

/// Two simulated members, each with words that the other can read, of which the first is 41 or 42.
struct TwoMembers : testing::Test {
  explicit TwoMembers(const sim::Profile& profile = sim::profile("ib100")) : world(profile, 2, 1) {
    for (Rank rank = 0; rank < 2; ++rank) {
      progress[rank] = std::make_unique<Progress>(world.fabric(rank));
      boxes[rank] = world.fabric(rank).allocate({.name = "box", .bytes = 1024});
      memory::store(word(rank), 41 + rank);
      world.fabric(rank).announce(boxes[rank]);
      world.attach(rank, [this, rank] { return progress[rank]->poll(); });
    }
    world.run_for(100'000);
  }
  /// Member 0 looks again although nothing comes, as what the test sets is no event of the world.
  bool until(const std::function<bool()>& condition) {
    for (int us = 0; us < 100'000 && !condition(); ++us) {
      world.run_for(1'000);
      progress[0]->poll();
    }
    return condition();
  }
  std::uint64_t& word(Rank rank, std::size_t which = 0) {
    return reinterpret_cast<std::uint64_t*>(boxes[rank].memory().data())[which];
  }
  Words words() { return {*progress[0], boxes[0].id()}; }
  [[nodiscard]] std::size_t in_flight() const { return progress[0]->in_flight(); }

  sim::World world;
  std::array<Region, 2> boxes;
  std::array<std::unique_ptr<Progress>, 2> progress;
};

}  // namespace dunlin::remote
