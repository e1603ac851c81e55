#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "pubsub/log_history.hpp"
#include "pubsub/participants.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Topics whose samples stay in their logs: late readers are given them from there (PUB-K1 to
/// PUB-K4).
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

constexpr Rank kMembers = 3;

/// A sample of any size.
struct Blob {
  std::uint32_t writer = 0;
  std::uint64_t number = 0;
  std::vector<std::uint8_t> bytes;
};

DataReaderQos stored(std::uint32_t room = 1'000'000) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{Durability::Kind::persistent}
      << ResourceLimits{.max_samples = room};
  return qos;
}

/// A topic at one node, with a writer that writes up to a number.
struct Home {
  Home(Participants& all, Rank rank, const TopicQos& qos)
      : topic(all[rank], "blobs", qos), writer(Publisher(all[rank]), topic) {
    all.nodes[rank].work = [this] { return write(); };
  }
  std::size_t write() {
    std::size_t done = 0;
    for (; done < most_a_poll && written < end; ++done, ++written)
      if (writer.write({.number = written, .bytes = std::vector<std::uint8_t>(bytes)}) !=
          WriteResult::written)
        break;
    return done;
  }
  Topic<Blob> topic;
  DataWriter<Blob> writer;
  std::uint64_t written = 0;
  std::uint64_t end = 0;
  std::size_t bytes = 0;
  std::size_t most_a_poll = 16;
};

/// PUB-K2 bounds the memory, and PUB-K3 what a late reader is given in a poll.
TEST(KeptInLog, HoldsBoundedMemoryWhileTheLogGrows) {
  Participants::Disks disks = Participants::make_disks(1, 1);
  Participants all(1, 1, 0, &disks);
  Home home(all, 0, {.level = Level::logged, .max_samples = kAllSamples});
  std::size_t most = 0;
  std::vector<std::uint64_t> used;
  constexpr std::uint64_t kSamples = 160'000;
  for (home.end = kSamples / 2; home.end <= kSamples; home.end += kSamples / 2) {
    all.world.on(0, [] {});
    ASSERT_TRUE(all.until(
        [&] {
          most = std::max(most, home.topic.held_in_memory());
          return home.topic.position() == home.end;
        },
        60'000'000'000));
    used.push_back(disks[0]->used());
  }
  EXPECT_LE(most, kMaxLandmarks + 2);
  EXPECT_GT(most, kMaxLandmarks / 2) << "it was full";
  EXPECT_GT(used.back(), used.front() * 3 / 2) << "the log has all samples";
  // All of them are given, a bounded part in each poll, while the topic goes on.
  std::uint64_t given = 0;
  std::uint64_t before = 0;
  std::uint64_t most_given = 0;
  std::optional<DataReader<Blob>> late;
  std::uint64_t end = kSamples + 2'000;
  std::uint64_t while_it_catches_up = 0;
  all.world.on(0, [&] {
    late.emplace(Subscriber(all[0]), home.topic, stored());
    late->on_sample([&](const Blob& blob, const SampleInfo& info) {
      EXPECT_EQ(blob.number, given);
      EXPECT_EQ(info.position, ++given);
    });
    home.end = end;
    home.most_a_poll = 1;
    all.nodes[0].work = [&] {
      most_given = std::max(most_given, given - before);
      before = given;
      if (given < kSamples) while_it_catches_up = home.topic.position() - kSamples;
      return home.write();
    };
  });
  ASSERT_TRUE(all.until([&] { return given == end || HasFailure(); }, 60'000'000'000));
  EXPECT_LE(most_given, 512U + 256U);
  EXPECT_GT(while_it_catches_up, 50U) << "the topic goes on";
  EXPECT_LE(home.topic.held_in_memory(), kMaxLandmarks + 2);
}

/// PUB-K4. The reader takes nothing, and much more than it may keep in the log comes.
TEST(KeptInLog, TellsAReaderHowManySamplesWereTrimmedBeforeIt) {
  Participants::Disks disks = Participants::make_disks(1, 2);
  Participants all(1, 2, 0, &disks);
  constexpr std::uint64_t kKept = 200;
  Home home(
      all, 0,
      {.level = Level::logged, .max_samples = kKept, .log_trim_bytes = std::uint64_t{1} << 20U});
  home.bytes = 10'000;
  home.end = 1'000;
  ASSERT_TRUE(all.until([&] { return home.topic.position() == home.end; }, 60'000'000'000));
  DataReader<Blob> late{Subscriber(all[0]), home.topic, stored(10)};
  ASSERT_TRUE(all.until([&] { return late->ready(); }));
  // So many are kept for it, at most:
  constexpr std::uint64_t kOvertaken = kMaxOvertakenBytes / 10'000;
  const auto write_up_to = [&](std::uint64_t end) {
    all.world.on(0, [&home, end] { home.end = end; });
    return all.until([&home, end] { return home.topic.position() == end; }, 60'000'000'000);
  };
  ASSERT_TRUE(write_up_to(1'000 + kOvertaken / 2));
  const std::uint64_t used = disks[0]->used();
  EXPECT_GT(used, kOvertaken / 2 * 10'000) << "it keeps them for the reader";
  ASSERT_TRUE(write_up_to(1'000 + 2 * kOvertaken)) << "a late reader does not stop a logged topic";
  EXPECT_LT(disks[0]->used(), used) << "what it needs is trimmed";
  std::vector<std::uint64_t> taken;
  ASSERT_TRUE(all.until(
      [&] {
        for (const auto& sample : late.take()) {
          if (!sample.info().valid()) continue;
          taken.push_back(sample.data().number);
          EXPECT_EQ(sample.info().position, taken.back() + 1);
        }
        return !taken.empty() && taken.back() + 1 == home.end;
      },
      60'000'000'000));
  EXPECT_EQ(taken.front(), 1'000 - kKept) << "the oldest sample that was kept when it came";
  std::uint64_t missing = 0;
  std::uint64_t gaps = 0;
  for (std::size_t i = 1; i < taken.size(); ++i) {
    ASSERT_GT(taken[i], taken[i - 1]);
    missing += taken[i] - taken[i - 1] - 1;
    gaps += taken[i] - taken[i - 1] > 1 ? 1 : 0;
  }
  EXPECT_EQ(gaps, 1U);
  EXPECT_GT(missing, kOvertaken / 2);
  EXPECT_EQ(late->sample_lost_status().total_count, missing);
  EXPECT_FALSE(late->sample_lost_status().dropped);
}

TEST(KeptInLog, LandmarksStayFewAndFindTheFirstKeptSample) {
  for (const std::uint64_t max_bytes : {std::uint64_t{0}, std::uint64_t{70'000}}) {
    LogHistory history({.level = Level::logged, .max_samples = 100'000, .max_bytes = max_bytes});
    history.begin({});
    RemoteWriter writer;
    for (std::uint64_t i = 1; i <= 1'000'000; ++i) {
      history.add(1, writer, i, 0, 0);
      if (history.wants_landmark()) history.mark({.number = i + 1, .from = i + 1}, {});
      ASSERT_LE(history.size(), kMaxLandmarks);
    }
    const LogHistory::Counts place = history.counts();
    const std::uint64_t kept = max_bytes == 0 ? 100'000 : max_bytes;
    const LogHistory::Landmark& first = history.first();
    EXPECT_LE(first.before.samples, place.samples - kept);
    EXPECT_GE(first.before.samples, place.samples - kept - kept / 100) << "it is near";
    LogHistory::Counts before{.samples = place.samples - kept, .bytes = place.bytes - kept};
    EXPECT_TRUE(history.gives(before, place));
    --before.samples;
    --before.bytes;
    EXPECT_FALSE(history.gives(before, place));
    // The state has all of it, and does not grow with the samples.
    std::vector<std::byte> state;
    Writer to(state);
    history.save(to);
    EXPECT_LE(state.size(), 64 * kMaxLandmarks);
    LogHistory loaded({.level = Level::logged, .max_samples = 100'000, .max_bytes = max_bytes});
    Reader from(state);
    ASSERT_TRUE(loaded.load(from));
    EXPECT_EQ(loaded.counts().samples, place.samples);
    EXPECT_EQ(loaded.first().from, first.from);
    EXPECT_LE(loaded.size(), history.size());
  }
}

TEST(KeptInLog, AStateWithSamplesButWithoutALandmarkIsRefused) {
  for (const std::uint64_t samples : {0U, 1U}) {
    std::vector<std::byte> state;
    Writer to(state);
    for (const std::uint64_t number : {samples, samples, samples, std::uint64_t{1}}) to.u64(number);
    to.u32(0);  // records that were passed over
    to.u32(0);  // landmarks
    LogHistory history({.level = Level::logged, .max_samples = 1'000});
    Reader from(state);
    EXPECT_EQ(history.load(from), samples == 0);
  }
}

TEST(KeptInLog, ForgetsWritersOfWhichNoSampleIsKept) {
  LogHistory history({.level = Level::logged, .max_samples = 1'000});
  history.begin({});
  std::uint64_t record = 1;
  for (std::uint64_t life = 0; life < 500; ++life) {
    auto writer = std::make_shared<RemoteWriter>(RemoteWriter{.member = "a"});
    writer->qos.ownership.strength = static_cast<std::uint32_t>(life);
    history.announce(record++, writer);
    for (int i = 0; i < 100; ++i) {
      history.add(1, *writer, record, 0, 0);
      ++record;
      if (history.wants_landmark()) history.mark({.number = record, .from = record}, {});
    }
    EXPECT_EQ(history.writer_of("a", 0, record), writer);
    writer->gone = true;
  }
  EXPECT_LE(history.size(), 40U);
}

TEST(KeptInLog, TakesWritersThatAreGoneAndAlikeForOne) {
  LogHistory history({.level = Level::logged, .max_samples = kAllSamples});
  history.begin({});
  std::uint64_t record = 1;
  for (std::uint64_t life = 0; life < 2'000; ++life) {
    auto writer = std::make_shared<RemoteWriter>(RemoteWriter{.member = "a"});
    history.announce(record++, writer);
    history.add(1, *writer, record, 0, 0);
    ++record;
    if (history.wants_landmark()) history.mark({.number = record, .from = record}, {});
    writer->gone = true;
  }
  EXPECT_NE(history.writer_of("a", 0, 3), nullptr) << "its samples are kept";
  EXPECT_LE(history.size(), 200U);
}

// --- seeds ---------------------------------------------------------------------------------------

/// Each sample that any reader was ever given, by position; and that the writer's samples come
/// once.
struct Given {
  std::map<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>> samples;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> positions;
  void take(std::uint64_t position, const Blob& blob) {
    const std::pair id{blob.writer, blob.number};
    EXPECT_EQ(samples.try_emplace(position, id).first->second, id) << "another order";
    EXPECT_EQ(positions.try_emplace(id, position).first->second, position) << "twice";
    EXPECT_EQ(blob.bytes,
              std::vector<std::uint8_t>(blob.bytes.size(), static_cast<std::uint8_t>(blob.number)));
  }
  [[nodiscard]] std::uint64_t last() const { return samples.empty() ? 0 : samples.rbegin()->first; }
};

struct Late {
  DataReader<Blob> reader;
  std::uint64_t least_place = 0;
  std::optional<std::uint64_t> most_place = {};
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool is_slow = false;
};

/// One life of the members: they write, late readers come at any time, members go out of the topic
/// and come in again, and one may crash.
class Life {
 public:
  Life(Participants::Disks& disks, std::mt19937_64& random, const TopicQos& qos, Given& given,
       std::uint32_t number)
      : random_(random),
        qos_(qos),
        given_(given),
        number_(number),
        all_(kMembers, random(), 0, &disks),
        programs_(kMembers) {
    for (Rank rank = 0; rank < kMembers; ++rank)
      all_.nodes[rank].work = [this, rank] { return work(rank); };
  }

  void run() {
    const std::uint64_t before = given_.last();
    for (Rank rank = 0; rank < kMembers; ++rank) come(rank);
    ASSERT_TRUE(all_.until([&] {
      return std::ranges::all_of(programs_, [](const Program& one) { return one.writer->ready(); });
    })) << errors();
    for (int step = 0; step < 10; ++step) {
      const auto rank = static_cast<Rank>(draw(kMembers));
      if (!all_.nodes[rank].dead) all_.world.on(rank, [this, rank] { happen(rank); });
      all_.run_for(draw(2'000'000));
      const bool crashes = crashed_ == kMembers && draw(12) == 0;
      if (crashes) {
        crashed_ = static_cast<Rank>(1 + draw(kMembers - 1));  // one stays, which has all
        programs_[crashed_].lates.clear();
        all_.crash(crashed_);
      }
    }
    finishing_ = true;
    all_.run_for(5'000'000);
    EXPECT_TRUE(all_.until([&] { return have_all(); }, 20'000'000'000)) << "does not end";
    EXPECT_GE(given_.last(), before);
    EXPECT_EQ(errors(), "");
  }
  /// All at once, at any moment.
  void end() {
    for (Rank rank = 0; rank < kMembers; ++rank)
      if (!all_.nodes[rank].dead) all_.crash(rank);
  }
  std::uint64_t from_log = 0;

 private:
  struct Program {
    Topic<Blob> topic = {};
    DataWriter<Blob> writer = {};
    std::deque<Late> lates = {};
    std::uint64_t written = 0;
    std::uint64_t end = 0;
    std::uint64_t client_number = 0;
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  std::string errors() const {
    std::string all;
    for (const Participants::Node& node : all_.nodes) all += node.error;
    return all;
  }
  void come(Rank rank) {
    Program& program = programs_[rank];
    program.topic = Topic<Blob>(all_[rank], "blobs", qos_);
    program.writer = DataWriter<Blob>(Publisher(all_[rank]), program.topic);
  }
  void happen(Rank rank) {
    Program& program = programs_[rank];
    program.end += draw(60);
    switch (draw(6)) {
      case 0:
        if (!program.lates.empty()) program.lates.pop_front();
        return;
      case 1:  // out of the topic, and perhaps in again
        if (rank == 0) return;
        if (program.topic) {
          program.lates.clear();
          program.writer = {};
          program.topic = {};
        } else {
          come(rank);
        }
        return;
      case 2:  // another writer of the same number
        if (program.topic) program.writer = DataWriter<Blob>(Publisher(all_[rank]), program.topic);
        return;
      default:
        if (!program.topic) return come(rank);
        program.lates.push_back(
            {.reader = DataReader<Blob>(
                 Subscriber(all_[rank]), program.topic,
                 stored(draw(2) == 0 ? 1 + static_cast<std::uint32_t>(draw(20)) : 1'000'000)),
             .least_place = program.topic.position(),
             .is_slow = draw(2) == 0});
        return;
    }
  }
  bool write(Rank rank, Program& program) {
    const bool is_long = program.written % 7 == 3;
    const Blob blob{.writer = number_ * kMembers + rank,
                    .number = program.written,
                    .bytes = std::vector<std::uint8_t>(is_long ? 3'000 : program.written % 40,
                                                       static_cast<std::uint8_t>(program.written))};
    if (program.written % 5 != 1) return program.writer.write(blob) == WriteResult::written;
    // Of a client, which sends it twice.
    const ClientStamp stamp{.client = {std::byte(number_), std::byte(rank + 1)},
                            .number = program.written};
    if (program.client_number != stamp.number) {
      if (program.writer->write(&blob, stamp) != WriteResult::written) return false;
      program.client_number = stamp.number;
    }
    return program.writer->write(&blob, stamp) == WriteResult::written;
  }
  std::size_t work(Rank rank) {
    Program& program = programs_[rank];
    std::size_t done = 0;
    if (program.writer && program.written < program.end && write(rank, program)) {
      ++program.written;
      ++done;
    }
    for (Late& late : program.lates) {
      if (!late.most_place && late.reader->ready()) late.most_place = program.topic.position();
      if (!late.most_place) late.least_place = program.topic.position();
      if (late.is_slow && !finishing_ && draw(4) != 0) continue;
      for (const auto& sample : late.reader.take()) {
        if (!sample.info().valid()) continue;
        take(late, sample.info().position, sample.data());
        ++done;
      }
    }
    return done;
  }
  void take(Late& late, std::uint64_t position, const Blob& blob) {
    if (late.first == 0) {
      late.first = position;
      const auto oldest = [&](std::uint64_t place) {
        return place > qos_.max_samples ? place - qos_.max_samples + 1 : 1;
      };
      EXPECT_GE(position, oldest(late.least_place)) << "it was kept no more";
      EXPECT_LE(position, oldest(late.most_place.value_or(UINT64_MAX))) << "an older one was kept";
    } else {
      EXPECT_EQ(position, late.last + 1) << "a gap, or twice";
    }
    late.last = position;
    given_.take(position, blob);
    if (position <= late.least_place) ++from_log;
  }
  bool have_all() const {
    return std::ranges::all_of(programs_, [&](const Program& program) {
      const bool is_dead = crashed_ < kMembers && &program == &programs_[crashed_];
      if (is_dead || !program.topic) return true;
      return std::ranges::all_of(program.lates, [&](const Late& late) {
        return late.last == program.topic.position() &&
               late.reader->sample_lost_status().total_count == 0;
      });
    });
  }

  std::mt19937_64& random_;
  TopicQos qos_;
  Given& given_;
  std::uint32_t number_;
  Participants all_;
  std::vector<Program> programs_;
  Rank crashed_ = kMembers;
  bool finishing_ = false;
};

TEST(KeptInLog, GivesEachSampleOnceInOrderThroughViewsRestartsAndTrimsFromSeeds) {
  std::uint64_t from_log = 0;
  const Seeds seeds(rounds(60));
  for_each_seed(seeds, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Participants::Disks disks = Participants::make_disks(kMembers, seed);
    TopicQos qos{.level = Level::logged, .ring_bytes = 4'096};
    if (random() % 3 != 0) qos.max_samples = static_cast<std::uint32_t>(1 + random() % 300);
    if (random() % 3 != 0) qos.log_trim_bytes = 4'096 + random() % 8'192;
    Given given;
    for (std::uint32_t number = 0; number < 4; ++number) {
      SCOPED_TRACE("life " + std::to_string(number));
      Life life(disks, random, qos, given, number);
      life.run();
      life.end();
      from_log += life.from_log;
      for (auto& disk : disks) disk->crash();
      if (HasFailure()) return;
    }
  });
  if (seeds.are_usual) {
    EXPECT_GT(from_log, 100 * seeds.last);
  }
}

}  // namespace
}  // namespace dunlin::test
