#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "pubsub/participants.hpp"

/// Orders of several topics from seeds: members come and crash, and open and close their topics. An
/// auditor holds what each took against PUB-O1 to PUB-O4.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

constexpr std::size_t kTopics = 3;

/// Which sample, and its place in the order.
struct Said {
  std::uint32_t topic = 0;
  std::uint32_t node = 0;
  std::uint32_t session = 0;
  std::uint64_t number = 0;  // of that session in that topic
  friend bool operator==(const Said&, const Said&) = default;
};
using Sequence = std::vector<std::pair<std::uint64_t, Said>>;

/// What a member took between opening some topics and closing them.
struct Heard {
  std::uint32_t node = 0;
  bool stored = false;
  bool is_open = true;  // until the member closes its topics, or crashes
  std::array<bool, kTopics> topics = {};
  Sequence said = {};
};

void check_alone(const Heard& heard) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> next;
  std::uint64_t before = 0;
  for (const auto& [place, said] : heard.said) {
    ASSERT_GT(place, before) << "node " << heard.node << " took a sample before an earlier one";
    before = place;
    const auto [of_writer, first] =
        next.try_emplace({said.topic, said.node, said.session}, said.number);
    ASSERT_EQ(of_writer->second, said.number)
        << "node " << heard.node << " has a gap or duplicate in topic " << said.topic;
    ++of_writer->second;
    if (first && heard.stored) {
      ASSERT_EQ(said.number, 0U) << "a late reader lacks the beginning of topic " << said.topic;
    }
  }
}

/// Where a reader is known to have begun; without what is stored, not before its first sample.
std::uint64_t beginning_of(const Heard& heard, std::uint32_t topic) {
  if (heard.stored) return 0;
  const auto first =
      std::ranges::find(heard.said, topic, [](const auto& placed) { return placed.second.topic; });
  return first != heard.said.end() ? first->first : UINT64_MAX;
}

/// Of the topics that both have, both took the same, where both took at all.
void check_pair(const Heard& one, const Heard& other) {
  if (one.said.empty() || other.said.empty()) return;
  const std::uint64_t first = std::max(one.said.front().first, other.said.front().first);
  const std::uint64_t last = std::min(one.said.back().first, other.said.back().first);
  const auto common = [&](const Heard& of) {
    Sequence part;
    for (const auto& [place, said] : of.said)
      if (place >=
              std::max({first, beginning_of(one, said.topic), beginning_of(other, said.topic)}) &&
          place <= last && one.topics[said.topic] && other.topics[said.topic])
        part.emplace_back(place, said);
    return part;
  };
  ASSERT_EQ(common(one), common(other))
      << "nodes " << one.node << " and " << other.node << " differ in the order";
}

/// Members that still take have come to the same end in each topic.
void check_ends(const std::vector<std::unique_ptr<Heard>>& all) {
  for (std::uint32_t topic = 0; topic < kTopics; ++topic) {
    std::uint64_t end = 0;
    for (const auto& heard : all) {
      if (!heard->is_open) continue;
      const auto last = std::ranges::find(heard->said.rbegin(), heard->said.rend(), topic,
                                          [](const auto& placed) { return placed.second.topic; });
      if (last == heard->said.rend()) continue;  // it has begun behind the last one
      if (end == 0) end = last->first;
      ASSERT_EQ(last->first, end) << "node " << heard->node << " does not go on in topic " << topic;
    }
  }
}

class OrderRun {
 public:
  explicit OrderRun(std::uint64_t seed, Level level)
      : random_(seed),
        qos_{.level = level, .ring_bytes = 4096, .order = "shared"},
        all_(3, seed, 2),
        programs_(5) {}

  void run() {
    for (std::uint32_t node = 0; node < programs_.size(); ++node)
      all_.nodes[node].work = [this, node] { return work(node); };
    stays_ = Topic<Count>(all_[0], "topic0", qos_);  // so the order does not begin anew
    for (int step = 0; step < 12 && !testing::Test::HasFatalFailure(); ++step) {
      happen();
      all_.run_for(draw(3'000'000));
    }
    finishing_ = true;
    all_.run_for(300'000'000);
    for (std::uint32_t node = 0; node < programs_.size(); ++node)
      ASSERT_EQ(all_.nodes[node].error, "") << node;
    for (const auto& one : heard_) {
      ASSERT_NO_FATAL_FAILURE(check_alone(*one));
      samples += one->said.size();
      for (const auto& other : heard_) ASSERT_NO_FATAL_FAILURE(check_pair(*one, *other));
    }
    check_ends(heard_);
  }

  std::uint64_t samples = 0;

 private:
  struct Program {
    std::array<DataWriter<Count>, kTopics> writers = {};
    std::array<std::uint64_t, kTopics> numbers = {};
    std::unique_ptr<OrderedAccess> access = {};
    Heard* heard = nullptr;
    std::uint32_t sessions = 0;
    std::uint64_t next_ns = 0;
    bool here = false;
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  void open(std::uint32_t node) {
    if (all_.nodes[node].dead || !all_.nodes[node].participant) return;
    Program& program = programs_[node];
    close(node);
    ++program.sessions;
    program.access = std::make_unique<OrderedAccess>();
    const bool stored = qos_.level == Level::volatile_storage && draw(2) == 0;
    DataReaderQos qos;
    qos << Reliability::reliable() << History::keep_all()
        << ResourceLimits{.max_samples = static_cast<std::uint32_t>(draw(2) == 0 ? 8 : 1000)}
        << Durability{stored ? Durability::Kind::transient_local : Durability::Kind::volatile_};
    heard_.push_back(std::make_unique<Heard>(Heard{.node = node, .stored = stored}));
    Heard* const heard = heard_.back().get();
    program.heard = heard;
    for (std::uint32_t i = 0; i < kTopics; ++i) {
      if (draw(3) == 0) continue;
      const Topic<Count> topic(all_[node], "topic" + std::to_string(i), qos_);
      if (draw(2) == 0) program.writers[i] = DataWriter<Count>(Publisher(all_[node]), topic);
      heard->topics[i] = true;
      program.access->add<Count>(DataReader<Count>(Subscriber(all_[node]), topic, qos),
                                 [heard, i](const auto& sample) {
                                   if (sample.info().valid())
                                     heard->said.push_back({sample.info().order_position,
                                                            {.topic = i,
                                                             .node = sample.data().instance,
                                                             .session = sample.data().writer,
                                                             .number = sample.data().number}});
                                 });
    }
  }
  void close(std::uint32_t node) {
    Program& program = programs_[node];
    if (program.heard != nullptr) program.heard->is_open = false;
    program = {.sessions = program.sessions, .here = program.here};
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
        if (!crashed_ && (node == 1 || node == 2)) {
          crashed_ = true;
          if (programs_[node].heard != nullptr) programs_[node].heard->is_open = false;
          all_.crash(node);
        }
        return;
      case 2:
        if (!all_.nodes[node].dead) close(node);
        return;
      default:
        return open(node);
    }
  }
  std::size_t work(std::uint32_t node) {
    Program& program = programs_[node];
    std::size_t done = program.access ? program.access->take() : 0;
    if (finishing_) return done;
    const std::uint64_t now_ns = all_.world.now_ns();
    if (now_ns < program.next_ns) {
      all_[node].fabric().wake_at(program.next_ns);
      return done;
    }
    for (std::size_t i = 0; i < kTopics; ++i) {
      if (!program.writers[i]) continue;
      const Count next{.writer = program.sessions, .instance = node, .number = program.numbers[i]};
      if (program.writers[i].write(next) != WriteResult::written) continue;
      ++program.numbers[i];
      program.next_ns = now_ns + draw(100'000);
      ++done;
    }
    return done;
  }

  std::mt19937_64 random_;
  TopicQos qos_;
  Participants all_;
  Topic<Count> stays_;
  std::vector<std::unique_ptr<Heard>> heard_;
  std::vector<Program> programs_;
  bool crashed_ = false;
  bool finishing_ = false;
};

class OrderSeedsTest : public testing::TestWithParam<Level> {};

TEST_P(OrderSeedsTest, AllTakeTheSamplesOfAllTopicsInOneSequence) {
  audit_seeds<OrderRun>(100, GetParam(), 10);
}

INSTANTIATE_TEST_SUITE_P(Levels, OrderSeedsTest,
                         testing::Values(Level::atomic, Level::volatile_storage),
                         [](const auto& one) { return std::string(describe(one.param)); });

}  // namespace
}  // namespace dunlin::test
