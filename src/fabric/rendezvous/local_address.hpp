#pragma once

#include <string>

namespace dunlin::rendezvous {

/// An address of this host that other members can reach, as a number.
struct LocalAddress {
  std::string text;  // empty: none could be told
  std::string why;   // "from which seed:7700 is reached"
};

/// The one from which a packet to the rendezvous would leave; loopback if it is on this host only.
/// On the host of the rendezvous itself, whose name may mean its loopback address there and nowhere
/// else, the one from which a packet to anywhere would leave.
[[nodiscard]] LocalAddress local_address(const std::string& rendezvous);

}  // namespace dunlin::rendezvous
