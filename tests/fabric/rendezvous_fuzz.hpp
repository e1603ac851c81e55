#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/bytes.hpp"
#include "fabric/rendezvous/channel.hpp"
#include "fabric/rendezvous/handshake.hpp"
#include "fabric/rendezvous/roster_builder.hpp"

/// A rendezvous without sockets that is fed with anything, for the seeded test and for libFuzzer.
/// What must not happen is a std::logic_error.
namespace dunlin::rendezvous::fuzz {

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

inline const Tls& our_tls() {
  static const Tls tls(kSecret, {});
  return tls;
}

inline std::vector<std::byte> numbers(std::initializer_list<std::uint32_t> all) {
  std::vector<std::byte> bytes;
  for (std::uint32_t one : all) Writer(bytes).u32(one);
  return bytes;
}

/// What two members say to each other when all goes well.
struct Conversation {
  std::vector<Frame> of_joiner, of_host;
};

inline Conversation right_conversation() {
  const Plan plan = plan_of(1);
  const std::vector<std::byte> endpoint_address(100, std::byte{7}), news(6, std::byte{'3'});
  Conversation all;
  all.of_joiner = {
      {FrameType::request_join, encode(JoinRequest{plan.members(), plan.rank, plan.names_hash,
                                                   plan.group, plan.terms, endpoint_address})},
      {FrameType::have, numbers({1})}};
  all.of_host = {{FrameType::news, news}};
  for (Rank rank = 0; rank < kMembers; ++rank) {
    all.of_host.push_back({FrameType::member, numbers({1, rank})});
    all.of_host.back().body.insert(all.of_host.back().body.end(), endpoint_address.begin(),
                                   endpoint_address.end());
  }
  all.of_host.push_back({FrameType::roster, numbers({1, 1})});
  Writer(all.of_host.back().body).bytes(filled(9));
  all.of_host.push_back({FrameType::go, numbers({1})});
  return all;
}

/// One side, which says its frames when it has heard enough, and keeps what it hears.
struct Speaker {
  Side side;
  const std::vector<Frame>& to_say;
  Channel channel{side, our_tls()};
  std::vector<Frame> heard = {};
  std::size_t said = 0;

  void go_on() {
    for (Frame& frame : channel.take_frames()) heard.push_back(std::move(frame));
    require(heard.empty() || channel.proved(), "a frame before the proof");
    const bool host = side == Side::host;
    const std::size_t last = host ? 2 : 5;  // frames of the other side, before we say our last
    while (channel.proved() && channel.fault() == Fault::none && said < to_say.size() &&
           heard.size() >= (said + 1 == to_say.size() ? last : std::size_t{host ? 1u : 0u})) {
      channel.send(to_say[said].type, to_say[said].body);
      ++said;
    }
  }
  [[nodiscard]] std::vector<std::byte> output() {
    const Bytes bytes = channel.output();
    std::vector<std::byte> taken(bytes.begin(), bytes.end());
    channel.was_sent(taken.size());
    return taken;
  }
};

/// Two members talk, and `alter` changes what `self` hears, flight by flight. Only what the other
/// side has said gets through, in its order, and little is answered. Returns whether anything was
/// wrong.
template <class Alter>
bool converse(Side self, std::size_t piece_bytes, const Alter& alter) {
  static const Conversation right = right_conversation();
  Speaker joiner{Side::joiner, right.of_joiner}, host{Side::host, right.of_host};
  Speaker& altered = self == Side::joiner ? joiner : host;
  const std::vector<Frame>& to_hear = self == Side::joiner ? right.of_host : right.of_joiner;
  const auto carry = [&](Speaker& from, Speaker& to) {
    std::vector<std::byte> bytes = from.output();
    if (&to == &altered && !bytes.empty()) bytes = alter(std::move(bytes));
    for (Bytes rest(bytes); !rest.empty();) {
      const Bytes piece = rest.first(std::min(piece_bytes, rest.size()));
      rest = rest.subspan(piece.size());
      to.channel.receive(piece);
      require(to.channel.output().size() <= 4096, "an answer that is too long");
    }
    to.go_on();
    return !bytes.empty();
  };
  for (bool more = true; more;) {
    more = carry(joiner, host);
    more = carry(host, joiner) || more;
  }
  require(altered.heard.size() <= to_hear.size() &&
              std::equal(altered.heard.begin(), altered.heard.end(), to_hear.begin()),
          "a frame that nobody has sent");
  return altered.heard.size() < to_hear.size();
}

/// What a stranger says in the place of a handshake.
inline void feed_handshake(Side self, Bytes bytes, std::size_t piece_bytes) {
  Channel channel(self, our_tls());
  channel.was_sent(channel.output().size());
  while (!bytes.empty()) {
    const Bytes piece = bytes.first(std::min(piece_bytes, bytes.size()));
    bytes = bytes.subspan(piece.size());
    channel.receive(piece);
    require(!channel.proved() && channel.take_frames().empty(), "trust without a proof");
    require(channel.output().size() <= 4096, "an answer that is too long");
  }
}

inline std::vector<std::byte> encoded(const std::vector<Frame>& frames) {
  std::vector<std::byte> all;
  for (const Frame& frame : frames) {
    const std::vector<std::byte> one = encode(frame.type, frame.body);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

/// What a member says that knows the secret, after decryption. Returns whether it was garbage.
inline bool feed_reader(Side from, Bytes bytes, std::size_t piece_bytes) {
  FrameReader reader(from);
  reader.expect_trust();
  while (!bytes.empty()) {
    Bytes piece = bytes.first(std::min(piece_bytes, bytes.size()));
    bytes = bytes.subspan(piece.size());
    FrameReader::Got got = reader.take(piece);
    for (; got == FrameReader::Got::frame; got = reader.take(piece)) {
      const FrameRule& rule = reader.rule();
      require(rule.from == from && rule.after_proof, "a frame that was not to come");
      require(reader.body().size() >= rule.min_bytes && reader.body().size() <= rule.max_bytes,
              "a body of an impossible length");
    }
    require(reader.held_bytes() <= 2 * (kHeaderBytes + kMaxBodyBytes), "too much is held");
    if (got == FrameReader::Got::garbage) return true;
    require(piece.empty(), "bytes that nobody took");
  }
  return false;
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
    if (rule == nullptr || !rule->after_proof || body.size() < rule->min_bytes ||
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

/// A joiner that has met its host, for those who care only for what it says later.
inline Channel& trusting_joiner() {
  static Channel joiner(Side::joiner, our_tls());
  static Channel host(Side::host, our_tls());
  while (!joiner.proved()) {
    host.receive(joiner.output());
    joiner.was_sent(joiner.output().size());
    joiner.receive(host.output());
    host.was_sent(host.output().size());
  }
  joiner.was_sent(joiner.output().size());
  return joiner;
}

/// A joiner whose host knows the secret, and not the protocol.
inline void feed_visit(Bytes bytes) {
  const Plan plan = plan_of(1);
  Channel& joiner = trusting_joiner();
  JoinerHandshake visit(plan, {}, joiner);
  for (const Frame& frame : frames_from(bytes)) {
    const JoinerHandshake::Outcome outcome = visit.receive(frame);
    require(visit.text().size() <= kMaxTextBytes, "a text that is too long");
    for (char c : visit.text()) require(c >= ' ' && c <= '~', "a text that is not printable");
    require(visit.roster().members.size() <= kMembers, "too many members");
    if (outcome == JoinerHandshake::Outcome::met) {
      require(visit.roster().members.size() == kMembers, "a roster that is not whole");
      require(visit.roster().rank == plan.rank, "another rank than was asked for");
    }
    if (outcome != JoinerHandshake::Outcome::waiting) return;
  }
}

/// A host whose joiners know the secret, and not the protocol. Each frame is of a joiner of its
/// own, or of the one before; a frame that no joiner sends is one that leaves.
inline void feed_builder(Bytes bytes) {
  Plan plan = plan_of(kAnyRank);
  plan.names = {"", "", ""};
  plan.names_hash = {};
  RosterBuilder builder(plan, {});
  std::vector<RosterBuilder::Ticket> here;
  for (const Frame& frame : frames_from(bytes)) {
    JoinRequest joiner;
    if (frame.type == FrameType::request_join && decode(frame.body, joiner)) {
      const RosterBuilder::Verdict verdict = builder.admit(joiner, "somewhere");
      require(verdict.admitted.has_value() == verdict.refusal.empty(), "neither in nor out");
      if (verdict.admitted) here.push_back(*verdict.admitted);
    } else if (frame.type == FrameType::have && !here.empty()) {
      if (!builder.confirmed(here.front(), Reader(frame.body).u32())) continue;
      std::rotate(here.begin(), here.begin() + 1, here.end());
    } else if (!here.empty() && !builder.decided()) {
      builder.left(here.back());
      here.pop_back();
    }
    require(here.size() < kMembers, "too many members");
    require(builder.complete() == (here.size() + 1 == kMembers), "complete, or not");
    require(!builder.progress().empty(), "nothing to say");
    if (!builder.complete()) continue;
    std::set<Rank> ranks{builder.rank_of(RosterBuilder::kHost)};
    for (const RosterBuilder::Ticket ticket : here) ranks.insert(builder.rank_of(ticket));
    require(ranks.size() == kMembers && *ranks.rbegin() == kMembers - 1, "a rank twice");
  }
}

}  // namespace dunlin::rendezvous::fuzz
