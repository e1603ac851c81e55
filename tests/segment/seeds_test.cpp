#include "support/seeds.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/segment.hpp>

#include "segment/register_history.hpp"
#include "segment/spaces.hpp"
#include "support/histories.hpp"
#include "support/rounds.hpp"
#include "support/troubles.hpp"

/// Random histories in the simulator: members get, put and lock a few segments, while some crash,
/// hang, pause, or are cut off. What the promises of write, strict and version say is checked of
/// all that came back.
namespace dunlin {
namespace {

using remote::Status;
using test::RegisterHistory;

const std::uint64_t kSeeds = test::rounds(2'000);
constexpr std::size_t kWords = 137;  // lines enough that torn ones are seen
constexpr std::uint32_t kSegments = 3;
constexpr std::uint64_t kNever = UINT64_MAX;

struct Shared {
  Key key;
  Coherence coherence = Coherence::null;
  std::uint32_t versions = 0;
  std::uint32_t copies = 1;
  RegisterHistory history;
  std::map<std::uint64_t, std::uint64_t> values;  // delta: by version
  std::vector<Rank> holders;                      // by lock()
};

struct Auditor;

/// How often what the audit is about has happened, over all seeds.
struct Seen {
  std::uint64_t gets = 0, puts = 0, locks = 0, recovered = 0, half_written = 0, lost = 0,
                stopped = 0, timed_out = 0, abandoned = 0, by_number = 0, not_kept = 0, saved = 0;
  test::Histories histories;  // of all seeds, for a checker that is not ours
};

/// A member's program: one operation at a time.
class Client : public test::GroupMember {
 public:
  Client(Auditor& auditor, Rank rank, std::uint64_t seed);
  std::size_t step();
  void stop() { stopping_ = true; }
  void close() {
    operation_.reset();
    space.reset();
  }
  /// One more get, of a segment that has outlived its home.
  void check(Shared& segment);
  [[nodiscard]] bool idle() const { return !locked_ && (!operation_ || operation_->finished()); }
  [[nodiscard]] std::string describe() const {
    return operation_ ? operation_->describe() : "nothing";
  }

  Auditor& auditor;
  Rank rank;
  std::unique_ptr<SegmentSpace> space;

 private:
  enum class Doing { nothing, get, get_version, put, lock };
  std::uint32_t below(std::uint32_t limit) { return draws_.below(limit); }
  void choose();
  void begin_get();
  void begin_put();
  void ended();
  void got(std::uint64_t version);
  void got_version();
  void is_version(std::uint64_t version, std::uint64_t value);
  void unlock();

  test::Draws draws_;
  bool stopping_ = false;
  Doing doing_ = Doing::nothing;
  Shared* segment_ = nullptr;
  bool locked_ = false;
  std::uint32_t under_lock_ = 0;  // operations left
  bool checking_ = false;
  std::uint64_t wanted_ = 0;  // version
  std::size_t event_ = 0;
  std::uint64_t next_at_ns_ = 0;
  std::array<std::uint64_t, kWords> words_{};
  std::unique_ptr<SegmentOperation> operation_;
};

struct Auditor {
  Auditor(std::uint64_t its_seed, Seen& what)
      : seen(what),
        seed(its_seed),
        draws(seed),
        count(2 + below(4)),
        world(test::unfavourable_network(draws), count, seed),
        gone(count) {
    for (Rank rank = 0; rank < count; ++rank) {
      clients.push_back(std::make_unique<Client>(*this, rank, seed * 97 + rank));
      Client& client = *clients.back();
      world.attach(rank, [&client] { return client.progress.poll() + client.step(); });
    }
    for (std::uint32_t i = 0; i < kSegments; ++i) {
      Shared& segment = segments.at(i);
      segment.coherence =
          std::array{Coherence::write, Coherence::strict, Coherence::version, Coherence::delta}.at(
              below(4));
      if (segment.coherence == Coherence::delta) segment.versions = 1 + below(3);
      segment.copies = 1 + below(2);
      auto made = test::begin([&] {
        return clients[0]->space->allocate({.bytes = kWords * 8,
                                            .coherence = segment.coherence,
                                            .placement = {below(count)},
                                            .versions = segment.versions,
                                            .copies = segment.copies});
      });
      EXPECT_TRUE(world.run_until([&] { return made->finished(); }, 100'000'000));
      EXPECT_TRUE(made->ok()) << made->describe();
      segment.key = made->result().key;
    }
    ready = true;
  }

  void run() {
    for (std::uint32_t troubles = below(5); troubles > 0; --troubles) {
      world.run_for(1 + below(400'000));
      test::trouble(world, draws, gone);
    }
    world.run_for(500'000);
    test::heal_all(world, count);
    for (const auto& client : clients) client->stop();
    bool all_ended = world.run_until([&] { return all_idle(); }, 1'000'000'000);
    if (all_ended) all_ended = look_once_more();
    for (Rank rank = 0; rank < count; ++rank)
      EXPECT_TRUE(all_ended || gone[rank] || clients[rank]->idle())
          << "member " << rank << " hangs: " << clients[rank]->describe();
    report_histories();
    for (Shared& segment : segments)
      EXPECT_TRUE(segment.history.linearizable()) << name_of(segment.coherence) << "\n"
                                                  << text(segment.history);
    for (const auto& client : clients) client->close();
  }

  void report_histories() {
    seen.histories.begin("seed-" + std::to_string(seed), test::Histories::Model::one_register);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const std::string key = std::string(name_of(segments.at(i).coherence)) + std::to_string(i);
      for (const test::RegisterEvent& event : segments.at(i).history.events()) {
        const std::string value = std::to_string(event.value);
        if (event.is_put) {
          seen.histories.put(event.client, key, value, event.begin, event.end);
        } else if (event.end != kNever) {
          seen.histories.get(event.client, key, value, event.begin, event.end);
        }
      }
    }
  }

  /// What was put into segments with two copies is there, wherever they are by now.
  bool look_once_more() {
    for (Shared& segment : segments)
      for (Rank rank = 0; rank < count; ++rank) {
        if (segment.copies < 2 || gone[rank] || !clients[rank]->is_member()) continue;
        clients[rank]->check(segment);
        if (!world.run_until([&] { return clients[rank]->idle(); }, 1'000'000'000)) return false;
      }
    return true;
  }

  /// One that the others have gone on without gets what was there before, until it learns of it.
  bool counts(Rank rank) {
    for (Rank other = 0; other < count; ++other)
      if (!gone[other] && clients[other]->is_member() && !clients[other]->members.contains(rank))
        return false;
    return true;
  }

  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (!gone[rank] && !clients[rank]->idle()) return false;
    return true;
  }

  /// With two copies, only if two members are gone.
  void lost(Rank rank, const Shared& segment) {
    std::uint32_t without = 0;
    for (Rank other = 0; other < count; ++other)
      if (!clients[rank]->members.contains(other)) ++without;
    EXPECT_TRUE(segment.copies < 2 || without >= 2)
        << "member " << rank << " lost a segment with two copies";
  }

  /// REM-8. A member that was stopped for long may find the lock granted to it in its first round,
  /// before it learns that the others have gone on without it: it can change nothing then.
  void has_locked(Rank rank, Shared& segment) {
    for (const Rank other : segment.holders) {
      const bool parted =
          !clients[rank]->members.contains(other) || !clients[other]->members.contains(rank);
      EXPECT_TRUE(gone[other] || parted)
          << "members " << other << " and " << rank << " hold one lock";
    }
    segment.holders.push_back(rank);
  }

  std::uint32_t below(std::uint32_t limit) { return draws.below(limit); }
  static std::string text(const RegisterHistory& history) {
    std::string all;
    for (const test::RegisterEvent& event : history.events())
      all += (event.is_put ? "put " : "get ") + std::to_string(event.value) + " from " +
             std::to_string(event.begin) + " to " +
             (event.end == kNever ? "?" : std::to_string(event.end)) + "\n";
    return all;
  }

  Seen& seen;
  std::uint64_t seed;
  test::Draws draws;
  std::uint32_t count;
  sim::World world;
  std::vector<bool> gone;                     // crashed or hung
  std::uint32_t used = 1 + below(kSegments);  // few, so that members meet
  bool ready = false;
  std::uint64_t events = 0;
  std::uint64_t values = 0;
  std::array<Shared, kSegments> segments;
  std::vector<std::unique_ptr<Client>> clients;
};

Client::Client(Auditor& its_auditor, Rank its_rank, std::uint64_t seed)
    : GroupMember(its_auditor.world.fabric(its_rank)),
      auditor(its_auditor),
      rank(its_rank),
      draws_(seed) {
  space = std::make_unique<SegmentSpace>(progress, SpaceOptions{.pool_bytes = 1 << 15});
}

std::size_t Client::step() {
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

void Client::choose() {
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
    operation_ = test::begin([&] { return space->lock(segment_->key, timeout); });
  } else if (what < 6) {
    begin_get();
  } else {
    begin_put();
  }
}

void Client::check(Shared& segment) {
  operation_.reset();
  segment_ = &segment;
  locked_ = false;
  checking_ = true;
  begin_get();
}

void Client::begin_get() {
  if (segment_->coherence == Coherence::delta && !checking_ && below(3) == 0) {
    doing_ = Doing::get_version;
    const std::uint64_t latest = segment_->values.empty() ? 0 : segment_->values.rbegin()->first;
    wanted_ = latest - std::min<std::uint64_t>(latest, below(4));
    operation_ =
        test::begin([&] { return space->get_version(segment_->key, bytes_of(words_), wanted_); });
    return;
  }
  doing_ = Doing::get;
  event_ = segment_->history.add({.client = rank, .begin = ++auditor.events});
  operation_ = test::begin([&] { return space->get(segment_->key, bytes_of(words_)); });
}

void Client::begin_put() {
  doing_ = Doing::put;
  words_.fill(++auditor.values);
  event_ = segment_->history.add(
      {.is_put = true, .client = rank, .value = auditor.values, .begin = ++auditor.events});
  operation_ = test::begin([&] { return space->put(segment_->key, bytes_of(words_)); });
}

void Client::ended() {
  const Outcome outcome = operation_->result();
  switch (outcome.status) {
    case Status::ok:
      ++(doing_ == Doing::get   ? auditor.seen.gets
         : doing_ == Doing::put ? auditor.seen.puts
                                : auditor.seen.locks);
      auditor.seen.recovered += outcome.recovered ? 1 : 0;
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
      EXPECT_EQ(doing_, Doing::get) << operation_->describe();
      EXPECT_NE(segment_->coherence, Coherence::delta);
      break;
    case Status::not_kept:
      ++auditor.seen.not_kept;
      EXPECT_EQ(doing_, Doing::get_version) << operation_->describe();
      break;
    case Status::timed_out:
      ++auditor.seen.timed_out;
      EXPECT_EQ(doing_, Doing::lock) << operation_->describe();
      break;
    default:
      ADD_FAILURE() << operation_->describe();
  }
  if (outcome.ok() && doing_ == Doing::get) got(outcome.version);
  if (outcome.ok() && doing_ == Doing::get_version) got_version();
  if (outcome.ok() && doing_ == Doing::put) {
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

/// SEG-9, SEG-11: whoever sees a version of a segment sees the same.
void Client::is_version(std::uint64_t version, std::uint64_t value) {
  if (segment_->coherence != Coherence::delta || !auditor.counts(rank)) return;
  EXPECT_EQ(segment_->values.try_emplace(version, value).first->second, value)
      << "version " << version << " is not what it was";
}

void Client::got_version() {
  ++auditor.seen.by_number;
  for (const std::uint64_t word : words_) ASSERT_EQ(word, words_[0]) << "torn, by number";
  is_version(wanted_, words_[0]);
}

void Client::got(std::uint64_t version) {
  for (const std::uint64_t word : words_)
    ASSERT_EQ(word, words_[0]) << "torn under " << name_of(segment_->coherence);
  if (!auditor.counts(rank)) return;
  is_version(version, words_[0]);
  auditor.seen.saved += checking_ && auditor.gone[segment_->key.home()] ? 1 : 0;
  test::RegisterEvent& event = segment_->history[event_];
  event.value = words_[0];
  event.end = ++auditor.events;
}

void Client::unlock() {
  locked_ = false;
  std::erase(segment_->holders, rank);
  const Status status = space->unlock(segment_->key).status();
  EXPECT_TRUE(status == Status::ok || status == Status::stopped) << remote::describe(status);
}

/// SEG-7 and SEG-8 promise linearizable histories, and values that are not torn.
TEST(SegmentInSimulator, KeepsItsPromisesWhateverHappens) {
  const test::Seeds seeds(kSeeds);
  Seen seen;
  test::for_each_seed(seeds, [&](std::uint64_t seed) { Auditor(seed, seen).run(); });
  for (const std::uint64_t count :
       {seen.gets, seen.puts, seen.locks, seen.recovered, seen.half_written, seen.lost,
        seen.stopped, seen.timed_out, seen.abandoned, seen.by_number, seen.not_kept, seen.saved})
    EXPECT_TRUE(count > 0 || !seeds.are_usual) << "an audit of nothing";
  std::cout << seen.gets << " gets, " << seen.puts << " puts, " << seen.locks << " locks, "
            << seen.recovered << " recovered, " << seen.half_written << " half written, "
            << seen.lost << " lost, " << seen.stopped << " stopped, " << seen.timed_out
            << " timed out, " << seen.abandoned << " abandoned, " << seen.by_number
            << " by number, " << seen.not_kept << " not kept, " << seen.saved << " saved\n";
  if (const std::string why = test::Histories::why_not(); !why.empty()) {
    std::cout << "not checked by Porcupine: " << why << '\n';
    return;
  }
  const auto verdict = seen.histories.check();
  EXPECT_TRUE(verdict.linearizable) << verdict.text;
  std::cout << "Porcupine: " << verdict.text;
}

/// SEG-4. In these, a member that already takes a segment for lost is told that its second copy was
/// never complete; in the last two, a member dies that is asked for a segment whose home is gone.
TEST(SegmentInSimulator, WhatIsLostStaysLost) {
  Seen seen;
  for (const std::uint64_t seed : {3682U, 4797U, 11920U, 20175U, 36083U, 18110U, 33006U}) {
    Auditor auditor(seed, seen);
    auditor.run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(seen.lost, 0U);
}

}  // namespace
}  // namespace dunlin
