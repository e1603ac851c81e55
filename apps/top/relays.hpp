#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>

#include "top/counter.hpp"

/// The statistics of relays (docs/formats/relay-statistics.md), read from the memory of the members
/// that they belong to.
namespace dunlin::top {

/// A relay, at its member.
struct RelayMember {
  Rank rank = 0;
  std::uint64_t incarnation = 0;
  bool is_encrypted = false;
  std::uint64_t most_clients = 0;
  std::uint64_t clients = 0;
  std::uint64_t blocked_clients = 0;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t most_waiting_bytes = 0;  // for one client
  Counter accepted = {};
  Counter rejected = {};
  Counter damaged = {};
  Counter dropped = {};
  Counter resumed = {};
  Counter published = {};
  Counter published_bytes = {};
  Counter repeated = {};
  Counter delivered = {};
  Counter delivered_bytes = {};
  Counter skipped = {};

  void compare(const RelayMember& before, double seconds);
};

struct RelaySample {
  std::string name = {};  // ADDRESS:PORT
  std::vector<RelayMember> members = {};
};

/// Where the relay listens, if a published region of this name is such a page.
[[nodiscard]] std::optional<std::string_view> relay_of(std::string_view region);
/// Nothing if these bytes are no such page, or one that contradicts itself.
[[nodiscard]] std::optional<RelayMember> read_relay(std::span<const std::byte> memory);

}  // namespace dunlin::top
