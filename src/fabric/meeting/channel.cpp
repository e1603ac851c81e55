#include "fabric/meeting/channel.hpp"

#include <algorithm>
#include <utility>

#include <dunlin/error.hpp>

#include "fabric/bytes.hpp"

namespace dunlin::meeting {
namespace {

constexpr std::size_t kWorthMoving = 16384;  // what has been sent, out of the way

}  // namespace

Channel::Channel(Side self, std::string_view secret, const Digest& nonce)
    : self_(self),
      secret_(secret),
      nonce_(nonce),
      reader_(other(self)),
      expected_(self == Side::guest ? FrameType::answer : FrameType::call) {
  if (self == Side::guest) send_open(FrameType::call, nonce_);
}

void Channel::receive(Bytes bytes) {
  while (fault_ == Fault::none) {
    switch (reader_.take(bytes)) {
      case FrameReader::Got::too_little:
        return;
      case FrameReader::Got::garbage:
        return fail(Fault::garbage);
      case FrameReader::Got::other_version:
        return fail(Fault::other_version);
      case FrameReader::Got::frame:
        handle_frame();
    }
  }
}

void Channel::handle_frame() {
  const FrameType type = reader_.rule().type;
  if (!reader_.rule().sealed) return handle_handshake(type, reader_.body());
  const Digest right = hmac_sha256(peer_key_, reader_.header_and_body());
  if (!equal_in_constant_time(right, reader_.mac())) return fail(Fault::garbage);
  const Bytes body = reader_.body();
  frames_.push_back({type, {body.begin(), body.end()}});
}

void Channel::handle_handshake(FrameType type, Bytes body) {
  if (type == FrameType::turn_away) return fail(Fault::turned_away);
  if (type != expected_) return fail(Fault::garbage);
  greeted_ = true;
  if (type == FrameType::call || type == FrameType::answer) {
    peer_nonce_ = Reader(body).array<sizeof(Digest)>();
    derive_keys();
    if (self_ == Side::guest) {
      send_open(FrameType::guest_proof, proof_of(Side::guest));
      expected_ = FrameType::host_proof;
    } else {
      send_open(FrameType::answer, nonce_);
      expected_ = FrameType::guest_proof;
    }
    return;
  }
  if (!equal_in_constant_time(proof_of(other(self_)), body)) return fail(Fault::wrong_proof);
  if (self_ == Side::host) send_open(FrameType::host_proof, proof_of(Side::host));
  proved_ = true;
  reader_.expect_sealed();
}

/// The host tells who does not get in; a guest just goes.
void Channel::fail(Fault fault) {
  fault_ = fault;
  const bool has_a_right_to_know = fault == Fault::wrong_proof || fault == Fault::other_version;
  if (self_ == Side::host && has_a_right_to_know && !proved_) send_open(FrameType::turn_away, {});
}

Digest Channel::derived(std::string_view label) const {
  const bool guest = self_ == Side::guest;
  std::vector<std::byte> content;
  Writer writer(content);
  writer.bytes(bytes_of(label));
  writer.bytes(guest ? nonce_ : peer_nonce_);
  writer.bytes(guest ? peer_nonce_ : nonce_);
  return hmac_sha256(bytes_of(secret_), content);
}

Digest Channel::proof_of(Side side) const {
  return derived(side == Side::guest ? "dunlin meeting 1: guest's proof"
                                     : "dunlin meeting 1: host's proof");
}

void Channel::derive_keys() {
  own_key_ = derived("dunlin meeting 1: guest's key");
  peer_key_ = derived("dunlin meeting 1: host's key");
  if (self_ == Side::host) std::swap(own_key_, peer_key_);
  veil_key_ = derived("dunlin meeting 1: veil");
}

void Channel::send_open(FrameType type, Bytes body) {
  const std::vector<std::byte> frame = encode(type, next_number_++, body);
  output_.insert(output_.end(), frame.begin(), frame.end());
}

void Channel::send(FrameType type, Bytes body) {
  const FrameRule* rule = rule_of(static_cast<std::uint16_t>(type));
  if (!proved_ || rule == nullptr || !rule->sealed || rule->from != self_ ||
      body.size() < rule->min_bytes || body.size() > rule->max_bytes)
    throw Error("a meeting's channel was asked to send what its protocol does not have");
  const std::vector<std::byte> frame = encode(type, next_number_++, body);
  const Digest mac = hmac_sha256(own_key_, frame);
  output_.insert(output_.end(), frame.begin(), frame.end());
  output_.insert(output_.end(), mac.begin(), mac.end());
}

Digest Channel::veil(std::uint32_t round, const Digest& key) const {
  std::vector<std::byte> content;
  Writer(content).u32(round);
  Digest veiled = hmac_sha256(veil_key_, content);
  std::transform(veiled.begin(), veiled.end(), key.begin(), veiled.begin(),
                 [](std::byte a, std::byte b) { return a ^ b; });
  return veiled;
}

std::vector<Frame> Channel::take_frames() { return std::exchange(frames_, {}); }

void Channel::was_sent(std::size_t bytes) {
  sent_bytes_ += bytes;
  if (sent_bytes_ < output_.size() && sent_bytes_ < kWorthMoving) return;
  output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(sent_bytes_));
  sent_bytes_ = 0;
}

}  // namespace dunlin::meeting
