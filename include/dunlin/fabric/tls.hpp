#pragma once

#include <string>

namespace dunlin {

/// Certificate files in PEM for the rendezvous of a group: all three, or none. The rendezvous is
/// encrypted either way (TLS 1.3, by the group's secret). With these files, each member also shows
/// a certificate, and accepts those that `ca` has signed: so `ca` should sign for this group alone.
struct TlsFiles {
  /// This member's certificate, valid for servers and clients alike, followed by its chain up to
  /// `ca`.
  std::string certificate = {};
  /// The certificate's private key, not encrypted, in a file that other users cannot read.
  std::string key = {};
  std::string ca = {};

  [[nodiscard]] bool none() const noexcept {
    return certificate.empty() && key.empty() && ca.empty();
  }
};

}  // namespace dunlin
