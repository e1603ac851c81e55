#include "support/seeds.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "pubsub/participants.hpp"
#include "support/rounds.hpp"

/// Whole topics from seeds: members come and crash, readers and writers come and go, and an auditor
/// holds what each reader was given against the promises PUB-T1 to PUB-T4.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

/// Which sample: of a node's how-many-th writer.
struct Said {
  std::uint32_t node = 0;
  std::uint32_t writer = 0;
  std::uint64_t number = 0;
  friend bool operator==(const Said&, const Said&) = default;
};

/// What one reader was given, from its beginning on.
struct Heard {
  std::uint32_t node = 0;
  bool stored = false;  // it asked for what was stored
  bool reads = true;    // until it is closed, or its node crashes
  std::vector<Said> samples = {};
};

class Auditor {
 public:
  /// A reader's samples are, in a topic with one order, a part without gaps of that order.
  static void check_order(const std::vector<std::unique_ptr<Heard>>& all, bool ordered) {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      check_writers(*all[i]);
      if (all[i]->samples.size() > all[longest]->samples.size()) longest = i;
    }
    if (!ordered || all.empty()) return;
    for (const auto& one : all)
      for (const auto& other : all) check_pair(*one, *other);
  }

 private:
  /// Of each writer: ascending by one, from wherever it begins.
  static void check_writers(const Heard& heard) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> next;
    for (const Said& said : heard.samples) {
      const auto [place, first] = next.try_emplace({said.node, said.writer}, said.number);
      ASSERT_EQ(place->second, said.number)
          << "a reader at node " << heard.node << " has a gap or duplicate of writer "
          << said.writer << " of node " << said.node;
      ++place->second;
      if (first && heard.stored) {
        ASSERT_EQ(said.number, 0U) << "a late reader lacks the beginning";
      }
    }
  }
  /// From the first sample that both have, both have the same.
  static void check_pair(const Heard& one, const Heard& other) {
    if (one.samples.empty() || other.samples.empty()) return;
    const auto at = std::ranges::find(one.samples, other.samples.front());
    if (at == one.samples.end()) return;
    const auto common = std::min<std::ptrdiff_t>(one.samples.end() - at, std::ssize(other.samples));
    ASSERT_TRUE(std::equal(at, at + common, other.samples.begin()))
        << "readers at nodes " << one.node << " and " << other.node << " differ in the order";
  }
};

class TopicRun {
 public:
  TopicRun(std::uint64_t seed, Level level)
      : random_(seed), level_(level), all_(3, seed, 2), programs_(5) {}

  void run() {
    for (std::uint32_t node = 0; node < programs_.size(); ++node)
      all_.nodes[node].work = [this, node] { return work(node); };
    for (int step = 0; step < 12 && !testing::Test::HasFatalFailure(); ++step) {
      happen();
      all_.run_for(draw(3'000'000));
    }
    finish();
  }

 private:
  struct Program {
    Topic<Count> topic = {};
    DataWriter<Count> writer = {};
    std::uint32_t writers = 0;
    std::uint64_t number = 0;
    std::uint64_t next_ns = 0;
    std::vector<std::pair<DataReader<Count>, Heard*>> readers = {};
    bool here = false;
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  [[nodiscard]] TopicQos topic_qos() const { return {.level = level_, .ring_bytes = 4096}; }

  bool ensure_topic(std::uint32_t node) {
    if (all_.nodes[node].dead || !all_.nodes[node].participant) return false;
    if (!programs_[node].topic)
      programs_[node].topic = Topic<Count>(all_[node], "counts", topic_qos());
    return true;
  }
  void open_writer(std::uint32_t node) {
    if (!ensure_topic(node) || programs_[node].writer) return;
    Program& program = programs_[node];
    program.writer = DataWriter<Count>(Publisher(all_[node]), program.topic);
    ++program.writers;
    program.number = 0;
  }
  void open_reader(std::uint32_t node) {
    if (!ensure_topic(node)) return;
    DataReaderQos qos;
    const bool stored = level_ == Level::volatile_storage && draw(2) == 0;
    qos << Reliability::reliable() << History::keep_all()
        << ResourceLimits{.max_samples = static_cast<std::uint32_t>(draw(2) == 0 ? 8 : 1000)}
        << Durability{stored ? Durability::Kind::transient_local : Durability::Kind::volatile_};
    heard_.push_back(std::make_unique<Heard>(Heard{.node = node, .stored = stored}));
    programs_[node].readers.emplace_back(
        DataReader<Count>(Subscriber(all_[node]), programs_[node].topic, qos), heard_.back().get());
  }
  void happen() {
    const auto node = static_cast<std::uint32_t>(draw(programs_.size()));
    switch (draw(8)) {
      case 0:
        if (node >= 3 && !programs_[node].here) {
          programs_[node].here = true;
          all_.come(node);
        }
        return;
      case 1:
        if (!crashed_ && node < 3 && !all_.nodes[node].dead) {
          crashed_ = true;
          for (auto& [reader, heard] : programs_[node].readers) heard->reads = false;
          all_.crash(node);
        }
        return;
      case 2:
        if (!all_.nodes[node].dead) programs_[node].writer = {};
        return;
      case 3:
        if (!all_.nodes[node].dead && !programs_[node].readers.empty()) {
          programs_[node].readers.back().second->reads = false;
          programs_[node].readers.pop_back();
        }
        return;
      case 4:
        // Out of the topic altogether, and perhaps in it again later.
        if (!all_.nodes[node].dead) {
          for (auto& [reader, heard] : programs_[node].readers) heard->reads = false;
          programs_[node] = {.writers = programs_[node].writers, .here = programs_[node].here};
        }
        return;
      case 5:
        return open_reader(node);
      default:
        return open_writer(node);
    }
  }
  std::size_t work(std::uint32_t node) {
    Program& program = programs_[node];
    std::size_t done = 0;
    const std::uint64_t now_ns = all_.world.now_ns();
    if (program.writer && !finishing_ && now_ns < program.next_ns) {
      all_[node].fabric().wake_at(program.next_ns);
    } else if (program.writer && !finishing_) {
      const Count next{.writer = program.writers, .instance = node, .number = program.number};
      if (program.writer.write(next) == WriteResult::written) {
        ++program.number;
        program.next_ns = now_ns + draw(100'000);
        ++done;
      }
    }
    for (auto& [reader, heard] : program.readers)
      for (const auto& sample : reader.take())
        if (sample.info().valid()) {
          heard->samples.push_back(
              {sample.data().instance, sample.data().writer, sample.data().number});
          ++done;
        }
    return done;
  }
  void finish() {
    finishing_ = true;
    all_.run_for(300'000'000);
    for (std::uint32_t node = 0; node < programs_.size(); ++node)
      ASSERT_EQ(all_.nodes[node].error, "") << node;
    ASSERT_NO_FATAL_FAILURE(Auditor::check_order(heard_, level_ != Level::unordered));
    // Those that read to the end have the same end.
    std::optional<Said> last;
    for (std::uint32_t node = 0; node < programs_.size(); ++node)
      for (auto& [reader, heard] : programs_[node].readers) {
        if (all_.nodes[node].dead || !heard->reads || heard->samples.empty()) continue;
        ASSERT_TRUE(reader->ready());
        if (level_ == Level::unordered) continue;
        if (last && heard->samples.back() != *last) {
          const auto found = std::ranges::find(heard->samples, *last);
          ASSERT_NE(found, heard->samples.end()) << "readers that last end differently";
        }
        if (!last) last = heard->samples.back();
        ASSERT_EQ(heard->samples.back(), *last) << "readers that last end differently";
      }
    samples += heard_.empty() ? 0 : heard_.front()->samples.size();
  }

  std::mt19937_64 random_;
  Level level_;
  Participants all_;
  std::vector<Program> programs_;
  std::vector<std::unique_ptr<Heard>> heard_;
  bool crashed_ = false;
  bool finishing_ = false;

 public:
  std::uint64_t samples = 0;
};

class TopicSeedsTest : public testing::TestWithParam<Level> {};

TEST_P(TopicSeedsTest, ReadersSeeNoGapNoDuplicateAndOneOrder) {
  audit_seeds<TopicRun>(700, GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(Levels, TopicSeedsTest,
                         testing::Values(Level::unordered, Level::atomic, Level::volatile_storage),
                         [](const auto& one) { return std::string(describe(one.param)); });

}  // namespace
}  // namespace dunlin::test
