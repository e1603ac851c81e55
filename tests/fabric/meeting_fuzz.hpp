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
  std::vector<Frame> of_guest, of_host;
};

inline Conversation right_conversation() {
  const Plan plan = plan_of(1);
  const std::vector<std::byte> card(100, std::byte{7}), news(6, std::byte{'3'});
  Conversation all;
  all.of_guest = {{FrameType::introduce, encode(Introduction{plan.members(), plan.rank,
                                                             plan.names_hash, plan.group, card})},
                  {FrameType::have, numbers({1})}};
  all.of_host = {{FrameType::news, news}};
  for (Rank rank = 0; rank < kMembers; ++rank) {
    all.of_host.push_back({FrameType::member, numbers({1, rank})});
    all.of_host.back().body.insert(all.of_host.back().body.end(), card.begin(), card.end());
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
  Speaker guest{Side::guest, right.of_guest}, host{Side::host, right.of_host};
  Speaker& altered = self == Side::guest ? guest : host;
  const std::vector<Frame>& to_hear = self == Side::guest ? right.of_host : right.of_guest;
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
    more = carry(guest, host);
    more = carry(host, guest) || more;
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

/// A guest that has met its host, for those who care only for what it says later.
inline Channel& trusting_guest() {
  static Channel guest(Side::guest, our_tls());
  static Channel host(Side::host, our_tls());
  while (!guest.proved()) {
    host.receive(guest.output());
    guest.was_sent(guest.output().size());
    guest.receive(host.output());
    host.was_sent(host.output().size());
  }
  guest.was_sent(guest.output().size());
  return guest;
}

/// A guest whose host knows the secret, and not the protocol.
inline void feed_visit(Bytes bytes) {
  const Plan plan = plan_of(1);
  Channel& guest = trusting_guest();
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
