#include <array>
#include <memory>
#include <vector>

#include "segment/growing_spaces.hpp"
#include "support/errors.hpp"

/// Delta coherence on every fabric: versions are kept, and no get waits for a writer.
namespace dunlin {
namespace {

using remote::Status;

struct DeltaLitmus : test::OnSpaces {
  Key make(std::size_t bytes, std::uint32_t versions) {
    return spaces->make(
        0, {.bytes = bytes, .coherence = Coherence::delta, .placement = {0}, .versions = versions});
  }
  Outcome get_version(Rank rank, Key key, std::uint64_t version, std::uint64_t& value) {
    return spaces->end_of(at(rank).get_version(key, bytes_of(value), version));
  }
};
DUNLIN_RUN_ON(test::space_backends(), DeltaLitmus);

/// SEG-12 promises what this test checks.
TEST_P(DeltaLitmus, TheLastVersionsCanBeGotByNumber) {
  start(2);
  const Key key = make(8, 3);
  std::uint64_t value = 0;
  EXPECT_EQ(get_version(1, key, 0, value).status, Status::ok);
  EXPECT_EQ(value, 0U);
  EXPECT_EQ(get_version(1, key, 1, value).status, Status::not_kept);
  for (std::uint64_t version = 1; version <= 10; ++version) {
    std::uint64_t next = 100 + version;
    EXPECT_EQ(spaces->end_of(at(version % 2).put(key, bytes_of(next))).version, version);
    for (std::uint64_t number = 0; number <= version + 1; ++number) {
      const Outcome got = get_version(1, key, number, value);
      if (number > version || version - number >= 3) {
        EXPECT_EQ(got.status, Status::not_kept) << number << " of " << version;
      } else {
        EXPECT_EQ(got.status, Status::ok) << number << " of " << version;
        EXPECT_EQ(got.version, number);
        EXPECT_EQ(value, number == 0 ? 0 : 100 + number);
      }
    }
  }
  EXPECT_EQ(spaces->get(1, key), 110U);
}

TEST_P(DeltaLitmus, VersionsAreCountedFromTheLatest) {
  start(2);
  const Key key = make(8, 3);
  std::uint64_t value = 0;
  for (std::uint64_t version = 0; version <= 5; ++version) {
    if (version > 0) {
      EXPECT_EQ(spaces->put(0, key, 100 + version), Status::ok);
    }
    for (std::uint64_t before = 0; before <= 4; ++before) {
      const Outcome got = get_version(1, key, kLatestVersion - before, value);
      if (before > version || before >= 3) {
        EXPECT_EQ(got.status, Status::not_kept) << before << " before " << version;
      } else {
        EXPECT_EQ(got.status, Status::ok) << before << " before " << version;
        EXPECT_EQ(got.version, version - before);
        EXPECT_EQ(value, before == version ? 0 : 100 + version - before);
      }
    }
  }
}

TEST_P(DeltaLitmus, AGetDoesNotWaitForWhoHoldsTheLock) {
  start(2);
  const Key key = make(8, 1);
  EXPECT_EQ(spaces->put(0, key, 5), Status::ok);
  ASSERT_TRUE(spaces->end_of(at(0).lock(key)).ok());
  EXPECT_EQ(spaces->get(1, key), 5U);
  EXPECT_EQ(spaces->put(0, key, 6), Status::ok);
  EXPECT_EQ(spaces->get(1, key), 6U);
  EXPECT_EQ(at(0).unlock(key).status(), Status::ok);
}

TEST_P(DeltaLitmus, ARangeIsPutIntoTheVersionBefore) {
  start(2);
  const Key key = make(200, 2);
  std::array<std::uint64_t, 25> whole{};
  whole.fill(1);
  EXPECT_TRUE(spaces->end_of(at(0).put(key, bytes_of(whole))).ok());
  std::uint64_t part = 2;
  EXPECT_EQ(spaces->end_of(at(1).put(key, bytes_of(part), 80)).version, 2U);
  EXPECT_TRUE(spaces->end_of(at(0).get(key, bytes_of(whole))).ok());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], i == 10 ? 2U : 1U);
  EXPECT_TRUE(spaces->end_of(at(0).get_version(key, bytes_of(whole), 1)).ok());
  for (const std::uint64_t word : whole) EXPECT_EQ(word, 1U);
}

TEST_P(DeltaLitmus, AnAbandonedPutHasHappenedOrHasNot) {
  start(2);
  const Key key = make(1024, 2);
  std::array<std::uint64_t, 128> words{};
  for (std::uint64_t i = 1; i <= 40; ++i) {
    std::array<std::uint64_t, 128> next{};
    next.fill(i);
    auto put = test::begin([&] { return at(1).put(key, bytes_of(next)); });
    spaces->pass(i);
    put.reset();
    EXPECT_TRUE(spaces->end_of(at(0).get(key, bytes_of(words))).ok());
    for (const std::uint64_t word : words) ASSERT_EQ(word, words[0]);
    EXPECT_LE(words[0], i);
  }
}

/// One member puts all the time, and another gets: whole, and newer each time.
TEST_P(DeltaLitmus, GetsAreWholeAndNeverGoBack) {
  start(2);
  const Key key = make(1024, 2);
  std::array<std::uint64_t, 128> from{}, to{};
  std::uint64_t puts = 0, gets = 0, last = 0;
  SegmentOperation put, get;
  EXPECT_TRUE(spaces->until([&] {
    if (put.finished() && puts < 300) {
      EXPECT_TRUE(put.ok());
      from.fill(++puts);
      put = at(0).put(key, bytes_of(from));
    }
    if (get.finished()) {
      EXPECT_TRUE(get.ok()) << get.describe();
      for (const std::uint64_t word : to) EXPECT_EQ(word, to[0]);
      EXPECT_GE(to[0], last);
      last = to[0];
      ++gets;
      get = at(1).get(key, bytes_of(to));
    }
    return last == 300 || HasFailure();
  }));
  EXPECT_GT(gets, 1U);
}

TEST_P(DeltaLitmus, OnlyDeltaKeepsVersions) {
  start(2);
  std::uint64_t value = 0;
  const Key other = spaces->make(0, {.bytes = 8, .coherence = Coherence::write});
  EXPECT_EQ(get_version(0, other, 0, value).status, Status::not_allowed);
  for (const SegmentSpec& wrong :
       {SegmentSpec{.bytes = 8, .coherence = Coherence::delta},
        SegmentSpec{.bytes = 8, .versions = 2},
        SegmentSpec{.bytes = 8, .coherence = Coherence::delta, .versions = kMaxKeptVersions + 1}})
    EXPECT_TRUE(
        test::contains(test::what_is_thrown_by([&] { static_cast<void>(at(0).allocate(wrong)); }),
                       "kMaxKeptVersions"));
}

}  // namespace
}  // namespace dunlin
