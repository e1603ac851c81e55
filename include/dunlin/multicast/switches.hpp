#pragma once

#include <cstddef>

/// The optimizations of a multicast, each of which can be switched off to measure what it is worth
/// (docs/multicast.md). A program that only uses a multicast has no need of them.
namespace dunlin::multicast {

struct Switches {
  bool batch_receive = true;    // or: one message of each sender a poll
  bool batch_send = true;       // or: one a poll
  bool batch_deliver = true;    // or: one a poll
  bool nulls = true;            // or: a sender with nothing to send holds up the others
  bool used_bytes_only = true;  // or: slots of `slot_bytes` travel
  std::size_t slot_bytes = 0;   // only without used_bytes_only; a multiple of 8
  bool one_cache_line = true;   // or: each column is pushed by itself, and carries no message
  bool time_posting = false;    // look at the clock before and after
  friend bool operator==(const Switches&, const Switches&) = default;
};

}  // namespace dunlin::multicast
