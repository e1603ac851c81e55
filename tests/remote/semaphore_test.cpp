#include "../../examples/semaphore.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>

#include "support/cluster.hpp"

/// The example of docs/remote.md.
namespace dunlin::remote {
namespace {

constexpr std::uint64_t kPlaces = 2;

/// Three simulated members that share a semaphore, whose home is member 0.
struct ThreeMembers {
  struct Member {
    Progress progress;
    std::unique_ptr<Semaphore> semaphore;
    explicit Member(Fabric& fabric)
        : progress(fabric),
          semaphore(std::make_unique<Semaphore>(
              progress, SemaphoreOptions{.name = "places", .home = 0, .places = kPlaces})) {}
  };

  explicit ThreeMembers(const sim::Profile& profile = sim::profile("ib100"), std::uint64_t seed = 1)
      : world(profile, 3, seed) {
    for (Rank rank = 0; rank < 3; ++rank) {
      members[rank] = std::make_unique<Member>(world.fabric(rank));
      world.attach(rank, [this, rank] { return members[rank]->progress.poll(); });
    }
    world.run_for(100'000);
  }
  Semaphore& operator[](Rank rank) { return *members[rank]->semaphore; }
  bool until(const std::function<bool()>& condition) {
    for (int i = 0; i < 100'000 && !condition(); ++i) world.run_for(200);
    return condition();
  }
  /// How many places are free once nothing is under way.
  std::size_t free_places() {
    EXPECT_TRUE(until([&] {
      return std::ranges::all_of(members, [](const auto& one) { return one->semaphore->idle(); });
    }));
    std::vector<Semaphore::Taken> taken;
    for (Status status = Status::ok; status == Status::ok;) {
      taken.push_back((*this)[1].take(1'000'000).outcome());
      status = taken.back().status;
    }
    EXPECT_EQ(taken.back().status, Status::timed_out);
    return taken.size() - 1;
  }

  sim::World world;
  std::array<std::unique_ptr<Member>, 3> members;
};

/// Takes a place, keeps it for some time, and gives it back, so many times; notes how many places
/// are taken by all.
struct User {
  Semaphore& semaphore;
  std::size_t& holders;
  std::size_t& most;
  int rounds_left;
  std::vector<Call<Semaphore::Taken>> call = {};
  Semaphore::Place place = {};
  std::uint64_t until_ns = 0;

  bool done(std::uint64_t now_ns) {
    if (until_ns != 0 && now_ns >= until_ns) {
      --holders;
      place = Semaphore::Place();
      until_ns = 0;
    }
    if (until_ns == 0 && call.empty() && rounds_left > 0) {
      --rounds_left;
      call.push_back(semaphore.take());
    }
    if (!call.empty() && call[0].finished()) {
      Semaphore::Taken taken = std::move(call[0]).outcome();
      EXPECT_EQ(taken.status, Status::ok);
      call.clear();
      place = std::move(taken.place);
      until_ns = now_ns + 3'000;
      most = std::max(most, ++holders);
    }
    return rounds_left == 0 && call.empty() && until_ns == 0;
  }
};

void expect_never_more_than_its_places(const sim::Profile& profile, std::uint64_t seed) {
  ThreeMembers members(profile, seed);
  std::size_t holders = 0, most = 0;
  std::vector<User> users;
  for (Rank rank = 0; rank < 3; ++rank)
    for (int i = 0; i < 2; ++i) users.push_back({members[rank], holders, most, 20});
  EXPECT_TRUE(members.until([&] {
    bool all = true;
    for (User& user : users) all = user.done(members.world.now_ns()) && all;
    return all;
  })) << "a user waits for ever";
  EXPECT_EQ(most, kPlaces);
  EXPECT_EQ(members.free_places(), kPlaces);
}

TEST(SemaphoreExample, HasNeverMoreHoldersThanPlaces) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    expect_never_more_than_its_places(sim::profile("ib100"), seed);
    expect_never_more_than_its_places(test::wild_profile(), seed);
    expect_never_more_than_its_places(test::narrow_profile(), seed);
  }
}

TEST(SemaphoreExample, ATakeThatIsGivenUpLeavesNoPlaceTaken) {
  ThreeMembers members;
  for (std::uint64_t after_ns = 0; after_ns <= 6'000; after_ns += 200) {
    SCOPED_TRACE(after_ns);
    {
      const auto given_up = members[1].take(), too_late = members[2].take(after_ns + 1);
      const auto goes_on = members[2].take();
      members.world.run_for(after_ns);
    }
    EXPECT_EQ(members.free_places(), kPlaces);
  }
}

TEST(SemaphoreExample, AWaiterGetsThePlaceThatIsGivenBack) {
  ThreeMembers members;
  std::vector<Semaphore::Taken> taken;
  for (Rank rank = 0; rank < 2; ++rank) taken.push_back(members[rank].take().outcome());
  auto waits = members[2].take(), gives_up = members[2].take(100'000);
  members.world.run_for(500'000);
  EXPECT_FALSE(waits.finished());
  EXPECT_EQ(gives_up.status(), Status::timed_out);
  taken.pop_back();
  EXPECT_TRUE(members.until([&] { return waits.finished(); }));
  EXPECT_EQ(waits.status(), Status::ok);
  taken.clear();
  { const Semaphore::Taken last = std::move(waits).outcome(); }
  EXPECT_EQ(members.free_places(), kPlaces);
}

TEST(SemaphoreExample, EndsWithItsHome) {
  ThreeMembers members;
  std::vector<Semaphore::Taken> taken;
  for (Rank rank = 1; rank < 3; ++rank) taken.push_back(members[rank].take().outcome());
  const auto waits = members[2].take();
  members.members[0]->semaphore.reset();
  EXPECT_TRUE(members.until([&] { return waits.finished(); }));
  EXPECT_EQ(waits.status(), Status::lost);
  taken.clear();
  EXPECT_TRUE(members.until([&] { return members[1].idle() && members[2].idle(); }));
}

}  // namespace
}  // namespace dunlin::remote
