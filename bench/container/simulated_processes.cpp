#include "bench/container/simulated_processes.hpp"

#include <algorithm>
#include <cmath>

#include <dunlin/fabric/memory.hpp>

namespace dunlin::bench {
namespace {

// The words of a process.
constexpr std::uint64_t kTail = 0;
constexpr std::uint64_t kReady = kCacheLineBytes;
constexpr std::uint64_t kHead = 2 * kCacheLineBytes;
constexpr std::uint64_t kTaken = 3 * kCacheLineBytes;
constexpr std::uint64_t kOneWord = 4 * kCacheLineBytes;
constexpr std::uint64_t kPlaces = 5 * kCacheLineBytes;
constexpr std::uint64_t kPlaceBytes = 32;
constexpr std::uint64_t kManyPlaces = 1024;
constexpr std::uint64_t kBareBytes = kPlaces + kManyPlaces * kPlaceBytes;

/// Assumptions: what the processor takes of a published round trip.
constexpr double kPostNs = 100;
constexpr double kPollNs = 20;
/// Posting, and one and a half polls until the completion is seen.
constexpr double kProcessorNs = kPostNs + 1.5 * kPollNs;
/// Assumption: between processes of one node, a tenth.
constexpr double kBetweenNodes = 10;

using Work = SimulatedProcess::Work;

template <class Program>
double mean_of(SimulatedProcesses& all, const Work& work, const Program& program) {
  const bool random = work.at_first == 0;
  std::vector<Work> works(random ? all.layers.size() : work.at_first, work);
  for (Rank place = 0; place < works.size(); ++place)
    all.start(random ? place : place + 1, [&program, &works, place](SimulatedProcess& process) {
      return program(process, process.fabric().rank(), &works[place]);
    });
  all.finish();
  double sum = 0;
  for (const Work& each : works) sum += each.took_ns;
  return sum / static_cast<double>(works.size());
}

/// For how long an atomic must keep its word so that additions of many processes, each to the one
/// word of a random other process, take as long as published. As many are under way as there are
/// words, one per process, so a word is busy for the share gap / time, and an addition that meets
/// others waits for gap / 2 * share / (1 - share): as in a queue with a constant time of service.
double same_word_gap_ns() {
  const double wait_ns = kPublishedSingleWordAddNs - kPublishedAddNs;
  return std::sqrt(wait_ns * (wait_ns + 2 * kPublishedSingleWordAddNs)) - wait_ns;
}

std::uint64_t seed_of(std::uint64_t seed, Rank rank) { return seed * 10'000 + rank; }

}  // namespace

sim::Profile aries_network(std::uint32_t nodes) {
  sim::Profile network = sim::profile("ideal");
  network.name = "aries-2019";
  network.source =
      "the Cray XC40 with 64 nodes of 32 processes on which data structures by RDMA and by RPC "
      "were compared in 2019: the latencies of its table I, and what its text says of messages and "
      "of additions to one word";
  network.read_latency_ns = kPublishedGetNs - kProcessorNs;
  network.write_latency_ns = kPublishedPutNs - kProcessorNs - network.read_latency_ns / 2;
  network.atomic_latency_ns = (kPublishedSwapNs + kPublishedAddNs) / 2 - kProcessorNs;
  network.message_overhead_ns = kPublishedMessageNs / 2 - kProcessorNs - network.write_latency_ns;
  for (double sim::Profile::*latency :
       {&sim::Profile::read_latency_ns, &sim::Profile::write_latency_ns,
        &sim::Profile::atomic_latency_ns, &sim::Profile::message_overhead_ns})
    network.*latency /= kBetweenNodes;
  network.racks = nodes;
  network.cross_rack_latency = kBetweenNodes;
  network.same_word_gap_ns = same_word_gap_ns();
  network.jitter = 0.05;
  network.post_ns = network.post_batched_ns = kPostNs;
  network.cpu.poll_ns = kPollNs;
  network.silence_timeout_ns = 0;
  return network;
}

sim::Profile network_of(const Effort& effort, std::uint32_t nodes) {
  return effort.profile.empty() ? aries_network(nodes) : sim::profile(effort.profile);
}

ComponentCosts component_costs(const sim::Profile& network) {
  const double factor = network.racks > 1 ? network.cross_rack_latency : 1;
  const double processor = network.post_ns + 1.5 * network.cpu.poll_ns;
  const double read = factor * network.read_latency_ns;
  const double write = factor * network.write_latency_ns;
  const double atomic = factor * network.atomic_latency_ns + processor;
  return {.read_ns = read + processor,
          .write_ns = write + read / 2 + processor,
          .compare_swap_ns = atomic,
          .fetch_add_ns = atomic,
          .message_ns = 2 * (write + factor * network.message_overhead_ns + processor),
          .batched_ns = network.post_batched_ns,
          .shared_word_ns = network.same_word_gap_ns};
}

// --- one operation -------------------------------------------------------------------------------

// --- a process -----------------------------------------------------------------------------------

SimulatedProcess::SimulatedProcess(Fabric& fabric, const ProcessSetting& setting)
    : containers_(fabric, {.costs = setting.costs}),
      words_(fabric.allocate({.name = "bare", .bytes = kBareBytes})),
      map_(containers_, {.name = "map", .slots = setting.slots, .style = setting.style}) {
  // No word has the value that a persistent swap expects first.
  for (std::uint64_t place = 0; place < kManyPlaces; ++place)
    memory::store(
        *reinterpret_cast<std::uint64_t*>(words_.memory().data() + kPlaces + place * kPlaceBytes),
        1);
  for (Rank rank = 0; setting.capacity > 0 && rank < fabric.size(); ++rank) {
    queues_.push_back(
        std::make_unique<BenchQueue>(containers_, QueueOptions{.name = std::to_string(rank),
                                                               .capacity = setting.capacity,
                                                               .host = rank,
                                                               .style = setting.style}));
    queue_calls_.emplace_back();
  }
  fabric.announce(words_);  // last, so that a peer that has it has all
}

bool SimulatedProcess::connected() const {
  for (Rank rank = 0; rank < fabric().size(); ++rank)
    if (rank != fabric().rank() && !fabric().connected(rank, words_.id())) return false;
  return true;
}

remote::Protocol<remote::Status> SimulatedProcess::post(Operation operation) {
  const remote::Status status = co_await remote::post(fabric(), operation);
  co_return status;
}

remote::Protocol<remote::Status> SimulatedProcess::wait_for(std::uint64_t ns) {
  co_await remote::UntilTime(fabric(), fabric().now_ns() + ns);
  co_return remote::Status::ok;
}

remote::Job SimulatedProcess::step(Operation operation) {
  const remote::Status status =
      co_await remote::Call<remote::Status>(its_progress(), post(operation));
  if (status != remote::Status::ok) throw Error("bench: a simulated operation has failed");
}

remote::Job SimulatedProcess::pause(double ns) {
  static_cast<void>(co_await remote::Call<remote::Status>(
      its_progress(), wait_for(static_cast<std::uint64_t>(ns))));
}

Rank SimulatedProcess::other(std::mt19937_64& random, const Work& work) const {
  if (work.at_first > 0) return 0;
  const auto away = static_cast<Rank>(1 + random() % (fabric().size() - 1));
  return (fabric().rank() + away) % fabric().size();
}

std::uint64_t SimulatedProcess::new_key() {
  std::uint64_t key;
  do key = next_key_++ << 12 | fabric().rank();
  while (map_.home_of(key) == fabric().rank());
  keys_.push_back(key);
  return key;
}

remote::Job SimulatedProcess::run_bare(std::span<const Component> sequence, std::uint64_t seed,
                                       Work* work) {
  std::mt19937_64 random(seed);
  std::array<std::uint64_t, kPlaceBytes / 8> image{};
  std::uint64_t before = 0, ticket = 0;
  const RegionId region = words_.id();
  const std::uint64_t begin_ns = fabric().now_ns();
  for (std::uint32_t i = 0; i < work->times; ++i) {
    fabric().spend(work->computing_ns);
    const Rank peer = other(random, *work);
    const std::uint64_t place = kPlaces + random() % kManyPlaces * kPlaceBytes;
    for (const Component each : sequence) {
      std::uint64_t expected = 0;
      switch (each) {
        case Component::put:
          co_await step(write(peer, region, place + 8, &image[1], kPlaceBytes - 8));
          break;
        case Component::get:
          co_await step(read(peer, region, place, image.data(), kPlaceBytes));
          break;
        case Component::swap:
          co_await step(compare_swap(peer, region, place, 1, 1, &before));
          break;
        case Component::persistent_swap:
          do {
            expected = before;
            co_await step(compare_swap(peer, region, place, expected, expected + 1, &before));
          } while (before != expected);
          before = 0;
          break;
        case Component::add:
          co_await step(fetch_add(peer, region, place, 0, &before));
          break;
        case Component::add_to_one_word:
          co_await step(fetch_add(peer, region, kOneWord, 1, &before));
          break;
        case Component::take_ticket:
          co_await step(fetch_add(peer, region, kTail, 1, &ticket));
          break;
        case Component::take_place:
          co_await step(fetch_add(peer, region, kHead, 1, &ticket));
          break;
        case Component::mark_ready:
        case Component::mark_taken:
          do {
            co_await step(compare_swap(peer, region,
                                       each == Component::mark_ready ? kReady : kTaken, ticket,
                                       ticket + 1, &before));
          } while (before != ticket);
          break;
      }
    }
  }
  work->took_ns =
      static_cast<double>(fabric().now_ns() - begin_ns) / work->times - work->computing_ns;
}

void SimulatedProcess::begin_on_map(Call call, Promise promise, std::uint32_t i) {
  const bool inserts = call == Call::insert;
  const std::uint64_t key = inserts ? new_key() : keys_.at(i % keys_.size());
  begin_map_call(map_, map_call_, call, key, inserts ? key : i, promise);
}

remote::Job SimulatedProcess::run_calls(Call call, Promise promise, std::uint64_t seed,
                                        Work* work) {
  std::mt19937_64 random(seed);
  // Processes that begin at once would always compute at the same time.
  fabric().spend(work->computing_ns * static_cast<double>(random() % 1024) / 1024);
  const std::uint64_t begin_ns = fabric().now_ns();
  for (std::uint32_t i = 0; i < work->times; ++i) {
    if (work->progress_thread)
      co_await pause(work->computing_ns);
    else
      fabric().spend(work->computing_ns);
    if (on_queue(call)) {
      const Rank host = other(random, *work);
      QueueCall<std::uint64_t>& queue_call = queue_calls_[host];
      queue_call.begin(*queues_[host], call, fabric().rank(), promise);
      if (queue_call.pushes)
        static_cast<void>(co_await queue_call.push);
      else
        static_cast<void>(co_await queue_call.pop);
      demand(queue_call);
    } else {
      begin_on_map(call, promise, i);
      static_cast<void>(co_await map_call_);
      demand(map_call_);
    }
  }
  work->took_ns =
      static_cast<double>(fabric().now_ns() - begin_ns) / work->times - work->computing_ns;
}

remote::Job SimulatedProcess::fill_queue(std::uint32_t elements) {
  const Rank self = fabric().rank();
  for (std::uint32_t i = 0; i < elements; ++i) {
    queue_calls_[self].begin(*queues_[self], Call::push, i, Promise::both);
    static_cast<void>(co_await queue_calls_[self].push);
    demand(queue_calls_[self]);
  }
}

// --- all -----------------------------------------------------------------------------------------

std::unique_ptr<SimulatedProcesses> processes_of(const sim::Profile& network,
                                                 std::uint32_t processes, std::uint64_t seed,
                                                 const ProcessSetting& setting) {
  ProcessSetting with_costs = setting;
  with_costs.costs = component_costs(network);
  auto all = std::make_unique<SimulatedProcesses>(network, processes, seed, [&](Fabric& fabric) {
    return std::make_unique<SimulatedProcess>(fabric, with_costs);
  });
  all->run_until([&] {
    return std::ranges::all_of(all->layers, [](const auto& each) { return each->connected(); });
  });
  return all;
}

double time_of_bare(SimulatedProcesses& all, std::span<const Component> sequence,
                    std::uint64_t seed, const Work& work) {
  return mean_of(all, work, [&](SimulatedProcess& process, Rank rank, Work* of_process) {
    return process.run_bare(sequence, seed_of(seed, rank), of_process);
  });
}

double time_of_calls(SimulatedProcesses& all, Call call, Promise promise, std::uint64_t seed,
                     const Work& work) {
  return mean_of(all, work, [&](SimulatedProcess& process, Rank rank, Work* of_process) {
    return process.run_calls(call, promise, seed_of(seed, rank), of_process);
  });
}

}  // namespace dunlin::bench
