#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <dunlin/fabric/sim.hpp>
#include <dunlin/table.hpp>

#include "bench/fabric/simulated_members.hpp"
#include "bench/table/simulation.hpp"

/// Simulated nodes with a table each. Times are virtual; what varies from round to round is the
/// seed.
namespace dunlin::bench {

template <class Row>
class Cluster : public SimulatedMembers<Table<Row>> {
 public:
  Cluster(const sim::Profile& profile, std::uint32_t nodes, std::uint64_t seed, Refresh refresh)
      : SimulatedMembers<Table<Row>>(profile, nodes, seed, [refresh](Fabric& fabric) {
          return std::make_unique<Table<Row>>(fabric, TableOptions{.refresh = refresh});
        }) {
    this->run_until([this] {
      return std::ranges::all_of(this->layers,
                                 [](const auto& table) { return table->connected(); });
    });
  }

  [[nodiscard]] Table<Row>& operator[](std::size_t node) noexcept { return *this->layers[node]; }
};

/// One question asked by node 0 and answered by others, again and again, at random moments: node 0
/// changes its row, the answering nodes' triggers change theirs, node 0 detects that all watched
/// rows have changed. Watched rows that do not answer are true from the beginning.
struct Question {
  std::uint32_t nodes = 2;
  std::vector<std::uint32_t> watched = {1};
  std::vector<std::uint32_t> answering = {1};
  Refresh refresh = Refresh::writes;
  std::uint32_t times = 100;
};

/// A row of N integers.
template <std::size_t N>
struct Answer {
  std::array<Cell<std::int32_t>, N> a;
};

/// The mean time from the question to the detection, in ns of virtual time. Rows have N integers,
/// all of which are watched and pushed; the last one changes.
template <std::size_t N>
double mean_round_trip(const sim::Profile& profile, std::uint64_t seed, const Question& question) {
  using Row = Answer<N>;
  constexpr std::int32_t kTrue = std::numeric_limits<std::int32_t>::max();
  Cluster<Row> cluster(profile, question.nodes, seed, question.refresh);
  const auto last = [](const Row& row) { return row.a.back().load(); };
  std::int32_t asked = 0;
  std::uint64_t detected_ns = 0;

  for (const std::uint32_t row : question.watched) {
    const bool answers = std::ranges::count(question.answering, row) != 0;
    Row& mine = cluster[row].mine();
    for (auto& cell : mine.a) cell = kTrue;
    if (answers) mine.a.back() = 0;
    cluster.world.on(row, [&cluster, row] { (void)cluster[row].push(); });
  }
  for (const std::uint32_t row : question.answering) {
    cluster[row]
        .when([last](const auto& t) { return last(t[0]) != last(t.mine()); })
        .recurrent([last](auto& t) {
          t.mine().a.back() = last(t[0]);
          t.push();
        });
  }
  Table<Row>& asking = cluster[0];
  asking.when(all(&Row::a).over(question.watched) >= std::cref(asked)).recurrent([&](auto& t) {
    if (detected_ns == 0) detected_ns = t.fabric().now_ns();
  });
  cluster.run_until([&] { return detected_ns != 0; });

  double total_ns = 0;
  for (std::uint32_t i = 0; i < question.times; ++i) {
    cluster.world.run_for(cluster.world.random() % 20'000);
    std::uint64_t asked_ns = 0;
    cluster.world.on(0, [&] {
      asked_ns = asking.fabric().now_ns();
      asking.mine().a.back() = ++asked;
      detected_ns = 0;
      (void)asking.push(entry(&Row::a, N - 1));
    });
    cluster.run_until([&] { return asked_ns != 0 && detected_ns != 0; });
    total_ns += static_cast<double>(detected_ns - asked_ns);
  }
  return total_ns / question.times;
}

/// The time to detect the simplest predicate among so many nodes: half a round trip.
[[nodiscard]] double simple_detection(const sim::Profile& profile, std::uint64_t seed,
                                      std::uint32_t nodes, Refresh refresh, std::uint32_t times);

/// Rounds a second in which all nodes count in step.
[[nodiscard]] double counting_rate(const sim::Profile& profile, std::uint64_t seed,
                                   std::uint32_t nodes, Refresh refresh, std::uint64_t rounds);

/// What a round trip takes more than the simplest predicate among as many nodes, beside that.
template <std::size_t N>
Result beyond_the_simplest(const Effort& effort, const Network& network, Params params,
                           const Question& question) {
  const auto simple = over_seeds(effort, [&](std::uint64_t seed) {
    return simple_detection(network.profile, seed, question.nodes, question.refresh,
                            question.times);
  });
  auto values = over_seeds(effort, [&](std::uint64_t seed) {
    return mean_round_trip<N>(network.profile, seed, question);
  });
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= simple[i];
  return compared({.params = std::move(params), .unit = "ns"}, values, "its simplest predicate",
                  simple);
}

}  // namespace dunlin::bench
