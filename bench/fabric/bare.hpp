#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bench/harness/clock.hpp"
#include "bench/harness/turns.hpp"

/// The raw operations that bound a fabric: those that its two processes could perform without it.
/// Each is called by all members of the team alike; 0 and 1 play, and member 0 gets nanoseconds.
namespace dunlin::bench {

enum class Atomics { alone, contended };

class Bare {
 public:
  virtual ~Bare() = default;
  using Time = std::optional<double>;

  /// So many bytes one way, seen by a peer that looks all the time: half a round trip.
  [[nodiscard]] virtual Time one_way(Member& me, const Batches& plan, std::size_t bytes) = 0;
  /// So many bytes of the peer's, asked for and here.
  [[nodiscard]] virtual Time fetch(Member& me, const Batches& plan, std::size_t bytes) = 0;
  /// An addition to a word of the peer's, and its former value.
  [[nodiscard]] virtual Time add(Member& me, const Batches& plan, Atomics how) = 0;
  /// `items` of `bytes` each to the peer, `at_once` in one go, until the last is there; for one.
  [[nodiscard]] virtual Time stream(Member& me, std::size_t bytes, std::uint32_t items,
                                    std::uint32_t at_once) = 0;
  /// The same from each to the other at once, until all of it is there; for one of either.
  [[nodiscard]] virtual Time stream_both_ways(Member&, std::size_t, std::uint32_t, std::uint32_t) {
    return std::nullopt;
  }
  /// 8 bytes to each of so many places at the peer, which answers each.
  [[nodiscard]] virtual Time spread(Member& me, const Batches& plan, std::uint32_t places) = 0;
  /// 8 bytes one way, between two that sleep until something comes: half a round trip. Nothing
  /// where an answer comes before anybody can fall asleep.
  [[nodiscard]] virtual Time asleep(Member&, const Batches&) { return std::nullopt; }
};

// Made by all members of a team, after it has forked; `address` is member 0's own.
/// Shared memory and its atomics.
[[nodiscard]] std::unique_ptr<Bare> bare_memory(Member& me, const std::string& address);
/// Sockets without delay; processes that sleep do so in epoll_wait.
[[nodiscard]] std::unique_ptr<Bare> bare_tcp(Member& me, const std::string& address);
/// libibverbs: writes and polled words; sends on iWARP, which promises nothing of the kind.
[[nodiscard]] std::unique_ptr<Bare> bare_verbs(Member& me, const std::string& address);

}  // namespace dunlin::bench
