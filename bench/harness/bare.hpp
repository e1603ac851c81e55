#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bench/harness/clock.hpp"
#include "bench/harness/turns.hpp"

/// The raw operations that bound what a table can do: plain atomics on memory that the two
/// processes share, nothing else. Every function is called by all members of the team alike.
namespace dunlin::bench::bare {

/// How a loop waits between two looks at a line.
enum class Spin { pause, tight };

/// Ping-pong on two cache lines between members 0 and 1, with `bytes` of payload before each flag
/// (0: the flag alone). Member 0 gets the one-way time in ns: half a round trip. Others look on.
[[nodiscard]] std::optional<double> ping_pong(Member& me, const Batches& plan, Spin spin,
                                              std::size_t bytes = 0);

/// Members 0 and 1 count in step, each on its own line. Member 0 gets ns a step.
[[nodiscard]] std::optional<double> count_in_step(Member& me, const Batches& plan, Spin spin);

/// Member 1 sleeps on a futex and answers, once woken, by a plain store; member 0 gets ns from the
/// wake to the answer, each time after long enough for the sleeper to be asleep.
[[nodiscard]] std::optional<double> wake_by_futex(Member& me, std::uint32_t wakes);

/// Ns to look once at one word of each of `lines` cache lines, `pitch` bytes apart.
[[nodiscard]] double scan_words(const Batches& plan, std::span<const std::byte> memory,
                                std::size_t lines, std::size_t pitch = 64);

/// Ns to read all of `bytes`, eight at a time.
[[nodiscard]] double scan_bytes(const Batches& plan, std::span<const std::byte> memory,
                                std::size_t bytes);

/// Ns to test one word and count in another, the least that a predicate with its trigger must do.
[[nodiscard]] double test_and_count(const Batches& plan, std::span<std::byte> memory);

/// Ns to copy `bytes` into each of `copies` places of the arena, one after the other.
[[nodiscard]] double fan_out(const Batches& plan, std::span<std::byte> memory, std::size_t bytes,
                             std::size_t copies);

}  // namespace dunlin::bench::bare
