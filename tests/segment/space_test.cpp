#include <array>
#include <deque>
#include <string>
#include <vector>

#include "segment/growing_spaces.hpp"
#include "support/errors.hpp"

namespace dunlin {
namespace {

using remote::Status;
using test::contains;
using test::what_is_thrown_by;

struct Space : test::OnSpaces {
  Key two_words(Coherence coherence) {
    return spaces->make(0, {.bytes = 16,
                            .coherence = coherence,
                            .placement = {1},
                            .versions = coherence == Coherence::delta ? 2U : 0U});
  }
};
DUNLIN_RUN_ON(test::space_backends(), Space);

constexpr std::array kAll{Coherence::null,   Coherence::read,    Coherence::write,
                          Coherence::strict, Coherence::version, Coherence::temporal};

constexpr std::array kEvery{Coherence::null,   Coherence::read,    Coherence::write,
                            Coherence::strict, Coherence::version, Coherence::temporal,
                            Coherence::delta};

TEST_P(Space, WhatOneMemberPutsAnotherGetsUnderEachCoherence) {
  start(3);
  for (const Coherence coherence : kAll) {
    const Key key = spaces->make(0, {.bytes = 8, .coherence = coherence});
    for (const Rank writer : {0U, 1U, 2U}) {
      EXPECT_EQ(spaces->put(writer, key, 100 + writer), Status::ok) << name_of(coherence);
      for (const Rank reader : {0U, 1U, 2U})
        EXPECT_EQ(spaces->get(reader, key), 100 + writer) << name_of(coherence);
    }
  }
}

TEST_P(Space, ManyGetsAndPutsBeginTogether) {
  start(3);
  constexpr std::size_t kMany = 40;
  std::vector<Key> keys;
  for (std::size_t i = 0; i < kMany; ++i)
    keys.push_back(spaces->make(
        0,
        {.bytes = 8, .coherence = kAll[i % kAll.size()], .placement = {static_cast<Rank>(i % 3)}}));
  std::array<std::uint64_t, kMany + 1> words{};
  std::deque<SegmentOperation> operations;
  std::vector<SegmentPut> puts;
  for (std::size_t i = 0; i < kMany; ++i) {
    words[i] = 1000 + i;
    puts.push_back({operations.emplace_back(), keys[i], bytes_of(words[i])});
  }
  at(1).put(puts);
  for (SegmentOperation& operation : operations) EXPECT_TRUE(spaces->end_of(operation).ok());
  words.fill(0);
  operations.clear();
  std::vector<SegmentGet> gets;
  for (std::size_t i = 0; i < kMany; ++i)
    gets.push_back({operations.emplace_back(), keys[i], bytes_of(words[i])});
  gets.push_back({operations.emplace_back(), keys[0], bytes_of(words[kMany]), 8});
  at(2).get(gets);
  for (std::size_t i = 0; i < kMany; ++i) {
    EXPECT_TRUE(spaces->end_of(operations[i]).ok()) << i;
    EXPECT_EQ(words[i], 1000 + i);
  }
  EXPECT_EQ(spaces->end_of(operations[kMany]).status, Status::out_of_range);
  at(2).get(std::span<const SegmentGet>());
}

TEST_P(Space, GetManyEndsWithWhatEachGetAloneWouldEndWith) {
  start(2);
  constexpr std::size_t kMany = 70;
  std::array<std::uint64_t, kMany> words{};
  std::vector<SegmentRead> reads;
  for (std::size_t i = 0; i < kMany; ++i) {
    const Key key = spaces->make(
        0, {.bytes = 8, .coherence = kAll[i % kAll.size()], .placement = Placement::on(0)});
    EXPECT_EQ(spaces->put(0, key, 1000 + i), Status::ok);
    reads.push_back({.key = key, .to = bytes_of(words[i])});
  }
  EXPECT_TRUE(spaces->end_of(at(0).lock(reads[3].key)).ok());
  EXPECT_EQ(at(0).get_many(reads), Status::ok);
  for (std::size_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(reads[i].status, Status::ok) << i;
    EXPECT_EQ(words[i], 1000 + i);
  }
  EXPECT_EQ(reads[4].version, 1U);  // under version coherence
  words.fill(0);
  reads[20].offset = 8;
  reads[40].key = Key::of(0, 5000, 1);
  EXPECT_EQ(at(0).get_many(reads), Status::out_of_range);
  EXPECT_EQ(reads[20].status, Status::out_of_range);
  EXPECT_EQ(reads[40].status, Status::unknown);
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(words[i], i == 20 || i == 40 ? 0 : 1000 + i);
  EXPECT_EQ(at(0).get_many({}), Status::ok);
}

TEST_P(Space, ASegmentBeginsWithZerosAlsoWhereAnotherWas) {
  start(2, {.pool_bytes = 256});
  for (int round = 0; round < 3; ++round) {
    const Key key =
        spaces->make(0, {.bytes = 128, .coherence = Coherence::write, .placement = {1}});
    std::array<std::uint64_t, 16> words{};
    EXPECT_TRUE(spaces->end_of(at(0).get(key, bytes_of(words))).ok());
    EXPECT_EQ(words, (std::array<std::uint64_t, 16>{}));
    words.fill(UINT64_MAX);
    EXPECT_TRUE(spaces->end_of(at(0).put(key, bytes_of(words))).ok());
    EXPECT_TRUE(spaces->end_of(at(1).release(key)).ok());
  }
}

TEST_P(Space, RangesAreReadAndWrittenAlone) {
  start(2);
  for (const Coherence coherence : kAll) {
    const Key key = spaces->make(1, {.bytes = 200, .coherence = coherence, .placement = {0}});
    const std::array<std::uint64_t, 3> part{7, 8, 9};
    EXPECT_TRUE(spaces->end_of(at(1).put(key, std::as_bytes(std::span(part)), 64)).ok());
    std::array<std::uint64_t, 25> whole{};
    EXPECT_TRUE(spaces->end_of(at(0).get(key, bytes_of(whole))).ok());
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(whole[i], i >= 8 && i < 11 ? part[i - 8] : 0) << i;
    std::uint64_t one = 0;
    EXPECT_TRUE(spaces->end_of(at(0).get(key, bytes_of(one), 72)).ok());
    EXPECT_EQ(one, 8U);
  }
}

TEST_P(Space, AnErrorSaysWhichSegmentAndWhy) {
  start(2, {.pool_bytes = 4096});
  const Key key = spaces->make(0, {.bytes = 64, .placement = {1}});
  std::array<std::uint64_t, 9> words{};
  EXPECT_EQ(spaces->end_of(at(0).get(key, bytes_of(words))).status, Status::out_of_range);
  EXPECT_EQ(spaces->end_of(at(0).get(key, {})).status, Status::out_of_range);
  EXPECT_EQ(spaces->end_of(at(0).put(key, bytes_of(words[0]), UINT64_MAX - 7)).status,
            Status::out_of_range);
  EXPECT_EQ(spaces->end_of(at(0).get(key, bytes_of(words[0]), 4)).status, Status::misaligned);
  EXPECT_EQ(spaces->end_of(at(0).get_if_changed(key, bytes_of(words[0]), 0)).status,
            Status::not_allowed);
  EXPECT_EQ(spaces->end_of(at(0).unlock(key)).status, Status::not_held);
  EXPECT_EQ(spaces->end_of(at(0).get(Key::of(1, 77, 1), bytes_of(words[0]))).status,
            Status::unknown);
  EXPECT_EQ(spaces->end_of(at(0).get(Key{}, bytes_of(words[0]))).status, Status::unknown);
  EXPECT_EQ(spaces->end_of(at(0).get(Key::of(9, 0, 1), bytes_of(words[0]))).status,
            Status::unknown);
  auto full = at(0).allocate({.bytes = 4096, .placement = {1}});
  EXPECT_EQ(spaces->end_of(full).status, Status::no_room);
  EXPECT_TRUE(contains(full.describe(), "allocation of 4096 bytes"));
  auto get = at(0).get(key, bytes_of(words));
  EXPECT_TRUE(contains(get.describe(), "slot 0, generation 1")) << get.describe();
  EXPECT_TRUE(contains(get.describe(), "ends past the end")) << get.describe();
  EXPECT_TRUE(
      contains(what_is_thrown_by([&] { static_cast<void>(at(0).allocate({})); }), "0 bytes"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { static_cast<void>(at(0).allocate({.bytes = 8, .name = "a\nb"})); }),
      "printable ASCII"));
  EXPECT_TRUE(contains(
      what_is_thrown_by([&] { static_cast<void>(at(0).allocate({.bytes = 8, .placement = {5}})); }),
      "no member 5"));
}

/// SEG-2 promises the status, and SEG-1 that the young segment is not reached.
TEST_P(Space, AReleasedKeyIsReleasedForEverybody) {
  start(3, {.pool_bytes = 256});
  const Key old = spaces->make(0, {.bytes = 64, .coherence = Coherence::null, .placement = {1}});
  std::uint64_t value = 5;
  EXPECT_EQ(spaces->put(2, old, 5), Status::ok);
  EXPECT_EQ(spaces->get(0, old), 5U);
  EXPECT_TRUE(spaces->end_of(at(0).release(old)).ok());
  const Key young = spaces->make(2, {.bytes = 64, .placement = {1}});
  EXPECT_EQ(young.slot(), old.slot());
  EXPECT_NE(young, old);
  for (const Rank rank : {0U, 1U, 2U}) {
    EXPECT_EQ(spaces->end_of(at(rank).get(old, bytes_of(value))).status, Status::released);
    EXPECT_EQ(spaces->end_of(at(rank).put(old, bytes_of(value))).status, Status::released);
    EXPECT_EQ(spaces->end_of(at(rank).lock(old)).status, Status::released);
    EXPECT_EQ(spaces->end_of(at(rank).release(old)).status, Status::released);
  }
  EXPECT_EQ(spaces->get(0, young), 0U);
}

/// Where memory is mapped its gets end at once, and nothing else lets it poll.
TEST(SpaceOnShm, AMemberThatOnlyGetsManyAnswersTheOthers) {
  test::RealCluster<test::Spaces> spaces(test::backend_of("Shm"), 2);
  const Key read = spaces.make(0, {.bytes = 8, .placement = {0}}),
            released = spaces.make(0, {.bytes = 8, .placement = {0}});
  for (const Key key : {read, released}) EXPECT_EQ(spaces.put(1, key, 7), Status::ok);
  auto release = spaces[0].release(released);
  std::uint64_t value = 0;
  for (int i = 0; i < 100'000 && !release.finished(); ++i) {
    std::array<SegmentRead, 1> reads{{{read, bytes_of(value)}}};
    EXPECT_EQ(spaces[1].get_many(reads), Status::ok);
    spaces[0].poll();
  }
  EXPECT_TRUE(release.ok()) << release.describe();
}

/// A member that has dropped a segment has no segment of the key of nothing.
TEST_P(Space, NoSegmentHasTheKeyOfNothing) {
  start(2);
  const Key old = spaces->make(0, {.bytes = 8, .placement = {0}});
  for (const Rank rank : {0U, 1U}) EXPECT_EQ(spaces->put(rank, old, 5), Status::ok);
  EXPECT_TRUE(spaces->end_of(at(0).release(old)).ok());
  const Key young = spaces->make(0, {.bytes = 8, .placement = {0}});
  std::uint64_t value = 0;
  EXPECT_EQ(spaces->end_of(at(1).lock(Key{})).status, Status::unknown);
  EXPECT_EQ(spaces->end_of(at(1).get(Key{}, bytes_of(value))).status, Status::unknown);
  EXPECT_EQ(spaces->end_of(at(1).release(Key{})).status, Status::unknown);
  EXPECT_EQ(spaces->end_of(at(0).try_lock(young)).status, Status::ok);
}

TEST_P(Space, AReleaseWaitsForTheLocksHolder) {
  start(3);
  const Key key = spaces->make(0, {.bytes = 8, .placement = {1}});
  ASSERT_TRUE(spaces->end_of(at(2).lock(key)).ok());
  auto release = at(0).release(key);
  EXPECT_EQ(spaces->put(2, key, 3), Status::ok);  // who holds the lock may finish
  EXPECT_FALSE(release.finished());
  ASSERT_TRUE(spaces->end_of(at(2).unlock(key)).ok());
  EXPECT_TRUE(spaces->end_of(release).ok());
  EXPECT_EQ(at(1).use().used, 0U);
}

TEST_P(Space, NamesAreUniqueAndFound) {
  start(3);
  const Key key = spaces->make(0, {.bytes = 8, .name = "load/rack7"});
  const Outcome again = spaces->end_of(at(1).allocate({.bytes = 8, .name = "load/rack7"}));
  EXPECT_EQ(again.status, Status::name_taken);
  for (const Rank rank : {0U, 1U, 2U})
    EXPECT_EQ(spaces->end_of(at(rank).find("load/rack7")).key, key);
  EXPECT_EQ(spaces->end_of(at(1).find("load/rack8")).status, Status::unknown);
  EXPECT_TRUE(spaces->end_of(at(2).release(key)).ok());
  EXPECT_EQ(spaces->end_of(at(1).find("load/rack7")).status, Status::unknown);
  spaces->make(1, {.bytes = 8, .name = "load/rack7"});
}

TEST_P(Space, PlacesInTurnOrWhereItIsTold) {
  start(3);
  std::array<int, 3> count{};
  for (int i = 0; i < 6; ++i) ++count.at(spaces->make(0, {.bytes = 8}).home());
  EXPECT_EQ(count, (std::array<int, 3>{2, 2, 2}));
  EXPECT_EQ(spaces->make(2, {.bytes = 8, .placement = Placement::here()}).home(), 2U);
  EXPECT_EQ(spaces->make(2, {.bytes = 8, .placement = Placement::on(1)}).home(), 1U);
}

TEST_P(Space, AVersionIsTransferredOnlyIfItIsNew) {
  start(2);
  const Key key = spaces->make(0, {.bytes = 8, .coherence = Coherence::version, .placement = {1}});
  std::uint64_t value = 7;
  EXPECT_EQ(spaces->end_of(at(0).put(key, bytes_of(value))).version, 1U);
  std::uint64_t seen = 0;
  const Outcome first = spaces->end_of(at(0).get_if_changed(key, bytes_of(seen), 0));
  EXPECT_EQ(first.version, 1U);
  EXPECT_EQ(seen, 7U);
  seen = 99;
  const Outcome same = spaces->end_of(at(0).get_if_changed(key, bytes_of(seen), first.version));
  EXPECT_TRUE(same.unchanged);
  EXPECT_EQ(seen, 99U);
  value = 8;
  EXPECT_EQ(spaces->end_of(at(1).put(key, bytes_of(value))).version, 2U);
  const Outcome next = spaces->end_of(at(0).get_if_changed(key, bytes_of(seen), first.version));
  EXPECT_FALSE(next.unchanged);
  EXPECT_EQ(seen, 8U);
}

/// SEG-10, with a bound of the call's own.
TEST_P(Space, ACopyIsTakenIfItIsNoOlderThanTheCallSays) {
  constexpr std::uint64_t kHourNs = 3'600'000'000'000;
  start(2);
  for (const Coherence coherence : kEvery) {
    const Key key = two_words(coherence);
    std::array<std::uint64_t, 2> whole{};
    const auto get = [&](std::uint64_t age_ns) {
      return spaces->end_of(at(0).get_no_older(key, bytes_of(whole), age_ns));
    };
    const auto put = [&](Rank by, std::uint64_t value) {
      whole.fill(value);
      EXPECT_TRUE(spaces->end_of(at(by).put(key, bytes_of(whole))).ok());
      whole.fill(0);
    };
    if (coherence == Coherence::null || coherence == Coherence::read ||
        coherence == Coherence::strict) {
      EXPECT_EQ(get(kHourNs).status, Status::not_allowed) << name_of(coherence);
      continue;
    }
    put(1, 1);
    EXPECT_EQ(get(kHourNs).version, 1U) << name_of(coherence);
    put(1, 2);
    EXPECT_EQ(get(kHourNs).version, 1U) << name_of(coherence);
    EXPECT_EQ(whole[1], 1U);
    std::uint64_t one = 0;
    EXPECT_TRUE(spaces->end_of(at(0).get_no_older(key, bytes_of(one), kHourNs, 8)).ok());
    EXPECT_EQ(one, 1U) << "of a range";
    EXPECT_EQ(spaces->get(0, key), 2U) << name_of(coherence);
    EXPECT_EQ(get(0).version, 2U) << name_of(coherence);
    put(1, 3);
    EXPECT_EQ(get(kHourNs).version, 2U) << name_of(coherence) << ": the copy is the last one read";
    put(0, 4);
    EXPECT_EQ(get(kHourNs).version, 4U) << name_of(coherence) << ": a put drops the copy";
    EXPECT_EQ(whole[0], 4U);
  }
}

TEST_P(Space, AGetUnderTheLockTakesNoCopy) {
  start(2);
  const Key key = spaces->make(0, {.bytes = 8,
                                   .coherence = Coherence::temporal,
                                   .placement = {1},
                                   .stale_ns = 3'600'000'000'000});
  EXPECT_EQ(spaces->get(0, key), 0U);
  EXPECT_EQ(spaces->put(1, key, 1), Status::ok);
  EXPECT_EQ(spaces->get(0, key), 0U);
  ASSERT_TRUE(spaces->end_of(at(0).lock(key)).ok());
  EXPECT_EQ(spaces->get(0, key), 1U);
  EXPECT_EQ(at(0).unlock(key).status(), Status::ok);
}

/// SEG-14 promises what this test checks.
TEST_P(Space, APutThatNamesAVersionReplacesThatOne) {
  start(2);
  for (const Coherence coherence : kEvery) {
    const Key key = two_words(coherence);
    const auto put_if = [&](Rank by, std::uint64_t value, std::uint64_t expected,
                            std::uint64_t offset = 0) {
      std::array<std::uint64_t, 2> words{value, value};
      return spaces->end_of(at(by).put_if_version(key, bytes_of(words).first(offset == 0 ? 16 : 8),
                                                  expected, offset));
    };
    if (coherence != Coherence::version && coherence != Coherence::temporal &&
        coherence != Coherence::delta) {
      EXPECT_EQ(put_if(0, 1, 0).status, Status::not_allowed) << name_of(coherence);
      continue;
    }
    for (const Rank by : {0U, 1U}) {
      const std::uint64_t before = 3 * by;
      EXPECT_EQ(put_if(by, before + 1, before).version, before + 1) << name_of(coherence);
      for (const std::uint64_t other : {before, before + 2, UINT64_MAX}) {
        const Outcome lost = put_if(by, 99, other);
        EXPECT_EQ(lost.status, Status::changed) << name_of(coherence) << other;
        EXPECT_EQ(lost.version, before + 1) << name_of(coherence);
      }
      EXPECT_EQ(spaces->get(1 - by, key), before + 1);
      EXPECT_EQ(put_if(by, before + 2, before + 1, 8).version, before + 2) << "of a range";
      EXPECT_EQ(spaces->get(by, key), before + 1);
      ASSERT_TRUE(spaces->end_of(at(by).lock(key)).ok());
      EXPECT_EQ(put_if(by, 99, before).status, Status::changed) << "under the lock";
      EXPECT_EQ(put_if(by, before + 3, before + 2).version, before + 3) << "under the lock";
      EXPECT_EQ(at(by).unlock(key).status(), Status::ok);
    }
  }
}

/// All members add to one counter, without locks of their own.
TEST_P(Space, NoAdditionToTheVersionThatWasGotIsLost) {
  constexpr std::uint64_t kEach = 30;
  start(4);
  const Key key = spaces->make(0, {.bytes = 8, .coherence = Coherence::version, .placement = {1}});
  struct Program {
    std::uint64_t value = 0, left = kEach;
    bool has_got = false;
    SegmentOperation step;
  };
  std::array<Program, 4> programs;
  std::uint64_t lost = 0;
  EXPECT_TRUE(spaces->until([&] {
    bool all = true;
    for (Rank rank = 0; rank < programs.size(); ++rank) {
      Program& one = programs.at(rank);
      if (one.left == 0) continue;
      if (one.step.begun() && !one.step.finished()) {
        all = false;
        continue;
      }
      if (one.has_got) {
        const std::uint64_t got = one.step.result().version;
        ++one.value;
        one.step = at(rank).put_if_version(key, bytes_of(one.value), got);
      } else {
        if (one.step.begun() && one.step.ok()) --one.left;
        lost += one.step.begun() && one.step.status() == Status::changed ? 1 : 0;
        if (one.left > 0) one.step = at(rank).get(key, bytes_of(one.value));
      }
      one.has_got = !one.has_got && one.left > 0;
      all = all && one.left == 0;
    }
    return all;
  }));
  EXPECT_EQ(spaces->get(2, key), 4 * kEach) << lost << " lost";
}

/// SEG-10 promises what this test checks.
TEST_P(Space, ATemporalCopyIsUsedForAsLongAsItSays) {
  start(2);
  const Key lasting = spaces->make(0, {.bytes = 8,
                                       .coherence = Coherence::temporal,
                                       .placement = {1},
                                       .stale_ns = 3'600'000'000'000});
  const Key fresh =
      spaces->make(0, {.bytes = 8, .coherence = Coherence::temporal, .placement = {1}});
  for (const Key key : {lasting, fresh}) {
    EXPECT_EQ(spaces->put(1, key, 1), Status::ok);
    EXPECT_EQ(spaces->get(0, key), 1U);
    EXPECT_EQ(spaces->put(1, key, 2), Status::ok);
  }
  EXPECT_EQ(spaces->get(0, lasting), 1U);
  EXPECT_EQ(spaces->get(0, fresh), 2U);
}

}  // namespace
}  // namespace dunlin
