#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dunlin/container.hpp>

#include "bench/container/container_node.hpp"
#include "bench/harness/result.hpp"

/// The points of the figure `grid`: a call in both styles and as a container chooses, at one member
/// that computes between two polls, and what the cost model says of it.
namespace dunlin::bench {

/// Words of a value; an element of a queue has one more. Slots of half a line, one and five lines.
inline constexpr std::array<std::size_t, 3> kChoiceWords{1, 5, 24};
inline constexpr std::array kChoiceStyles{Style::one_sided, Style::message, Style::automatic};
/// The model predicts so many of these, the first ones.
inline constexpr std::size_t kPredictedStyles = 2;
using ByStyle = std::array<double, kChoiceStyles.size()>;

struct ChoicePoint {
  CallCase which;
  std::size_t words = 0;
  std::uint32_t clients = 0;
  double computing_us = 0;
  ByStyle measured_ns{};

  [[nodiscard]] Situation situation() const;
};

/// The figure's results: how often a container of the automatic style takes about as long as one of
/// the cheaper style, and how much longer at most, beside the goals; the same by call.
[[nodiscard]] std::vector<Result> judge_choices(const std::vector<ChoicePoint>& points,
                                                const std::vector<ComponentCosts>& costs_by_point);

/// A map and a queue in the memory of one member, whose calls are in one style.
template <std::size_t Words>
class ChoiceCalls {
 public:
  static constexpr std::uint32_t kSlots = 1U << 14;
  static constexpr std::uint32_t kCapacity = 1U << 10;
  /// The keys that one member uses, but for new ones.
  static constexpr std::size_t kKeys = 64;

  ChoiceCalls(Containers& containers, Style style, Rank holder)
      : map_(containers,
             {.name = "map" + std::string(name_of(style)), .slots = kSlots, .style = style}),
        queue_(containers, {.name = "queue" + std::string(name_of(style)),
                            .capacity = kCapacity,
                            .host = holder,
                            .style = style}),
        holder_(holder),
        rank_(containers.fabric().rank()) {
    for (std::uint64_t& key : keys_) key = new_key();
  }

  /// The call that must come before so that this one finds a key or an element.
  [[nodiscard]] static std::optional<Call> before(Call call) {
    if (call == Call::pop) return Call::push;
    if (call == Call::find || call == Call::assign || call == Call::erase) return Call::assign;
    return std::nullopt;
  }
  /// The call that makes room again.
  [[nodiscard]] static std::optional<Call> after(Call call) {
    return call == Call::push ? std::optional(Call::pop) : std::nullopt;
  }
  /// The following calls are on the same keys as those of the former turn.
  void begin_turn() noexcept { next_ = 0; }
  auto& begin_on_queue(Call call, Promise promise) {
    queue_call_.begin(queue_, call, {}, promise);
    return queue_call_;
  }
  /// Begins the call for the next key.
  auto& begin_on_map(Call call, Promise promise) {
    const std::uint64_t key = call == Call::insert ? new_key() : keys_[next_++ % kKeys];
    begin_map_call(map_, map_call_, call, key, {}, promise);
    return map_call_;
  }
  /// Makes a call, and waits for it.
  void execute(Call call, Promise promise) {
    if (on_queue(call))
      demand(begin_on_queue(call, promise));
    else
      demand(begin_on_map(call, promise));
  }
  /// Finds a key that is not there, and waits.
  void find_in_vain() {
    map_call_ = map_.find(new_key());
    demand(map_call_);
  }

 private:
  std::uint64_t new_key() {
    std::uint64_t key;
    do key = last_key_++ << 12 | rank_;
    while (map_.home_of(key) != holder_);
    return key;
  }

  HashMap<std::uint64_t, std::array<std::uint64_t, Words>> map_;
  Queue<std::array<std::uint64_t, Words + 1>> queue_;
  typename decltype(map_)::Operation map_call_;
  QueueCall<std::array<std::uint64_t, Words + 1>> queue_call_;
  Rank holder_;
  Rank rank_;
  std::uint64_t last_key_ = 0;
  std::array<std::uint64_t, kKeys> keys_{};
  std::uint64_t next_ = 0;
};

}  // namespace dunlin::bench
