#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// A caller's promise for a call on a container, and the style of the call.
namespace dunlin {

/// The calls that other members may make while this call is under way; docs/container.md has the
/// protocols that each promise allows. Phases with different promises need a barrier between them.
/// Calls on a queue that were given up count as under way: for such a program, there is `both`.
enum class Promise : std::uint8_t {
  both,    // any calls
  writes,  // only calls that write: inserts, or pushes
  reads,   // only calls that read: finds, or pops
  local    // no calls of other members
};
inline constexpr std::size_t kPromises = 4;

/// How a call reaches the memory of another member.
enum class Style : std::uint8_t {
  automatic,  // as the cost model predicts, on some networks when the container is made (CON-A3);
              // for one call: as the container's options say
  one_sided,  // by reads, writes and atomics
  message     // by a request, which the other member's poll() handles, and its reply
};

[[nodiscard]] std::string_view name_of(Promise promise) noexcept;
[[nodiscard]] std::string_view name_of(Style style) noexcept;

}  // namespace dunlin
