#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/segment.hpp>

#include "segment/growing_spaces.hpp"
#include "segment/register_history.hpp"
#include "support/histories.hpp"
#include "support/troubles.hpp"

/// The members of an audit of segments, and the audit of one seed (seeds_test.cpp).
namespace dunlin::test {

constexpr std::size_t kAuditedWords = 137;  // lines enough that torn ones are seen
constexpr std::uint32_t kAuditedSegments = 3;

struct AuditedSegment {
  Key key;
  Coherence coherence = Coherence::null;
  std::uint32_t versions = 0;
  std::uint32_t copies = 1;
  RegisterHistory history;
  std::map<std::uint64_t, std::uint64_t> values;  // version, delta: by version
  std::set<std::uint64_t> refused;                // values of puts that ended with `changed`
  std::vector<Rank> holders;                      // by lock()

  [[nodiscard]] bool has_versions() const {
    return coherence == Coherence::version || coherence == Coherence::delta;
  }
};

struct SegmentAudit;

/// How often what the audit is about has happened, over all seeds.
struct SegmentsSeen {
  std::uint64_t gets = 0, puts = 0, locks = 0, recovered = 0, half_written = 0, lost = 0,
                stopped = 0, timed_out = 0, abandoned = 0, by_number = 0, not_kept = 0, saved = 0,
                changed = 0, late = 0;  // calls of members that came later
  Histories histories;                  // of all seeds, for a checker that is not ours
};

/// A member's program: one operation at a time.
class AuditedClient : public GroupMember {
 public:
  AuditedClient(SegmentAudit& auditor, std::unique_ptr<Group> group, std::uint64_t seed);
  std::size_t step();
  void stop() { stopping_ = true; }
  void close() {
    operation_.reset();
    space.reset();
  }
  /// One more get, of a segment that has outlived its home.
  void check(AuditedSegment& segment);
  /// Whether no founder has let it in, as far as is known, and none is left that could.
  [[nodiscard]] bool is_kept_out() const;
  [[nodiscard]] bool idle() const { return !locked_ && (!operation_ || operation_->finished()); }
  [[nodiscard]] std::string describe() const {
    return operation_ ? operation_->describe() : "nothing";
  }

  SegmentAudit& auditor;
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
  void got_version(std::uint64_t version);
  void is_version(std::uint64_t version, std::uint64_t value);
  void unlock();

  Draws draws_;
  bool stopping_ = false;
  Doing doing_ = Doing::nothing;
  AuditedSegment* segment_ = nullptr;
  bool locked_ = false;
  std::uint32_t under_lock_ = 0;  // operations left
  bool checking_ = false;
  std::uint64_t wanted_ = 0;    // version
  std::uint64_t expected_ = 0;  // the version that a put names; UINT64_MAX: none
  std::size_t event_ = 0;
  std::uint64_t next_at_ns_ = 0;
  bool has_worked_ = false;
  std::array<std::uint64_t, kAuditedWords> words_{};
  std::unique_ptr<SegmentOperation> operation_;
};

struct SegmentAudit {
  /// With `later`, some members come when the others are at work, and some calls name versions.
  SegmentAudit(std::uint64_t its_seed, SegmentsSeen& what, bool later = false)
      : seen(what),
        seed(its_seed),
        draws(seed),
        count(2 + below(4)),
        names_versions(later),
        founders(later ? 1 + below(count) : count),
        world(unfavourable_network(draws), founders, seed),
        gone(count),
        clients(count),
        late(count) {
    for (Rank rank = founders; rank < count; ++rank) world.add_node();
    for (Rank rank = 0; rank < founders; ++rank)
      clients[rank] = std::make_unique<AuditedClient>(*this, group_of(rank), seed * 97 + rank);
    for (Rank rank = 0; rank < count; ++rank)
      world.attach(rank, [this, rank] { return poll(rank); });
    for (std::uint32_t early = later ? std::max(2 + below(2), founders) : founders;
         next_late < std::min(early, count);)
      EXPECT_TRUE(let_one_come());
    if (later) world.run_for(5'000'000);  // and is let in
    for (std::uint32_t i = 0; i < kAuditedSegments; ++i) {
      AuditedSegment& segment = segments.at(i);
      segment.coherence =
          std::array{Coherence::write, Coherence::strict, Coherence::version, Coherence::delta}.at(
              below(4));
      if (segment.coherence == Coherence::delta) segment.versions = 1 + below(3);
      segment.copies = 1 + below(2);
      auto made = begin([&] {
        return clients[0]->space->allocate({.bytes = kAuditedWords * 8,
                                            .coherence = segment.coherence,
                                            .placement = {below(next_late)},
                                            .versions = segment.versions,
                                            .copies = segment.copies});
      });
      EXPECT_TRUE(world.run_until([&] { return made->finished(); }, 100'000'000));
      EXPECT_TRUE(made->ok()) << made->describe();
      segment.key = made->result().key;
    }
    ready = true;
  }
  std::unique_ptr<Group> group_of(Rank founder) {
    if (founders == count) return std::make_unique<Group>(world.fabric(founder));
    return std::make_unique<Group>(world.fabric(founder),
                                   GroupOptions{.rendezvous = world.rendezvous(founder, "sim")});
  }
  std::size_t poll(Rank rank) {
    if (clients[rank]) return clients[rank]->progress.poll() + clients[rank]->step();
    return late[rank].poll(clients[rank], [&](std::unique_ptr<Group> group) {
      const bool stays = !closed && group->fabric().rank() == rank;  // else it leaves again
      return stays ? std::make_unique<AuditedClient>(*this, std::move(group), seed * 97 + rank)
                   : nullptr;
    });
  }
  void begin_to_come() {
    if (next_late == count) return;
    world.on(next_late, [this, rank = next_late] { late[rank].enter(world, rank); });
    ++next_late;
  }
  bool let_one_come() {
    const Rank rank = next_late;
    begin_to_come();
    return world.run_until([&] { return clients[rank] != nullptr; }, 1'000'000'000);
  }

  void run() {
    for (std::uint32_t troubles = below(5); troubles > 0; --troubles) {
      world.run_for(1 + below(400'000));
      if (next_late < count) begin_to_come();
      trouble(world, draws, gone);
    }
    world.run_for(500'000);
    heal_all(world, count);
    closed = true;
    for (const auto& client : clients)
      if (client) client->stop();
    bool all_ended = world.run_until([&] { return all_idle(); }, 1'000'000'000);
    if (all_ended) all_ended = look_once_more();
    for (Rank rank = 0; rank < count; ++rank)
      EXPECT_TRUE(all_ended || !works(rank) || clients[rank]->idle())
          << "member " << rank << " hangs: " << clients[rank]->describe();
    report_histories();
    for (AuditedSegment& segment : segments)
      EXPECT_TRUE(segment.history.linearizable()) << name_of(segment.coherence) << "\n"
                                                  << text(segment.history);
    for (const auto& client : clients)
      if (client) client->close();
  }

  void report_histories() {
    seen.histories.begin("seed-" + std::to_string(seed), Histories::Model::one_register);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const std::string key = std::string(name_of(segments.at(i).coherence)) + std::to_string(i);
      for (const RegisterEvent& event : segments.at(i).history.events()) {
        const std::string value = std::to_string(event.value);
        if (event.is_put) {
          seen.histories.put(event.client, key, value, event.begin, event.end);
        } else if (event.end != UINT64_MAX) {
          seen.histories.get(event.client, key, value, event.begin, event.end);
        }
      }
    }
  }

  /// What was put into segments with two copies is there, wherever they are by now.
  bool look_once_more() {
    for (AuditedSegment& segment : segments)
      for (Rank rank = 0; rank < count; ++rank) {
        if (segment.copies < 2 || !works(rank) || !clients[rank]->is_member()) continue;
        if (clients[rank]->is_kept_out()) continue;
        clients[rank]->check(segment);
        if (!world.run_until([&] { return clients[rank]->idle(); }, 1'000'000'000)) return false;
      }
    return true;
  }

  /// One that the others have gone on without gets what was there before, until it learns of it.
  bool counts(Rank rank) {
    for (Rank other = 0; other < count; ++other)
      if (works(other) && clients[other]->is_member() && !clients[other]->members.contains(rank))
        return false;
    return true;
  }

  bool all_idle() {
    for (Rank rank = 0; rank < count; ++rank)
      if (works(rank) && !clients[rank]->idle()) return false;
    return true;
  }

  /// With two copies, only if two members are gone.
  void lost(Rank rank, const AuditedSegment& segment) {
    std::uint32_t without = 0;
    for (Rank other = 0; other < count; ++other)
      if (clients[other] && !clients[rank]->members.contains(other)) ++without;
    EXPECT_TRUE(segment.copies < 2 || without >= 2 || clients[rank]->is_kept_out())
        << "member " << rank << " lost a segment with two copies";
  }

  /// REM-8. A member that was stopped for long may find the lock granted to it in its first round,
  /// before it learns that the others have gone on without it: it can change nothing then.
  void has_locked(Rank rank, AuditedSegment& segment) {
    for (const Rank other : segment.holders) {
      const bool parted =
          !clients[rank]->members.contains(other) || !clients[other]->members.contains(rank);
      EXPECT_TRUE(gone[other] || parted)
          << "members " << other << " and " << rank << " hold one lock";
    }
    segment.holders.push_back(rank);
  }

  [[nodiscard]] bool works(Rank rank) const { return clients[rank] && !gone[rank]; }
  std::uint32_t below(std::uint32_t limit) { return draws.below(limit); }
  static std::string text(const RegisterHistory& history) {
    std::string all;
    for (const RegisterEvent& event : history.events())
      all += (event.is_put ? "put " : "get ") + std::to_string(event.value) + " from " +
             std::to_string(event.begin) + " to " +
             (event.end == UINT64_MAX ? "?" : std::to_string(event.end)) + "\n";
    return all;
  }

  /// Some ranks are passed over when a member dies while another one comes (GRP-N3).
  [[nodiscard]] std::uint32_t most() const { return founders == count ? 0 : count + 16; }

  SegmentsSeen& seen;
  std::uint64_t seed;
  Draws draws;
  std::uint32_t count;
  bool names_versions;
  std::uint32_t founders;
  sim::World world;
  std::vector<bool> gone;                            // crashed or hung
  std::uint32_t used = 1 + below(kAuditedSegments);  // few, so that members meet
  bool ready = false;
  bool closed = false;  // no member comes any more
  std::uint64_t events = 0;
  std::uint64_t values = 0;
  std::array<AuditedSegment, kAuditedSegments> segments;
  std::vector<std::unique_ptr<AuditedClient>> clients;  // null: has not come
  std::vector<LateNode> late;
  Rank next_late = founders;
};

}  // namespace dunlin::test
