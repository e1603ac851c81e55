#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// How an operation in flight ends: with `ok`, or with one of these named errors.
namespace dunlin::remote {

enum class Status : std::uint8_t {
  under_way,       // has not ended yet
  ok,              // has its result
  abandoned,       // its caller gave it up
  timed_out,       // its deadline passed
  busy,            // try_lock: another member has the lock or waits for it
  lost,            // the member that holds the memory has failed, or has destroyed its part
  stopped,         // this process is no member any more; Membership::why_stopped() says why
  no_room,         // a pool has no free block of that size
  half_written,    // a writer died in the middle of its put; a put of the whole repairs it
  out_of_range,    // past the end, or more than is possible
  misaligned,      // buffer and remote address differ modulo 8
  unknown,         // this key never existed, or this name does not exist
  released,        // the key existed, and has been released
  name_taken,      // another segment has this name, or the key to insert exists
  not_allowed,     // this kind of memory does not take this call
  not_held,        // unlock of a lock that this process does not hold
  already_held,    // lock of a lock that this process holds
  full,            // a container has no room for a further element
  empty,           // a queue has no element
  refused,         // the member's part was made with other options
  over_quota,      // the daemon does not grant this process so much
  not_kept,        // delta: this version was put too long ago, or not yet
  broken_promise,  // a checked container: another member's call contradicts this one's promise
  too_long,        // a key, value or element has more bytes than there is room for
  conflict,        // a transaction has read values that have changed since: try again
  no_memory,       // this process has no memory for the call
  changed,         // put_if_version: the segment has another version
  threw,           // the function that was called has thrown; the call has its sentence
  overloaded,      // a node has no room for further calls now: nothing was done, try again
};
inline constexpr std::uint8_t kStatuses = static_cast<std::uint8_t>(Status::overloaded) + 1;

/// A few words, to be part of a sentence. `what` names what the caller has used ("store"), for the
/// words that need it.
[[nodiscard]] std::string describe(Status status, std::string_view what);
[[nodiscard]] std::string_view describe(Status status) noexcept;

}  // namespace dunlin::remote
