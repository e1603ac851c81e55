#include <string>

#include "bench/fabric/group.hpp"
#include "bench/topic/experiments.hpp"
#include "bench/topic/measured_topic.hpp"

/// What further topics cost, and what samples cost that do not travel as they are.
namespace dunlin::bench {
namespace {

using Small = Blob<64>;
using Topics = MeasuredTopics<Small>;

constexpr std::size_t kSmallRing = std::size_t{64} << 10;

/// `order`: of all of them together; empty: each has its own.
std::vector<Result> measure_topics(const Effort& effort, std::uint32_t count,
                                   const pubsub::OrderName& order) {
  const std::uint64_t samples = effort.scaled(200'000);
  pubsub::TopicQos qos = measured_qos(pubsub::Level::atomic);
  qos.ring_bytes = kSmallRing;
  const Group group(real_network("shm"), effort, effort.members);
  const Group of_many(real_network("shm"), effort, effort.members);
  Team team(group.team(effort.members));
  team.run([&](Member& me) {
    TopicNode lonely(me, group.join(me.rank()));
    const Topics one = make_topics<Small>(lonely, "only", 1, qos, 1);
    TopicNode node(me, of_many.join(me.rank()));
    const double start = now_ns();
    pubsub::TopicQos qos_of_many = qos;
    qos_of_many.order = order;
    const Topics many = make_topics<Small>(node, "t", count, qos_of_many, 1);
    if (me.rank() == 0)
      me.note("to create them took " + to_text(now_ns() - start, "ns") + " in all");
    alternate(me, effort.rounds,
              {[&] { return stream<Small>(lonely, one, samples); },
               [&] { return stream<Small>(node, std::span(many).first(1), samples); },
               [&] { return stream<Small>(node, many, samples); }});
  });
  std::vector<Result> results;
  for (const std::uint32_t series : {1U, 2U}) {
    results.push_back(compared({.params = {{"topics", double(count)},
                                           {"in use", series == 1 ? "one" : "all"},
                                           {"order", order.empty() ? "each its own" : "one of all"},
                                           {"members", double(effort.members)}},
                                .unit = "1/s",
                                .note = team.note()},
                               team.series(series), "one topic alone", team.series(0)));
  }
  return results;
}

std::vector<Result> topics(const Effort& effort) {
  std::vector<Result> results;
  for (const pubsub::OrderName& order : {pubsub::OrderName(), pubsub::OrderName("bench")})
    for (const std::uint32_t count : {4U, 16U, 64U, 256U}) {
      if (effort.quick && count > (order.empty() ? 16 : 4)) break;
      append(results, measure_topics(effort, count, order));
    }
  return results;
}

/// 64 bytes, and the same as members that need encoding.
struct Plain {
  std::uint64_t id = 7;
  std::array<double, 3> place{};
  std::array<char, 32> label{};
};
struct Encoded {
  std::uint64_t id = 7;
  std::array<double, 3> place{};
  std::string label = std::string(27, 'x');
};

std::vector<Result> types(const Effort& effort) {
  const std::uint64_t samples = effort.scaled(200'000);
  const Batches plan = effort.plan(100, 200);
  const auto qos = measured_qos(pubsub::Level::atomic);
  const Group group(real_network("shm"), effort, 2);
  Team team(group.team(2));
  team.run([&](Member& me) {
    TopicNode node(me, group.join(me.rank()));
    const auto plain = make_topics<Plain>(node, "plain", 1, qos, 2);
    const auto encoded = make_topics<Encoded>(node, "encoded", 1, qos, 2);
    alternate(me, effort.rounds,
              {[&] { return stream<Plain>(node, plain, samples); },
               [&] { return stream<Encoded>(node, encoded, samples); },
               [&] { return ping_pong(node, *plain.front(), plan); },
               [&] { return ping_pong(node, *encoded.front(), plan); }});
  });
  std::vector<Result> results;
  for (const bool rate : {true, false}) {
    const std::uint32_t series = rate ? 0 : 2;
    results.push_back(compared({.params = {{"type", "XCDR2, with a string"},
                                           {"what", rate ? "samples a second" : "latency"}},
                                .unit = rate ? "1/s" : "ns"},
                               team.series(series + 1), "a plain type", team.series(series)));
  }
  return results;
}

}  // namespace

Experiment many_topics() {
  return {.name = "topics",
          .title = "samples of 64 bytes a second of one writer, in one of so many topics or in all",
          .fabric = "shm",
          .x = "topics",
          .run = topics};
}

Experiment sample_types() {
  return {.name = "types",
          .title = "samples of some 64 bytes that are encoded, beside plain ones in place",
          .fabric = "shm",
          .run = types};
}

}  // namespace dunlin::bench
