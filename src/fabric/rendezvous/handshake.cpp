#include "fabric/rendezvous/handshake.hpp"

#include "fabric/bytes.hpp"

namespace dunlin::rendezvous {
namespace {

std::string printable(Bytes body) {
  std::string text;
  for (std::byte b : body) {
    const char c = static_cast<char>(b);
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

}  // namespace

void JoinerHandshake::request_join() {
  channel_.send(FrameType::request_join,
                encode(JoinRequest{plan_.members(), plan_.rank, plan_.names_hash, plan_.group,
                                   plan_.terms, endpoint_address_}));
}

JoinerHandshake::Outcome JoinerHandshake::receive(const Frame& frame) {
  const Bytes body(frame.body);
  bool right = true;
  switch (frame.type) {
    case FrameType::refuse:
      text_ = printable(body);
      return Outcome::refused;
    case FrameType::give_up:
      text_ = printable(body);
      return Outcome::given_up;
    case FrameType::news:
      text_ = printable(body);
      break;
    case FrameType::member:
      right = on_member(body);
      break;
    case FrameType::roster:
      right = on_roster(body);
      break;
    case FrameType::go:
      if (confirmed_ && Reader(body).u32() == round_) return Outcome::met;
      right = false;
      break;
    default:
      right = false;
  }
  return right ? Outcome::waiting : Outcome::violated;
}

/// Takes a member; members come in order of rank. Rank 0 of a later round begins anew.
bool JoinerHandshake::on_member(Bytes body) {
  Reader reader(body);
  const std::uint32_t round = reader.u32();
  const Rank rank = reader.u32();
  if (round > round_ && rank == 0) {
    round_ = round;
    confirmed_ = false;
    roster_.members.clear();
  }
  if (round != round_ || round == 0 || confirmed_) return false;
  if (rank != roster_.members.size() || rank >= plan_.members()) return false;
  const Bytes endpoint_address = reader.rest();
  roster_.members.push_back(
      {plan_.names[rank], {endpoint_address.begin(), endpoint_address.end()}});
  return true;
}

bool JoinerHandshake::on_roster(Bytes body) {
  Reader reader(body);
  const std::uint32_t round = reader.u32();
  roster_.rank = reader.u32();
  if (round != round_ || round == 0 || confirmed_) return false;
  if (roster_.members.size() != plan_.members() || roster_.rank >= plan_.members()) return false;
  if (plan_.rank != kAnyRank && roster_.rank != plan_.rank) return false;
  roster_.key = reader.array<sizeof(Digest)>();
  confirmed_ = true;
  std::vector<std::byte> have;
  Writer(have).u32(round);
  channel_.send(FrameType::have, have);
  return true;
}

}  // namespace dunlin::rendezvous
