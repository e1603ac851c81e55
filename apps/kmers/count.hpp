#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <dunlin/container/promise.hpp>

#include "cluster/cluster.hpp"
#include "cluster/fabric_options.hpp"
#include "kmers/input.hpp"
#include "kmers/kmer.hpp"
#include "kmers/part_times.hpp"

/// Counts the k-mers of reads by several processes, in a map that is spread over them.
namespace dunlin::kmers {

struct CountOptions {
  std::vector<Input> files;
  std::uint32_t k = 21;
  std::uint32_t processes = 2;
  bool filter = true;        // leaves out what occurs once
  std::uint64_t slots = 0;   // in each member's part; 0: by what the filter has seen
  std::uint32_t rounds = 2;  // passes that count, each an equal share of the k-mers
  double letters = 0;        // of all files, about; count() sets it
  Style style = Style::automatic;
  app::FabricOptions fabric = {};
  std::string counts_file = {};  // which member 0 writes (found.hpp)
  std::string folder = {};       // for nameless files of all members
  std::uint64_t timeout_s = 3600;
  bool shows_progress = false;
};

struct MemberUse {
  std::uint64_t slots = 0;
  std::uint64_t kmers = 0;  // different ones, in its part of the map
  std::uint64_t read = 0;   // k-mers of the reads that it had
};

struct Counted {
  std::map<std::uint64_t, std::uint64_t> histogram;  // how many k-mers occur so often
  std::vector<MemberUse> members;
  Style style = Style::message;
  std::string why;  // the reason for that style
  double mark_s = 0, count_s = 0, gather_s = 0;
  std::array<double, kParts> part_s{};  // seconds of each part of the work, a member's mean
  /// The resident memory of all processes together, at its most; shared pages count once.
  std::uint64_t peak_bytes = 0;
  [[nodiscard]] std::uint64_t kmers() const {
    std::uint64_t all = 0;
    for (const MemberUse& member : members) all += member.read;
    return all;
  }
  [[nodiscard]] double seconds() const noexcept { return mark_s + count_s + gather_s; }
  /// How many k-mers are reported.
  [[nodiscard]] std::uint64_t different() const {
    std::uint64_t all = 0;
    for (const auto& [count, kmers] : histogram) all += kmers;
    return all;
  }
};

/// Host 0 has the result. Throws BadInput that names the file and the line of a malformed read, or
/// Error.
[[nodiscard]] Counted count(const CountOptions& options);

}  // namespace dunlin::kmers
