#include "group/declaration.hpp"

#include <utility>

#include "fabric/hash.hpp"

namespace dunlin::group {
namespace {

constexpr std::uint64_t kGeneration = 1;  // of founders only

}  // namespace

Declaration::Declaration(Fabric& fabric, std::string text) {
  const std::uint64_t hash = fnv1a(text);
  region_ = fabric.allocate({.name = "group:subgroups",
                             .bytes = sizeof(std::uint64_t),
                             .generation = kGeneration,
                             .layout_hash = hash,
                             .layout_text = std::move(text)});
  subscription_ = fabric.subscribe([this](const Event& event) { handle(event); });
  fabric.announce(region_);
}

void Declaration::handle(const Event& event) {
  if (event.kind == Event::Kind::peer_failed || event.region != region_.id()) return;
  if (event.kind == Event::Kind::region_connected) same_.add(event.peer);
  if (event.kind == Event::Kind::region_refused && refusal_.empty()) refusal_ = event.text;
}

}  // namespace dunlin::group
