#include <algorithm>
#include <array>
#include <iterator>
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
constexpr std::uint32_t kMostAtOneWord = 64;
/// Processes of a node. Published: 32, and up to 128 nodes.
constexpr std::uint32_t kOfNode = 4;

struct Size {
  std::uint32_t nodes;
  std::uint32_t of_node;
  [[nodiscard]] std::uint32_t processes() const noexcept {
    return std::min(nodes * of_node, kMaxMembers);
  }
};
constexpr Size kSizeOfMethods{16, kOfNode};
constexpr Size kSizeOfComputing{8, kOfNode};
constexpr Size kQuickSize{4, kOfNode};
/// As published, but for one of 4,096 processes.
constexpr Size kSizeOfThousands{128, 32};

std::uint32_t seeds_of(const Effort& effort, const Size& size) {
  return size.nodes < kPublishedNodes ? std::min(effort.rounds, kMostSeeds) : 1;
}

std::vector<Size> sizes_of(const Effort& effort) {
  if (effort.quick) return {{1, kOfNode}, kQuickSize};
  std::vector<Size> sizes;
  for (std::uint32_t nodes = 1; nodes <= 128; nodes *= 2) sizes.push_back({nodes, kOfNode});
  return sizes;
}

/// Each process knows the queues of all, and the simulator makes as many connections of each.
std::vector<Size> sizes_with_queues(const Effort& effort) {
  std::vector<Size> sizes = sizes_of(effort);
  std::erase_if(sizes, [](const Size& size) { return size.processes() > 64; });
  if (!effort.quick) sizes.push_back({kPublishedNodes, 1});
  return sizes;
}

std::uint32_t times_of(const Effort& effort) { return effort.quick ? 4 : kTimes; }

/// Only what was published of that many nodes, on that network.
std::optional<double> published(const Effort& effort, std::uint32_t nodes,
                                std::optional<double> value) {
  return effort.profile.empty() && nodes == kPublishedNodes ? value : std::nullopt;
}

Params with_size(Params params, const Size& size) {
  params.emplace_back("nodes", double(size.nodes));
  params.emplace_back("processes", double(size.processes()));
  return params;
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
                  "Published as much higher on Aries, without a number: the profile's gap between "
                  "two is derived from figures 5 and 6."},
    ComponentCase{"message and reply", std::nullopt, std::nullopt,
                  "Published without a number: the profile's is derived from figure 5."}};

using ComponentTimes = std::array<std::vector<double>, kComponents.size()>;

/// Adds the times of all components but messages.
void add_times_of_components(ComponentTimes& times, SimulatedProcesses& all, std::uint64_t seed,
                             const SimulatedProcess::Work& work) {
  for (std::size_t i = 0; i < kComponents.size(); ++i)
    if (const auto& component = kComponents.at(i).component)
      times.at(i).push_back(time_of_bare(all, std::span(&*component, 1), seed, work));
}

void append_components(std::vector<Result>& results, const Effort& effort, const Size& size,
                       const ComponentTimes& times) {
  for (std::size_t i = 0; i < kComponents.size(); ++i) {
    const ComponentCase& each = kComponents.at(i);
    if (times.at(i).empty()) continue;
    results.push_back({.params = with_size({{"component", each.name}}, size),
                       .unit = "ns",
                       .value = summarize(times.at(i)),
                       .published = published(effort, size.nodes, each.published_ns),
                       .note = each.note});
  }
}

std::vector<Result> components(const Effort& effort) {
  std::vector<Result> results;
  for (const Size& size : sizes_of(effort)) {
    const sim::Profile network = network_of(effort, size.nodes);
    ComponentTimes times;
    for (std::uint64_t seed = 1; seed <= seeds_of(effort, size); ++seed) {
      const SimulatedProcess::Work work{.times = times_of(effort)};
      const auto bare = processes_of(network, size.processes(), seed, {.slots = kSlots});
      add_times_of_components(times, *bare, seed, work);
      const auto asked =
          processes_of(network, size.processes(), seed, {.style = Style::message, .slots = kSlots});
      times.back().push_back(time_of_calls(*asked, Call::insert, Promise::both, seed, work));
    }
    append_components(results, effort, size, times);
  }
  return results;
}

// --- tables II and III, figures 4 and 5 ----------------------------------------------------------

constexpr const char* kBclSequence = "the sequence of BCL";
constexpr const char* kCheaperStyle = "the cheaper style";

/// A method of those tables: ours, the sequence of BCL, and what the latter costs by table I. The
/// paper takes dearer atomics for queues, without a number, so for these that is the least.
struct Method {
  Call call;
  Promise promise;
  std::vector<Component> theirs;
  double published_ns;
  const char* note;
  const char* their_name = kBclSequence;
  bool in_tables = true;
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
       "Ours waits for no earlier push: the slot has its turn. Published: at least."},
      {Call::push,
       Promise::writes,
       {take_ticket, put},
       kF + kW,
       "The same sequence. Published: at least."},
      {Call::push,
       Promise::both,
       {take_ticket, put},
       kF + kW,
       "With a checksum in the element, theirs needs no second swap; ours has none in any case. "
       "Published: at least.",
       "BCL's queue with checksums",
       false},
      {Call::pop,
       Promise::both,
       {take_place, get, mark_taken},
       kF + kR + kC,
       "Ours reads first, and takes with the swap: once more for each pop that comes between. "
       "Published, as symmetric to pushes: at least."},
      {Call::pop,
       Promise::reads,
       {take_place, get},
       kF + kR,
       "The same sequence. Published: at least."},
      {Call::insert,
       Promise::both,
       {swap, put, add},
       kC + kW + kF,
       "Ours publishes in the batch of the write."},
      {Call::insert,
       Promise::writes,
       {swap, put},
       kC + kW,
       "The same sequence; some keys find their first slot taken."},
      {Call::find,
       Promise::both,
       {add, get, add},
       kF + kR + kF,
       "Ours sees by stamps that the slot is whole, without a lock."},
      {Call::find, Promise::reads, {get}, kR, "The same sequence."}};
  return all;
}

constexpr std::array kMethodStyles{Style::one_sided, Style::message, Style::automatic};

struct MethodTimes {
  [[nodiscard]] std::vector<double> of(Style style) const {
    const auto* const found = std::ranges::find(kMethodStyles, style);
    return ours.at(static_cast<std::size_t>(found - kMethodStyles.begin()));
  }
  [[nodiscard]] std::vector<double> of_cheaper_style() const {
    std::vector<double> least;
    std::ranges::transform(ours[0], ours[1], std::back_inserter(least), std::ranges::min);
    return least;
  }
  std::array<std::vector<double>, kMethodStyles.size()> ours;
  std::vector<double> theirs;
};

/// Adds the times of methods in processes whose containers have that style. Methods whose calls are
/// not wanted get no times.
template <class Wanted>
void add_times_of_methods(std::vector<MethodTimes>& times, SimulatedProcesses& all,
                          std::size_t style, std::uint64_t seed, const SimulatedProcess::Work& work,
                          const Wanted& wanted) {
  for (std::size_t i = 0; i < methods().size(); ++i) {
    const Method& each = methods()[i];
    if (!wanted(each.call)) continue;
    times[i].ours.at(style).push_back(time_of_calls(all, each.call, each.promise, seed, work));
    if (kMethodStyles.at(style) == Style::one_sided)
      times[i].theirs.push_back(time_of_bare(all, each.theirs, seed, work));
  }
}

template <class Wanted>
std::vector<MethodTimes> times_of_methods(const Effort& effort, const Size& size,
                                          const Wanted& wanted) {
  std::vector<MethodTimes> times(methods().size());
  const bool queues = std::ranges::any_of(
      methods(), [&](const Method& each) { return on_queue(each.call) && wanted(each.call); });
  const SimulatedProcess::Work work{.times = times_of(effort)};
  for (std::uint64_t seed = 1; seed <= seeds_of(effort, size); ++seed) {
    for (std::size_t style = 0; style < kMethodStyles.size(); ++style) {
      const auto all = processes_of(
          network_of(effort, size.nodes), size.processes(), seed,
          {.style = kMethodStyles.at(style), .slots = kSlots, .capacity = queues ? kCapacity : 0});
      if (queues) {
        for (Rank rank = 0; rank < all->layers.size(); ++rank)
          all->start(rank,
                     [&](SimulatedProcess& process) { return process.fill_queue(4 * work.times); });
        all->finish();
      }
      add_times_of_methods(times, *all, style, seed, work, wanted);
    }
  }
  return times;
}

Result result_of(const Method& method, Style style, const Size& size) {
  return {.params = with_size({{"call", std::string(name_of(method.call))},
                               {"promise", std::string(name_of(method.promise))},
                               {"style", std::string(name_of(style))}},
                              size),
          .unit = "ns",
          .note = style == Style::one_sided ? method.note : ""};
}

template <class Wanted>
void append_methods(std::vector<Result>& results, const Effort& effort, const Size& size,
                    const std::vector<MethodTimes>& times, const Wanted& wanted) {
  for (std::size_t i = 0; i < methods().size(); ++i) {
    const Method& each = methods()[i];
    if (!wanted(each.call)) continue;
    const std::vector<double> one_sided = times[i].of(Style::one_sided);
    results.push_back(compared(result_of(each, Style::one_sided, size), one_sided, each.their_name,
                               times[i].theirs));
    results.back().published = published(effort, size.nodes, each.published_ns);
    if (!each.in_tables) continue;
    results.push_back(compared(result_of(each, Style::automatic, size),
                               times[i].of(Style::automatic), kCheaperStyle,
                               times[i].of_cheaper_style()));
    if (each.promise != Promise::both) continue;
    results.push_back(compared(result_of(each, Style::message, size), times[i].of(Style::message),
                               "ours, one-sided", one_sided));
  }
}

template <class Wanted>
std::vector<Result> by_nodes(const Effort& effort, const std::vector<Size>& sizes,
                             const Wanted& wanted) {
  std::vector<Result> results;
  for (const Size& size : sizes)
    append_methods(results, effort, size, times_of_methods(effort, size, wanted), wanted);
  return results;
}

constexpr auto kOfMaps = [](Call call) { return !on_queue(call); };

std::vector<Result> pushes(const Effort& effort) {
  return by_nodes(effort, sizes_with_queues(effort), [](Call call) { return call == Call::push; });
}

std::vector<Result> maps(const Effort& effort) {
  return by_nodes(effort, sizes_of(effort), kOfMaps);
}

/// Figures 3 and 5 with as many processes as published. All that they have fits into memory for one
/// style at a time.
std::vector<Result> thousands(const Effort& effort) {
  const Size size = effort.quick ? kQuickSize : kSizeOfThousands;
  const SimulatedProcess::Work work{.times = times_of(effort)};
  ComponentTimes of_components;
  std::vector<MethodTimes> of_methods(methods().size());
  for (std::size_t style = 0; style < kMethodStyles.size(); ++style) {
    const auto all = processes_of(network_of(effort, size.nodes), size.processes(), 1,
                                  {.style = kMethodStyles.at(style), .slots = kSlots});
    if (kMethodStyles.at(style) == Style::one_sided)
      add_times_of_components(of_components, *all, 1, work);
    add_times_of_methods(of_methods, *all, style, 1, work, kOfMaps);
  }
  std::vector<Result> results;
  append_components(results, effort, size, of_components);
  append_methods(results, effort, size, of_methods, kOfMaps);
  return results;
}

/// Each method beside what the cost model predicts, and what the tables say.
std::vector<Result> method_costs(const Effort& effort) {
  const Size size = effort.quick ? kQuickSize : kSizeOfMethods;
  const auto times = times_of_methods(effort, size, [](Call) { return true; });
  const ComponentCosts costs = component_costs(network_of(effort, size.nodes));
  std::vector<Result> results;
  for (std::size_t i = 0; i < methods().size(); ++i) {
    const Method& each = methods()[i];
    if (!each.in_tables) continue;
    for (const Style style : {Style::one_sided, Style::message}) {
      const bool one_sided = style == Style::one_sided;
      Result result = result_of(each, style, size);
      // Table I is of 64 nodes; these are 16, of whose processes as few share a node.
      if (one_sided) result.published = published(effort, kPublishedNodes, each.published_ns);
      const std::vector<double> measured = times[i].of(style);
      const double load = 1.0 * times_of(effort) / kSlots;
      const std::vector<double> predicted(
          measured.size(),
          predict_ns(costs, each.call, style, {.promise = each.promise, .load = load}));
      compare(result, measured, "its prediction", predicted);
      results.push_back(result);
      if (!one_sided) continue;
      compare(result, measured, each.their_name, times[i].theirs);
      results.push_back(std::move(result));
    }
    results.push_back(compared(result_of(each, Style::automatic, size),
                               times[i].of(Style::automatic), kCheaperStyle,
                               times[i].of_cheaper_style()));
  }
  return results;
}

// --- figure 6 ------------------------------------------------------------------------------------

struct ComputingCase {
  const char* name;
  Style style;
  bool progress_thread;
  const char* note;
};
constexpr std::array kComputing{
    ComputingCase{"one_sided", Style::one_sided, false, ""},
    ComputingCase{"message", Style::message, false, ""},
    ComputingCase{"message, progress thread", Style::message, true,
                  "Published: does not wait, and is hit by contention between the two threads; "
                  "here each has a processor of its own."},
    ComputingCase{"automatic", Style::automatic, false, ""}};

std::vector<Result> computing(const Effort& effort) {
  const std::vector<double> computing_us =
      effort.quick ? std::vector{0.0, 10.0} : std::vector{0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0};
  const Size size = effort.quick ? kQuickSize : kSizeOfComputing;
  std::vector<Result> results;
  for (const double us : computing_us) {
    std::array<std::vector<double>, kComputing.size()> series;
    for (std::uint64_t seed = 1; seed <= seeds_of(effort, size); ++seed)
      for (std::size_t i = 0; i < kComputing.size(); ++i) {
        const ComputingCase& each = kComputing.at(i);
        const auto all =
            processes_of(network_of(effort, size.nodes), size.processes(), seed,
                         {.style = each.style, .slots = kSlots, .capacity = kCapacity});
        series.at(i).push_back(time_of_calls(*all, Call::push, Promise::both, seed,
                                             {.times = times_of(effort),
                                              .computing_ns = us * 1000,
                                              .progress_thread = each.progress_thread}));
      }
    for (std::size_t i = 0; i < kComputing.size(); ++i) {
      const ComputingCase& each = kComputing.at(i);
      Result result{
          .params = {{"computing us", us}, {"way", each.name}}, .unit = "ns", .note = each.note};
      if (each.style == Style::message && us == 2 && effort.profile.empty() &&
          !each.progress_thread)
        result.note = "Published: from here on a message takes longer.";
      compare(result, series.at(i), i == 0 ? "by message" : "one-sided", series.at(i == 0 ? 1 : 0));
      results.push_back(std::move(result));
    }
  }
  return results;
}

// --- contention on one word ----------------------------------------------------------------------

struct ContentionCase {
  const char* words;
  Component component;
  bool has_gap;  // the network's, between two atomics on one word
  const char* note;
};
constexpr std::array kContention{
    ContentionCase{"one", Component::add_to_one_word, true,
                   "Published of Aries: an addition to a single variable has a much higher cost."},
    ContentionCase{"one, without the gap", Component::add_to_one_word, false,
                   "Published of InfiniBand: no difference between the two."},
    ContentionCase{"random", Component::add, true, ""}};

/// Each process has a node of its own, and all work at the words of one.
std::vector<Result> contention(const Effort& effort) {
  const std::uint32_t most = effort.quick ? 4 : kMostAtOneWord;
  std::vector<Result> results;
  for (std::uint32_t processes = 1; processes <= most; processes *= 2) {
    const Size size{processes + 1, 1};
    std::array<std::vector<double>, kContention.size()> series;
    for (std::uint64_t seed = 1; seed <= seeds_of(effort, size); ++seed)
      for (std::size_t i = 0; i < kContention.size(); ++i) {
        sim::Profile network = network_of(effort, size.nodes);
        if (!kContention.at(i).has_gap) network.same_word_gap_ns = 0;
        const auto all = processes_of(network, size.processes(), seed, {.slots = kSlots});
        series.at(i).push_back(time_of_bare(*all, std::span(&kContention.at(i).component, 1), seed,
                                            {.times = times_of(effort), .at_first = processes}));
      }
    for (std::size_t i = 0; i < kContention.size(); ++i)
      results.push_back(compared(
          {.params = {{"processes", double(processes)}, {"words", kContention.at(i).words}},
           .unit = "ns",
           .note = kContention.at(i).note},
          series.at(i), "to random words", series.back()));
  }
  return results;
}

}  // namespace

std::vector<Experiment> simulated_containers() {
  std::vector<Experiment> all = experiments_on(
      "sim", {{"simulated components",
               "operations by nodes of 4 processes (table I, figure 3 of RDMA vs. RPC)", "nodes",
               components},
              {"simulated pushes", "pushes on random queues, one at each process (figure 4)",
               "nodes", pushes},
              {"simulated maps", "inserts and finds (figure 5)", "nodes", maps},
              {"simulated methods", "calls beside their predictions and tables II and III", "",
               method_costs},
              {"simulated contention", "additions to words of one process, by 1 to 64 others",
               "processes", contention},
              {"simulated attentiveness", "pushes of processes that compute between two (figure 6)",
               "computing us", computing},
              {"simulated thousands",
               "operations, inserts and finds of 4,095 processes on 128 nodes: 14 GB, some minutes",
               "", thousands}});
  all.back().only_by_name = true;
  return all;
}

}  // namespace dunlin::bench
