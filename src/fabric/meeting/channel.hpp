#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fabric/meeting/frame.hpp"

/// One side of a connection between host and guest: first both prove that they know the secret,
/// then they exchange frames that nobody else can make, change or repeat (RDV-N1, RDV-N2). Pure:
/// bytes in, bytes and frames out. What a peer can make it hold is one frame, and one proof before
/// that.
///
///     guest                     host
///     call (nonce)        ->
///                         <-    answer (nonce)
///     guest_proof         ->                       HMAC(secret, role, both nonces)
///                         <-    host_proof
///     frames with a MAC   <->   frames with a MAC
namespace dunlin::meeting {

class Channel {
 public:
  /// `nonce` must be random, and used only once. A guest's call is in output() at once.
  Channel(Side self, std::string_view secret, const Digest& nonce);

  enum class Fault : std::uint8_t {
    none,
    garbage,        // it does not speak our protocol, or broke it
    other_version,  // peer_version()
    wrong_proof,    // it does not know our secret
    turned_away     // it says that we do not know its secret
  };
  /// Takes what arrived. After a fault, nothing more is taken.
  void receive(Bytes bytes);
  /// Frames that arrived since the last call, all of them with a right MAC.
  [[nodiscard]] std::vector<Frame> take_frames();
  [[nodiscard]] Fault fault() const noexcept { return fault_; }
  [[nodiscard]] std::uint16_t peer_version() const noexcept { return reader_.version(); }

  /// Both sides know the secret.
  [[nodiscard]] bool proved() const noexcept { return proved_; }
  /// Whether the other side has said something that makes sense.
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }

  /// Only when proved.
  void send(FrameType type, Bytes body);
  /// A key that only the two sides can see, and its way back; a new one for each round.
  [[nodiscard]] Digest veil(std::uint32_t round, const Digest& key) const;

  /// What is to be sent, and how much of it has been.
  [[nodiscard]] Bytes output() const noexcept { return Bytes(output_).subspan(sent_bytes_); }
  void was_sent(std::size_t bytes);

 private:
  void handle_frame();
  void handle_handshake(FrameType type, Bytes body);
  void send_open(FrameType type, Bytes body);
  void derive_keys();
  [[nodiscard]] Digest proof_of(Side side) const;
  [[nodiscard]] Digest derived(std::string_view label) const;
  void fail(Fault fault);

  Side self_;
  std::string_view secret_;
  Digest nonce_;
  Digest peer_nonce_{};
  Digest own_key_{};
  Digest peer_key_{};
  Digest veil_key_{};
  FrameReader reader_;
  FrameType expected_;  // during the handshake
  bool greeted_ = false;
  bool proved_ = false;
  Fault fault_ = Fault::none;
  std::uint32_t next_number_ = 0;
  std::vector<Frame> frames_;
  std::vector<std::byte> output_;
  std::size_t sent_bytes_ = 0;
};

}  // namespace dunlin::meeting
