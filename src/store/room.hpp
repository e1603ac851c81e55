#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "remote/control_channel.hpp"
#include "store/evictor.hpp"

/// How the members of a store with eviction make room (STO-V1 to STO-V5).
namespace dunlin::store {

enum class RoomRequest : std::uint8_t {
  ask = 1,   // to a home: there is no block of this size
  look,      // its answer: in these slabs
  withdraw,  // to a holder: allocate nothing in this slab, and give it back once it is empty
  keep       // likewise: it stays yours
};

inline constexpr std::size_t kMostHints = 16;

/// A message of a store with eviction; docs/formats/store.md has the layout.
struct RoomMessage {
  RoomRequest request = RoomRequest::ask;
  std::uint8_t is_large = 0;  // of which pool
  std::uint16_t count = 0;    // of slabs
  std::uint32_t size_class = 0;
  std::array<std::uint32_t, kMostHints> slabs{};
};
static_assert(sizeof(RoomMessage) == 72 && std::is_trivially_copyable_v<RoomMessage>);

struct Room {
  /// Keys whose entries this process has marked since the hand passed them: the newest of each
  /// place.
  static constexpr std::size_t kMarked = 8192;
  /// Of both pools.
  static constexpr std::size_t kMostClasses = 32;

  Room(const remote::Progress& progress, std::uint32_t channel_number, std::size_t homes,
       remote::ControlChannel::Handler handler)
      : channel(progress, channel_number, std::move(handler), progress.capacity()),
        marked(kMarked),
        of_homes(homes) {}

  struct OfHome {
    std::array<std::uint64_t, 2> hands{};  // when its clock was read last
    std::array<std::array<std::uint64_t, kMostClasses>, 2> asked_at_ns{};  // 0: not
  };
  remote::ControlChannel channel;
  std::vector<std::uint64_t> marked;
  std::vector<OfHome> of_homes;
  std::unique_ptr<Evictor> small;  // of a home
  std::unique_ptr<Evictor> large;
};

}  // namespace dunlin::store
