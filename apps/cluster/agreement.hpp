#pragma once

#include <cstdint>
#include <string>

#include <dunlin/fabric/tls.hpp>

/// Before hosts form a group, their commands meet and compare what they are about to do. A group
/// cannot: hosts with other options may not even find one fabric, and would wait in vain.
namespace dunlin::app {

/// The run that a host is about to begin.
struct Intent {
  std::string what;          // "routing": others do not meet it
  std::string text = {};     // for people; what must be the same
  std::uint64_t hash = 0;    // over all that must be equal
  std::string besides = {};  // what is in the hash and not in the text: "links, costs or events"
};

/// Which host this is, and where it meets the others.
struct Party {
  std::uint32_t hosts;
  std::uint32_t host;
  std::string rendezvous;
  std::string rendezvous_option = {};  // the option that says where the rendezvous is
  std::string secret;
  TlsFiles tls;
  std::uint32_t timeout_ms = 0;
};

/// Throws Error if it can be known beforehand that this host could not meet others.
void check(const Party& party);

/// Returns when all hosts have come and have the same in mind. Throws BadInput, on all of them, if
/// they have not; Error if not all have come in time. Leaves nothing behind, and knows no network
/// but TCP's and Unix sockets.
void agree(const Party& party, const Intent& intent);

}  // namespace dunlin::app
