#include "support/seeds.hpp"

#include <cstdint>
#include <iostream>

#include "segment/audit.hpp"
#include "support/rounds.hpp"

/// Random histories in the simulator: members get, put and lock a few segments, while some crash,
/// hang, pause, are cut off, or come. What the promises of write, strict, version and delta say is
/// checked of all that came back.
namespace dunlin {
namespace test {

using remote::Status;

AuditedClient::AuditedClient(SegmentAudit& its_auditor, std::unique_ptr<Group> its_group,
                             std::uint64_t seed)
    : GroupMember(std::move(its_group), its_auditor.most()),
      auditor(its_auditor),
      rank(group.fabric().rank()),
      draws_(seed) {
  space = std::make_unique<SegmentSpace>(progress, SpaceOptions{.pool_bytes = 1 << 15});
}

bool AuditedClient::is_kept_out() const {
  for (Rank founder = 0; founder < auditor.founders; ++founder)
    if (members.contains(founder)) return false;
  return rank >= auditor.founders && !has_worked_;
}

std::size_t AuditedClient::step() {
  if (!auditor.ready) return 0;
  if (operation_) {
    if (!operation_->finished()) {
      if (doing_ != Doing::put || below(400) != 0) return 0;
      operation_->abandon();  // now and then: its event has no end
    }
    ended();
    return 1;
  }
  if (stopping_ && !locked_) return 0;
  const std::uint64_t now = space->fabric().now_ns();
  if (now < next_at_ns_) {
    space->fabric().wake_at(next_at_ns_);
    return 0;
  }
  choose();
  return 1;
}

void AuditedClient::choose() {
  if (!locked_) segment_ = &auditor.segments.at(below(auditor.used));
  if (locked_ && under_lock_-- == 0) return unlock();
  if (segment_->history.full()) {
    if (locked_) unlock();
    next_at_ns_ = space->fabric().now_ns() + 50'000;
    return;
  }
  const std::uint32_t what = below(10);
  if (!locked_ && what < 3) {
    doing_ = Doing::lock;
    const std::uint64_t timeout = below(3) == 0 ? 1 + below(20'000) : remote::kForever;
    operation_ = begin([&] { return space->lock(segment_->key, timeout); });
  } else if (what < 6) {
    begin_get();
  } else {
    begin_put();
  }
}

void AuditedClient::check(AuditedSegment& segment) {
  operation_.reset();
  segment_ = &segment;
  locked_ = false;
  checking_ = true;
  begin_get();
}

void AuditedClient::begin_get() {
  if (segment_->coherence == Coherence::delta && !checking_ && below(3) == 0) {
    doing_ = Doing::get_version;
    const std::uint64_t latest = segment_->values.empty() ? 0 : segment_->values.rbegin()->first;
    wanted_ = latest - std::min<std::uint64_t>(latest, below(4));
    if (auditor.names_versions && below(2) == 0) wanted_ = kLatestVersion - below(4);
    operation_ =
        begin([&] { return space->get_version(segment_->key, bytes_of(words_), wanted_); });
    return;
  }
  doing_ = Doing::get;
  event_ = segment_->history.add({.client = rank, .begin = ++auditor.events});
  operation_ = begin([&] { return space->get(segment_->key, bytes_of(words_)); });
}

void AuditedClient::begin_put() {
  doing_ = Doing::put;
  words_.fill(++auditor.values);
  event_ = segment_->history.add(
      {.is_put = true, .client = rank, .value = auditor.values, .begin = ++auditor.events});
  expected_ = UINT64_MAX;
  if (auditor.names_versions && segment_->has_versions() && below(2) == 0)
    expected_ = segment_->values.empty() ? 0 : segment_->values.rbegin()->first;
  operation_ = begin([&] {
    return expected_ == UINT64_MAX
               ? space->put(segment_->key, bytes_of(words_))
               : space->put_if_version(segment_->key, bytes_of(words_), expected_);
  });
}

void AuditedClient::ended() {
  const Outcome outcome = operation_->result();
  switch (outcome.status) {
    case Status::ok:
      ++(doing_ == Doing::get   ? auditor.seen.gets
         : doing_ == Doing::put ? auditor.seen.puts
                                : auditor.seen.locks);
      auditor.seen.recovered += outcome.recovered ? 1 : 0;
      auditor.seen.late += rank >= auditor.founders ? 1 : 0;
      has_worked_ = true;
      break;
    case Status::lost:
      ++auditor.seen.lost;
      auditor.lost(rank, *segment_);
      break;
    case Status::stopped:
      ++auditor.seen.stopped;
      break;
    case Status::abandoned:
      ++auditor.seen.abandoned;
      break;
    case Status::half_written:
      ++auditor.seen.half_written;
      EXPECT_TRUE(doing_ == Doing::get || expected_ != UINT64_MAX) << operation_->describe();
      EXPECT_NE(segment_->coherence, Coherence::delta);
      break;
    case Status::not_kept:
      ++auditor.seen.not_kept;
      EXPECT_EQ(doing_, Doing::get_version) << operation_->describe();
      break;
    case Status::changed:
      ++auditor.seen.changed;
      EXPECT_NE(outcome.version, expected_) << "SEG-14";
      segment_->refused.insert(segment_->history[event_].value);
      break;
    case Status::timed_out:
      ++auditor.seen.timed_out;
      EXPECT_EQ(doing_, Doing::lock) << operation_->describe();
      break;
    default:
      ADD_FAILURE() << operation_->describe();
  }
  if (outcome.ok() && doing_ == Doing::get) got(outcome.version);
  if (outcome.ok() && doing_ == Doing::get_version) got_version(outcome.version);
  if (outcome.ok() && doing_ == Doing::put) {
    EXPECT_TRUE(expected_ == UINT64_MAX || outcome.version == expected_ + 1) << "SEG-14";
    segment_->history[event_].end = ++auditor.events;
    is_version(outcome.version, segment_->history[event_].value);
  }
  if (outcome.ok() && doing_ == Doing::lock) {
    locked_ = true;
    under_lock_ = 1 + below(3);
    auditor.has_locked(rank, *segment_);
  }
  doing_ = Doing::nothing;
  operation_.reset();
  next_at_ns_ = space->fabric().now_ns() + (below(2) == 0 ? 0 : below(10'000));
}

/// SEG-9, SEG-11, SEG-14: whoever sees a version of a segment sees the same.
void AuditedClient::is_version(std::uint64_t version, std::uint64_t value) {
  if (!segment_->has_versions() || !auditor.counts(rank)) return;
  EXPECT_EQ(segment_->values.try_emplace(version, value).first->second, value)
      << "version " << version << " is not what it was";
}

void AuditedClient::got_version(std::uint64_t version) {
  ++auditor.seen.by_number;
  for (const std::uint64_t word : words_) ASSERT_EQ(word, words_[0]) << "torn, by number";
  is_version(version, words_[0]);
}

void AuditedClient::got(std::uint64_t version) {
  for (const std::uint64_t word : words_)
    ASSERT_EQ(word, words_[0]) << "torn under " << name_of(segment_->coherence);
  EXPECT_FALSE(segment_->refused.contains(words_[0])) << "SEG-14: a put that was refused";
  if (!auditor.counts(rank)) return;
  is_version(version, words_[0]);
  auditor.seen.saved += checking_ && auditor.gone[segment_->key.home()] ? 1 : 0;
  RegisterEvent& event = segment_->history[event_];
  event.value = words_[0];
  event.end = ++auditor.events;
}

void AuditedClient::unlock() {
  locked_ = false;
  std::erase(segment_->holders, rank);
  const Status status = space->unlock(segment_->key).status();
  EXPECT_TRUE(status == Status::ok || status == Status::stopped) << remote::describe(status);
}

}  // namespace test

namespace {

using test::SegmentAudit;
using test::SegmentsSeen;

const std::uint64_t kSeeds = test::rounds(2'000);

void report(const SegmentsSeen& seen) {
  std::cout << seen.gets << " gets, " << seen.puts << " puts, " << seen.locks << " locks, "
            << seen.recovered << " recovered, " << seen.half_written << " half written, "
            << seen.lost << " lost, " << seen.stopped << " stopped, " << seen.timed_out
            << " timed out, " << seen.abandoned << " abandoned, " << seen.by_number
            << " by number, " << seen.not_kept << " not kept, " << seen.saved << " saved, "
            << seen.changed << " changed, " << seen.late << " by later members\n";
  if (const std::string why = test::Histories::why_not(); !why.empty()) {
    std::cout << "not checked by Porcupine: " << why << '\n';
    return;
  }
  const auto verdict = seen.histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;
  std::cout << "Porcupine: " << verdict.text;
}

/// SEG-7 and SEG-8 promise linearizable histories, and values that are not torn.
void audit(bool later) {
  const test::Seeds seeds(kSeeds);
  SegmentsSeen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { SegmentAudit(seed, seen, later).run(); });
  for (const std::uint64_t count :
       {seen.gets, seen.puts, seen.locks, seen.recovered, seen.half_written, seen.lost,
        seen.stopped, seen.timed_out, seen.abandoned, seen.by_number, seen.not_kept, seen.saved,
        later ? seen.late : 1, later ? seen.changed : 1})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  report(seen);
}

TEST(SegmentInSimulator, KeepsItsPromisesWhateverHappens) { audit(false); }

/// REM-18, SEG-14: some members come when the others are at work, or die; and some calls name
/// versions.
TEST(SegmentInSimulator, KeepsItsPromisesWhenMembersComeLater) { audit(true); }

/// SEG-4. In these, a member that already takes a segment for lost is told that its second copy was
/// never complete; in the last two, a member dies that is asked for a segment whose home is gone.
TEST(SegmentInSimulator, WhatIsLostStaysLost) {
  SegmentsSeen seen;
  for (const std::uint64_t seed : {3682U, 4797U, 11920U, 20175U, 36083U, 18110U, 33006U}) {
    SegmentAudit auditor(seed, seen);
    auditor.run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(seen.lost, 0U);
}

}  // namespace
}  // namespace dunlin
