#include "fabric/conformance/growing.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fabric/conformance/harness.hpp"
#include "fabric/conformance/real_group.hpp"
#include "support/rounds.hpp"

/// A fabric that members come into while it works (FAB-G1 to FAB-G4). One thread does for all.
namespace dunlin::conformance {
namespace {

constexpr std::uint32_t kChannel = 5;

/// What this process holds: descriptors, and mapped segments.
struct Held {
  std::size_t descriptors = 0;
  std::size_t segments = 0;

  static Held now() {
    Held all;
    const std::filesystem::directory_iterator open("/proc/self/fd");
    all.descriptors = static_cast<std::size_t>(std::distance(begin(open), end(open)));
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find(" /dev/shm/") != std::string::npos) ++all.segments;
    return all;
  }
  [[nodiscard]] bool no_more_than(const Held& other) const noexcept {
    return descriptors <= other.descriptors && segments <= other.segments;
  }
};

/// The members of one fabric, and those that come.
class Growing : public testing::TestWithParam<Grower> {
 protected:
  struct Member {
    std::shared_ptr<Rendezvous> rendezvous;
    std::unique_ptr<PendingEntry> entry;
    std::unique_ptr<Fabric> owned;
    Fabric* fabric = nullptr;  // null: not in it yet, or gone
    std::vector<SeenEvent> events;
    Subscription subscription;
    std::vector<Region> regions;
    std::string error;
    std::uint32_t steps = 0;  // of its entry

    void start(Fabric& on) {
      fabric = &on;
      subscription = on.subscribe([this](const Event& event) {
        events.push_back({event.kind, event.peer, event.region, std::string(event.text)});
      });
    }
    void leave() {
      regions.clear();
      subscription = {};
      fabric = nullptr;
      owned.reset();
      entry.reset();
      rendezvous.reset();
    }
    Region& share(const RegionSpec& spec) {
      regions.push_back(fabric->allocate(spec));
      fabric->announce(regions.back());
      return regions.back();
    }
  };

  void start(std::uint32_t founders, std::uint32_t in_all) {
    grower_ = GetParam().start(founders, in_all);
    members_.resize(in_all);
    for (Rank rank = 0; rank < founders; ++rank) members_[rank] = std::make_unique<Member>();
    for (Rank rank = 0; rank < founders; ++rank) member(rank).start(grower_->founder(rank));
    grower_->attach([this](Rank node) { return poll(node); });
  }
  Member& member(Rank rank) { return *members_.at(rank); }
  Fabric& fabric(Rank rank) { return *member(rank).fabric; }

  std::size_t poll(Rank node) {
    if (node >= members_.size() || !members_[node]) return 0;
    Member& one = *members_[node];
    if (one.fabric != nullptr) return one.fabric->poll();
    if (!one.entry || !one.error.empty()) return 0;
    ++one.steps;
    try {
      one.owned = one.entry->poll();
    } catch (const Error& error) {
      one.error = error.what();
      return 1;
    }
    if (!one.owned) return 0;
    one.start(*one.owned);
    return 1;
  }

  /// Newcomers at the ranks from `first`; node and rank of each are the same.
  Admission admission_of(Rank first, std::uint32_t count) {
    Admission admission{.first = first};
    for (Rank rank = first; rank < first + count; ++rank) {
      members_[rank] = std::make_unique<Member>();
      member(rank).rendezvous = grower_->rendezvous(rank);
      member(rank).entry = member(rank).rendezvous->enter();
      admission.newcomers.push_back(
          {"late" + std::to_string(rank), member(rank).entry->endpoint()});
    }
    for (std::size_t i = 0; i < admission.key.size(); ++i)
      admission.key[i] = static_cast<std::byte>(first * 31 + i * 7 + 1);
    return admission;
  }
  Entry entry_of(const Admission& admission, std::uint32_t place) {
    Entry entry{.group = fabric(0).group(), .members = {}, .admission = admission, .place = place};
    for (Rank rank = 0; rank < admission.first; ++rank)
      if (members_[rank] && member(rank).fabric != nullptr && !fabric(0).failed(rank))
        entry.members.push_back(
            {rank, fabric(0).member_name(rank), member(rank).fabric->endpoint()});
    return entry;
  }
  void begin(const Admission& admission) {
    for (std::uint32_t place = 0; place < admission.newcomers.size(); ++place)
      member(admission.first + place).entry->begin(entry_of(admission, place));
  }
  void admit(const Admission& admission, Rank at) { fabric(at).admit(admission); }
  void admit_everywhere(const Admission& admission) {
    for (Rank rank = 0; rank < admission.first; ++rank)
      if (members_[rank] && member(rank).fabric != nullptr) admit(admission, rank);
  }
  /// One after the other.
  void let_in(Rank rank) {
    const Admission admission = admission_of(rank, 1);
    admit_everywhere(admission);
    begin(admission);
    until("the newcomer is in", [&] { return is_in(rank); });
  }
  /// It has its fabric, and all members are linked to it.
  bool is_in(Rank rank) {
    if (member(rank).fabric == nullptr) return false;
    for (Rank at = 0; at < rank; ++at)
      if (members_[at] && member(at).fabric != nullptr && !fabric(at).linked(rank)) return false;
    return true;
  }
  void until(std::string_view what, const std::function<bool()>& condition) {
    ASSERT_TRUE(grower_->run_until(condition)) << "waited in vain until " << what;
  }
  std::size_t seen(Rank at, Event::Kind kind, Rank about) {
    return static_cast<std::size_t>(std::ranges::count_if(
        member(at).events,
        [&](const SeenEvent& event) { return event.kind == kind && event.peer == about; }));
  }
  void write_word(Rank from, Rank to, RegionId region, std::uint64_t value) {
    word_ = value;
    Completion done;
    ASSERT_TRUE(
        fabric(from).post(write(to, region, 0, &word_, 8).notify(done, Notify::remotely)).all());
    until("the word is placed", [&] { return done.finished(); });
    EXPECT_FALSE(done.failed());
  }
  static std::uint64_t word_of(const Region& region) {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(region.memory().data()));
  }

  std::unique_ptr<GrowingBackend> grower_;
  std::vector<std::unique_ptr<Member>> members_;
  alignas(8) std::uint64_t word_ = 0;

  void TearDown() override {
    for (const auto& one : members_)
      if (one) one->leave();
  }
};

TEST_P(Growing, ANewcomerSharesMemoryWithAllMembers) {
  start(2, 3);
  for (Rank rank = 0; rank < 2; ++rank) member(rank).share({.name = "box", .bytes = 4096});
  let_in(2);
  Region& late = member(2).share({.name = "box", .bytes = 4096});
  until("all are connected", [&] {
    return fabric(2).connected(0, late.id()) && fabric(2).connected(1, late.id()) &&
           fabric(0).connected(2, member(0).regions[0].id()) &&
           fabric(1).connected(2, member(1).regions[0].id());
  });
  EXPECT_EQ(fabric(0).size(), 3u);
  EXPECT_EQ(fabric(2).size(), 3u);
  EXPECT_EQ(fabric(2).rank(), 2u);
  EXPECT_EQ(fabric(0).member_name(2), "late2");
  EXPECT_EQ(seen(0, Event::Kind::peer_linked, 2), 1u);
  EXPECT_EQ(seen(1, Event::Kind::peer_linked, 2), 1u);
  write_word(0, 2, member(0).regions[0].id(), 41);
  EXPECT_EQ(word_of(late), 41u);
  write_word(2, 1, late.id(), 42);
  EXPECT_EQ(word_of(member(1).regions[0]), 42u);
}

TEST_P(Growing, MessagesOfANewcomerAndToItArriveInOrder) {
  start(2, 3);
  std::vector<std::uint32_t> heard;
  fabric(0).receive(kChannel, [&](Rank from, std::span<const std::byte> message) {
    EXPECT_EQ(from, 2u);
    std::uint32_t number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    heard.push_back(number);
  });
  std::size_t answers = 0;
  let_in(2);
  fabric(2).receive(kChannel, [&](Rank, std::span<const std::byte>) { ++answers; });
  for (std::uint32_t number = 0; number < 200; ++number) {
    until("there is room", [&] {
      return fabric(2).send(0, kChannel, std::as_bytes(std::span(&number, 1))) == Refusal::none;
    });
    until("there is room", [&] {
      return fabric(1).send(2, kChannel, std::as_bytes(std::span(&number, 1))) == Refusal::none;
    });
  }
  until("all are heard", [&] { return heard.size() == 200 && answers == 200; });
  EXPECT_TRUE(std::ranges::is_sorted(heard));
}

TEST_P(Growing, TwoNewcomersReachEachOther) {
  start(2, 4);
  const Admission admission = admission_of(2, 2);
  begin(admission);  // they see each other first
  admit_everywhere(admission);
  until("both are in", [&] { return is_in(2) && is_in(3); });
  Region& one = member(2).share({.name = "box", .bytes = 64});
  Region& other = member(3).share({.name = "box", .bytes = 64});
  until("they are connected",
        [&] { return fabric(2).connected(3, one.id()) && fabric(3).connected(2, other.id()); });
  write_word(2, 3, one.id(), 7);
  EXPECT_EQ(word_of(other), 7u);
}

/// By STR-J3 growing leaves the operations on other streams as they are.
TEST_P(Growing, OperationsInFlightAreNotDisturbed) {
  start(2, 3);
  for (Rank rank = 0; rank < 2; ++rank) member(rank).share({.name = "box", .bytes = 65536});
  const RegionId box = member(0).regions[0].id();
  until("they are connected", [&] { return fabric(0).connected(1, box); });
  std::vector<std::uint64_t> source(8192);
  std::uint64_t rounds = 0;
  Completion done;
  const auto go_on = [&] {
    if (!done.finished()) return;
    EXPECT_FALSE(done.failed());
    std::ranges::fill(source, ++rounds);
    ASSERT_TRUE(fabric(0)
                    .post(write(1, box, 0, source.data(), 65536).notify(done, Notify::remotely))
                    .all());
  };
  const Admission admission = admission_of(2, 1);
  go_on();
  admit_everywhere(admission);
  go_on();
  begin(admission);
  until("the newcomer is in", [&] {
    go_on();
    return is_in(2) && rounds > 3;
  });
  until("the last one is placed", [&] { return done.finished(); });
  EXPECT_EQ(word_of(member(1).regions[0]), rounds);
}

TEST_P(Growing, ARegionForSomePeersIsHiddenFromNewcomers) {
  start(2, 3);
  for (Rank rank = 0; rank < 2; ++rank) {
    member(rank).regions.push_back(fabric(rank).allocate({.name = "view", .bytes = 64}));
    const Rank both[] = {0, 1};
    fabric(rank).announce(member(rank).regions[0], both);
    member(rank).share({.name = "all", .bytes = 64});
  }
  let_in(2);
  const RegionId view = member(2).share({.name = "view", .bytes = 64}).id();
  const RegionId all = member(2).share({.name = "all", .bytes = 64}).id();
  until("what is for all is connected",
        [&] { return fabric(2).connected(0, all) && fabric(2).connected(1, all); });
  EXPECT_FALSE(fabric(2).connected(0, view));
  EXPECT_FALSE(fabric(2).connected(1, view));
  EXPECT_TRUE(fabric(0).connected(1, member(0).regions[0].id()));
}

TEST_P(Growing, ARankIsNotGivenTwice) {
  start(2, 5);
  const RegionId ours = member(0).share({.name = "box", .bytes = 64}).id();
  let_in(2);
  member(2).share({.name = "box", .bytes = 64});
  until("it is connected", [&] { return fabric(0).connected(2, ours); });
  fabric(0).expel(2, "test");
  fabric(1).expel(2, "test");
  until("it has learnt of it, or been silent", [&] {
    return seen(0, Event::Kind::peer_failed, 2) == 1 && seen(1, Event::Kind::peer_failed, 2) == 1;
  });
  member(2).leave();
  Admission again = admission_of(4, 1);  // 3 is passed over
  again.first = 2;
  EXPECT_THROW(admit(again, 0), Error);
  again.first = 4;
  admit_everywhere(again);
  begin(again);
  until("the next one is in", [&] { return is_in(4); });
  EXPECT_EQ(fabric(4).size(), 5u);
  EXPECT_TRUE(fabric(4).failed(2));
  EXPECT_TRUE(fabric(4).failed(3));
  EXPECT_TRUE(fabric(0).failed(3));
  EXPECT_FALSE(fabric(4).failed(0));
  Region& box = member(4).share({.name = "box", .bytes = 64});
  Completion lost;
  const std::uint64_t value = 1;
  EXPECT_TRUE(fabric(4).post(write(3, box.id(), 0, &value, 8).notify(lost)).all());
  until("it has failed", [&] { return lost.finished(); });
  EXPECT_TRUE(lost.failed());
  until("the successor is connected", [&] { return fabric(0).connected(4, ours); });
  lost.reset();
  EXPECT_TRUE(fabric(0).post(write(2, ours, 0, &value, 8).notify(lost)).all());
  until("it has failed", [&] { return lost.finished(); });
  EXPECT_TRUE(lost.failed());
  EXPECT_EQ(word_of(box), 0u);
  write_word(0, 4, ours, 9);
  EXPECT_EQ(word_of(box), 9u);
}

TEST_P(Growing, RegionsMeetThoseThatAreAnnouncedAfterItCame) {
  start(2, 3);
  let_in(2);
  const Rank zero[] = {0};
  const Rank two[] = {2};
  const RegionId late = member(2).share({.name = "all", .bytes = 64}).id();
  member(2).regions.push_back(fabric(2).allocate({.name = "some", .bytes = 64}));
  const RegionId late_some = member(2).regions.back().id();
  fabric(2).announce(member(2).regions.back(), zero);
  const RegionId some = member(1).share({.name = "some", .bytes = 64}).id();
  member(0).regions.push_back(fabric(0).allocate({.name = "some", .bytes = 64}));
  const RegionId early_some = member(0).regions.back().id();
  fabric(0).announce(member(0).regions.back(), two);
  until("each has what was announced to it", [&] {
    return fabric(0).connected(2, early_some) && fabric(2).connected(0, late_some) &&
           fabric(0).connected(1, early_some) && fabric(2).connected(1, late_some);
  });
  const RegionId early = member(0).share({.name = "all", .bytes = 64}).id();
  until("what came last is connected",
        [&] { return fabric(2).connected(0, late) && fabric(0).connected(2, early); });
  EXPECT_FALSE(fabric(2).connected(1, late));
  EXPECT_FALSE(fabric(1).connected(0, some));
  EXPECT_FALSE(fabric(1).connected(2, some));
}

TEST_P(Growing, ANewcomerMayDieOnItsWayAtAnyStep) {
  constexpr std::uint32_t kDeaths = 7;
  start(2, 2 + 2 * kDeaths);
  const RegionId box = member(0).share({.name = "box", .bytes = 64}).id();
  member(1).share({.name = "box", .bytes = 64});
  until("they are connected", [&] { return fabric(0).connected(1, box); });
  for (std::uint32_t death = 0; death < kDeaths; ++death) {
    const Rank dying = 2 + 2 * death;
    const Admission admission = admission_of(dying, 1);
    admit_everywhere(admission);
    begin(admission);
    until("it is on its way",
          [&] { return member(dying).steps >= 1U << death || member(dying).fabric != nullptr; });
    member(dying).leave();
    for (Rank at = 0; at < 2; ++at) fabric(at).expel(dying, "it has not come");
    until("the members know, and know it once", [&] {
      return seen(0, Event::Kind::peer_failed, dying) == 1 &&
             seen(1, Event::Kind::peer_failed, dying) == 1;
    });
    let_in(dying + 1);
    EXPECT_TRUE(fabric(dying + 1).failed(dying));
    write_word(0, 1, box, dying);
    EXPECT_EQ(word_of(member(1).regions[0]), dying);
  }
  for (Rank rank = 2; rank < 2 + 2 * kDeaths; rank += 2)
    EXPECT_EQ(seen(0, Event::Kind::peer_failed, rank), 1u);
}

TEST_P(Growing, ANewcomerThatGoesAwayFails) {
  start(2, 4);
  const Admission admission = admission_of(2, 1);
  admit_everywhere(admission);
  begin(admission);
  until("one has linked it", [&] { return fabric(0).linked(2) || member(2).fabric != nullptr; });
  until("it is in", [&] { return member(2).fabric != nullptr; });
  member(2).leave();
  until("the members know", [&] { return fabric(0).failed(2) && fabric(1).failed(2); });
  let_in(3);
  EXPECT_TRUE(fabric(3).failed(2));
}

/// FAB-G3 promises what this test checks.
TEST_P(Growing, WhatIsPostedBeforeItHasComeIsRefused) {
  start(2, 3);
  Region& box = member(0).share({.name = "box", .bytes = 64});
  const Admission admission = admission_of(2, 1);
  admit_everywhere(admission);
  const std::uint64_t value = 1;
  EXPECT_EQ(fabric(0).post(write(2, box.id(), 0, &value, 8)).refusal, Refusal::not_connected);
  EXPECT_EQ(fabric(0).send(2, kChannel, {}), Refusal::not_connected);
  EXPECT_FALSE(fabric(0).linked(2));
  fabric(0).expel(2, "it did not come");
  fabric(1).expel(2, "it did not come");
  until("it has failed", [&] { return seen(0, Event::Kind::peer_failed, 2) == 1; });
  EXPECT_EQ(fabric(0).post(write(2, box.id(), 0, &value, 8)).refusal, Refusal::none);
}

TEST_P(Growing, AdmissionsThatCannotBeAreRefused) {
  start(1, 2);
  Admission admission = admission_of(1, 1);
  admission.first = 0;
  EXPECT_THROW(admit(admission, 0), Error);
  admission.first = kMaxRanks;
  EXPECT_THROW(admit(admission, 0), Error);
  admission.first = 1;
  admission.newcomers[0].name = "no such/name";
  EXPECT_THROW(admit(admission, 0), Error);
  EXPECT_THROW(admit({.first = 1}, 0), Error);
  EXPECT_EQ(fabric(0).size(), 1u);
}

/// FAB-G2 demands the same key on both sides; over streams, STR-J1 demands its proof.
TEST_P(Growing, WhoDoesNotKnowTheKeyIsNotTaken) {
  if (GetParam().variant.starts_with("Sim")) GTEST_SKIP() << "simulated nodes prove nothing";
  start(2, 4);
  const Admission admission = admission_of(2, 1);
  admit_everywhere(admission);
  Admission guessed = admission;
  for (std::byte& one : guessed.key) one ^= std::byte{0x55};
  begin(guessed);
  let_in(3);
  EXPECT_EQ(member(2).fabric, nullptr);
  for (Rank rank = 0; rank < 2; ++rank) {
    EXPECT_FALSE(fabric(rank).linked(2));
    EXPECT_FALSE(fabric(rank).failed(2));
  }
}

/// Over streams, STR-J4 promises what this test checks.
TEST_P(Growing, ManyComeAndGoAndNothingOfThemStays) {
  const std::uint32_t turns = test::rounds(GetParam().variant == "Shm" ? 200 : 80);
  start(2, 2 + turns);
  member(0).share({.name = "box", .bytes = 64});
  Held first;
  for (Rank rank = 2; rank < 2 + turns; ++rank) {
    let_in(rank);
    Region& box = member(rank).share({.name = "box", .bytes = 64});
    until("it is connected", [&] { return fabric(rank).connected(0, box.id()); });
    write_word(rank, 0, box.id(), rank);
    ASSERT_EQ(word_of(member(0).regions[0]), rank);
    if (rank == 2) first = Held::now();
    member(rank).leave();
    until("the members know", [&] { return fabric(0).failed(rank) && fabric(1).failed(rank); });
  }
  until("no more is held than with the first of them",
        [&] { return Held::now().no_more_than(first); });
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Fabrics, Growing, testing::ValuesIn(growers()),
                         [](const auto& grower) { return grower.param.variant; });

}  // namespace dunlin::conformance
