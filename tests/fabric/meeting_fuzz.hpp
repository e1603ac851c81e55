#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/bytes.hpp"
#include "fabric/meeting/channel.hpp"
#include "fabric/meeting/gathering.hpp"
#include "fabric/meeting/visit.hpp"

/// A meeting without sockets that is fed with anything, for the seeded test and for libFuzzer. What
/// must not happen is a std::logic_error.
namespace dunlin::meeting::fuzz {

inline constexpr std::string_view kSecret = "0123456789abcdef";
inline constexpr std::uint32_t kMembers = 3;

inline void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

inline Digest filled(unsigned char with) {
  Digest digest;
  digest.fill(std::byte{with});
  return digest;
}

inline Plan plan_of(Rank rank) {
  Plan plan;
  plan.group = "flock";
  plan.names = {"ada", "bob", "cyd"};
  plan.names_hash = sha256(bytes_of("names"));
  plan.rank = rank;
  return plan;
}

inline bool operator==(const Frame& a, const Frame& b) {
  return a.type == b.type && a.body == b.body;
}

/// A whole conversation between two channels whose nonces are always the same: what each side says,
/// and the frames with a MAC in it.
struct Conversation {
  std::vector<std::byte> of_guest, of_host;
  std::vector<Frame> frames_of_guest, frames_of_host;
};

inline std::vector<std::byte> numbers(std::initializer_list<std::uint32_t> all) {
  std::vector<std::byte> bytes;
  for (std::uint32_t one : all) Writer(bytes).u32(one);
  return bytes;
}

inline void carry(Channel& from, Channel& to, std::vector<std::byte>& record) {
  const Bytes output = from.output();
  record.insert(record.end(), output.begin(), output.end());
  to.receive(output);
  from.was_sent(output.size());
}

inline Conversation conversation() {
  const Plan plan = plan_of(1);
  Channel guest(Side::guest, kSecret, filled(1)), host(Side::host, kSecret, filled(2));
  Conversation all;
  for (int i = 0; i < 2; ++i) {
    carry(guest, host, all.of_guest);
    carry(host, guest, all.of_host);
  }
  const std::vector<std::byte> card(100, std::byte{7});
  Visit(plan, card, guest).introduce();
  carry(guest, host, all.of_guest);
  host.send(FrameType::news, bytes_of("1 of 3"));
  for (Rank rank = 0; rank < kMembers; ++rank) {
    std::vector<std::byte> body = numbers({1, rank});
    body.insert(body.end(), card.begin(), card.end());
    host.send(FrameType::member, body);
  }
  std::vector<std::byte> body = numbers({1, 1});
  Writer(body).bytes(host.veil(1, filled(9)));
  host.send(FrameType::roster, body);
  carry(host, guest, all.of_host);
  guest.send(FrameType::have, numbers({1}));
  carry(guest, host, all.of_guest);
  host.send(FrameType::go, numbers({1}));
  carry(host, guest, all.of_host);
  all.frames_of_guest = host.take_frames();
  all.frames_of_host = guest.take_frames();
  return all;
}

/// Whatever arrives, only what the other side has said gets through, in its order, and next to
/// nothing is answered. Returns whether anything was wrong.
inline bool feed_channel(Side self, Bytes bytes, std::size_t piece_bytes,
                         const Conversation& right) {
  Channel channel(self, kSecret, filled(self == Side::guest ? 1 : 2));
  const std::vector<Frame>& said =
      self == Side::guest ? right.frames_of_host : right.frames_of_guest;
  std::size_t heard = 0;
  while (!bytes.empty()) {
    const Bytes piece = bytes.first(std::min(piece_bytes, bytes.size()));
    bytes = bytes.subspan(piece.size());
    channel.receive(piece);
    for (const Frame& frame : channel.take_frames()) {
      require(heard < said.size() && frame == said[heard], "a frame that nobody has sent");
      ++heard;
    }
    require(channel.output().size() <= 256, "an answer that is too long");
    require(heard == 0 || channel.proved(), "a frame before the proof");
  }
  return channel.fault() != Channel::Fault::none;
}

/// Cuts bytes into frames of a member that knows the secret, and nothing else: type, length, body.
inline std::vector<Frame> frames_from(Bytes bytes) {
  std::vector<Frame> frames;
  while (bytes.size() >= 3) {
    const auto type = static_cast<FrameType>(bytes[0]);
    const std::size_t wanted =
        std::to_integer<std::size_t>(bytes[1]) | std::to_integer<std::size_t>(bytes[2]) << 8;
    bytes = bytes.subspan(3);
    const Bytes body = bytes.first(std::min(wanted, bytes.size()));
    bytes = bytes.subspan(body.size());
    const FrameRule* rule = rule_of(static_cast<std::uint16_t>(type));
    if (rule == nullptr || !rule->sealed || body.size() < rule->min_bytes ||
        body.size() > rule->max_bytes)
      continue;  // a channel lets none of these through
    frames.push_back({type, {body.begin(), body.end()}});
  }
  return frames;
}

inline std::vector<std::byte> bytes_from(const std::vector<Frame>& frames) {
  std::vector<std::byte> bytes;
  for (const Frame& frame : frames) {
    bytes.push_back(static_cast<std::byte>(frame.type));
    bytes.push_back(static_cast<std::byte>(frame.body.size()));
    bytes.push_back(static_cast<std::byte>(frame.body.size() >> 8));
    bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
  }
  return bytes;
}

/// A guest whose host knows the secret, and not the protocol.
inline void feed_visit(Bytes bytes) {
  const Plan plan = plan_of(1);
  Channel guest(Side::guest, kSecret, filled(1)), host(Side::host, kSecret, filled(2));
  std::vector<std::byte> nowhere;
  for (int i = 0; i < 2; ++i) {
    carry(guest, host, nowhere);
    carry(host, guest, nowhere);
  }
  Visit visit(plan, {}, guest);
  for (const Frame& frame : frames_from(bytes)) {
    const Visit::Outcome outcome = visit.hear(frame);
    require(visit.text().size() <= kMaxTextBytes, "a text that is too long");
    for (char c : visit.text()) require(c >= ' ' && c <= '~', "a text that is not printable");
    require(visit.roster().members.size() <= kMembers, "too many members");
    if (outcome == Visit::Outcome::met) {
      require(visit.roster().members.size() == kMembers, "a roster that is not whole");
      require(visit.roster().rank == plan.rank, "another rank than was asked for");
    }
    if (outcome != Visit::Outcome::waiting) return;
  }
}

/// A host whose guests know the secret, and not the protocol. Each frame is of a guest of its own,
/// or of the one before; a frame that no guest sends is one that leaves.
inline void feed_gathering(Bytes bytes) {
  Plan plan = plan_of(kAnyRank);
  plan.names = {"", "", ""};
  plan.names_hash = {};
  Gathering gathering(plan, {});
  std::vector<Gathering::Ticket> here;
  for (const Frame& frame : frames_from(bytes)) {
    Introduction guest;
    if (frame.type == FrameType::introduce && decode(frame.body, guest)) {
      const Gathering::Verdict verdict = gathering.admit(guest, "somewhere");
      require(verdict.admitted.has_value() == verdict.refusal.empty(), "neither in nor out");
      if (verdict.admitted) here.push_back(*verdict.admitted);
    } else if (frame.type == FrameType::have && !here.empty()) {
      if (!gathering.confirmed(here.front(), Reader(frame.body).u32())) continue;
      std::rotate(here.begin(), here.begin() + 1, here.end());
    } else if (!here.empty() && !gathering.decided()) {
      gathering.left(here.back());
      here.pop_back();
    }
    require(here.size() < kMembers, "too many members");
    require(gathering.complete() == (here.size() + 1 == kMembers), "complete, or not");
    require(!gathering.progress().empty(), "nothing to say");
    if (!gathering.complete()) continue;
    std::set<Rank> ranks{gathering.rank_of(Gathering::kHost)};
    for (const Gathering::Ticket ticket : here) ranks.insert(gathering.rank_of(ticket));
    require(ranks.size() == kMembers && *ranks.rbegin() == kMembers - 1, "a rank twice");
  }
}

}  // namespace dunlin::meeting::fuzz
