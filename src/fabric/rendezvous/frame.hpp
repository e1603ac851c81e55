#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fabric/rendezvous/crypto.hpp"
#include "fabric/rendezvous/hello.hpp"
#include "fabric/rendezvous/roster_exchange.hpp"

/// The frames between the host of a rendezvous and a joiner, within TLS
/// (docs/formats/rendezvous.md). Pure: bytes in, frames out.
namespace dunlin::rendezvous {

enum class FrameType : std::uint16_t {
  // These three are used only where certificates made the connection: the secret is proved within
  // it.
  joiner_proof = 3,  // joiner: I know the secret
  host_proof = 4,    // host: I know it, too
  turn_away = 5,     // host: you do not know it; I hang up
  // The others are used between sides that know the secret.
  request_join = 16,  // joiner: the group that it expects, and its endpoint address
  refuse = 17,        // host: you do not fit, because; I hang up
  news = 18,          // host: you are in; this is what we wait for
  member = 19,        // host: a member's endpoint address; one frame a rank, in order
  roster = 20,        // host: the end of the roster; the joiner's rank, and the group's key
  have = 21,          // joiner: I know all of this round
  go = 22,            // host: so do all others; the rendezvous is over
  give_up = 23        // host: my time is up, because; I hang up
};

inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kMaxTextBytes = 1024;
inline constexpr std::size_t kJoinRequestBytes = 184;  // without the endpoint address
inline constexpr std::size_t kMaxBodyBytes = kJoinRequestBytes + kMaxEndpointAddressBytes;

/// The frames: which side sends them, whether before or after both sides have proved that they know
/// the secret, and how long their bodies are.
struct FrameRule {
  FrameType type;
  Side from;
  bool after_proof;
  std::size_t min_bytes;
  std::size_t max_bytes;
};
[[nodiscard]] const FrameRule* rule_of(std::uint16_t type) noexcept;

struct Frame {
  FrameType type;
  std::vector<std::byte> body;
  friend bool operator==(const Frame&, const Frame&) = default;
};

[[nodiscard]] std::vector<std::byte> encode(FrameType type, Bytes body);

/// Takes frames out of the bytes that arrive, and trusts none: a header that is not possible at
/// this point ends it before any of the body is kept.
class FrameReader {
 public:
  explicit FrameReader(Side from) : from_(from) {}

  enum class Got : std::uint8_t { too_little, frame, garbage };
  /// Takes from the front of `bytes` what belongs to the next frame.
  [[nodiscard]] Got take(Bytes& bytes);

  // These describe the frame that take() got, until the next take().
  [[nodiscard]] const FrameRule& rule() const noexcept { return *rule_; }
  [[nodiscard]] Bytes body() const noexcept { return Bytes(held_).subspan(kHeaderBytes); }

  /// From here on, only frames are possible that come after the proof.
  void expect_trust() noexcept { trusted_ = true; }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_.capacity(); }

 private:
  void top_up(Bytes& bytes, std::size_t to_bytes);
  [[nodiscard]] bool header_is_possible();

  Side from_;
  bool trusted_ = false;
  bool whole_ = false;
  const FrameRule* rule_ = nullptr;  // set once the header is there
  std::size_t body_bytes_ = 0;
  std::vector<std::byte> held_;
};

}  // namespace dunlin::rendezvous
