#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/rendezvous/crypto.hpp"

/// The two sides of a connection exchange this before anything is encrypted: the version of the
/// protocol, and whether certificates are demanded (docs/formats/rendezvous.md). Pure.
namespace dunlin::rendezvous {

inline constexpr std::uint16_t kVersion = 3;

enum class Side : std::uint8_t { joiner, host };
[[nodiscard]] constexpr Side other(Side side) noexcept {
  return side == Side::joiner ? Side::host : Side::joiner;
}

struct Protocol {
  std::uint16_t version = kVersion;
  bool certificates = false;
  friend bool operator==(const Protocol&, const Protocol&) = default;
};

/// The protocol's name in the list that a joiner's ClientHello contains (ALPN, RFC 7301):
/// "dunlin/3", or "dunlin/3+certificates".
[[nodiscard]] std::string name_of(const Protocol& protocol);
/// A list of protocols (ALPN) with the one name of this protocol.
[[nodiscard]] std::string protocol_list(const Protocol& protocol);
/// The protocol in a list that a joiner sent; none if the list is not one of ours.
[[nodiscard]] std::optional<Protocol> protocol_in(Bytes list);

/// A host sends this, in clear text, to a joiner of another protocol. Version 1 of the protocol,
/// which has no TLS, begins with the same six bytes.
[[nodiscard]] std::vector<std::byte> refusal_by(const Protocol& own);

/// The protocol that the first bytes of a connection belong to.
struct Beginning {
  enum class Of : std::uint8_t { too_little, tls, refusal, garbage };
  Of of;
  Protocol protocol = {};  // the protocol of a side that does not begin with TLS
};
/// How many bytes suffice to tell the protocol; one wrong byte is enough for garbage.
inline constexpr std::size_t kBeginningBytes = 9;
[[nodiscard]] Beginning beginning_of(Bytes bytes, Side from);

/// A joiner's ClientHello has some 300 bytes; a longer claim is not believed.
inline constexpr std::uint32_t kMaxHelloBytes = 4096;

}  // namespace dunlin::rendezvous
