#pragma once

#include <cstddef>

/// The optimizations of a multicast, each of which can be switched off to measure what it is worth
/// (docs/multicast.md). A program that only uses a multicast has no need of them.
namespace dunlin::multicast {

struct Switches {
  bool batch_receive = true;    // false: one message of each sender a poll
  bool batch_send = true;       // false: one message a poll
  bool batch_deliver = true;    // false: one message a poll
  bool nulls = true;            // false: a sender with nothing to send holds up the others
  bool nulls_ahead = true;      // false: a silent sender takes only the nulls that others wait for
  bool used_bytes_only = true;  // false: whole slots of `slot_bytes` travel
  std::size_t slot_bytes = 0;   // only if used_bytes_only is false; a multiple of 8
  bool one_cache_line = true;   // false: each column is pushed by itself, and carries no message
  bool time_posting = false;    // true: looks at the clock before and after posting
  friend bool operator==(const Switches&, const Switches&) = default;
};

}  // namespace dunlin::multicast
