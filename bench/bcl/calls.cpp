// What calls on the containers of BCL cost between two processes: the peer that `dunlin bench
// container --only peers` compares with. CMake does not build it, because BCL and GASNet-EX are no
// packages; docs/benchmarks/container.md says which versions were measured. Usage, with GASNet-EX's
// smp conduit: GASNET_PSHM_NODES=2 dunlin-bcl-calls BATCHES PER_BATCH
//
// Prints "insert NS" and so on: medians over the batches. Process 0 calls, and process 1 holds what
// it calls on and waits in a barrier.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <bcl/bcl.hpp>
#include <bcl/containers/CircularQueue.hpp>
#include <bcl/containers/FastQueue.hpp>
#include <bcl/containers/HashMap.hpp>

namespace {

constexpr std::size_t kSlots = 1U << 19;  // of each process, as of the map beside which this runs
constexpr std::size_t kAtOnce = 32;
constexpr std::uint64_t kHolder = 1;
constexpr std::size_t kEvictingBytes = std::size_t{64} << 20;

/// Spreads keys over the slots; std::hash would put keys that follow each other into slots that do.
struct Mix {
  std::size_t operator()(std::uint64_t key) const noexcept {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdU;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53U;
    return key ^ key >> 33;
  }
};
using Map = BCL::HashMap<std::uint64_t, std::uint64_t, Mix>;

struct Plan {
  std::size_t batches;
  std::size_t per_batch;

  [[nodiscard]] std::size_t total() const noexcept { return (batches + 1) * per_batch; }
};

/// Calls once(0), once(1), ... and prints the median of the batches but the first one.
template <class Once>
void report(const char* name, const Plan& plan, std::size_t each_counts, const Once& once) {
  using clock = std::chrono::steady_clock;
  std::vector<double> times;
  std::size_t next = 0;
  for (std::size_t batch = 0; batch <= plan.batches; ++batch) {
    const clock::time_point start = clock::now();
    for (std::size_t i = 0; i < plan.per_batch; ++i) {
      if (once(next++)) continue;
      std::fprintf(stderr, "%s failed\n", name);
      std::exit(1);
    }
    const std::chrono::duration<double, std::nano> took = clock::now() - start;
    if (batch > 0)
      times.push_back(took.count() / static_cast<double>(plan.per_batch * each_counts));
  }
  std::sort(times.begin(), times.end());
  std::printf("%s %.3f\n", name, times[times.size() / 2]);
}

/// Each page is mapped into this process the first time that it is used, so pages are read before.
volatile std::uint64_t read_before;

void measure_map(Map& map, const Plan& plan) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 1; keys.size() < 2 * plan.total(); ++key)
    if (Mix{}(key) % map.capacity() / map.local_capacity() == kHolder) keys.push_back(key);
  for (std::size_t slot = kSlots; slot < 2 * kSlots; slot += 64)
    read_before = map.get_entry(slot).get_key();
  std::uint64_t value = 0;
  const auto use_all = [&] {  // the slots of the keys are in the cache then
    for (std::size_t i = 0; i < plan.total(); ++i) map.find_nonatomic_impl_(keys[i], value);
  };
  use_all();
  report("insert", plan, 1,
         [&](std::size_t i) { return map.insert_or_assign(keys[i], keys[i]).second; });
  const std::vector<char> evicting(kEvictingBytes, 1);
  for (const char byte : evicting) read_before = byte;
  report("insert_far", plan, 1, [&](std::size_t i) {
    const std::uint64_t key = keys[plan.total() + i];
    return map.insert_or_assign(key, key).second;
  });
  use_all();
  report("find", plan, 1,
         [&](std::size_t i) { return map.find_atomic_impl_(keys[i], value) && value == keys[i]; });
  use_all();
  report("find_phasal", plan, 1, [&](std::size_t i) {
    return map.find_nonatomic_impl_(keys[i], value) && value == keys[i];
  });
}

/// Makes a queue of BCL whose elements have memory of their own. Its constructor frees that memory
/// again when it has moved the array in, and takes the words of the head and the tail from there.
template <class Queue>
Queue& make_queue(std::size_t capacity) {
  auto& queue = *new Queue(kHolder, capacity);  // lives as long as the program, as do its elements
  queue.data = std::move(*new BCL::Array<std::uint64_t>(kHolder, capacity));
  return queue;
}

void measure_queues(BCL::CircularQueue<std::uint64_t>& queue, BCL::FastQueue<std::uint64_t>& phasal,
                    const Plan& plan) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < queue.capacity(); i += 64) read_before = *queue.data[i];
  for (std::size_t i = 0; i < phasal.capacity(); i += 64) read_before = *phasal.data[i];
  report("push", plan, 1, [&](std::size_t i) { return queue.push(i); });
  report("pop", plan, 1, [&](std::size_t i) { return queue.pop(value) && value == i; });
  report("push_phasal", plan, 1, [&](std::size_t i) { return phasal.push(i); });
  report("pop_phasal", plan, 1, [&](std::size_t i) { return phasal.pop(value) && value == i; });
  std::vector<std::uint64_t> some(kAtOnce);
  const Plan of_many{plan.batches, std::max<std::size_t>(plan.per_batch / kAtOnce, 1)};
  report("push_many", of_many, kAtOnce, [&](std::size_t) { return phasal.push(some); });
  report("pop_many", of_many, kAtOnce, [&](std::size_t) { return phasal.pop(some, kAtOnce); });
}

}  // namespace

int main(int argc, char** argv) {
  BCL::init(512);
  const Plan plan{argc == 3 ? std::strtoul(argv[1], nullptr, 10) : 0,
                  argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0};
  if (BCL::nprocs() != 2 || plan.batches == 0 || plan.per_batch == 0) {
    if (BCL::rank() == 0)
      std::fprintf(stderr, "usage: GASNET_PSHM_NODES=2 dunlin-bcl-calls BATCHES PER_BATCH\n");
    BCL::finalize();
    return 2;
  }
  auto& map = *new Map(2 * kSlots);
  // No element of a queue is put where another one was, because BCL does not wrap batches.
  auto& queue = make_queue<BCL::CircularQueue<std::uint64_t>>(plan.total() + 1);
  auto& phasal = make_queue<BCL::FastQueue<std::uint64_t>>((1 + kAtOnce) * plan.total() + 1);
  BCL::barrier();
  if (BCL::rank() == 0) {
    measure_map(map, plan);
    measure_queues(queue, phasal, plan);
  }
  BCL::finalize();
  return 0;
}
