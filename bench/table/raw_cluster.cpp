#include "bench/table/raw_cluster.hpp"

#include <algorithm>

#include <dunlin/fabric/memory.hpp>

#include "bench/fabric/simulated_members.hpp"

namespace dunlin::bench {
namespace {

constexpr std::size_t kWordsPerLine = kCacheLineBytes / kWordBytes;

}  // namespace

RawCluster::RawCluster(const sim::Profile& profile, std::uint32_t nodes, std::uint64_t seed,
                       Refresh refresh)
    : world_(profile, nodes, seed), refresh_(refresh), nodes_(nodes) {
  for (Rank rank = 0; rank < nodes; ++rank) {
    Node& node = nodes_[rank];
    node.fabric = &world_.fabric(rank);
    node.region = node.fabric->allocate({.name = "raw", .bytes = nodes * kCacheLineBytes});
    node.copies.resize(nodes * kWordsPerLine);
    for (Rank peer = 0; peer < nodes; ++peer) {
      node.fetched.push_back(std::make_unique<Completion>());
    }
    node.fabric->announce(node.region);
  }
  attach([](Node&) { return std::size_t{0}; });
  run_until(world_, [this] {
    return std::ranges::all_of(nodes_, [this](const Node& node) {
      for (Rank peer = 0; peer < nodes_.size(); ++peer) {
        if (peer != node.fabric->rank() && !node.fabric->connected(peer, node.region.id())) {
          return false;
        }
      }
      return true;
    });
  });
}

std::uint64_t RawCluster::word(const Node& node, Rank of) const noexcept {
  const auto* const words =
      refresh_ == Refresh::writes
          ? reinterpret_cast<const std::uint64_t*>(node.region.memory().data())
          : node.copies.data();
  return memory::load(words[of * kWordsPerLine]);
}

void RawCluster::publish(Node& node, std::uint64_t value) noexcept {
  const Rank me = node.fabric->rank();
  auto* const words = reinterpret_cast<std::uint64_t*>(node.region.memory().data());
  memory::store(words[me * kWordsPerLine], value);
  node.mine = value;
  if (refresh_ == Refresh::reads) return;
  std::vector<Operation> batch;
  for (Rank peer = 0; peer < nodes_.size(); ++peer) {
    if (peer == me) continue;
    batch.push_back(write(peer, node.region.id(), me * kCacheLineBytes, words + me * kWordsPerLine,
                          kWordBytes));
  }
  (void)node.fabric->post(batch);
}

/// Reads: fetch again whatever has arrived.
std::size_t RawCluster::fetch_again(Node& node) noexcept {
  if (refresh_ == Refresh::writes) return 0;
  std::size_t posted = 0;
  for (Rank peer = 0; peer < nodes_.size(); ++peer) {
    if (peer == node.fabric->rank() || !node.fetched[peer]->finished()) continue;
    const Operation fetch = read(peer, node.region.id(), peer * kCacheLineBytes,
                                 &node.copies[peer * kWordsPerLine], kWordBytes);
    (void)node.fabric->post(fetch.notify(*node.fetched[peer]));
    ++posted;
  }
  return posted;
}

/// What each node does whenever it polls: progress, look at what has arrived, act, fetch again.
void RawCluster::attach(const std::function<std::size_t(Node&)>& step) {
  for (Rank rank = 0; rank < nodes_.size(); ++rank) {
    Node& node = nodes_[rank];
    world_.detach_all(rank);
    world_.attach(rank, [this, &node, step] {
      std::size_t done = node.fabric->poll();
      done += step(node);
      return done + fetch_again(node);
    });
  }
}

double RawCluster::detection(std::uint32_t times) {
  std::uint64_t asked = 0;
  std::uint64_t detected_ns = 0;
  attach([&](Node& node) -> std::size_t {
    if (node.fabric->rank() == 0) {
      if (asked == 0 || detected_ns != 0 || word(node, 1) != asked) return 0;
      detected_ns = node.fabric->now_ns();
      return 1;
    }
    if (node.fabric->rank() != 1 || word(node, 0) == node.mine) return 0;
    publish(node, word(node, 0));
    return 1;
  });
  double total_ns = 0;
  for (std::uint32_t i = 0; i < times; ++i) {
    world_.run_for(world_.random() % 20'000);
    std::uint64_t asked_ns = 0;
    world_.on(0, [&] {
      asked_ns = nodes_[0].fabric->now_ns();
      detected_ns = 0;
      publish(nodes_[0], ++asked);
    });
    run_until(world_, [&] { return asked_ns != 0 && detected_ns != 0; });
    total_ns += static_cast<double>(detected_ns - asked_ns);
  }
  return total_ns / times / 2;
}

double RawCluster::counting_rate(std::uint64_t rounds) {
  attach([this](Node& node) -> std::size_t {
    for (Rank peer = 0; peer < nodes_.size(); ++peer) {
      if (peer != node.fabric->rank() && word(node, peer) < node.mine) return 0;
    }
    publish(node, node.mine + 1);
    return 1;
  });
  const auto run_to = [this](std::uint64_t goal) {
    run_until(world_, [&] { return nodes_[0].mine >= goal; });
    return world_.now_ns();
  };
  const std::uint64_t warm_up = std::max<std::uint64_t>(rounds / 10, 1);
  const std::uint64_t start = run_to(warm_up);
  const std::uint64_t end = run_to(warm_up + rounds);
  return static_cast<double>(rounds) * 1e9 / static_cast<double>(end - start);
}

}  // namespace dunlin::bench
