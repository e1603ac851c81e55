#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bench/harness/experiment.hpp"
#include "bench/harness/turns.hpp"
#include "multicast/subgroup_view.hpp"

/// A member of a group to measure a multicast with: an ordered and an unordered subgroup, both of
/// all members and with the first so many as senders.
namespace dunlin::bench {

inline constexpr std::size_t kRingBytes = std::size_t{512} << 10;

class Cast {
 public:
  /// Returns when all members of the team are connected; the first so many of them can send.
  Cast(Member& me, std::unique_ptr<Fabric> fabric, std::uint32_t senders);

  /// One of the two, and what was delivered in it so far.
  struct Subgroup {
    std::unique_ptr<multicast::SubgroupView> view;
    std::uint64_t delivered = 0;
    std::uint64_t goal = 0;  // of this turn: counts are from the beginning, for all members alike
  };
  [[nodiscard]] Subgroup& ordered() noexcept { return subgroups_[0]; }
  [[nodiscard]] Subgroup& unordered() noexcept { return subgroups_[1]; }

  /// From now on a delivery copies the message into a store of the last so many; 0: it does not.
  void store_last(std::uint32_t messages);

  /// All of it: a peer may be in need of either.
  std::size_t poll();

  /// The first so many senders send so many each. Member 0 gets how many a second it delivers.
  [[nodiscard]] std::optional<double> stream(Subgroup& subgroup, std::size_t bytes,
                                             std::uint64_t messages, std::uint32_t senders);
  /// `sender` sends one at a time in an otherwise idle group; it gets ns until it delivers it.
  [[nodiscard]] std::optional<double> one_by_one(Subgroup& subgroup, std::uint32_t sender,
                                                 std::size_t bytes, const Batches& plan);
  /// Members 0 and 1 answer each other's messages; member 0 gets half a round trip.
  [[nodiscard]] std::optional<double> ping_pong(Subgroup& subgroup, std::size_t bytes,
                                                const Batches& plan);

 private:
  template <class Condition>
  void poll_until(Condition&& condition);
  void send(multicast::SubgroupView& view, std::size_t bytes);
  void take(Subgroup& subgroup, std::span<const multicast::Delivery> batch);

  Member& me_;
  std::unique_ptr<Fabric> fabric_;
  Subscription subscription_;
  std::array<Subgroup, 2> subgroups_;
  bool stores_ = false;
  std::vector<std::vector<std::byte>> stored_;
  std::size_t next_stored_ = 0;
};

}  // namespace dunlin::bench
