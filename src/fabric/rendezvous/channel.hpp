#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/rendezvous/frame.hpp"
#include "fabric/rendezvous/tls.hpp"

/// One side of a connection between host and joiner: TLS 1.3, and frames within it (RDV-N1,
/// RDV-N2). Both sides prove by TLS's own handshake that they know the secret, since its key is the
/// pre-shared key. Where certificates make the connection, the first frames are the proofs. Pure:
/// bytes in, bytes and frames out. A peer can make a channel hold one handshake message, and then
/// one frame.
namespace dunlin::rendezvous {

class Channel {
 public:
  /// A joiner's first words are in output() at once. `tls` outlives the channel.
  Channel(Side self, const Tls& tls);

  /// Takes what arrived. After a fault, nothing more is taken.
  void receive(Bytes bytes);
  /// The frames that have arrived since the last call.
  [[nodiscard]] std::vector<Frame> take_frames();

  [[nodiscard]] Fault fault() const noexcept { return fault_; }
  /// For Fault::certificate: the other side's fault, as a predicate.
  [[nodiscard]] const std::string& fault_text() const noexcept { return tls_.fault_text(); }
  /// For Fault::other_version: the other side's version.
  [[nodiscard]] std::uint16_t peer_version() const noexcept { return tls_.peer().version; }

  /// Whether both sides know the secret.
  [[nodiscard]] bool proved() const noexcept { return proved_; }
  /// Whether the other side has said something that makes sense; without certificates that takes a
  /// process that knows the secret, or a recording.
  [[nodiscard]] bool greeted() const noexcept { return tls_.greeted(); }

  /// Sends a frame. Requires proved().
  void send(FrameType type, Bytes body);

  /// The bytes to send; consume() says how many of them have been sent.
  [[nodiscard]] Bytes output() const noexcept { return tls_.output(); }
  void was_sent(std::size_t bytes) { tls_.was_sent(bytes); }

 private:
  void begin_frames();
  void handle_frame();
  void handle_proof();
  void trust();
  void fail(Fault fault);

  Side self_;
  bool by_certificate_;
  TlsSession tls_;
  FrameReader reader_;
  bool began_frames_ = false;
  bool proved_ = false;
  Fault fault_ = Fault::none;
  std::vector<Frame> frames_;
};

}  // namespace dunlin::rendezvous
