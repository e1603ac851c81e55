#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "bench/container/bare_container.hpp"
#include "bench/container/container_node.hpp"

/// What the calls of a figure work on: a map and a queue at the holder of a pair, the same
/// operations without them, and enough keys that each call has its own.
namespace dunlin::bench {

class CallTarget {
 public:
  static constexpr std::uint32_t kSlots = 1U << 19;
  static constexpr std::uint32_t kKeys = 1U << 17;

  CallTarget(ContainerPair& pair, const CallCase& which)
      : which_(which),
        map_(pair.containers(), {.name = "map", .slots = kSlots}),
        queue_(pair.containers(),
               {.name = "queue", .capacity = kKeys, .host = ContainerPair::kHolder}),
        bare_(pair.node(), kSlots),
        keys_(keys_of_holder(map_, kKeys)) {
    std::ranges::transform(keys_, std::back_inserter(slots_), [](std::uint64_t key) {
      return container::scale(static_cast<std::uint32_t>(container::hash_of(&key, sizeof key)),
                              kSlots);
    });
  }

  /// Returns when all have the regions, and member 0 has warmed up if it is to.
  void get_ready(ContainerPair& pair, bool warms_up) {
    while (!bare_.connected()) pair.containers().poll();
    pair.meet();
    if (!warms_up) return;
    static_cast<void>(pair.turn([this] {
      warm_up();
      return 0.0;
    }));
  }
  /// Each page is mapped into this process the first time that it is used.
  void warm_up() {
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      map_call_ = map_.find(keys_[i]);
      demand(map_call_);
      bare_.find(slots_[i]);
    }
    for (std::uint32_t slot = 0; slot < kSlots; slot += kPageBytes / BareContainer::kSlotBytes)
      bare_.find(slot);
    std::vector<std::uint64_t> elements(kKeys);
    std::size_t count = 0;
    if (queue_.push_many(elements) != remote::Status::ok ||
        queue_.pop_many(elements, count) != remote::Status::ok)
      throw Error("bench: the queue does not work");
  }
  /// What calls need that is not measured: keys that are there, or not. The bare sequence finds its
  /// slots as near in the caches as the calls do theirs.
  void prepare(std::uint64_t calls, bool of_the_container) {
    if (!of_the_container) {
      for (std::uint64_t i = 0; i < calls && wants_keys(); ++i)
        bare_.find(slots_[(next_ + i) % kKeys]);
      return;
    }
    if (which_.call == Call::pop) {
      const std::vector<std::uint64_t> elements(calls);
      if (queue_.push_many(elements) != remote::Status::ok) throw Error("bench: the queue is full");
    }
    for (std::uint64_t i = 0; i < calls && wants_keys(); ++i) {
      map_call_ = map_.assign(keys_[(next_ + i) % kKeys], i);
      demand(map_call_);
    }
  }
  void after(std::uint64_t calls, bool of_the_container) {
    if (which_.call != Call::push || !of_the_container) return;
    std::vector<std::uint64_t> elements(calls);
    std::size_t count = 0;
    if (queue_.pop_many(elements, count) != remote::Status::ok || count != calls)
      throw Error("bench: the queue has lost something");
  }

 protected:
  [[nodiscard]] std::uint64_t next_key() noexcept { return keys_[next_++ % kKeys]; }
  /// Where a map of as many slots begins to look for the next key.
  [[nodiscard]] std::uint32_t next_slot() noexcept { return slots_[next_++ % kKeys]; }
  [[nodiscard]] std::uint32_t turn() const noexcept { return static_cast<std::uint32_t>(next_); }

  CallCase which_;
  BenchMap map_;
  BenchQueue queue_;
  BareContainer bare_;
  BenchMap::Operation map_call_;
  QueueCall<std::uint64_t> queue_call_;

 private:
  [[nodiscard]] bool wants_keys() const noexcept {
    return which_.call == Call::find || which_.call == Call::assign || which_.call == Call::erase;
  }

  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> slots_;
  std::uint64_t next_ = 0;
};

}  // namespace dunlin::bench
