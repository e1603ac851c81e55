#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dunlin/store.hpp>

#include "bench/fabric/group.hpp"
#include "bench/fabric/node.hpp"

/// The two members of a figure of the store: member 0 measures, and the others hold keys and serve.
namespace dunlin::bench {

class StorePair {
 public:
  static constexpr std::size_t kAtOnce = 32;

  /// With `place_bytes` for the bare operations beside it, at each member.
  StorePair(Member& me, const Group& group, const StoreOptions& options,
            std::size_t place_bytes = kPageBytes)
      : me_(me),
        node_(group.join(me.rank())),
        store_(node_.fabric(), options),
        places_(node_.fabric().allocate({.name = "places", .bytes = place_bytes})) {
    node_.fabric().announce(places_);
    connect(me, node_);
    for (std::size_t i = 0; i < kAtOnce; ++i) all_.emplace_back(&operations_.emplace_back());
    while (me.rank() == 0 && !node_.fabric().connected(1, places_.id())) poll();
  }

  [[nodiscard]] Node& node() noexcept { return node_; }
  [[nodiscard]] Store& store() noexcept { return store_; }
  [[nodiscard]] RegionId places() const noexcept { return places_.id(); }
  [[nodiscard]] StoreOperation& operation(std::size_t i) { return operations_.at(i); }
  std::size_t poll() { return store_.poll(); }

  /// Waits for the first so many operations; throws Error if one has ended badly.
  void demand(std::size_t count = kAtOnce) {
    remote::wait_all(std::span<remote::CallBase* const>(all_).first(count));
    for (std::size_t i = 0; i < count; ++i) demand(operations_[i].status());
  }
  static void demand(remote::Status status) {
    if (status != remote::Status::ok)
      throw Error("bench: a call on the store " + std::string(remote::describe(status)));
  }

  /// Puts a value under each key, some at once, and gets it, so that its location is cached.
  void load(std::span<const std::uint64_t> keys, std::span<const std::byte> value) {
    in_turns(keys.size(),
             [&](std::size_t i, std::size_t key) { store_.put(operations_[i], keys[key], value); });
    in_turns(keys.size(),
             [&](std::size_t i, std::size_t key) { store_.get(operations_[i], keys[key]); });
  }

  /// A turn in alternate(): member 0 measures, and the others serve until it says that it has.
  template <class Measure>
  std::optional<double> turn(Measure&& measure) {
    return one_sided(
        me_, node_, [this] { poll(); }, measure);
  }

 private:
  template <class Begin>
  void in_turns(std::size_t count, Begin&& begin) {
    for (std::size_t from = 0; from < count; from += kAtOnce) {
      const std::size_t many = std::min(kAtOnce, count - from);
      for (std::size_t i = 0; i < many; ++i) begin(i, from + i);
      demand(many);
    }
  }

  Member& me_;
  Node node_;
  Store store_;
  Region places_;
  std::deque<StoreOperation> operations_;
  std::vector<remote::CallBase*> all_;
};

/// Of one more than so many entries with values of `value_bytes`, which all lie at one member.
/// Values of 8 KB have blocks of 12 KB, of which five fill a slab of 64 KB.
[[nodiscard]] inline std::size_t store_bytes(std::size_t pairs, std::size_t value_bytes) {
  return (std::size_t{4} << 20) + pairs * (256 + value_bytes * 2);
}

}  // namespace dunlin::bench
