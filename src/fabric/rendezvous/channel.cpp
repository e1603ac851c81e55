#include "fabric/rendezvous/channel.hpp"

#include <utility>

#include <dunlin/error.hpp>

namespace dunlin::rendezvous {

Channel::Channel(Side self, const Tls& tls)
    : self_(self),
      by_certificate_(tls.protocol().certificates),
      tls_(tls, self),
      reader_(other(self)) {}

void Channel::receive(Bytes bytes) {
  if (fault_ != Fault::none) return;
  tls_.receive(bytes);
  if (tls_.established() && !began_frames_) begin_frames();
  const std::vector<std::byte> content = tls_.take_content();
  Bytes rest(content);
  while (fault_ == Fault::none) {
    const FrameReader::Got got = reader_.take(rest);
    if (got == FrameReader::Got::too_little) break;
    if (got == FrameReader::Got::garbage) return fail(Fault::garbage);
    handle_frame();
  }
  if (fault_ == Fault::none && tls_.fault() != Fault::none)
    fail(proved_ ? Fault::garbage : tls_.fault());
}

void Channel::begin_frames() {
  began_frames_ = true;
  if (!by_certificate_) return trust();
  if (self_ == Side::joiner)
    tls_.send(encode(FrameType::joiner_proof, tls_.proof_of(Side::joiner)));
}

void Channel::trust() {
  proved_ = true;
  reader_.expect_trust();
}

void Channel::handle_frame() {
  if (!proved_) return handle_proof();
  const Bytes body = reader_.body();
  frames_.push_back({reader_.rule().type, {body.begin(), body.end()}});
}

void Channel::handle_proof() {
  if (reader_.rule().type == FrameType::turn_away) return fail(Fault::turned_away);
  if (!equal_in_constant_time(tls_.proof_of(other(self_)), reader_.body()))
    return fail(Fault::wrong_secret);
  if (self_ == Side::host) tls_.send(encode(FrameType::host_proof, tls_.proof_of(Side::host)));
  trust();
}

/// Ends the channel. A host tells the joiner that it does not get in, unless TLS has done so; a
/// joiner just goes.
void Channel::fail(Fault fault) {
  fault_ = fault;
  if (self_ == Side::host && fault == Fault::wrong_secret && tls_.established())
    tls_.send(encode(FrameType::turn_away, {}));
}

void Channel::send(FrameType type, Bytes body) {
  const FrameRule* rule = rule_of(static_cast<std::uint16_t>(type));
  if (!proved_ || rule == nullptr || !rule->after_proof || rule->from != self_ ||
      body.size() < rule->min_bytes || body.size() > rule->max_bytes)
    throw Error("a rendezvous channel was asked to send what its protocol does not have");
  tls_.send(encode(type, body));
}

std::vector<Frame> Channel::take_frames() { return std::exchange(frames_, {}); }

}  // namespace dunlin::rendezvous
