#include "fabric/rendezvous/frame.hpp"

#include <algorithm>
#include <array>

#include "fabric/bytes.hpp"

namespace dunlin::rendezvous {
namespace {

constexpr std::array<FrameRule, 11> kRules{{
    {FrameType::joiner_proof, Side::joiner, false, sizeof(Digest), sizeof(Digest)},
    {FrameType::host_proof, Side::host, false, sizeof(Digest), sizeof(Digest)},
    {FrameType::turn_away, Side::host, false, 0, 0},
    {FrameType::request_join, Side::joiner, true, kJoinRequestBytes, kMaxBodyBytes},
    {FrameType::refuse, Side::host, true, 1, kMaxTextBytes},
    {FrameType::news, Side::host, true, 1, kMaxTextBytes},
    {FrameType::member, Side::host, true, 8, 8 + kMaxEndpointAddressBytes},
    {FrameType::roster, Side::host, true, 8 + sizeof(Digest), 8 + sizeof(Digest)},
    {FrameType::have, Side::joiner, true, 4, 4},
    {FrameType::go, Side::host, true, 4, 4},
    {FrameType::give_up, Side::host, true, 1, kMaxTextBytes},
}};

}  // namespace

const FrameRule* rule_of(std::uint16_t type) noexcept {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const FrameRule& rule) {
    return static_cast<std::uint16_t>(rule.type) == type;
  });
  return found == kRules.end() ? nullptr : &*found;
}

std::vector<std::byte> encode(FrameType type, Bytes body) {
  std::vector<std::byte> frame;
  frame.reserve(kHeaderBytes + body.size());
  Writer writer(frame);
  writer.u32(static_cast<std::uint32_t>(body.size()));
  writer.u16(static_cast<std::uint16_t>(type));
  writer.u16(0);
  writer.bytes(body);
  return frame;
}

FrameReader::Got FrameReader::take(Bytes& bytes) {
  if (whole_) {
    whole_ = false;
    rule_ = nullptr;
    held_.clear();
  }
  if (rule_ == nullptr) {
    top_up(bytes, kHeaderBytes);
    if (held_.size() < kHeaderBytes) return Got::too_little;
    if (!header_is_possible()) return Got::garbage;
  }
  top_up(bytes, kHeaderBytes + body_bytes_);
  whole_ = held_.size() == kHeaderBytes + body_bytes_;
  return whole_ ? Got::frame : Got::too_little;
}

void FrameReader::top_up(Bytes& bytes, std::size_t to_bytes) {
  if (held_.size() >= to_bytes) return;
  const std::size_t count = std::min(to_bytes - held_.size(), bytes.size());
  held_.insert(held_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  bytes = bytes.subspan(count);
}

bool FrameReader::header_is_possible() {
  Reader reader{Bytes(held_)};
  const std::uint32_t body_bytes = reader.u32();
  const FrameRule* rule = rule_of(reader.u16());
  if (rule == nullptr || rule->from != from_ || rule->after_proof != trusted_) return false;
  if (reader.u16() != 0) return false;
  if (body_bytes < rule->min_bytes || body_bytes > rule->max_bytes) return false;
  rule_ = rule;
  body_bytes_ = body_bytes;
  return true;
}

}  // namespace dunlin::rendezvous
