#pragma once

#include <string>

namespace dunlin {

/// TLS 1.3 for the meeting of a group, by files in PEM: all three, or none and the meeting is
/// proved and protected against changes, but not hidden. Each member shows a certificate, and
/// believes those that `ca` has signed: so that should sign for this group's members only.
struct TlsFiles {
  /// This member's, good for servers and clients alike, and behind it what leads to `ca`.
  std::string certificate = {};
  /// The certificate's private key, not encrypted, in a file that others cannot read.
  std::string key = {};
  std::string ca = {};

  [[nodiscard]] bool none() const noexcept {
    return certificate.empty() && key.empty() && ca.empty();
  }
};

}  // namespace dunlin
