#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <dunlin/fabric/memory.hpp>

/// Code that the readers of statistics pages share: those of segment spaces, stores and containers.
namespace dunlin::top {

/// Each such page begins with them.
struct PageMark {
  std::uint64_t magic;  // written last: what is seen behind it is complete
  std::uint32_t version;
};

/// The page in this memory; null unless it fits in, is marked so, and has this version. Its words
/// change meanwhile: load each once, with memory::load.
template <class Page>
[[nodiscard]] const Page* page_at(std::span<const std::byte> memory, const PageMark& expected) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(Page) == 0;
  if (!aligned || memory.size() < sizeof(Page)) return nullptr;
  const auto& mark = *reinterpret_cast<const PageMark*>(memory.data());
  if (memory::load(mark.magic) != expected.magic) return nullptr;
  if (memory::load(mark.version) != expected.version) return nullptr;
  return reinterpret_cast<const Page*>(memory.data());
}

/// Fills in the rates of `after`: of things with a name and members, which have an incarnation.
template <class Thing>
void compare(const std::vector<Thing>& before, std::vector<Thing>& after, double seconds) {
  for (Thing& thing : after) {
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const Thing& t) { return t.name == thing.name; });
    if (old == before.end()) continue;
    for (auto& member : thing.members) {
      const auto then = std::find_if(old->members.begin(), old->members.end(), [&](const auto& m) {
        return m.incarnation == member.incarnation;
      });
      if (then != old->members.end()) member.compare(*then, seconds);
    }
  }
}

}  // namespace dunlin::top
