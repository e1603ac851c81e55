#include "pubsub/match.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace dunlin::pubsub {
namespace {

constexpr std::array<std::string_view, 2> kReliability{"best_effort", "reliable"};
constexpr std::array<std::string_view, 4> kDurability{"volatile", "transient_local", "transient",
                                                      "persistent"};
constexpr std::array<std::string_view, 3> kLiveliness{"automatic", "manual_by_participant",
                                                      "manual_by_topic"};
constexpr std::array<std::string_view, 3> kOwnership{"shared", "exclusive", "either"};

template <class Enum, std::size_t N>
[[nodiscard]] std::string name_of(const std::array<std::string_view, N>& names, Enum value) {
  return std::string(names[static_cast<std::size_t>(value)]);
}
[[nodiscard]] std::string duration(std::uint64_t ns) {
  return ns == kInfiniteNs ? "infinite" : std::to_string(ns) + " ns";
}
[[nodiscard]] std::string differ(const char* policy, const std::string& offered,
                                 const std::string& requested) {
  return std::string(policy) + ": " + offered + " is offered, " + requested + " is requested";
}

}  // namespace

Durability::Kind offered_durability(Level level) noexcept {
  switch (level) {
    case Level::volatile_storage:
      return Durability::Kind::transient;
    case Level::logged:
      return Durability::Kind::persistent;
    default:
      return Durability::Kind::volatile_;
  }
}

std::string mismatch(const DataWriterQos& offered, Level level, const DataReaderQos& requested) {
  if (offered.reliability.kind < requested.reliability.kind)
    return differ("reliability", name_of(kReliability, offered.reliability.kind),
                  name_of(kReliability, requested.reliability.kind));
  if (const auto durability = offered_durability(level); durability < requested.durability.kind)
    return differ(
        "durability",
        name_of(kDurability, durability) + " (level " + std::string(describe(level)) + ")",
        name_of(kDurability, requested.durability.kind));
  if (offered.deadline.period_ns > requested.deadline.period_ns)
    return differ("deadline", duration(offered.deadline.period_ns),
                  duration(requested.deadline.period_ns));
  if (offered.liveliness.kind < requested.liveliness.kind)
    return differ("liveliness", name_of(kLiveliness, offered.liveliness.kind),
                  name_of(kLiveliness, requested.liveliness.kind));
  if (offered.liveliness.lease_ns > requested.liveliness.lease_ns)
    return differ("liveliness lease", duration(offered.liveliness.lease_ns),
                  duration(requested.liveliness.lease_ns));
  if (requested.ownership.kind != Ownership::Kind::either &&
      offered.ownership.kind != requested.ownership.kind)
    return differ("ownership", name_of(kOwnership, offered.ownership.kind),
                  name_of(kOwnership, requested.ownership.kind));
  return {};
}

}  // namespace dunlin::pubsub
