#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "pubsub/participants.hpp"
#include "pubsub/storage.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// Late readers, which are given what is stored while more samples come and old ones go (PUB-T2,
/// PUB-T5).
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

DataReaderQos stored(std::uint32_t samples = 100'000) {
  DataReaderQos qos;
  qos << Reliability::reliable() << History::keep_all() << Durability{Durability::Kind::transient}
      << ResourceLimits{.max_samples = samples};
  return qos;
}

/// A topic at one node, with a writer that writes up to a number.
struct Home {
  Home(Participants& all, Rank rank, const TopicQos& qos)
      : topic(all[rank], "counts", qos), writer(Publisher(all[rank]), topic) {
    all.nodes[rank].work = [this] { return write(); };
  }
  std::size_t write() {
    std::size_t done = 0;
    for (; done < most_a_poll && written < end; ++done, ++written)
      if (writer.write({.instance = static_cast<std::uint32_t>(written % instances),
                        .number = written}) != WriteResult::written)
        break;
    return done;
  }
  Topic<Count> topic;
  DataWriter<Count> writer;
  std::uint64_t written = 0;
  std::uint64_t end = 0;
  std::uint64_t instances = 1;
  std::size_t most_a_poll = 1;
};

/// A handler may poll, also when it has let go of another reader that is on its way.
TEST(LateReader, MayGoInTheHandlerOfAnotherOneThatPolls) {
  constexpr std::uint64_t kStored = 1'000;
  Participants all(2);
  Home home(all, 0, {.level = Level::volatile_storage, .max_samples = kStored});
  home.most_a_poll = 64;
  home.end = kStored;
  ASSERT_TRUE(all.until([&] { return home.topic.position() == kStored; }));
  std::uint64_t given = 0;
  std::optional<DataReader<Count>> stays, goes;
  all.world.on(0, [&] {
    goes.emplace(Subscriber(all[0]), home.topic, stored());
    stays.emplace(Subscriber(all[0]), home.topic, stored());
    stays->on_sample([&](const Count&, const SampleInfo&) {
      if (++given == kStored / 4) goes.reset();
      if (given >= kStored / 4) all[0].poll();
    });
  });
  EXPECT_TRUE(all.until([&] { return given == kStored; }));
  EXPECT_EQ(all[0].group().why_ended(), "");
}

TEST(LateReader, IsGivenABoundedPartInAPollWhileTheTopicGoesOn) {
  constexpr std::uint64_t kStored = 30'000;
  Participants all(2);
  const TopicQos qos{.level = Level::volatile_storage, .max_samples = 100'000};
  Home home(all, 0, qos);
  home.most_a_poll = 64;
  home.end = kStored;
  ASSERT_TRUE(all.until([&] { return home.topic.position() == kStored; }));
  std::vector<std::uint64_t> given;
  std::size_t before = 0;
  std::size_t most = 0;
  std::uint64_t while_it_catches_up = 0;
  std::optional<DataReader<Count>> late;
  all.world.on(0, [&] {
    late.emplace(Subscriber(all[0]), home.topic, stored());
    late->on_sample([&](const Count& count, const SampleInfo&) { given.push_back(count.number); });
    home.end = kStored + 10'000;
    home.most_a_poll = 4;
    all.nodes[0].work = [&] {  // once in each poll
      most = std::max(most, given.size() - before);
      before = given.size();
      if (given.size() < kStored) while_it_catches_up = home.topic.position() - kStored;
      return home.write();
    };
  });
  ASSERT_TRUE(all.until([&] { return given.size() == kStored + 10'000; }));
  for (std::uint64_t i = 0; i < given.size(); ++i) ASSERT_EQ(given[i], i);
  EXPECT_LE(most, 512U + 256U) << "stored samples, and messages that were there";
  EXPECT_GT(while_it_catches_up, 50U) << "the topic goes on";
}

TEST(LateReader, HoldsTheTopicBackOnlyWhenTooManySamplesAreOvertaken) {
  Participants all(1);
  Home home(all, 0, {.level = Level::volatile_storage, .max_samples = 100});
  home.most_a_poll = 64;
  home.end = 1'000;
  ASSERT_TRUE(all.until([&] { return home.topic.position() == home.end; }));
  DataReaderQos small = stored(10);
  DataReader<Count> late{Subscriber(all[0]), home.topic, small};
  ASSERT_TRUE(all.until([&] { return late->ready(); }));
  constexpr std::uint64_t kEnd = 3 * kMaxOvertakenSamples;
  all.world.on(0, [&] { home.end = kEnd; });
  ASSERT_FALSE(all.until([&] { return home.topic.position() == kEnd; }, 1'000'000'000));
  EXPECT_GE(home.topic.position(), 1'000 + kMaxOvertakenSamples - 200);
  EXPECT_LE(home.topic.position(), 1'000 + kMaxOvertakenSamples + 200);
  std::uint64_t next = 900;
  ASSERT_TRUE(all.until(
      [&] {
        for (const auto& sample : late.take()) {
          if (!sample.info().valid()) continue;
          EXPECT_EQ(sample.data().number, next);
          ++next;
        }
        return next == home.end || HasFailure();
      },
      60'000'000'000));
}

/// A model of what a topic keeps, with the time of each sample.
struct Kept {
  struct One {
    std::uint64_t position;
    std::uint32_t instance;
  };
  static std::vector<std::uint64_t> at(const std::vector<std::uint32_t>& instances,
                                       std::uint64_t place, const TopicQos& qos) {
    std::deque<One> kept;
    for (std::uint64_t position = 1; position <= place; ++position) {
      const std::uint32_t instance = instances[position - 1];
      const auto of_it = std::ranges::count(kept, instance, &One::instance);
      if (qos.history.kind == History::Kind::keep_last && of_it >= qos.history.depth)
        kept.erase(std::ranges::find(kept, instance, &One::instance));
      const auto is_full = [&] {
        return kept.size() >= qos.max_samples ||
               (qos.max_bytes != 0 && (kept.size() + 1) * sizeof(Count) > qos.max_bytes);
      };
      while (!kept.empty() && is_full()) kept.pop_front();
      kept.push_back({position, instance});
    }
    std::vector<std::uint64_t> positions;
    for (const One& one : kept) positions.push_back(one.position);
    return positions;
  }
};

/// A late reader, and where its place can have been.
struct Late {
  DataReader<Count> reader;
  std::uint64_t least = 0;
  std::optional<std::uint64_t> most = {};
  std::vector<std::uint64_t> positions = {};
  bool is_slow = false;
};

class LateRun {
 public:
  explicit LateRun(std::uint64_t seed)
      : random_(seed),
        disks_(Participants::make_disks(2, seed)),
        qos_(draw_qos()),
        all_(2, seed, 0, qos_.level == Level::logged ? &disks_ : nullptr),
        home_(all_, 0, qos_),
        other_(all_[1], "counts", qos_) {
    home_.instances = 1 + draw(6);
    home_.most_a_poll = 1 + draw(40);
    all_.nodes[0].work = [this] { return work(0) + home_.write(); };
    all_.nodes[1].work = [this] { return work(1); };
  }

  void run() {
    ASSERT_TRUE(all_.until([&] { return home_.writer->ready() && other_.joined(); }));
    for (int step = 0; step < 12; ++step) {
      end_ += draw(400);
      all_.world.on(0, [this] { home_.end = end_; });
      const auto rank = static_cast<Rank>(draw(2));
      if (draw(2) == 0) all_.world.on(rank, [this, rank] { come(rank); });
      if (draw(5) == 0) all_.world.on(rank, [this, rank] { go(rank); });
      all_.run_for(draw(400'000));
    }
    finishing_ = true;
    const std::uint64_t end = end_;
    const auto have_all = [&](const Late& late) {
      return !late.positions.empty() && late.positions.back() == end;
    };
    const bool done = all_.until([&] {
      return home_.topic.position() == end && std::ranges::all_of(lates_[0], have_all) &&
             std::ranges::all_of(lates_[1], have_all);
    });
    for (Rank rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(all_.nodes[rank].error, "");
      for (const Late& late : lates_[rank]) check(late, end);
    }
    if (end > 0 && !(lates_[0].empty() && lates_[1].empty())) {
      EXPECT_TRUE(done);
    }
  }
  std::uint64_t given = 0;

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  TopicQos draw_qos() {
    TopicQos qos{.level = draw(2) == 0 ? Level::logged : Level::volatile_storage,
                 .max_samples = static_cast<std::uint32_t>(1 + draw(300))};
    if (draw(2) == 0) qos.history = History::keep_last(static_cast<std::uint32_t>(1 + draw(40)));
    if (draw(3) == 0) qos.max_bytes = 1 + draw(200 * sizeof(Count));
    if (qos.level == Level::logged && draw(3) != 0) qos.log_trim_bytes = 4'096 + draw(4'096);
    return qos;
  }
  void come(Rank rank) {
    const Topic<Count>& topic = rank == 0 ? home_.topic : other_;
    const auto room = static_cast<std::uint32_t>(draw(2) == 0 ? 1 + draw(20) : 100'000);
    lates_[rank].push_back(
        {.reader = DataReader<Count>(Subscriber(all_[rank]), topic, stored(room)),
         .least = topic.position(),
         .is_slow = draw(2) == 0});
  }
  void go(Rank rank) {
    if (!lates_[rank].empty()) lates_[rank].pop_front();
  }
  std::size_t work(Rank rank) {
    std::size_t done = 0;
    const Topic<Count>& topic = rank == 0 ? home_.topic : other_;
    for (Late& late : lates_[rank]) {
      if (!late.most && late.reader->ready()) late.most = topic.position();
      if (!late.most) late.least = topic.position();
      if (late.is_slow && !finishing_ && draw(4) != 0) continue;
      const auto most = static_cast<std::uint32_t>(late.is_slow ? 1 + draw(30) : 100'000);
      for (const auto& sample : late.reader.take({.max_samples = most})) {
        if (!sample.info().valid()) continue;
        late.positions.push_back(sample.info().position);
        EXPECT_EQ(sample.data().number + 1, sample.info().position);
        ++done;
        ++given;
      }
    }
    return done;
  }
  void check(const Late& late, std::uint64_t end) const {
    std::vector<std::uint32_t> instances;
    for (std::uint64_t i = 0; i < end; ++i)
      instances.push_back(static_cast<std::uint32_t>(i % home_.instances));
    ASSERT_TRUE(late.most);
    for (std::uint64_t place = late.least; place <= *late.most; ++place) {
      std::vector<std::uint64_t> expected = Kept::at(instances, place, qos_);
      for (std::uint64_t position = place + 1; position <= end; ++position)
        expected.push_back(position);
      if (expected == late.positions) return;
    }
    FAIL() << "no place from " << late.least << " to " << *late.most
           << " fits what was given: " << testing::PrintToString(late.positions);
  }

  std::mt19937_64 random_;
  Participants::Disks disks_;
  TopicQos qos_;
  Participants all_;
  Home home_;
  Topic<Count> other_;
  std::array<std::deque<Late>, 2> lates_;
  std::uint64_t end_ = 0;
  bool finishing_ = false;
};

TEST(LateReader, IsGivenWhatWasKeptAtItsPlaceThenAllThatFollowsFromSeeds) {
  std::uint64_t given = 0;
  const Seeds seeds(rounds(100));
  for_each_seed(seeds, [&](std::uint64_t seed) {
    LateRun run(seed);
    run.run();
    given += run.given;
  });
  if (seeds.are_usual) {
    EXPECT_GT(given, 1'000 * seeds.last);
  }
}

/// PUB-T5, in the storage alone: an overtaken sample stays until the last way has passed it.
TEST(LateReader, HoldsNoOvertakenSampleLongerThanAWayNeedsIt) {
  Storage storage({.max_samples = 4});
  const auto writer = std::make_shared<RemoteWriter>();
  std::uint64_t position = 0;
  const auto add = [&](std::uint64_t count) {
    for (; count > 0; --count) {
      const std::vector<std::byte> payload(8);
      storage.add({.header = {},
                   .payload = payload,
                   .writer = writer.get(),
                   .received_ns = 0,
                   .position = ++position},
                  writer);
    }
  };
  const auto pass = [&](Storage::WayPlace way, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t expected = first; expected <= last; ++expected) {
      const Storage::Stored* const found = storage.next(way);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->position, expected);
      storage.pass(way);
    }
  };
  add(6);
  const auto first = storage.begin_way();  // 3 to 6, and all behind
  add(3);
  const auto second = storage.begin_way();  // 6 to 9, and all behind
  add(2);
  EXPECT_EQ(storage.size(), 4U);
  EXPECT_EQ(writer.use_count(), 1 + 9) << "3 to 11 are there";
  pass(first, 3, 7);
  storage.let_go_of_overtaken();
  EXPECT_EQ(writer.use_count(), 1 + 6) << "the second way needs 6 and 7";
  pass(second, 6, 10);
  storage.let_go_of_overtaken();
  EXPECT_EQ(writer.use_count(), 1 + 4) << "8 to 11";
  pass(second, 11, 11);
  EXPECT_EQ(storage.next(second), nullptr);
  storage.end_way(second);
  add(4);
  EXPECT_EQ(writer.use_count(), 1 + 8) << "the first way needs 8 to 11";
  storage.end_way(first);
  EXPECT_EQ(writer.use_count(), 1 + 4);
}

}  // namespace
}  // namespace dunlin::test
