#include "fabric/ofi/provider.hpp"
#include "fabric/rendezvous/address.hpp"

/// TCP: addresses are those of IP. It orders frames by its nature, moves them only when a
/// completion queue is read (both sides'), and reports a closed connection at once, but no silent
/// one. For each completion it writes into a socket of its own, and reads that when it is polled
/// next: 1 us.
namespace dunlin::ofi {

const Provider kTcp{.name = "tcp",
                    .local_address = rendezvous::local_address,
                    .same_host = same_host,
                    .text_of = rendezvous::address_text,
                    .fills_in_order = true};

}  // namespace dunlin::ofi
