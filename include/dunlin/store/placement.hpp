#pragma once

#include <cstdint>
#include <vector>

#include <dunlin/fabric.hpp>

namespace dunlin {

/// In place of a rank: nobody has the keys of a slot any more.
inline constexpr Rank kNoOwner = 0xffff;

/// Where the keys of a store are, as this process knows the slot map (docs/store-placement.md).
struct StorePlacement {
  struct Member {
    Rank rank = 0;
    std::uint32_t weight = 0;   // its share is in proportion to this; 0: it drains, or is a client
    bool takes = true;          // whether it has room for further slots
    std::uint32_t owned = 0;    // slots to whose keys all calls go there
    std::uint32_t copies = 0;   // other slots of which it has a full copy
    std::uint32_t partial = 0;  // slots of which it gets a copy, or empties one
  };
  std::uint64_t version = 0;    // rises with each change
  std::uint32_t slots = 0;      // 0: the members have not made the map yet
  std::uint32_t lost = 0;       // of these: all members with a copy have failed
  std::uint32_t lacking = 0;    // have fewer copies than the store wants
  std::uint32_t moving = 0;     // a member gets a copy, or the owner changes, or one empties a copy
  std::vector<Member> members;  // all that have the store, by rank
  [[nodiscard]] bool is_settled() const noexcept { return slots != 0 && moving == 0; }
};

}  // namespace dunlin
