#include "bench/multicast/sim_cast.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/fabric/simulated_members.hpp"
#include "bench/harness/statistics.hpp"
#include "multicast/subgroup_view.hpp"

namespace dunlin::bench {
namespace {

using multicast::Delivery;
using multicast::SubgroupView;

constexpr std::size_t kStreamBytes = 100'000;
constexpr std::uint32_t kUnderWay = 4;  // to each peer

std::size_t ring_bytes(const SimCast& cast) {
  const std::size_t record = (cast.bytes + 15) / 8 * 8;
  return std::max(std::bit_ceil(record * std::max(cast.window, 8U)), kMinRingBytes);
}

/// One member: sends into the active subgroups in turn, as fast as there is room.
class Node {
 public:
  Node(sim::World& world, Rank rank, const SimCast& cast)
      : fabric_(world.fabric(rank)), cast_(cast), rank_(rank) {
    multicast::SubgroupViewOptions options;
    options.generation = 1;
    options.members.resize(cast.members);
    std::iota(options.members.begin(), options.members.end(), 0);
    options.senders.resize(cast.senders);
    std::iota(options.senders.begin(), options.senders.end(), 0);
    options.ring_bytes = ring_bytes(cast);
    options.window_messages = cast.window;
    options.switches = cast.switches;
    options.mode = cast.ordered ? multicast::Mode::ordered : multicast::Mode::unordered;
    if (!cast.switches.used_bytes_only) options.switches.slot_bytes = (cast.bytes + 15) / 8 * 8;
    for (std::uint32_t i = 0; i < cast.subgroups; ++i) {
      options.name = "s" + std::to_string(i);
      views_.push_back(std::make_unique<SubgroupView>(
          fabric_, options, [this](std::span<const Delivery> batch) { take(batch); }));
    }
    const bool delayed = rank < cast.senders && rank + cast.delayed >= cast.senders;
    delay_ns_ = delayed ? cast.delay_ns : cast.pace_ns;
    sends_ = rank < cast.senders && delay_ns_ != SimCast::kSilent;
    world.attach(rank, [this] { return poll(); });
  }

  [[nodiscard]] bool connected() const {
    return std::ranges::all_of(views_, [](const auto& view) { return view->connected(); });
  }
  void start() { started_ = true; }
  [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }
  [[nodiscard]] std::vector<double>& latencies() noexcept { return latencies_; }
  [[nodiscard]] multicast::Counters counters() const {
    multicast::Counters sum = views_.front()->counters();
    for (std::uint32_t i = 1; i < cast_.active; ++i) sum += views_[i]->counters();
    return sum;
  }

 private:
  std::size_t poll() {
    std::size_t done = started_ && sends_ ? send() : 0;
    for (const auto& view : views_) done += view->poll();
    return done;
  }

  std::size_t send() {
    std::size_t sent = 0;
    while (true) {
      if (delay_ns_ > 0 && fabric_.now_ns() < next_ns_) {
        fabric_.wake_at(next_ns_);
        break;
      }
      SubgroupView& view = *views_[next_++ % cast_.active];
      if (view.prepare(cast_.bytes).data() == nullptr) break;
      spend_copying(1);
      view.commit();
      committed_.push_back(fabric_.now_ns());
      ++sent;
      next_ns_ = fabric_.now_ns() + delay_ns_;
    }
    return sent;
  }

  void take(std::span<const Delivery> batch) {
    delivered_ += batch.size();
    for (const Delivery& delivery : batch) {
      if (delivery.sender != rank_) continue;
      latencies_.push_back(static_cast<double>(fabric_.now_ns() - committed_.front()));
      committed_.pop_front();
    }
    spend_copying(batch.size());
    if (cast_.store_ns_per_byte > 0)
      fabric_.spend(cast_.store_ns_per_byte * static_cast<double>(cast_.bytes * batch.size()));
    if (cast_.upcall_ns > 0) fabric_.spend(static_cast<double>(cast_.upcall_ns));
  }
  void spend_copying(std::size_t messages) {
    if (cast_.copy_ns_per_byte > 0)
      fabric_.spend(cast_.copy_ns_per_byte * static_cast<double>(cast_.bytes * messages));
  }

  Fabric& fabric_;
  const SimCast& cast_;
  Rank rank_;
  std::vector<std::unique_ptr<SubgroupView>> views_;
  bool started_ = false;
  bool sends_ = false;
  std::uint64_t delay_ns_ = 0;
  std::uint64_t next_ns_ = 0;
  std::size_t next_ = 0;
  std::uint64_t delivered_ = 0;
  std::deque<std::uint64_t> committed_;  // of own messages that are not delivered
  std::vector<double> latencies_;
};

}  // namespace

SimCastFigures run_sim_cast(const sim::Profile& network, std::uint64_t seed, const SimCast& cast) {
  sim::Profile profile = network;
  profile.silence_timeout_ns = 0;  // an upcall may take as long
  sim::World world(profile, cast.members, seed);
  std::vector<std::unique_ptr<Node>> nodes;
  for (Rank rank = 0; rank < cast.members; ++rank)
    nodes.push_back(std::make_unique<Node>(world, rank, cast));
  run_until(world, [&] {
    return std::ranges::all_of(nodes, [](const auto& node) { return node->connected(); });
  });
  for (Rank rank = 0; rank < cast.members; ++rank)
    world.on(rank, [node = nodes[rank].get()] { node->start(); });
  const auto delivered = [&] {
    std::uint64_t all = 0;
    for (const auto& node : nodes) all += node->delivered();
    return all / nodes.size();
  };
  run_until(world, [&] { return delivered() >= cast.messages / 4; });  // rings are full by then
  const std::uint64_t start = world.now_ns(), before = delivered();
  const std::uint64_t operations = world.operations();
  run_until(world, [&] { return delivered() >= before + cast.messages; });
  const auto ns = static_cast<double>(world.now_ns() - start);
  const multicast::Counters c = nodes.front()->counters();
  const auto ratio = [](std::uint64_t of, std::uint64_t to) {
    return to == 0 ? 0.0 : static_cast<double>(of) / static_cast<double>(to);
  };
  std::vector<double>& latencies = nodes.front()->latencies();
  std::ranges::sort(latencies);
  const auto late = [&](double q) { return latencies.empty() ? 0 : quantile(latencies, q); };
  return {.bytes_per_ns = static_cast<double>((delivered() - before) * cast.bytes) / ns,
          .latencies_ns = {late(0.5), late(0.99), late(0.999)},
          .writes_per_message = ratio(c.puts + c.pushes, c.messages_sent),
          .operations_per_message = ratio(world.operations() - operations, delivered() - before),
          .posting_share = static_cast<double>(c.posting_ns) / static_cast<double>(world.now_ns()),
          .records_sent_at_once = ratio(c.records_announced, c.send_batches),
          .slots_received_at_once = ratio(c.slots_received, c.receive_batches),
          .delivered_at_once = ratio(c.messages_delivered, c.deliver_batches)};
}

double run_sim_stream(const sim::Profile& profile, std::uint64_t seed, const SimCast& cast) {
  sim::World world(profile, cast.members, seed);
  struct Streamer {
    Region region;
    std::vector<Completion> completions;
    std::vector<std::uint64_t> left;  // by peer
  };
  std::vector<Streamer> streamers(cast.members);
  const std::uint64_t writes =
      std::max<std::uint64_t>(cast.messages / cast.senders * cast.bytes / kStreamBytes, 1);
  for (Rank rank = 0; rank < cast.members; ++rank) {
    Fabric& fabric = world.fabric(rank);
    Streamer& streamer = streamers[rank];
    streamer.region = fabric.allocate({.name = "stream", .bytes = kStreamBytes});
    fabric.announce(streamer.region);
    streamer.completions = std::vector<Completion>(cast.members * kUnderWay);
    streamer.left.assign(cast.members, rank < cast.senders ? writes : 0);
    streamer.left[rank] = 0;
    world.attach(rank, [&fabric, &streamer] {
      std::size_t done = fabric.poll();
      for (Completion& completion : streamer.completions) {
        const auto peer = static_cast<Rank>(&completion - streamer.completions.data()) / kUnderWay;
        if (streamer.left[peer] == 0 || !completion.finished()) continue;
        if (!fabric.connected(peer, streamer.region.id())) continue;
        const Operation one =
            put(peer, streamer.region.id(), 0, streamer.region.memory().data(), kStreamBytes);
        if (!fabric.post(one.notify(completion, Notify::remotely)).all()) continue;
        --streamer.left[peer];
        ++done;
      }
      return done;
    });
  }
  const auto over = [&] {
    return std::ranges::all_of(streamers, [](const Streamer& streamer) {
      return std::ranges::all_of(streamer.left, [](auto left) { return left == 0; }) &&
             std::ranges::all_of(streamer.completions,
                                 [](const Completion& c) { return c.finished(); });
    });
  };
  const std::uint64_t start = world.now_ns();
  run_until(world, over);
  return static_cast<double>(writes * kStreamBytes * cast.senders) /
         static_cast<double>(world.now_ns() - start);
}

}  // namespace dunlin::bench
