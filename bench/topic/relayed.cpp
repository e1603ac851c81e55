#include <array>
#include <cstring>
#include <string>

#include <dunlin/join.hpp>
#include <dunlin/relay.hpp>
#include <dunlin/relay/relay.hpp>

#include "bench/fabric/bare.hpp"
#include "bench/fabric/group.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"

/// What a program gets that is no member: samples through a relay, beside bare sockets.
namespace dunlin::bench {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::uint32_t kLimitSamples = 4'096;

/// Process 0 is a group of one with a relay, and process 1 its client.
class RelayedPair {
 public:
  RelayedPair(Member& me, const std::string& group, const std::string& secret) : me_(me) {
    if (me.rank() == 0) {
      node_ = std::make_unique<TopicNode>(
          me, dunlin::join({.group = group, .members = 1, .rank = 0, .silence_timeout_ms = 0}));
      relay_ = std::make_unique<relay::Relay>(node_->participant(),
                                              relay::RelayOptions{.secret = secret});
    }
    const auto ports = me.exchange(relay_ ? std::to_string(relay_->port()) : "", [&] { poll(); });
    if (me.rank() == 1)
      client_ = std::make_unique<relay::RelayClient>(relay::ClientOptions{
          .relays = {std::string(kLoopback) + ":" + ports.at(0)}, .secret = secret});
  }
  std::size_t poll() {
    if (client_) return client_->poll();
    return node_ ? node_->poll() + relay_->poll() : 0;
  }
  /// Only the client's turn is one: the relay polls until it is over.
  template <class Turn>
  std::optional<double> turn(Turn&& turn) {
    return take_turn(
        me_, [&] { poll(); },
        [&]() -> std::optional<double> { return client_ ? turn(*client_) : std::nullopt; });
  }
  template <class Condition>
  void poll_until(Condition&& condition) {
    for (Patience patience; !condition();) patience.after(poll() > 0);
  }

 private:
  Member& me_;
  std::unique_ptr<TopicNode> node_;
  std::unique_ptr<relay::Relay> relay_;
  std::unique_ptr<relay::RelayClient> client_;
};

template <std::size_t Bytes>
class RelayedTopic {
 public:
  explicit RelayedTopic(RelayedPair& pair) : pair_(pair) {
    static_cast<void>(pair.turn([&](relay::RelayClient& client) -> std::optional<double> {
      writer_ = {client, kName, measured_qos(pubsub::Level::atomic)};
      reader_ = {client, kName};
      pair_.poll_until([&] { return writer_.ready() && reader_.ready(); });
      return std::nullopt;
    }));
  }

  /// From a sample to the client's own reader: there and back.
  std::optional<double> round_trip(const Batches& plan) {
    return pair_.turn([&](relay::RelayClient&) -> std::optional<double> {
      return batch_ns(plan, [&] {
        write();
        pair_.poll_until([&] { return !reader_.take().empty(); });
      });
    });
  }
  /// Samples a second until all of them are acknowledged, and are back.
  std::optional<double> publish(std::uint64_t samples) {
    return pair_.turn([&](relay::RelayClient&) -> std::optional<double> {
      std::uint64_t back = 0;
      const double start = now_ns();
      for (std::uint64_t i = 0; i < samples; ++i) {
        write();
        if (i % 64 == 0) back += reader_.take().size();
      }
      pair_.poll_until([&] {
        back += reader_.take().size();
        return back == samples && writer_.all_acknowledged();
      });
      return static_cast<double>(samples) * 1e9 / (now_ns() - start);
    });
  }

 private:
  void write() {
    pair_.poll_until([&] { return writer_.write(*sample_) == pubsub::WriteResult::written; });
  }
  static constexpr const char* kName = "relayed";
  RelayedPair& pair_;
  relay::RelayWriter<Blob<Bytes>> writer_;
  relay::RelayReader<Blob<Bytes>> reader_;
  std::unique_ptr<Blob<Bytes>> sample_ = std::make_unique<Blob<Bytes>>();
};

template <std::size_t Bytes>
void measure(const Effort& effort, std::vector<Result>& results) {
  const Batches plan = effort.plan(50, 50);
  const std::uint64_t samples = effort.scaled(Bytes >= 10'000 ? 20'000 : 100'000);
  const std::string group = fresh_group();
  Team team({.processes = 2, .timeout = effort.timeout});
  team.run([&](Member& me) {
    const auto bare = bare_tcp(me, kLoopback);
    RelayedPair clear(me, group, ""), secret(me, group + "-tls", "a secret of the benchmark's own");
    RelayedTopic<Bytes> plain(clear), encrypted(secret);
    alternate(me, effort.rounds,
              {[&]() -> std::optional<double> {
                 const auto one_way = bare->one_way(me, plan, Bytes);
                 return one_way ? std::optional(2 * *one_way) : std::nullopt;
               },
               [&] { return plain.round_trip(plan); }, [&] { return encrypted.round_trip(plan); },
               [&]() -> std::optional<double> {
                 const auto each = bare->stream(me, Bytes, effort.scaled(kLimitSamples), 32);
                 return each ? std::optional(1e9 / *each) : std::nullopt;
               },
               [&] { return plain.publish(samples); }, [&] { return encrypted.publish(samples); }});
  });
  for (const std::uint32_t first : {0U, 3U}) {
    for (const std::uint32_t tls : {0U, 1U}) {
      const bool rate = first == 3;
      results.push_back(compared(
          {.params = {{"bytes", double(Bytes)},
                      {"what", rate ? "published, acknowledged and back" : "there and back"},
                      {"TLS", tls == 1 ? "yes" : "no"}},
           .unit = rate ? "1/s" : "ns"},
          team.series(first + 1 + tls), rate ? "bare TCP, 32 at once" : "bare TCP",
          team.series(first)));
    }
  }
}

}  // namespace

Experiment relayed_samples() {
  return {.name = "relay",
          .title = "samples of a program that is no member, through a relay on the same host",
          .fabric = "shm",
          .x = "bytes",
          .run = [](const Effort& effort) {
            std::vector<Result> results;
            measure<64>(effort, results);
            measure<1'000>(effort, results);
            measure<10'000>(effort, results);
            return results;
          }};
}

}  // namespace dunlin::bench
