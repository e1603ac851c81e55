#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

/// The cryptography that a rendezvous needs besides TLS, from OpenSSL's libcrypto.
namespace dunlin::rendezvous {

using Digest = std::array<std::byte, 32>;
using Bytes = std::span<const std::byte>;

[[nodiscard]] inline Bytes bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[nodiscard]] Digest hmac_sha256(Bytes key, Bytes content);
[[nodiscard]] Digest sha256(Bytes content);
[[nodiscard]] Digest random_digest();
/// A key for one purpose, which `label` names: HKDF with SHA-256 (RFC 5869), without salt.
[[nodiscard]] Digest derived_key(Bytes secret, std::string_view label);

/// Compares in a time that does not depend on where the two differ.
[[nodiscard]] bool equal_in_constant_time(Bytes a, Bytes b) noexcept;

}  // namespace dunlin::rendezvous
