#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pubsub/participants.hpp"
#include "relay/topics.hpp"
#include "support/rounds.hpp"
#include "support/seeds.hpp"

/// The topics of relays in whole groups from seeds: clients write to a topic in which no member has
/// an endpoint of its own, and go from relay to relay, while relays crash at any moment. An auditor
/// holds what a new reader at each survivor is given against what was acknowledged (RLY-10).
namespace dunlin::test {
namespace {

using namespace dunlin::pubsub;
using relay::RelayTopic;
using relay::RelayTopics;

constexpr std::uint32_t kRelays = 4;
constexpr std::uint32_t kClients = 2;
constexpr std::uint32_t kMostCrashes = 2;
constexpr std::uint64_t kWindow = 8;

relay::Open opening(bool writes, Level level) {
  const TopicQos qos{.level = level, .max_samples = 1U << 16U, .ring_bytes = 4096};
  return {.writes = writes,
          .topic = "counts",
          .type_text = type_support<Count>()->text,
          .type_name = type_support<Count>()->name,
          .qos = qos};
}

ClientId id_of(std::uint32_t client) {
  ClientId id = {};
  const std::uint64_t number = client + 1;
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

/// A client's writer at one relay: what a session does for it.
struct Connection final : relay::ClientEndpoint {
  Connection(RelayTopics& at, ClientId client) : topics(at), id(client) {}
  ~Connection() override {
    if (topic) topic->remove(id, *this);
    topics.stop_waiting("counts", *this);
  }
  void on_delivered(std::uint64_t number) override { delivered = std::max(delivered, number); }
  void on_sample(const RawSample&, const SampleInfo&) override {}
  void wake() override {}

  RelayTopics& topics;
  ClientId id;
  std::shared_ptr<RelayTopic> topic;
  bool begun = false;
  std::uint64_t delivered = 0;
};

struct Client {
  std::uint32_t node = 0;
  std::unique_ptr<Connection> connection;
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;
};

class SharingRun {
 public:
  SharingRun(std::uint64_t seed, Level level) : random_(seed), level_(level), all_(kRelays, seed) {}

  void run() {
    for (std::uint32_t node = 0; node < kRelays; ++node)
      all_.nodes[node].work = [this, node] { return work(node); };
    // The moments at which other relays come into a topic that has just begun.
    clients_[1].node = static_cast<std::uint32_t>(draw(kRelays));
    ASSERT_TRUE(all_.until([this] { return clients_[0].acknowledged > 0; }));
    if (draw(2) == 0) {
      all_.run_for(draw(200'000));
      crash(clients_[0].node);
    }
    for (int step = 0; step < 12; ++step) {
      all_.run_for(draw(3'000'000));
      happen();
    }
    stopped_ = true;
    all_.run_for(30'000'000);
    audit();
    for (Client& client : clients_) client.connection.reset();
    topics_.clear();
  }

  std::uint64_t acknowledged = 0;
  std::uint32_t crashes = 0;

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  [[nodiscard]] bool lives(std::uint32_t node) const { return !all_.nodes[node].dead; }

  void happen() {
    const auto node = static_cast<std::uint32_t>(draw(kRelays));
    if (draw(3) == 0 && crashes < kMostCrashes && lives(node)) {
      // One relay's death at a time: the next one comes once others have the topic again.
      if (crashes > 0) all_.run_for(30'000'000);
      crash(node);
    } else {
      move(clients_[draw(kClients)]);
    }
  }
  void crash(std::uint32_t node) {
    ++crashes;
    all_.crash(node);
    for (Client& client : clients_)
      if (!lives(client.node)) move(client);
  }
  void move(Client& client) {
    do client.node = static_cast<std::uint32_t>(draw(kRelays));
    while (!lives(client.node));
    client.connection.reset();
  }
  std::size_t work(std::uint32_t node) {
    if (!topics_[node]) {
      topics_[node] = std::make_unique<RelayTopics>(all_[node]);
      return 1;
    }
    std::size_t done = topics_[node]->look();
    static_cast<void>(topics_[node]->let_go(all_.world.fabric(node).now_ns()));
    for (std::uint32_t i = 0; i < kClients; ++i)
      if (clients_[i].node == node) done += serve(clients_[i], i);
    return done;
  }

  std::size_t serve(Client& client, std::uint32_t number) {
    if (!client.connection)
      client.connection = std::make_unique<Connection>(*topics_[client.node], id_of(number));
    Connection& connection = *client.connection;
    std::string why;
    const relay::Open open = opening(true, level_);
    if (!connection.topic) connection.topic = connection.topics.find(open, why);
    EXPECT_EQ(why, "");
    if (!connection.topic) return 0;
    RelayTopic& topic = *connection.topic;
    if (!connection.begun) {
      if (topic.prepare(open, why) != RelayTopic::Ready::yes) return 0;
      connection.begun = true;
      connection.delivered = topic.topic().delivered_of(connection.id);
      topic.add_writer(connection.id, connection);
      client.sent = std::max(client.acknowledged, connection.delivered);
    }
    std::size_t done = 0;
    if (connection.delivered > client.acknowledged && topic.is_safe()) {
      client.acknowledged = connection.delivered;
      ++done;
    }
    if (stopped_ || client.sent >= client.acknowledged + kWindow) return done;
    const Count count{.writer = number, .number = client.sent + 1};
    const relay::ClientSample sample{.number = count.number,
                                     .payload = std::as_bytes(std::span(&count, 1))};
    const auto hash = topic.check(0, sample, why);
    EXPECT_TRUE(hash) << why;
    if (!hash || topic.publish(connection.id, 0, sample, *hash) != WriteResult::written)
      return done;
    ++client.sent;
    return done + 1;
  }

  /// A reader comes to each survivor, and is given each client's samples from the first one on.
  void audit() {
    for (std::uint32_t node = 0; node < kRelays; ++node) {
      ASSERT_EQ(all_.nodes[node].error, "") << node;
      if (!lives(node)) continue;
      std::string why;
      const relay::Open open = opening(false, level_);
      std::shared_ptr<RelayTopic> topic;
      AnyReader reader;
      std::map<std::uint32_t, std::uint64_t> last;
      const auto take = [&] {
        if (!topic) topic = topics_[node]->find(open, why);
        if (!topic || topic->prepare(open, why) != RelayTopic::Ready::yes) return false;
        if (!reader) {
          DataReaderQos qos;
          qos << Reliability::reliable() << History::keep_all()
              << Durability{Durability::Kind::transient_local};
          reader = topic->make_reader(qos);
        }
        const auto samples = reader.take();
        for (std::size_t i = 0; i < samples.size(); ++i) {
          Count count;
          std::memcpy(&count, static_cast<const RawSample*>(samples.data(i))->payload.data(),
                      sizeof count);
          EXPECT_EQ(count.number, last[count.writer] + 1)
              << "client " << count.writer << " at node " << node;
          last[count.writer] = count.number;
        }
        for (std::uint32_t i = 0; i < kClients; ++i)
          if (last[i] < clients_[i].acknowledged) return false;
        return reader.ready();
      };
      bool done = false;
      const auto before = all_.nodes[node].work;
      all_.nodes[node].work = [&] {
        if (!done) done = take();
        return before();
      };
      const bool in_time = all_.until([&] { return done; });
      all_.nodes[node].work = before;
      ASSERT_TRUE(in_time) << "an acknowledged sample is missing at node " << node << ": "
                           << last[0] << " of " << clients_[0].acknowledged << ", " << last[1]
                           << " of " << clients_[1].acknowledged << "; " << why << "; safe "
                           << (topic && topic->is_safe()) << ", relays "
                           << topics_[node]->peers().count();
    }
    for (const Client& client : clients_) acknowledged += client.acknowledged;
  }

  std::mt19937_64 random_;
  Level level_;
  Participants all_;
  // They go before the participants.
  std::vector<std::unique_ptr<RelayTopics>> topics_{kRelays};
  std::vector<Client> clients_{kClients};
  bool stopped_ = false;
};

TEST(SharingSeeds, WhatAnyRelayAcknowledgedIsAtAllThatAreLeft) {
  std::uint64_t acknowledged = 0;
  std::uint32_t crashes = 0;
  const Seeds seeds(rounds(16));
  for_each_seed(seeds, [&](std::uint64_t seed) {
    SharingRun run(seed, Level::volatile_storage);
    run.run();
    acknowledged += run.acknowledged;
    crashes += run.crashes;
  });
  if (!seeds.are_usual) return;
  EXPECT_GT(acknowledged, rounds(16));
  EXPECT_GT(crashes, 0U);
}

}  // namespace
}  // namespace dunlin::test
