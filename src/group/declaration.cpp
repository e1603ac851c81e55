#include "group/declaration.hpp"

#include <algorithm>
#include <utility>

#include "fabric/hash.hpp"

namespace dunlin::group {
namespace {

constexpr std::uint64_t kGeneration = 1;  // founders have only this one

}  // namespace

Declaration::Declaration(Fabric& fabric, std::string region, std::vector<Rank> founders,
                         std::string text)
    : founders_(std::move(founders)) {
  const std::uint64_t hash = fnv1a(text);
  region_ = fabric.allocate({.name = std::move(region),
                             .bytes = sizeof(std::uint64_t),
                             .generation = kGeneration,
                             .layout_hash = hash,
                             .layout_text = std::move(text)});
  subscription_ = fabric.subscribe([this](const Event& event) { handle(event); });
  fabric.announce(region_, founders_);
}

void Declaration::handle(const Event& event) {
  if (event.kind == Event::Kind::peer_failed || event.region != region_.id()) return;
  const auto place = std::ranges::find(founders_, event.peer);
  if (event.kind == Event::Kind::region_connected && place != founders_.end())
    same_.add(static_cast<Rank>(place - founders_.begin()));
  if (event.kind == Event::Kind::region_refused && refusal_.empty()) refusal_ = event.text;
}

}  // namespace dunlin::group
