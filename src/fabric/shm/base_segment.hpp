#pragma once

#include <dunlin/fabric.hpp>

#include "fabric/mapping/base.hpp"
#include "fabric/shm/message_ring.hpp"

namespace dunlin::shm {

using mapping::kMarkWords;
using mapping::Marks;

/// The memory that each member shares with its peers from the moment it joins: how to wake it,
/// whether it is alive, and where to put messages for it (docs/formats/shm-segment.md).
struct BaseMapping : mapping::Base {
  /// The ring of one sender. Behind this struct, there is a ring for each member as a sender.
  [[nodiscard]] MessageRing& ring(Rank sender) noexcept {
    return reinterpret_cast<MessageRing*>(this + 1)[sender];
  }
  [[nodiscard]] static std::size_t bytes(std::uint32_t members) noexcept {
    return sizeof(BaseMapping) + members * sizeof(MessageRing);
  }
};

static_assert(sizeof(BaseMapping) == sizeof(mapping::Base));

}  // namespace dunlin::shm
