#include "bench/container/simulated_processes.hpp"

#include <array>

#include <gtest/gtest.h>

namespace dunlin::bench {
namespace {

constexpr ProcessSetting kOneSided{.slots = 256, .capacity = 128};
constexpr ProcessSetting kByMessage{.style = Style::message, .slots = 256, .capacity = 128};
constexpr SimulatedProcess::Work kWork{.times = 20};

/// Of processes of which each has a node.
double time_among(const sim::Profile& network, std::span<const Component> sequence) {
  const auto all = processes_of(network, network.racks, 1, kOneSided);
  return time_of_bare(*all, sequence, 1, kWork);
}
double time_among(std::uint32_t nodes, std::span<const Component> sequence) {
  return time_among(aries_network(nodes), sequence);
}

/// A network on which atomics on one word take as long as on several.
sim::Profile without_gap(std::uint32_t nodes) {
  sim::Profile network = aries_network(nodes);
  network.same_word_gap_ns = 0;
  return network;
}

void expect_near(double value, double expected) { EXPECT_NEAR(value, expected, 0.02 * expected); }

// The network has two parameters for four figures of table I, and one for both atomics.
TEST(AriesNetwork, GivesThePublishedLatenciesBack) {
  expect_near(time_among(4, std::array{Component::put}), kPublishedPutNs);
  expect_near(time_among(4, std::array{Component::get}), kPublishedGetNs);
  expect_near(time_among(4, std::array{Component::swap}), kPublishedSwapNs);
  expect_near(time_among(4, std::array{Component::add}), kPublishedAddNs);
}

TEST(AriesNetwork, IsAsItsComponentCostsSay) {
  const ComponentCosts costs = component_costs(aries_network(4));
  expect_near(costs.write_ns, kPublishedPutNs);
  expect_near(costs.read_ns, kPublishedGetNs);
  expect_near(costs.message_ns, kPublishedMessageNs);
  const auto all = processes_of(aries_network(4), 4, 1, kByMessage);
  const double message = time_of_calls(*all, Call::insert, Promise::both, 1, kWork);
  EXPECT_NEAR(message, costs.message_ns, 0.1 * costs.message_ns);
}

double time_at_first(const sim::Profile& network, Component component, std::uint32_t processes) {
  const auto all = processes_of(network, processes + 1, 1, kOneSided);
  return time_of_bare(*all, std::span(&component, 1), 1, {.times = 40, .at_first = processes});
}

// So many processes at so many nodes that random others seldom share one with the caller.
TEST(AriesNetwork, AddsToTheSingleWordsOfRandomProcessesAsDerivedFromThePublication) {
  const double time = time_among(64, std::array{Component::add_to_one_word});
  EXPECT_NEAR(time, kPublishedSingleWordAddNs, 0.1 * kPublishedSingleWordAddNs);
}

// Also the additions of one process, which wait for the word longer than for the network.
TEST(AriesNetwork, LetsAdditionsToOneWordWaitForEachOther) {
  constexpr std::uint32_t kProcesses = 16;
  const sim::Profile network = aries_network(kProcesses + 1);
  for (const std::uint32_t processes : {1U, 4U, kProcesses})
    expect_near(time_at_first(network, Component::add_to_one_word, processes),
                processes * network.same_word_gap_ns);
  expect_near(time_at_first(without_gap(kProcesses + 1), Component::add_to_one_word, kProcesses),
              kPublishedAddNs);
}

TEST(AriesNetwork, HasProcessesOfOneNodeNearEachOther) {
  const auto all = processes_of(aries_network(1), 4, 1, kOneSided);
  EXPECT_LT(time_of_bare(*all, std::array{Component::get}, 1, kWork), kPublishedGetNs / 5);
}

TEST(SimulatedProcesses, WaitForEarlierTicketsInTheSequenceOfBcl) {
  const std::array phasal{Component::take_ticket, Component::put};
  const std::array atomic{Component::take_ticket, Component::put, Component::mark_ready};
  const sim::Profile network = without_gap(8);
  const double least = time_among(network, phasal) + kPublishedSwapNs;
  EXPECT_GT(time_among(network, atomic), 0.98 * least);
}

TEST(SimulatedProcesses, CallWhatTheyShall) {
  const auto all = processes_of(aries_network(4), 4, 1, kOneSided);
  const auto time_of = [&](Call call, Promise promise) {
    return time_of_calls(*all, call, promise, 1, kWork);
  };
  const double insert = time_of(Call::insert, Promise::both);
  const double find = time_of(Call::find, Promise::both);
  EXPECT_NEAR(find, kPublishedGetNs,
              0.05 * kPublishedGetNs);  // some keys are not in their first slot
  EXPECT_GT(insert, kPublishedSwapNs + kPublishedPutNs - 100);
  EXPECT_GT(time_of(Call::assign, Promise::both), insert);
  EXPECT_GT(time_of(Call::push, Promise::both), find);
  EXPECT_GT(time_of(Call::erase, Promise::both), find);
}

TEST(SimulatedProcesses, DoNotCountWhatTheyCompute) {
  const auto all = processes_of(without_gap(4), 4, 1, kOneSided);
  const SimulatedProcess::Work computing{.times = 20, .computing_ns = 100'000};
  expect_near(time_of_calls(*all, Call::push, Promise::both, 1, computing),
              time_of_calls(*all, Call::push, Promise::both, 1, kWork));
}

// As published: the latency of a push goes down when pushes are spaced out by computation.
TEST(SimulatedProcesses, PushFasterIfTheyComputeBetweenTwo) {
  const auto all = processes_of(aries_network(16), 16, 1, kOneSided);
  const SimulatedProcess::Work computing{.times = 20, .computing_ns = 100'000};
  const double spaced = time_of_calls(*all, Call::push, Promise::both, 1, computing);
  EXPECT_LT(spaced, 0.8 * time_of_calls(*all, Call::push, Promise::both, 1, kWork));
  EXPECT_GT(spaced, kPublishedAddNs + kPublishedPutNs - 100);
}

TEST(SimulatedProcesses, AnswerWhileTheyComputeByAProgressThread) {
  const auto all = processes_of(aries_network(4), 4, 1, kByMessage);
  const auto time_of_push = [&](double computing_ns, bool progress_thread) {
    return time_of_calls(
        *all, Call::push, Promise::both, 1,
        {.times = 20, .computing_ns = computing_ns, .progress_thread = progress_thread});
  };
  const double attentive = time_of_push(0, false);
  EXPECT_NEAR(time_of_push(100'000, true), attentive, 0.05 * attentive);
  EXPECT_GT(time_of_push(100'000, false), attentive + 2'000);
}

/// So many are told of each other's regions one after the other.
TEST(SimulatedProcesses, CanBeMany) {
  constexpr std::uint32_t kProcesses = 520;
  const auto all = processes_of(aries_network(kProcesses), kProcesses, 1, {.slots = 64});
  expect_near(time_of_bare(*all, std::array{Component::get}, 1, {.times = 4}), kPublishedGetNs);
}

}  // namespace
}  // namespace dunlin::bench
