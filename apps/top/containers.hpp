#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dunlin/fabric.hpp>

#include "top/counter.hpp"

/// The statistics of distributed containers (docs/formats/container-statistics.md), read from the
/// memory of their members.
namespace dunlin::top {

/// A container, as one process knows it.
struct ContainerSample {
  std::string kind = {};  // "map", "set", "queue", "array", "counter", "bloom filter"
  std::string name = {};
  std::optional<std::uint64_t> entries = {};
  std::optional<std::uint64_t> capacity = {};
  Counter one_sided = {};
  Counter by_message = {};
  Counter local = {};
  Counter served = {};
};

struct ContainersMember {
  Rank rank = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t not_shown = 0;  // containers for which the page has no slot
  std::vector<ContainerSample> containers = {};

  void compare(const ContainersMember& before, double seconds);
};

/// The containers of the group that share a channel.
struct ContainersSample {
  std::string name = {};  // the channel's number
  std::vector<ContainersMember> members = {};

  /// A container's members, by kind and name.
  struct Line {
    const ContainersMember* member;
    const ContainerSample* container;
  };
  [[nodiscard]] std::vector<Line> lines() const;
};

/// The channel if a published region of this name is such a page.
[[nodiscard]] std::optional<std::string_view> containers_of(std::string_view region);
/// Nothing if these bytes are no such page. Slots that make no sense are left out.
[[nodiscard]] std::optional<ContainersMember> read_containers(std::span<const std::byte> memory);

}  // namespace dunlin::top
