#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "pubsub/participants.hpp"
#include "support/errors.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Topics of level `logged` whose members all die, and that begin again with a quorum of them
/// (PUB-L1, PUB-L2).
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

constexpr Rank kMembers = 3;
constexpr Rank kOthers = 4;  // keep the group's quorum when members of the topic are gone

/// Each sample that any reader was ever given, by position.
struct Given {
  using Id = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // writer, life, number
  std::map<std::uint64_t, Id> samples;
  std::map<Id, std::uint64_t> positions;
  void take(std::uint64_t position, const Id& id) {
    EXPECT_EQ(samples.try_emplace(position, id).first->second, id) << "another order";
    EXPECT_EQ(positions.try_emplace(id, position).first->second, position) << "twice";
  }
  [[nodiscard]] std::uint64_t last() const { return samples.empty() ? 0 : samples.rbegin()->first; }
};

DataReaderQos stored(std::uint32_t samples) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{Durability::Kind::persistent}
      << ResourceLimits{.max_samples = samples};
  return qos;
}

/// A member's program: it is in the topic, and comes in again when it is out.
struct Program {
  struct Ends {
    Ends(DomainParticipant& participant, const TopicQos& qos, std::uint32_t room)
        : topic(participant, "counts", qos),
          writer(Publisher(participant), topic),
          reader(Subscriber(participant), topic, stored(room)) {}
    Topic<Count> topic;
    DataWriter<Count> writer;
    DataReader<Count> reader;
  };
  std::optional<Ends> ends = {};
  bool is_in = false;
  std::uint32_t room = 100'000;
  std::uint64_t written = 0;
  std::uint64_t end = 0;
  // Of the reader at hand.
  std::uint64_t known = 0;  // the last position that any had been given when it was made
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::string why_refused = {};
};

ParticipantOptions by_quorum() {
  return {.log_founders = {"node0", "node1", "node2"}, .log_quorum = true};
}

class QuorumTopic {
 public:
  QuorumTopic(Participants::Disks& disks, std::uint64_t seed, std::uint32_t life, TopicQos qos,
              Given& given)
      : all(kMembers + kOthers, seed, 0, &disks, sim::profile("ib100"), by_quorum()),
        programs(kMembers),
        life_(life),
        qos_(qos),
        given_(given) {
    for (Rank rank = 0; rank < kMembers; ++rank)
      all.nodes[rank].work = [this, rank] { return work(rank); };
  }

  void come(Rank rank, std::uint64_t samples, std::uint32_t room = 100'000) {
    programs[rank].is_in = true;
    programs[rank].end += samples;
    programs[rank].room = room;
    all.world.on(rank, [] {});
  }
  void go(Rank rank) {
    programs[rank].is_in = false;
    all.world.on(rank, [] {});
  }
  bool have(const std::vector<Rank>& ranks, std::uint64_t position) {
    return all.until([&] {
      return std::ranges::all_of(ranks, [&](Rank rank) { return programs[rank].last >= position; });
    });
  }
  bool waits(Rank rank, const std::string& for_what) {
    return all.until([&] {
      return programs[rank].ends && contains(programs[rank].ends->topic.why_waiting(), for_what);
    });
  }
  [[nodiscard]] std::string errors() const {
    std::string all_errors;
    for (const Participants::Node& node : all.nodes) all_errors += node.error;
    return all_errors;
  }

  Participants all;
  std::vector<Program> programs;

 private:
  std::size_t work(Rank rank) {
    Program& program = programs[rank];
    if (!program.is_in) {
      program.ends.reset();
      return 0;
    }
    std::size_t done = 0;
    if (program.ends && !program.ends->topic.why_refused().empty()) {
      program.why_refused = program.ends->topic.why_refused();
      program.ends.reset();
    }
    if (!program.ends) {
      program.ends.emplace(all[rank], qos_, program.room);
      program.known = given_.last();
      program.first = program.last = 0;
      ++done;
    }
    const Count next{.writer = rank, .instance = life_, .number = program.written};
    if (program.written < program.end && program.ends->writer.write(next) == WriteResult::written) {
      ++program.written;
      ++done;
    }
    for (const auto& sample : program.ends->reader.take()) {
      if (!sample.info().valid()) continue;
      take(program, sample.info().position, sample.data());
      ++done;
    }
    return done;
  }
  void take(Program& program, std::uint64_t position, const Count& sample) {
    if (program.last == 0) {
      program.first = position;
      const auto oldest = [&](std::uint64_t place) {
        return place > qos_.max_samples ? place - qos_.max_samples + 1 : 1;
      };
      EXPECT_GE(position, oldest(program.known)) << "it was kept no more";
      EXPECT_LE(position, oldest(program.ends->topic.position())) << "an older one was kept";
    } else {
      EXPECT_EQ(position, program.last + 1) << "a gap, or twice";
    }
    program.last = position;
    given_.take(position, {sample.writer, sample.instance, sample.number});
  }

  std::uint32_t life_;
  TopicQos qos_;
  Given& given_;
};

TEST(TopicQuorum, BeginsAgainWithTwoOfThreeAndTakesInTheThird) {
  for (const bool is_lost : {false, true}) {
    SCOPED_TRACE(is_lost);
    auto disks = Participants::make_disks(kMembers, 1);
    const TopicQos qos{.level = Level::logged};
    Given given;
    {
      QuorumTopic topic(disks, 1, 0, qos, given);
      for (Rank rank = 0; rank < kMembers; ++rank) topic.come(rank, 30);
      ASSERT_TRUE(topic.have({0, 1, 2}, 90)) << topic.errors();
      for (Rank rank = 0; rank < kMembers; ++rank) topic.all.crash(rank);
      for (auto& disk : disks) disk->crash();
    }
    if (is_lost) disks[0] = std::move(Participants::make_disks(1, 9).front());
    QuorumTopic topic(disks, 2, 1, qos, given);
    topic.come(1, 10);
    ASSERT_TRUE(topic.waits(1, "topic 'counts': subgroup 'topic.counts': no quorum of view "));
    EXPECT_FALSE(topic.programs[1].ends->topic.joined());
    topic.come(2, 10);
    ASSERT_TRUE(topic.have({1, 2}, 110)) << topic.errors();
    EXPECT_TRUE(topic.programs[1].ends->topic.joined());
    topic.come(0, 10);
    ASSERT_TRUE(topic.have({0, 1, 2}, 120)) << topic.errors();
    for (const Program& program : topic.programs) {
      EXPECT_EQ(program.first, 1U) << "all that is stored";
      EXPECT_EQ(program.ends->topic.position(), 120U);
      EXPECT_EQ(program.ends->topic.beginning(), topic.programs[0].ends->topic.beginning());
      EXPECT_EQ(program.ends->topic.endpoints().size(), 6U) << "none of before";
    }
    EXPECT_EQ(topic.errors(), "");
  }
}

TEST(TopicQuorum, GoesOutWithoutAQuorumAndComesInAgainWithIt) {
  auto disks = Participants::make_disks(kMembers, 2);
  Given given;
  QuorumTopic topic(disks, 2, 0, {.level = Level::logged}, given);
  for (Rank rank = 0; rank < kMembers; ++rank) topic.come(rank, 10);
  ASSERT_TRUE(topic.have({0, 1, 2}, 30)) << topic.errors();
  topic.go(2);
  topic.go(0);
  ASSERT_TRUE(topic.waits(1, "no quorum")) << topic.errors();
  EXPECT_TRUE(contains(topic.programs[1].why_refused, "are no quorum of it, so this member stops"));
  topic.come(0, 10);
  topic.come(1, 10);
  ASSERT_TRUE(topic.have({0, 1}, 50)) << topic.errors();
  EXPECT_EQ(topic.errors(), "");
}

TEST(TopicQuorum, NeedsFounders) {
  auto disks = Participants::make_disks(1, 1);
  Participants all(1);
  DomainParticipant participant(*all.nodes[0].group, {.log_directory = ".",
                                                      .log_disk = std::shared_ptr<log::Disk>(
                                                          std::shared_ptr<void>(), disks[0].get()),
                                                      .log_quorum = true});
  EXPECT_EQ(what_is_thrown_by(
                [&] { const Topic<Count> topic(participant, "counts", {.level = Level::logged}); }),
            "topic 'counts': log_quorum needs ParticipantOptions::log_founders, the members that "
            "may have its log");
}

// --- seeds ---------------------------------------------------------------------------------------

struct Found {
  std::uint64_t without_one = 0;
  std::uint64_t lost = 0;
};

/// One life; each of its members may be absent, come late, crash, or have a new disk if all others
/// are there.
void live(std::mt19937_64& random, Participants::Disks& disks, std::uint32_t life,
          const TopicQos& qos, Given& given, bool& is_whole, Found& found, bool is_last) {
  const bool loses = is_whole && random() % 3 == 0;
  if (loses) {
    const std::size_t lost = random() % kMembers;
    disks[lost] = std::move(Participants::make_disks(1, random()).front());
    ++found.lost;
  }
  QuorumTopic topic(disks, random(), life, qos, given);
  const std::uint64_t before = given.last();
  const bool one_is_absent = !is_last && !loses && life > 0 && random() % 2 == 0;
  const auto absent = static_cast<Rank>(one_is_absent ? random() % kMembers : kMembers);
  if (one_is_absent) topic.all.crash(absent);
  std::vector<Rank> here;
  for (Rank rank = 0; rank < kMembers; ++rank) {
    if (rank == absent) continue;
    here.push_back(rank);
    topic.come(rank, 5 + random() % 60, random() % 3 == 0 ? 4 : 100'000);
    topic.all.run_for(random() % 2 * (random() % 1'000'000));
  }
  if (!is_last) topic.all.run_for(random() % 6'000'000);
  const bool one_crashes = !is_last && random() % 3 == 0;
  if (one_crashes) {
    topic.all.crash(here[random() % here.size()]);
    topic.all.run_for(random() % 4'000'000);
  }
  is_whole = !one_is_absent && !one_crashes;
  if (is_whole) {  // so that each log has the last view, and is needed no more
    EXPECT_TRUE(topic.have({0, 1, 2}, before + 15)) << "does not begin again";
    topic.all.run_for(50'000'000);
    for (const Program& program : topic.programs) EXPECT_EQ(program.last, given.last());
    is_whole = topic.programs[0].ends->topic.joined();
  }
  found.without_one += one_is_absent && given.last() > before ? 1 : 0;
  for (const Rank rank : here)
    EXPECT_FALSE(contains(topic.programs[rank].why_refused, "another history"));
  for (Rank rank = 0; rank < kMembers; ++rank)
    if (!topic.all.nodes[rank].dead) topic.all.crash(rank);
  for (auto& disk : disks) disk->crash();
}

TEST(TopicQuorum, GivesEachStoredSampleOnceInOneOrderOverLivesFromSeeds) {
  Found found;
  const Seeds seeds(rounds(80));
  for_each_seed(seeds, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto disks = Participants::make_disks(kMembers, seed);
    TopicQos qos{.level = Level::logged, .ring_bytes = 4'096};
    if (seed % 2 == 0) {
      qos.max_samples = static_cast<std::uint32_t>(1 + random() % 200);
      qos.log_trim_bytes = 4'096 + random() % 4'096;
    }
    Given given;
    bool is_whole = false;
    for (std::uint32_t life = 0; life < 6; ++life) {
      SCOPED_TRACE("life " + std::to_string(life));
      live(random, disks, life, qos, given, is_whole, found, life == 5);
      if (HasFailure()) return;
    }
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(found.without_one, seeds.last / 2);
  EXPECT_GT(found.lost, seeds.last / 8);
}

}  // namespace
}  // namespace dunlin::test
