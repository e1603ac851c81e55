#include <algorithm>
#include <array>

#include <dunlin/fabric/memory.hpp>
#include <dunlin/fabric/sim.hpp>

#include "bench/fabric/experiments.hpp"
#include "bench/fabric/simulated_members.hpp"
#include "bench/table/simulation.hpp"

/// What the simulator charges, beside the figures of the profile: a round is a seed.
namespace dunlin::bench {
namespace {

constexpr const char* kNetwork = "ib100";
constexpr std::uint64_t kRoomBytes = 65'536;
constexpr std::uint64_t kBoxBytes = 64 + kRoomBytes;
constexpr std::array<std::size_t, 5> kSizes{8, 64, 1024, 10'240, 65'536};
const char* const kLimit = "the profile's figures";

/// Two nodes. Node 0's program is the caller's, straight on; node 1's is attached.
class Pair {
 public:
  Pair(const sim::Profile& profile, std::uint64_t seed) : world_(profile, 2, seed) {
    for (Rank node = 0; node < 2; ++node) {
      boxes_[node] = fabric(node).allocate({.name = "bench", .bytes = kBoxBytes});
      fabric(node).announce(boxes_[node]);
      world_.attach(node, [this, node] { return fabric(node).poll(); });
    }
    run_until(world_,
              [this] { return fabric(0).connected(1, box()) && fabric(1).connected(0, box()); });
  }

  [[nodiscard]] sim::World& world() noexcept { return world_; }
  [[nodiscard]] Fabric& fabric(Rank node) { return world_.fabric(node); }
  [[nodiscard]] RegionId box() const noexcept { return boxes_[0].id(); }
  [[nodiscard]] std::uint64_t signal(Rank node) const noexcept {
    return memory::load(*reinterpret_cast<const std::uint64_t*>(boxes_[node].memory().data()));
  }

  /// Virtual time until what `post` begins on node 0 is over, as node `watcher` sees it.
  template <class Post, class Over>
  double time(Rank watcher, Post&& post, Over&& over) {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    world_.attach(watcher, [&]() -> std::size_t {
      if (begun == 0 || ended != 0 || !over()) return 0;
      ended = fabric(watcher).now_ns();
      return 1;
    });
    world_.on(0, [&] {
      begun = fabric(0).now_ns();
      post();
    });
    run_until(world_, [&] { return ended != 0; });
    world_.detach_all(watcher);
    world_.attach(watcher, [this, watcher] { return fabric(watcher).poll(); });
    return static_cast<double>(ended - begun);
  }

 private:
  sim::World world_;
  std::array<Region, 2> boxes_;
};

double wire_ns(const sim::Profile& profile, std::size_t bytes) {
  const double rate = profile.bandwidth_bytes_per_ns;
  return rate > 0 ? static_cast<double>(bytes) / rate : 0;
}

/// Means over some operations of each seed, against what the profile says of one.
template <class Once>
Result simulated(const Effort& effort, Params params, double expected, Once&& once) {
  const Network network(effort, kNetwork);
  const std::uint32_t times = effort.quick ? 2 : 20;
  const std::vector<double> values = over_seeds(effort, [&](std::uint64_t seed) {
    Pair pair(network.profile, seed);
    double total = 0;
    for (std::uint32_t i = 0; i < times; ++i) {
      pair.world().run_for(pair.world().random() % 20'000);
      total += once(pair);
    }
    return total / times;
  });
  return compared({.params = std::move(params), .unit = "ns"}, values, kLimit,
                  std::vector<double>(values.size(), expected));
}

Result put_signal(const Effort& effort, std::size_t bytes) {
  const sim::Profile& profile = Network(effort, kNetwork).profile;
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::uint64_t value = 0;
  // The signal is posted while the put is on the wire.
  const double expected = profile.post_ns + profile.write_latency_ns +
                          std::max(profile.post_batched_ns, wire_ns(profile, bytes));
  return simulated(effort, {{"bytes", double(bytes)}}, expected, [&](Pair& pair) {
    value = pair.signal(1) + 1;
    const Operation batch[] = {put(1, pair.box(), 64, from.data(), bytes),
                               write(1, pair.box(), 0, &value, sizeof value)};
    return pair.time(
        1, [&] { (void)pair.fabric(0).post(batch); }, [&] { return pair.signal(1) == value; });
  });
}

Result get(const Effort& effort, std::size_t bytes) {
  const sim::Profile& profile = Network(effort, kNetwork).profile;
  std::vector<std::byte> to(bytes);
  const double expected = profile.post_ns + profile.read_latency_ns + wire_ns(profile, bytes);
  return simulated(effort, {{"bytes", double(bytes)}}, expected, [&](Pair& pair) {
    Completion done;
    return pair.time(
        0,
        [&] { (void)pair.fabric(0).post(read(1, pair.box(), 64, to.data(), bytes).notify(done)); },
        [&] { return done.finished(); });
  });
}

Result atomic(const Effort& effort, const char* name) {
  const sim::Profile& profile = Network(effort, kNetwork).profile;
  const bool adds = std::string_view(name) == "fetch-add";
  const double expected = profile.post_ns + profile.atomic_latency_ns;
  return simulated(
      effort, {{"operation", name}, {"variables", "one, alone"}}, expected, [&](Pair& pair) {
        Completion done;
        std::uint64_t former = 0;
        const Operation operation = adds ? fetch_add(1, pair.box(), 8, 1, &former)
                                         : compare_swap(1, pair.box(), 8, 0, 0, &former);
        return pair.time(
            0, [&] { (void)pair.fabric(0).post(operation.notify(done)); },
            [&] { return done.finished(); });
      });
}

}  // namespace

std::vector<Experiment> simulated_costs() {
  return {{.name = "put-signal",
           .title = "from a put with its signal until it is placed, in virtual time",
           .fabric = "sim",
           .x = "bytes",
           .run = for_settings(kSizes, put_signal)},
          {.name = "get",
           .title = "reading a peer's memory, until the bytes are here, in virtual time",
           .fabric = "sim",
           .x = "bytes",
           .run = for_settings(kSizes, get)},
          {.name = "atomics",
           .title = "an atomic operation on a peer's word, in virtual time",
           .fabric = "sim",
           .run = for_settings({"compare-swap", "fetch-add"}, atomic)}};
}

}  // namespace dunlin::bench
