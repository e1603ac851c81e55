#include <optional>

#include "fabric/sim_world.hpp"

/// Nodes that come later, and fabrics that are formed while others work.
namespace dunlin::sim {
namespace {

/// A node that forms a fabric beside whatever else it is in.
struct Station {
  Station(World& in, Rank node) : world(in), number(node) {
    world.attach(node, [this] { return poll(); });
  }
  void begin(const std::string& name, const std::vector<Rank>& nodes,
             std::uint64_t timeout_ns = 100'000'000) {
    pending_join = world.form(number, name, nodes, timeout_ns);
  }
  std::size_t poll() {
    std::size_t handled = first != nullptr ? first->poll() : 0;
    if (fabric) handled += fabric->poll();
    if (!pending_join) return handled;
    try {
      fabric = pending_join->poll();
      if (!fabric) return handled;
      formed_at = world.now_ns();
      subscription = fabric->subscribe([this](const Event& e) { events.push_back(e.kind); });
    } catch (const Error& why) {
      error = why.what();
    }
    pending_join.reset();
    return handled + 1;
  }
  void leave() {
    region = Region();
    subscription = Subscription();
    fabric.reset();
  }

  World& world;
  Rank number;
  Fabric* first = nullptr;
  std::unique_ptr<PendingJoin> pending_join;
  std::unique_ptr<Fabric> fabric;
  Region region;
  Subscription subscription;
  std::vector<Event::Kind> events;
  std::string error;
  std::uint64_t formed_at = 0;
};

/// A world of `first` nodes with a fabric of their own, and `late` more.
class FormingWorld {
 public:
  explicit FormingWorld(std::uint32_t first, std::uint32_t late, const Profile& figures = plain(),
                        std::uint64_t seed = 1)
      : world(figures, first, seed) {
    for (std::uint32_t i = 0; i < late; ++i) EXPECT_EQ(world.add_node(), first + i);
    for (Rank node = 0; node < first + late; ++node)
      stations.push_back(std::make_unique<Station>(world, node));
    for (Rank node = 0; node < first; ++node) stations[node]->first = &world.fabric(node);
  }
  ~FormingWorld() { stations.clear(); }
  FormingWorld(const FormingWorld&) = delete;
  FormingWorld& operator=(const FormingWorld&) = delete;

  Station& operator[](Rank node) { return *stations[node]; }
  void begin(const std::vector<Rank>& nodes, const std::string& name = "view") {
    for (const Rank node : nodes) stations[node]->begin(name, nodes);
  }
  bool until(const std::function<bool()>& condition, std::uint64_t limit_ns = 1'000'000'000) {
    return world.run_until(condition, limit_ns);
  }
  bool formed(const std::vector<Rank>& nodes) {
    return until([&] {
      return std::all_of(nodes.begin(), nodes.end(),
                         [&](Rank n) { return bool{stations[n]->fabric}; });
    });
  }
  bool refused(Rank node) {
    return until([&] { return !stations[node]->error.empty(); });
  }
  /// One region on each of the nodes' new fabrics, all connected.
  bool share(const std::vector<Rank>& nodes, std::size_t bytes = 4096) {
    for (const Rank node : nodes) {
      Station& station = *stations[node];
      station.region = station.fabric->allocate({.name = "box", .bytes = bytes});
      station.fabric->announce(station.region);
    }
    return until([&] {
      for (const Rank node : nodes)
        for (Rank peer = 0; peer < nodes.size(); ++peer)
          if (!stations[node]->fabric->connected(peer, stations[node]->region.id())) return false;
      return true;
    });
  }

  World world;
  std::vector<std::unique_ptr<Station>> stations;
};

void expect_part(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

void expect_error(const std::function<void()>& action, std::string_view part) {
  try {
    action();
    ADD_FAILURE() << "no Error; expected one that mentions '" << part << "'";
  } catch (const Error& error) {
    expect_part(error.what(), part);
  }
}

TEST(SimForming, MakesAFabricOfAnyNodesInAnyOrder) {
  FormingWorld all(2, 2);
  all.begin({3, 0, 1});
  ASSERT_TRUE(all.formed({3, 0, 1}));
  EXPECT_EQ(all[3].fabric->rank(), 0U);
  EXPECT_EQ(all[0].fabric->rank(), 1U);
  EXPECT_EQ(all[1].fabric->rank(), 2U);
  EXPECT_EQ(all[0].fabric->size(), 3U);
  EXPECT_EQ(all[0].fabric->group(), "view");
  EXPECT_EQ(all[0].fabric->member_name(0), "node3");
  EXPECT_EQ(all[0].fabric->kind(), "sim");
  EXPECT_EQ(all.world.size(), 4U);
  ASSERT_TRUE(all.share({3, 0, 1}));
  const std::uint64_t one = 1;
  ASSERT_TRUE(all[3].fabric->post(write(2, all[3].region.id(), 8, &one, 8)).all());
  const auto* words = reinterpret_cast<const std::uint64_t*>(all[1].region.memory().data());
  EXPECT_TRUE(all.until([&] { return memory::load(words[1]) == 1; }));
}

TEST(SimForming, LeavesTheFabricThatThereIsAlone) {
  FormingWorld all(2, 1);
  std::vector<Region> boxes;
  for (Rank r = 0; r < 2; ++r) {
    boxes.push_back(all.world.fabric(r).allocate({.name = "box", .bytes = 64}));
    all.world.fabric(r).announce(boxes[r]);
  }
  all.begin({0, 1, 2});
  std::uint64_t writes = 0;
  std::uint64_t source = 0;
  while (!all[0].fabric) {
    ASSERT_TRUE(all.until([&] { return all.world.fabric(0).connected(1, boxes[0].id()); }));
    source = ++writes;
    Completion done;
    ASSERT_TRUE(all.world.fabric(0)
                    .post(write(1, boxes[0].id(), 0, &source, 8).notify(done, Notify::remotely))
                    .all());
    ASSERT_TRUE(all.until([&] { return done.finished(); }));
  }
  EXPECT_GT(writes, 0U);
  const auto* word = reinterpret_cast<const std::uint64_t*>(boxes[1].memory().data());
  EXPECT_EQ(memory::load(*word), writes);
  ASSERT_TRUE(all.formed({0, 1, 2}));
  ASSERT_TRUE(all.share({0, 1, 2}));  // of the same name as the other fabric's
  EXPECT_FALSE(all.world.fabric(0).connected(2, boxes[0].id()));
}

TEST(SimForming, TakesARoundTripOnceAllHaveBegun) {
  FormingWorld all(3, 0);
  all[0].begin("view", {0, 1, 2});
  all[2].begin("view", {0, 1, 2});
  all.world.run_for(50'000);
  EXPECT_TRUE(all[0].pending_join);
  const std::uint64_t last = all.world.now_ns();
  all[1].begin("view", {0, 1, 2});
  ASSERT_TRUE(all.formed({0, 1, 2}));
  for (const auto& station : all.stations) {
    EXPECT_GE(station->formed_at - last, 2'000U);
    EXPECT_LT(station->formed_at - last, 2'100U);
  }
}

TEST(SimForming, IsRefusedWhereANodeHasCrashed) {
  FormingWorld all(2, 1);
  all.begin({0, 1, 2});
  all.world.run_for(500);
  all.world.crash(2);
  ASSERT_TRUE(all.refused(0));
  ASSERT_TRUE(all.refused(1));
  expect_part(all[0].error, "group 'view' cannot be formed: ");
  EXPECT_FALSE(all[0].fabric || all[1].fabric);
  EXPECT_FALSE(all.world.fabric(0).failed(1));
}

TEST(SimForming, IsRefusedWhereALinkIsCutOneWay) {
  FormingWorld all(3, 0);
  all.world.cut(1, 2);
  all.begin({0, 1, 2});
  ASSERT_TRUE(all.refused(1));
  ASSERT_TRUE(all.refused(2));
  expect_part(all[1].error, "a call to node2 was not answered within 500 us");
  expect_part(all[2].error, "node1");
  // The third met both of them, and hears that they have given up.
  ASSERT_TRUE(all.until(
      [&] { return all[0].fabric && all[0].fabric->failed(1) && all[0].fabric->failed(2); }));
  EXPECT_EQ(all[0].fabric->failure_text(1),
            "member 'node1' (rank 1) failed: it has left the group");
}

TEST(SimForming, GoesOnWhenALinkIsHealedInTime) {
  FormingWorld all(2, 0);
  all.world.cut(0, 1);
  all.begin({0, 1});
  all.world.run_for(300'000);
  all.world.heal(0, 1);
  EXPECT_TRUE(all.formed({0, 1}));
}

TEST(SimForming, WaitsForANodeThatPauses) {
  FormingWorld all(2, 0);
  all.world.pause(1, 900'000);
  all.begin({0, 1});
  all.world.run_for(800'000);
  EXPECT_FALSE(all[0].fabric);
  EXPECT_TRUE(all.formed({0, 1}));
}

TEST(SimForming, NamesWhoIsMissingWhenTheTimeIsUp) {
  FormingWorld all(2, 2);
  for (const Rank node : {0U, 1U, 2U}) all[node].begin("view", {0, 1, 2, 3}, 200'000);
  ASSERT_TRUE(all.refused(1));
  expect_part(all[1].error, "not complete within 200 us; missing: node3");
  EXPECT_GE(all.world.now_ns(), 200'000U);
  EXPECT_LT(all.world.now_ns(), 300'000U);
}

TEST(SimForming, IsGivenUpByAllIfOneGivesUp) {
  FormingWorld all(2, 1);
  all[0].begin("view", {0, 1, 2});
  all[1].begin("view", {0, 1, 2});
  all.world.run_for(5'000);
  all.world.on(1, [&] { all[1].pending_join.reset(); });
  ASSERT_TRUE(all.refused(0));
  expect_part(all[0].error, "node1 has given up");
  // And can be begun anew, under the same name.
  all.begin({0, 1, 2});
  EXPECT_TRUE(all.formed({0, 1, 2}));
}

TEST(SimForming, KeepsWhatArrivesBeforeAMemberHasItsFabric) {
  FormingWorld all(2, 1);
  all.world.slow_link(1, 2, 50);  // these two need longer
  all.begin({0, 1, 2});
  ASSERT_TRUE(all.formed({0}));
  EXPECT_FALSE(all[1].fabric);
  all[0].region = all[0].fabric->allocate({.name = "box", .bytes = 64});
  all[0].fabric->announce(all[0].region);
  const std::byte word[8] = {};
  ASSERT_EQ(all[0].fabric->send(1, 3, word), Refusal::none);
  all.world.run_for(5'000);
  ASSERT_FALSE(all[1].fabric);
  ASSERT_TRUE(all.formed({1, 2}));
  int heard = 0;
  all[1].fabric->receive(3, [&](Rank from, std::span<const std::byte>) { heard += from == 0; });
  all[1].region = all[1].fabric->allocate({.name = "box", .bytes = 64});
  EXPECT_TRUE(
      all.until([&] { return heard == 1 && all[1].fabric->connected(0, all[1].region.id()); }));
}

TEST(SimForming, FindsAMemberFailedThatCrashedMeanwhile) {
  FormingWorld all(2, 1);
  all.world.slow_link(0, 2, 50);
  all.begin({0, 1, 2});
  all.world.run_for(10'000);  // 1 has met both
  all.world.crash(1);
  ASSERT_TRUE(all.formed({0, 2}));
  EXPECT_TRUE(all.until([&] { return all[0].fabric->failed(1) && all[2].fabric->failed(1); }));
  EXPECT_FALSE(all[0].fabric->failed(2));
}

TEST(SimForming, SharesTheNodesFaults) {
  FormingWorld all(3, 0);
  all.begin({2, 1, 0});
  ASSERT_TRUE(all.formed({0, 1, 2}));
  all.world.cut(0, 1);
  EXPECT_TRUE(all.until([&] { return all[1].fabric->failed(2) && all.world.fabric(1).failed(0); }));
  all.world.crash(2);
  EXPECT_TRUE(all.until([&] { return all[0].fabric->failed(0) && all.world.fabric(0).failed(2); }));
}

TEST(SimForming, SharesTheNodesNics) {
  FormingWorld all(2, 0, ruler());
  all.begin({0, 1}, "one");
  ASSERT_TRUE(all.formed({0, 1}));
  ASSERT_TRUE(all.share({0, 1}, 1 << 16));
  std::vector<Region> boxes;
  for (Rank r = 0; r < 2; ++r) {
    boxes.push_back(all.world.fabric(r).allocate({.name = "box", .bytes = 1 << 16}));
    all.world.fabric(r).announce(boxes[r]);
  }
  ASSERT_TRUE(all.until([&] { return all.world.fabric(0).connected(1, boxes[0].id()); }));
  std::vector<std::byte> bytes(40'000);
  Completion first;
  Completion second;
  const std::uint64_t before = all.world.now_ns();
  const auto both = [&](RegionId id, Completion& done) {
    return put(1, id, 0, bytes.data(), bytes.size()).notify(done, Notify::remotely);
  };
  ASSERT_TRUE(all.world.fabric(0).post(both(boxes[0].id(), first)).all());
  ASSERT_TRUE(all[0].fabric->post(both(all[0].region.id(), second)).all());
  ASSERT_TRUE(all.until([&] { return first.finished() && second.finished(); }));
  EXPECT_GE(all.world.now_ns() - before, 80'000U);
}

TEST(SimForming, TakesLeaveWithTheFabric) {
  FormingWorld all(3, 0);
  all.begin({0, 1, 2});
  ASSERT_TRUE(all.formed({0, 1, 2}));
  ASSERT_TRUE(all.share({0, 1, 2}));
  const std::uint64_t left = all.world.now_ns();
  std::vector<std::byte> bytes(2'000);
  Completion lost;
  ASSERT_TRUE(
      all[1]
          .fabric->post(read(2, all[1].region.id(), 0, bytes.data(), bytes.size()).notify(lost))
          .all());
  all.world.on(2, [&] { all[2].leave(); });
  ASSERT_TRUE(all.until([&] { return all[0].fabric->failed(2) && all[1].fabric->failed(2); }));
  EXPECT_LT(all.world.now_ns() - left, 10'000U) << "nobody had to wait for its silence";
  EXPECT_EQ(all[0].fabric->failure_text(2),
            "member 'node2' (rank 2) failed: it has left the group");
  EXPECT_TRUE(all.until([&] { return lost.finished(); }));
  EXPECT_FALSE(all.world.fabric(0).failed(2)) << "it is still in the other one";
  const std::uint64_t one = 1;
  Completion done;
  ASSERT_TRUE(all[0].fabric->post(write(1, all[0].region.id(), 0, &one, 8).notify(done)).all());
  ASSERT_TRUE(all.until([&] { return done.finished(); }));
  EXPECT_FALSE(done.failed());
}

TEST(SimForming, LetsAFabricGoWithOperationsUnderWay) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FormingWorld all(2, 1, profile("ib100"), seed);
    all.begin({0, 1, 2});
    ASSERT_TRUE(all.formed({0, 1, 2}));
    ASSERT_TRUE(all.share({0, 1, 2}, 1 << 16));
    auto bytes = std::make_unique<std::vector<std::byte>>(50'000);
    auto done = std::make_unique<Completion>();
    for (const Rank peer : {0U, 2U}) {
      const RegionId id = all[1].region.id();
      ASSERT_TRUE(
          all[1].fabric->post(put(peer, id, 0, bytes->data(), bytes->size()).notify(*done)).all());
      ASSERT_TRUE(
          all[1].fabric->post(read(peer, id, 0, bytes->data(), bytes->size()).notify(*done)).all());
      ASSERT_TRUE(all[1].fabric->post(fetch_add(peer, id, 0, 1, nullptr).notify(*done)).all());
      ASSERT_EQ(all[1].fabric->send(peer, 0, {}), Refusal::none);
    }
    const std::vector<std::byte> own(1'000);
    Completion to_it;
    ASSERT_TRUE(
        all[0]
            .fabric->post(put(1, all[0].region.id(), 0, own.data(), own.size()).notify(to_it))
            .all());
    all.world.run_for(seed * 400);
    all[1].leave();
    bytes.reset();
    done.reset();
    EXPECT_TRUE(all.until([&] { return all[0].fabric->failed(1) && all[2].fabric->failed(1); }));
    EXPECT_TRUE(all.until([&] { return to_it.finished(); }));
    all.world.run_for(5'000'000);
  }
}

TEST(SimForming, IsAPureFunctionOfTheSeed) {
  const auto digest_of = [](std::uint64_t seed) {
    Profile figures = profile("ib100");
    figures.jitter = 0.3;
    FormingWorld all(3, 2, figures, seed);
    all.world.at(20'000, [&] { all.world.crash(1); });
    all.begin({4, 2, 0, 3});
    EXPECT_TRUE(all.formed({4, 2, 0, 3}));
    EXPECT_TRUE(all.share({4, 2, 0, 3}));
    all.world.on(3, [&] { all[3].leave(); });
    EXPECT_TRUE(all.until([&] { return all[4].fabric->failed(3); }));
    return all.world.digest();
  };
  EXPECT_EQ(digest_of(1), digest_of(1));
  EXPECT_NE(digest_of(1), digest_of(2));
}

TEST(SimForming, WorksForAProgramThatPollsFromOutside) {
  World world(plain(), 1, 1);
  const Rank late = world.add_node();
  const auto one = world.form(0, "pair", {0, late});
  const auto two = world.form(late, "pair", {0, late});
  std::unique_ptr<Fabric> first;
  std::unique_ptr<Fabric> second;
  while (!first || !second) {
    if (!first) first = one->poll();
    if (!second) second = two->poll();
  }
  EXPECT_EQ(second->rank(), 1U);
  expect_error([&] { static_cast<void>(one->poll()); }, "is over");
}

TEST(SimForming, RefusesListsThatMakeNoSense) {
  World world(plain(), 2, 1);
  const Rank late = world.add_node();
  expect_error([&] { static_cast<void>(world.fabric(late)); }, "was added later");
  expect_error([&] { static_cast<void>(world.form(0, "x", {1, late})); }, "0 is not among them");
  expect_error([&] { static_cast<void>(world.form(0, "x", {0, 1, 1})); }, "a node twice");
  expect_error([&] { static_cast<void>(world.form(0, "x", {0, 3})); }, "no simulated node 3");
  const auto forming = world.form(0, "x", {0, 1});
  expect_error([&] { static_cast<void>(world.form(0, "x", {0, 1})); }, "already");
  expect_error([&] { static_cast<void>(world.form(1, "x", {1, 0})); }, "all must give the same");
}

}  // namespace
}  // namespace dunlin::sim
