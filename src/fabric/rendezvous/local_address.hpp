#pragma once

#include <string>

namespace dunlin::rendezvous {

/// An address of this host that other members can reach, as a number.
struct LocalAddress {
  std::string text;  // empty: there is no such address
  std::string why;   // "from which seed:7700 is reached"
};

/// The address from which a packet to the rendezvous would leave; loopback if the rendezvous is on
/// this host only. The rendezvous's own name may mean a loopback address on its host and nowhere
/// else: there, the address from which a packet to anywhere would leave.
[[nodiscard]] LocalAddress local_address(const std::string& rendezvous);

}  // namespace dunlin::rendezvous
