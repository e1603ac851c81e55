#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dunlin/store/scan.hpp>

#include "store/call.hpp"
#include "store/format.hpp"

namespace dunlin::store {

enum class ScanStage : std::uint8_t {
  attach,
  bucket,
  bucket_read,
  entries,
  entries_read,
  depth,
  depth_read,
  // Several chains are read at once, the first of which may be empty.
  run,
  run_read,
  run_depths,
  run_depths_read,
  done
};

/// The buffers of a scan's step.
struct ScanWork {
  struct Found {
    std::size_t at = 0;  // in `bytes`: the key, and the value behind it
    std::size_t key_bytes = 0;
    std::size_t value_bytes = 0;
    std::uint64_t version = 0;
    std::uint64_t ttl_ns = kNoExpiry;
  };

  /// A chain that is looked at together with others.
  struct Chain {
    std::uint64_t position = 0;
    std::uint64_t number = 0;  // of its main header
    Place main;
    Bucket bucket;
    std::uint64_t depth = 0;
  };
  static constexpr std::size_t kRun = 64;

  ScanStage stage = ScanStage::done;
  Rank home = 0;               // whose keys are returned
  Rank at = 0;                 // where they are: the same, or the one that has taken over
  std::uint64_t position = 0;  // of the chain: the first that it has
  std::uint64_t below = 0;     // what was known to be there when the chain was begun
  std::uint64_t number = 0;    // of its main header
  Place main;
  std::size_t found_before = 0;  // in `found`, of other chains
  std::uint64_t depth = 0;
  std::uint32_t left = 0;  // main headers of this step that are not empty
  bool is_empty = false;   // the chain
  bool was_empty = false;  // the one before it: those that follow may be, too
  std::vector<Chain> run;
  std::size_t run_empty = 0;  // of these, from the first one on
  std::uint32_t runs = 0;     // since others could poll
  /// How often this step read a bucket again, because an entry was being written. From kTriesAtOnce
  /// on, the scan rests before it reads.
  std::uint32_t tries = 0;
  Rest rest;
  std::uint32_t buckets = 0;  // of the chain
  Place bucket;               // that is read: the offset alone
  std::uint32_t pending = 0;  // a bit for each slot that is not done with
  std::array<std::size_t, kSlots> read_bytes{};
  std::array<Image, kSlots> entries;
  std::size_t posted = 0;
  std::vector<Found> found;
  std::vector<std::byte> bytes;
  alignas(kCacheLineBytes) MainHeader header;
};

}  // namespace dunlin::store
