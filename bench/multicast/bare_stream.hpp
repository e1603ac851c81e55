#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/harness/turns.hpp"

/// The limit of a multicast's throughput: senders copy messages into rings of the receivers'
/// memory, one ring for each pair, and count them there; receivers look at what the counts say is
/// there, and say how far they are. Each message comes from a place of its own. There is no order.
namespace dunlin::bench {

inline constexpr std::uint32_t kMostStreamMembers = 16;

/// What a message may have, as all rings share the team's arena.
[[nodiscard]] std::size_t largest_in_bare_stream(std::uint32_t members) noexcept;

class BareStream {
 public:
  /// One for each process; all with the same arguments.
  BareStream(Member& me, std::uint32_t senders, std::size_t bytes, std::size_t ring_bytes);

  /// Each of the first `senders` members sends so many. Member 0 gets how many a second reach it,
  /// its own included.
  [[nodiscard]] std::optional<double> round(std::uint64_t messages);

 private:
  [[nodiscard]] std::uint64_t& written(std::uint32_t from, std::uint32_t to) const noexcept;
  [[nodiscard]] std::uint64_t& taken(std::uint32_t from, std::uint32_t to) const noexcept;
  [[nodiscard]] std::byte* ring(std::uint32_t from, std::uint32_t to) const noexcept;
  bool send(std::uint64_t goal) noexcept;
  bool receive() noexcept;
  [[nodiscard]] bool all_taken() const noexcept;

  Member& me_;
  std::uint32_t senders_;
  std::size_t bytes_;
  std::size_t slots_;
  std::size_t ring_bytes_;
  std::vector<std::byte> source_;
  std::uint64_t sent_ = 0;
  std::vector<std::uint64_t> seen_;  // by sender
};

}  // namespace dunlin::bench
