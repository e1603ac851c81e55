#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bench/container/experiments.hpp"
#include "bench/container/simulated_processes.hpp"

/// The published figures of "RDMA vs. RPC for Implementing Distributed Data Structures" in virtual
/// time: all processes work at once, each on random others. A round is a seed.
namespace dunlin::bench {
namespace {

constexpr std::uint32_t kTimes = 32;  // calls of each process
constexpr std::uint32_t kSlots = 1024;
constexpr std::uint32_t kCapacity = 512;
constexpr std::uint32_t kMostSeeds = 3;
constexpr std::uint32_t kNodesOfMethods = 16;
constexpr std::uint32_t kNodesOfComputing = 8;

std::uint32_t seeds_of(const Effort& effort, std::uint32_t nodes) {
  return nodes < kPublishedNodes ? std::min(effort.rounds, kMostSeeds) : 1;
}

std::vector<std::uint32_t> nodes_of(const Effort& effort) {
  if (effort.quick) return {1, 4};
  return {1, 2, 4, 8, 16, 32, 64};
}

std::uint32_t times_of(const Effort& effort) { return effort.quick ? 4 : kTimes; }

/// Only what was published of that many nodes, on that network.
std::optional<double> published(const Effort& effort, std::uint32_t nodes,
                                std::optional<double> value) {
  if (!effort.profile.empty() || nodes != kPublishedNodes) return std::nullopt;
  return value;
}

// --- table I and figure 3 ------------------------------------------------------------------------

struct ComponentCase {
  const char* name;
  std::optional<Component> component;  // none: a message and its reply
  std::optional<double> published_ns;
  const char* note;
};
constexpr std::array kComponents{
    ComponentCase{"put", Component::put, kPublishedPutNs, ""},
    ComponentCase{"get", Component::get, kPublishedGetNs, ""},
    ComponentCase{"compare-and-swap", Component::swap, kPublishedSwapNs,
                  "The simulator has one latency for both atomics: the mean."},
    ComponentCase{"persistent compare-and-swap", Component::persistent_swap, std::nullopt,
                  "Two attempts, since a failed one returns the word."},
    ComponentCase{"fetch-and-add", Component::add, kPublishedAddNs, "Likewise the mean."},
    ComponentCase{"fetch-and-add, single variable", Component::add_to_one_word, std::nullopt,
                  "Published as much higher on Aries, without a number: here as any other."},
    ComponentCase{"message and reply", std::nullopt, std::nullopt,
                  "Published without a number: the profile's is derived from figure 6."}};

std::vector<Result> components(const Effort& effort) {
  std::vector<Result> results;
  for (const std::uint32_t nodes : nodes_of(effort)) {
    const sim::Profile network = network_of(effort, nodes);
    const std::uint32_t processes = nodes * kProcessesOfNode;
    std::array<std::vector<double>, kComponents.size()> series;
    for (std::uint64_t seed = 1; seed <= seeds_of(effort, nodes); ++seed) {
      const SimulatedProcess::Work work{.times = times_of(effort)};
      const auto bare = processes_of(network, processes, seed, {.slots = kSlots});
      const auto asked =
          processes_of(network, processes, seed, {.style = Style::message, .slots = kSlots});
      for (std::size_t i = 0; i < kComponents.size(); ++i) {
        const auto& component = kComponents.at(i).component;
        series.at(i).push_back(
            component ? time_of_bare(*bare, std::span(&*component, 1), seed, work)
                      : time_of_calls(*asked, Call::insert, Promise::both, seed, work));
      }
    }
    for (std::size_t i = 0; i < kComponents.size(); ++i) {
      const ComponentCase& each = kComponents.at(i);
      Result result{.name = "simulated components",
                    .params = {{"component", each.name}, {"nodes", double(nodes)}},
                    .unit = "ns",
                    .published = published(effort, nodes, each.published_ns),
                    .note = each.note};
      result.value = summarize(series.at(i));
      results.push_back(std::move(result));
    }
  }
  return results;
}

// --- tables II and III, figures 4 and 5 ----------------------------------------------------------

/// A method of those tables: ours, the sequence of BCL, and what the latter costs by table I.
struct Method {
  Call call;
  Promise promise;
  std::vector<Component> theirs;
  double published_ns;
  const char* note;
};

const std::vector<Method>& methods() {
  using enum Component;
  constexpr double kF = kPublishedAddNs, kC = kPublishedSwapNs;
  constexpr double kR = kPublishedGetNs, kW = kPublishedPutNs;
  static const std::vector<Method> all{
      {Call::push,
       Promise::both,
       {take_ticket, put, mark_ready},
       kF + kW + kC,
       "Ours waits for no earlier push: the slot has its turn."},
      {Call::push, Promise::writes, {take_ticket, put}, kF + kW, "The same sequence."},
      {Call::pop,
       Promise::both,
       {take_place, get, mark_taken},
       kF + kR + kC,
       "Ours reads first, and takes with the swap."},
      {Call::pop, Promise::reads, {take_place, get}, kF + kR, "Ours is as under both."},
      {Call::insert,
       Promise::both,
       {swap, put, add},
       kC + kW + kF,
       "Ours publishes in the batch of the write."},
      {Call::insert, Promise::writes, {swap, put}, kC + kW, "The same sequence."},
      {Call::find,
       Promise::both,
       {add, get, add},
       kF + kR + kF,
       "Ours sees by stamps that the slot is whole, without a lock."},
      {Call::find, Promise::reads, {get}, kR, "The same sequence."}};
  return all;
}

bool on_queue(Call call) { return call == Call::push || call == Call::pop; }

struct MethodTimes {
  std::vector<double> ours, theirs, by_message;
};

/// Of the methods whose calls are wanted, by their places; of the other none.
template <class Wanted>
std::vector<MethodTimes> times_of_methods(const Effort& effort, std::uint32_t nodes,
                                          const Wanted& wanted) {
  std::vector<MethodTimes> times(methods().size());
  const bool queues = std::ranges::any_of(
      methods(), [&](const Method& each) { return on_queue(each.call) && wanted(each.call); });
  const SimulatedProcess::Work work{.times = times_of(effort)};
  for (std::uint64_t seed = 1; seed <= seeds_of(effort, nodes); ++seed) {
    for (const Style style : {Style::one_sided, Style::message}) {
      const auto all =
          processes_of(network_of(effort, nodes), nodes * kProcessesOfNode, seed,
                       {.style = style, .slots = kSlots, .capacity = queues ? kCapacity : 0});
      if (queues) {
        for (Rank rank = 0; rank < all->layers.size(); ++rank)
          all->start(rank,
                     [&](SimulatedProcess& process) { return process.fill_queue(4 * work.times); });
        all->finish();
      }
      for (std::size_t i = 0; i < methods().size(); ++i) {
        const Method& each = methods()[i];
        if (!wanted(each.call)) continue;
        const double ours = time_of_calls(*all, each.call, each.promise, seed, work);
        if (style == Style::message) {
          times[i].by_message.push_back(ours);
        } else {
          times[i].ours.push_back(ours);
          times[i].theirs.push_back(time_of_bare(*all, each.theirs, seed, work));
        }
      }
    }
  }
  return times;
}

Result result_of(const char* figure, const Method& method, Style style, std::uint32_t nodes) {
  return {.name = figure,
          .params = {{"call", std::string(name_of(method.call))},
                     {"promise", std::string(name_of(method.promise))},
                     {"style", std::string(name_of(style))},
                     {"nodes", double(nodes)}},
          .unit = "ns",
          .note = style == Style::one_sided ? method.note : ""};
}

template <class Wanted>
std::vector<Result> by_nodes(const Effort& effort, const char* figure, const Wanted& wanted) {
  std::vector<Result> results;
  for (const std::uint32_t nodes : nodes_of(effort)) {
    const auto times = times_of_methods(effort, nodes, wanted);
    for (std::size_t i = 0; i < methods().size(); ++i) {
      const Method& each = methods()[i];
      if (!wanted(each.call)) continue;
      Result result = result_of(figure, each, Style::one_sided, nodes);
      result.published = published(effort, nodes, each.published_ns);
      compare(result, times[i].ours, "the sequence of BCL", times[i].theirs);
      results.push_back(std::move(result));
      if (each.promise != Promise::both) continue;
      result = result_of(figure, each, Style::message, nodes);
      compare(result, times[i].by_message, "ours, one-sided", times[i].ours);
      results.push_back(std::move(result));
    }
  }
  return results;
}

std::vector<Result> pushes(const Effort& effort) {
  return by_nodes(effort, "simulated pushes", [](Call call) { return call == Call::push; });
}

std::vector<Result> maps(const Effort& effort) {
  return by_nodes(effort, "simulated maps", [](Call call) { return !on_queue(call); });
}

/// Each method beside what the cost model predicts, and what the tables say.
std::vector<Result> method_costs(const Effort& effort) {
  const std::uint32_t nodes = effort.quick ? 4 : kNodesOfMethods;
  const auto times = times_of_methods(effort, nodes, [](Call) { return true; });
  const ComponentCosts costs = component_costs(network_of(effort, nodes));
  std::vector<Result> results;
  for (std::size_t i = 0; i < methods().size(); ++i)
    for (const Style style : {Style::one_sided, Style::message}) {
      const Method& each = methods()[i];
      const bool one_sided = style == Style::one_sided;
      Result result = result_of("simulated methods", each, style, nodes);
      // Table I is of 64 nodes; these are 16, of whose processes as few share a node.
      if (one_sided) result.published = published(effort, kPublishedNodes, each.published_ns);
      const auto& measured = one_sided ? times[i].ours : times[i].by_message;
      const double load = 1.0 * times_of(effort) / kSlots;
      const std::vector<double> predicted(
          measured.size(),
          predict_ns(costs, each.call, style, {.promise = each.promise, .load = load}));
      compare(result, measured, "its prediction", predicted);
      results.push_back(std::move(result));
    }
  return results;
}

// --- figure 6 ------------------------------------------------------------------------------------

std::vector<Result> computing(const Effort& effort) {
  const std::vector<double> computing_us =
      effort.quick ? std::vector{0.0, 10.0} : std::vector{0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0};
  const std::uint32_t nodes = effort.quick ? 2 : kNodesOfComputing;
  std::vector<Result> results;
  for (const double us : computing_us) {
    std::array<std::vector<double>, 2> series;
    for (std::uint64_t seed = 1; seed <= seeds_of(effort, nodes); ++seed)
      for (const Style style : {Style::one_sided, Style::message}) {
        const auto all = processes_of(network_of(effort, nodes), nodes * kProcessesOfNode, seed,
                                      {.style = style, .slots = kSlots, .capacity = kCapacity});
        series.at(style == Style::message)
            .push_back(time_of_calls(*all, Call::push, Promise::both, seed,
                                     {.times = times_of(effort), .computing_ns = us * 1000}));
      }
    for (const Style style : {Style::one_sided, Style::message}) {
      Result result{.name = "simulated attentiveness",
                    .params = {{"computing us", us}, {"style", std::string(name_of(style))}},
                    .unit = "ns"};
      if (style == Style::message && us == 2 && effort.profile.empty())
        result.note = "Published: from here on a message takes longer.";
      const bool by_message = style == Style::message;
      compare(result, series.at(by_message), by_message ? "one-sided" : "by message",
              series.at(!by_message));
      results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace

std::vector<Experiment> simulated_containers() {
  const auto figure = [](const char* name, const char* title, const char* x,
                         std::vector<Result> (*run)(const Effort&)) {
    return Experiment{.name = name, .title = title, .fabric = "sim", .x = x, .run = run};
  };
  return {
      figure("simulated components",
             "operations by nodes of 4 processes (table I, figure 3 of RDMA vs. RPC)", "nodes",
             components),
      figure("simulated pushes", "pushes on random queues, one at each process (figure 4)", "nodes",
             pushes),
      figure("simulated maps", "inserts and finds (figure 5)", "nodes", maps),
      figure("simulated methods", "calls beside their predictions and tables II and III", "",
             method_costs),
      figure("simulated attentiveness", "pushes of processes that compute between two (figure 6)",
             "computing us", computing)};
}

}  // namespace dunlin::bench
