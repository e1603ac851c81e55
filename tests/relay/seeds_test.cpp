#include "support/seeds.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "pubsub/participants.hpp"
#include "support/rounds.hpp"

/// Samples of clients in whole topics from seeds: clients go from member to member, with samples of
/// theirs still under way through the former one, while members crash and come. An auditor holds
/// what each reader was given against RLY-1 to RLY-3.
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;

constexpr std::uint32_t kFounders = 3;
constexpr std::uint32_t kNodes = 4;
constexpr std::uint32_t kClients = 2;
constexpr std::uint64_t kWindow = 12;

/// As a client and its connection: what is not acknowledged is written again where it goes.
struct Sender {
  std::uint32_t node = 0;
  std::uint64_t sent = 0;  // by this connection; 0: it has just begun
  std::uint64_t acknowledged = 0;
  bool begun = false;
};

class ClientsRun {
 public:
  ClientsRun(std::uint64_t seed, Level level)
      : random_(seed), level_(level), all_(kFounders, seed, kNodes - kFounders) {}

  void run() {
    for (std::uint32_t node = 0; node < kNodes; ++node)
      all_.nodes[node].work = [this, node] { return work(node); };
    for (int step = 0; step < 14; ++step) {
      happen();
      all_.run_for(draw(1'500'000));
    }
    stopped_ = true;
    all_.run_for(300'000'000);
    audit();
  }

  std::uint64_t repeated = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t ahead = 0;  // connections that began above what their member had delivered

 private:
  struct Heard {
    std::uint64_t position;
    std::uint32_t client;
    std::uint64_t number;
    friend bool operator==(const Heard&, const Heard&) = default;
  };
  struct Program {
    AnyTopic topic = {};
    AnyWriter writer = {};
    DataReader<Count> reader = {};
    Topic<Count> typed = {};
    std::vector<Heard> heard = {};
    bool here = false;
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  static ClientStamp stamp(std::uint32_t client, std::uint64_t number) {
    ClientStamp made{.number = number};
    const std::uint64_t id = client + 1;
    std::memcpy(made.client.data(), &id, sizeof id);
    return made;
  }
  [[nodiscard]] bool lives(std::uint32_t node) const {
    return !all_.nodes[node].dead && all_.nodes[node].participant != nullptr;
  }

  void happen() {
    const auto node = static_cast<std::uint32_t>(draw(kNodes));
    switch (draw(8)) {
      case 0:
        if (!programs_[kFounders].here) all_.come(kFounders);
        programs_[kFounders].here = true;
        return;
      case 1:
        if (!crashed_ && node < kFounders && lives(node)) {
          crashed_ = true;
          all_.crash(node);
        }
        return;
      default:
        move(senders_[draw(kClients)]);
    }
  }
  /// Its connection breaks, whatever is under way.
  void move(Sender& sender) {
    do sender.node = static_cast<std::uint32_t>(draw(kNodes));
    while (!lives(sender.node));
    sender.begun = false;
  }

  std::size_t work(std::uint32_t node) {
    Program& program = programs_[node];
    if (!program.topic) {
      const TopicQos qos{.level = level_, .max_samples = 1U << 16U, .ring_bytes = 4096};
      program.typed = Topic<Count>(all_[node], "counts", qos);
      program.topic = AnyTopic(all_[node], "counts", raw_type_support(), qos);
      program.writer = AnyWriter(program.topic, {});
      DataReaderQos reader_qos;
      const bool stored = level_ == Level::volatile_storage;
      reader_qos << Reliability::reliable() << History::keep_all()
                 << Durability{stored ? Durability::Kind::transient_local
                                      : Durability::Kind::volatile_};
      program.reader = DataReader<Count>(Subscriber(all_[node]), program.typed, reader_qos);
      program.reader.on_sample([&program](const Count& count, const SampleInfo& info) {
        if (info.valid()) program.heard.push_back({info.position, count.writer, count.number});
      });
      return 1;
    }
    std::size_t done = 0;
    for (std::uint32_t client = 0; client < kClients; ++client)
      if (senders_[client].node == node) done += relay(program, client);
    return done;
  }

  /// What a relay does.
  std::size_t relay(Program& program, std::uint32_t client) {
    Sender& sender = senders_[client];
    if (!program.writer.ready()) return 0;
    const std::uint64_t delivered = program.topic.delivered_of(stamp(client, 0).client);
    if (!sender.begun) sender.sent = std::max(delivered, sender.acknowledged);
    if (!sender.begun && sender.acknowledged > delivered) ++ahead;
    sender.begun = true;
    std::size_t done = 0;
    if (delivered > sender.acknowledged) {
      sender.acknowledged = delivered;
      ++done;
      // Just then, other members can be behind.
      if (!stopped_ && draw(32) == 0) {
        move(sender);
        return done;
      }
    }
    if (stopped_ || sender.sent >= sender.acknowledged + kWindow) return done;
    const Count count{.writer = client, .instance = client, .number = sender.sent + 1};
    RawSample sample;
    sample.key_hash = client;
    sample.payload.resize(sizeof count);
    std::memcpy(sample.payload.data(), &count, sizeof count);
    if (program.writer.write(&sample, stamp(client, count.number)) != WriteResult::written)
      return done;
    ++sender.sent;
    return done + 1;
  }

  void audit() {
    std::map<std::uint64_t, Heard> order;
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      ASSERT_EQ(all_.nodes[node].error, "") << node;
      const Program& program = programs_[node];
      std::map<std::uint32_t, std::uint64_t> last;
      for (const Heard& heard : program.heard) {
        const auto [place, first] = last.try_emplace(heard.client, heard.number);
        if (!first) {
          ASSERT_EQ(heard.number, place->second + 1)
              << "client " << heard.client << " at node " << node << ": a gap, or a duplicate";
          place->second = heard.number;
        } else if (level_ == Level::volatile_storage) {
          ASSERT_EQ(heard.number, 1U) << "the beginning is missing at node " << node;
        }
        const auto [same, is_new] = order.try_emplace(heard.position, heard);
        ASSERT_EQ(same->second, heard) << "positions differ at node " << node;
      }
      if (!lives(node)) continue;
      for (std::uint32_t client = 0; client < kClients; ++client)
        if (node < kFounders) {
          ASSERT_GE(last[client], senders_[client].acknowledged)
              << "an acknowledged sample is missing at node " << node;
        }
      repeated += program.topic ? program.topic.counters().repeated : 0;
    }
    for (const Sender& sender : senders_) acknowledged += sender.acknowledged;
  }

  std::mt19937_64 random_;
  Level level_;
  std::vector<Program> programs_{kNodes};
  std::vector<Sender> senders_{kClients};
  bool crashed_ = false;
  bool stopped_ = false;
  Participants all_;  // before the others go
};

class ClientSeedsTest : public testing::TestWithParam<Level> {};

/// RLY-2 promises that acknowledged samples are delivered, and RLY-1 that none is twice.
TEST_P(ClientSeedsTest, SamplesAreDeliveredOnceAndAcknowledgedOnesEverywhere) {
  std::uint64_t repeated = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t ahead = 0;
  const Seeds seeds(rounds(24));
  for_each_seed(seeds, [&](std::uint64_t seed) {
    ClientsRun run(seed, GetParam());
    run.run();
    repeated += run.repeated;
    acknowledged += run.acknowledged;
    ahead += run.ahead;
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(acknowledged, rounds(24));
  EXPECT_GT(repeated, 0U) << "samples came by two ways at all";
  EXPECT_GT(ahead, 0U) << "clients came to members that were behind";
}

INSTANTIATE_TEST_SUITE_P(Levels, ClientSeedsTest,
                         testing::Values(Level::atomic, Level::volatile_storage),
                         [](const auto& one) { return std::string(describe(one.param)); });

}  // namespace
}  // namespace dunlin::test
