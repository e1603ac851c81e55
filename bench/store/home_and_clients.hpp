#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dunlin/store.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"
#include "bench/store/get_batches.hpp"
#include "bench/store/keys.hpp"
#include "bench/store/store_pair.hpp"

/// The members of a figure on shm in which several clients use one home: member 0 holds all pairs,
/// under the keys mixed(0), mixed(1), and so on, and the others are clients. No call needs the
/// home, so members that have nothing to do sleep in Member::meet().
namespace dunlin::bench {

class HomeAndClients {
 public:
  static constexpr Rank kHome = 0;

  /// Memory for so many pairs at the home, a cache at each client, and at the home `place_bytes`
  /// for bare operations. Returns when the home has put all pairs, so the caches are empty.
  HomeAndClients(Member& me, const Group& group, std::uint32_t pairs,
                 std::span<const std::byte> value, std::size_t cache_bytes,
                 std::size_t place_bytes = kPageBytes)
      : node_(group.join(me.rank())),
        store_(node_.fabric(), {.homes = 1,
                                .memory_bytes = bytes_for(pairs, value.size()),
                                .large_bytes = 0,
                                .expected_keys = pairs,
                                .cache_bytes = cache_bytes}),
        places_(node_.fabric().allocate(
            {.name = "places", .bytes = me.rank() == kHome ? place_bytes : kPageBytes})) {
    node_.fabric().announce(places_);
    connect(me, node_);
    while (!node_.fabric().connected(kHome, places_.id())) store_.poll();
    me.meet([&] { store_.poll(); });
    if (me.rank() == kHome) load(pairs, value);
    me.meet();
  }

  /// A number of each client, but for the home's. All members call it.
  [[nodiscard]] static std::vector<double> of_clients(Member& me, double mine) {
    std::vector<double> numbers;
    for (const std::string& word : me.exchange(std::to_string(mine)))
      numbers.push_back(std::stod(word));
    numbers.erase(numbers.begin() + kHome);
    return numbers;
  }
  /// From when the first client began to when the last one ended. All members call it.
  [[nodiscard]] static double ns_of_clients(Member& me, double begin, double end) {
    const std::vector<double> begins = of_clients(me, begin), ends = of_clients(me, end);
    return std::ranges::max(ends) - std::ranges::min(begins);
  }

  [[nodiscard]] Node& node() noexcept { return node_; }
  [[nodiscard]] Store& store() noexcept { return store_; }
  [[nodiscard]] RegionId places() const noexcept { return places_.id(); }

 private:
  /// The index takes 27 bytes for a key; the rest is for indirect headers and what slabs leave.
  [[nodiscard]] static std::size_t bytes_for(std::uint32_t pairs, std::size_t value_bytes) {
    return (std::size_t{8} << 20) + pairs * (48 + bytes_of_entry(value_bytes));
  }
  void load(std::uint32_t pairs, std::span<const std::byte> value) {
    StoreBatch batch(store_);
    for (std::uint32_t from = 0; from < pairs; from += StorePair::kAtOnce) {
      batch.clear();
      for (std::uint32_t i = from; i < pairs && i < from + StorePair::kAtOnce; ++i)
        batch.put(mixed(i), value);
      StorePair::demand(batch.wait());
    }
  }

  Node node_;
  Store store_;
  Region places_;
};

}  // namespace dunlin::bench
