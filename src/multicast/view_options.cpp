#include "multicast/view_options.hpp"

#include <algorithm>
#include <bit>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

namespace dunlin::multicast {
namespace {

/// The name of a further group's subgroup begins with the group's name.
constexpr std::size_t kMostNameBytes = kMaxFurtherGroupNameBytes + 1 + kMaxSubgroupNameBytes;

template <class Numbers>
std::string list(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) text += " " + std::to_string(number);
  return text;
}

std::string name_of(Mode mode) {
  switch (mode) {
    case Mode::unordered:
      return "unordered";
    case Mode::ordered:
      return "ordered";
    default:
      return "durable";
  }
}

std::string described_switches(const SubgroupViewOptions& options) {
  return "ring_bytes " + std::to_string(options.ring_bytes) + ", slot_bytes " +
         std::to_string(options.switches.used_bytes_only ? 0 : options.switches.slot_bytes) +
         ", window_messages " + std::to_string(options.window_messages) +
         (options.switches.nulls ? "" : ", without nulls") +
         (options.switches.one_cache_line ? "" : ", without one_cache_line") +
         (options.log_quorum ? ", with log_quorum" : "");
}

void check_members(const SubgroupViewOptions& options, Rank own_rank) {
  const std::vector<Rank>& members = options.members;
  if (members.size() > kMaxViewMembers) {
    refuse(options, std::to_string(members.size()) + " members; at most " +
                        std::to_string(kMaxViewMembers) + " (kMaxViewMembers) are allowed");
  }
  if (std::ranges::find(members, own_rank) == members.end()) {
    refuse(options, "this process (rank " + std::to_string(own_rank) +
                        ") is not among its members (" + list(members).erase(0, 1) + ")");
  }
  const std::vector<std::uint32_t>& senders = options.senders;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    if (senders[i] < members.size() && (i == 0 || senders[i - 1] < senders[i])) continue;
    refuse(options, "senders must be ascending indices below " + std::to_string(members.size()) +
                        ", and are" + list(senders));
  }
}

}  // namespace

void refuse(const SubgroupViewOptions& options, const std::string& what) {
  throw Error("subgroup '" + options.name + "': " + what);
}

void check(const SubgroupViewOptions& options, Rank own_rank) {
  if (options.name.size() > kMostNameBytes) {
    refuse(options,
           "the name has " + std::to_string(options.name.size()) + " bytes; at most " +
               std::to_string(kMostNameBytes) +
               " are allowed, with that of a further group (kMaxFurtherGroupNameBytes + 1 + "
               "kMaxSubgroupNameBytes)");
  }
  check_members(options, own_rank);
  const std::size_t ring_bytes = options.ring_bytes;
  if (!std::has_single_bit(ring_bytes) || ring_bytes < kMinRingBytes ||
      ring_bytes > kMaxRingBytes) {
    refuse(options, "ring_bytes is " + std::to_string(ring_bytes) +
                        "; give a power of two from kMinRingBytes to kMaxRingBytes");
  }
  if (options.senders.size() * ring_bytes > kMaxRegionBytes) {
    refuse(options, "ring_bytes is " + std::to_string(ring_bytes) + " for each of " +
                        std::to_string(options.senders.size()) + " senders; all rings together " +
                        "may have at most " + std::to_string(kMaxRegionBytes) +
                        " bytes (kMaxRegionBytes)");
  }
  if (options.mode > Mode::durable) {
    refuse(options, "mode is " + std::to_string(static_cast<unsigned>(options.mode)) +
                        "; give one of multicast::Mode");
  }
  if ((options.mode == Mode::durable) != (options.journal != nullptr))
    refuse(options, "a durable subgroup has a log, and no other has one");
  const std::size_t slot_bytes = options.switches.slot_bytes;
  if (!options.switches.used_bytes_only &&
      (slot_bytes % kWordBytes != 0 || slot_bytes > ring_bytes / 4)) {
    refuse(options, "slot_bytes is " + std::to_string(slot_bytes) +
                        "; give a multiple of 8 up to a quarter of ring_bytes");
  }
}

std::string describe(const SubgroupViewOptions& options) {
  return name_of(options.mode) + ", members" + list(options.members) + ", senders" +
         list(options.senders) + ", " + described_switches(options);
}

std::string describe_common(const SubgroupViewOptions& options) {
  return name_of(options.mode) + ", " + described_switches(options);
}

}  // namespace dunlin::multicast
