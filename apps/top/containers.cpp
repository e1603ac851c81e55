#include "top/containers.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "container/statistics_page_format.hpp"
#include "top/published_page.hpp"

namespace dunlin::top {
namespace {

constexpr std::array<const char*, container_page::kKinds> kKindNames{
    "", "map", "set", "queue", "array", "counter", "bloom filter"};

std::optional<std::uint64_t> read_known(const std::uint64_t& word) {
  const std::uint64_t value = memory::load(word);
  return value == container_page::kUnknown ? std::nullopt : std::optional(value);
}

/// Nothing if the slot is free, or damaged.
std::optional<ContainerSample> read_slot(const container_page::Slot& slot) {
  const std::uint32_t kind = memory::load(slot.kind);
  const std::uint32_t name_bytes = memory::load(slot.name_bytes);
  if (kind == 0 || kind >= kKindNames.size() || name_bytes > slot.name.size()) return std::nullopt;
  const auto calls = [&](container_page::Way way) {
    return Counter{.total = memory::load(slot.calls[static_cast<std::size_t>(way)])};
  };
  return ContainerSample{.kind = kKindNames.at(kind),
                         .name = std::string(slot.name.data(), name_bytes),
                         .entries = read_known(slot.entries),
                         .capacity = read_known(slot.capacity),
                         .one_sided = calls(container_page::Way::one_sided),
                         .by_message = calls(container_page::Way::by_message),
                         .local = calls(container_page::Way::local),
                         .served = calls(container_page::Way::served)};
}

}  // namespace

void ContainersMember::compare(const ContainersMember& before, double seconds) {
  for (ContainerSample& now : containers) {
    const auto then = std::find_if(
        before.containers.begin(), before.containers.end(),
        [&](const ContainerSample& c) { return c.kind == now.kind && c.name == now.name; });
    if (then == before.containers.end()) continue;
    for (const auto counter : {&ContainerSample::one_sided, &ContainerSample::by_message,
                               &ContainerSample::local, &ContainerSample::served})
      (now.*counter).compare(((*then).*counter).total, seconds);
  }
}

std::vector<ContainersSample::Line> ContainersSample::lines() const {
  std::vector<Line> lines;
  for (const ContainersMember& member : members)
    for (const ContainerSample& container : member.containers)
      lines.push_back({&member, &container});
  const auto key = [](const Line& line) {
    return std::tie(line.container->kind, line.container->name, line.member->rank);
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const Line& a, const Line& b) { return key(a) < key(b); });
  return lines;
}

std::optional<std::string_view> containers_of(std::string_view region) {
  if (!region.starts_with(container_page::kPrefix)) return std::nullopt;
  return region.substr(container_page::kPrefix.size());
}

std::optional<ContainersMember> read_containers(std::span<const std::byte> memory) {
  const auto* const page =
      page_at<container_page::Page>(memory, {container_page::kMagic, container_page::kVersion});
  if (page == nullptr) return std::nullopt;
  ContainersMember member{.in_flight = memory::load(page->in_flight)};
  for (const container_page::Slot& slot : page->slots)
    if (auto container = read_slot(slot)) member.containers.push_back(std::move(*container));
  const std::uint64_t all = memory::load(page->containers);
  if (all > page->slots.size()) member.not_shown = all - page->slots.size();
  return member;
}

}  // namespace dunlin::top
