#pragma once

#include <memory>
#include <string>

#include <dunlin/fabric.hpp>

#include "fabric/mapping/observer.hpp"

namespace dunlin::test {

/// The region that a member of a group on this host publishes under that name, mapped as an
/// observer maps it; null if there is none.
inline std::shared_ptr<const mapping::ObservedMapping> published(const Fabric& fabric,
                                                                 const std::string& region) {
  for (const mapping::Sighting& sighting : mapping::find_mappings()) {
    if (sighting.info.kind != mapping::MappingKind::published ||
        sighting.info.group != fabric.group() || sighting.info.owner_rank != fabric.rank() ||
        sighting.info.region != region)
      continue;
    return std::make_shared<const mapping::ObservedMapping>(sighting);
  }
  return nullptr;
}

/// The same, as a page of this type.
template <class Page>
std::shared_ptr<const Page> published_page(const Fabric& fabric, const std::string& region) {
  auto mapped = published(fabric, region);
  if (mapped == nullptr || mapped->memory().size() < sizeof(Page)) return nullptr;
  const auto* const page = reinterpret_cast<const Page*>(mapped->memory().data());
  return {std::move(mapped), page};
}

}  // namespace dunlin::test
