#include "bench/container/simulated_processes.hpp"

#include <array>

#include <gtest/gtest.h>

namespace dunlin::bench {
namespace {

constexpr ProcessSetting kOneSided{.slots = 256, .capacity = 128};
constexpr ProcessSetting kByMessage{.style = Style::message, .slots = 256, .capacity = 128};
constexpr SimulatedProcess::Work kWork{.times = 20};

/// Of processes of which each has a node.
double time_among(std::uint32_t nodes, std::span<const Component> sequence) {
  const auto all = processes_of(aries_network(nodes), nodes, 1, kOneSided);
  return time_of_bare(*all, sequence, 1, kWork);
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

TEST(AriesNetwork, HasProcessesOfOneNodeNearEachOther) {
  const auto all = processes_of(aries_network(1), 4, 1, kOneSided);
  EXPECT_LT(time_of_bare(*all, std::array{Component::get}, 1, kWork), kPublishedGetNs / 5);
}

TEST(SimulatedProcesses, WaitForEarlierTicketsInTheSequenceOfBcl) {
  const std::array phasal{Component::take_ticket, Component::put};
  const std::array atomic{Component::take_ticket, Component::put, Component::mark_ready};
  const double least = time_among(8, phasal) + kPublishedSwapNs;
  EXPECT_GT(time_among(8, atomic), 0.98 * least);
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
  const auto all = processes_of(aries_network(4), 4, 1, kOneSided);
  const SimulatedProcess::Work computing{.times = 20, .computing_ns = 100'000};
  expect_near(time_of_calls(*all, Call::push, Promise::both, 1, computing),
              time_of_calls(*all, Call::push, Promise::both, 1, kWork));
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
  EXPECT_GT(time_of_push(100'000, false), 1.3 * attentive);
}

}  // namespace
}  // namespace dunlin::bench
