#include "fabric/meeting/frame.hpp"

#include <algorithm>
#include <array>

#include "fabric/bytes.hpp"

namespace dunlin::meeting {
namespace {

constexpr std::size_t kNonce = sizeof(Digest);

constexpr std::array<FrameRule, 13> kRules{{
    {FrameType::call, Side::guest, false, kNonce, kNonce},
    {FrameType::answer, Side::host, false, kNonce, kNonce},
    {FrameType::guest_proof, Side::guest, false, kMacBytes, kMacBytes},
    {FrameType::host_proof, Side::host, false, kMacBytes, kMacBytes},
    {FrameType::turn_away, Side::host, false, 0, 0},
    {FrameType::introduce, Side::guest, true, kIntroductionBytes, kMaxBodyBytes},
    {FrameType::refuse, Side::host, true, 1, kMaxTextBytes},
    {FrameType::news, Side::host, true, 1, kMaxTextBytes},
    {FrameType::member, Side::host, true, 8, 8 + kMaxCardBytes},
    {FrameType::roster, Side::host, true, 8 + sizeof(Digest), 8 + sizeof(Digest)},
    {FrameType::have, Side::guest, true, 4, 4},
    {FrameType::go, Side::host, true, 4, 4},
    {FrameType::give_up, Side::host, true, 1, kMaxTextBytes},
}};

constexpr std::size_t kSameInAllVersions = 6;  // magic and version

}  // namespace

const FrameRule* rule_of(std::uint16_t type) noexcept {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const FrameRule& rule) {
    return static_cast<std::uint16_t>(rule.type) == type;
  });
  return found == kRules.end() ? nullptr : &*found;
}

std::vector<std::byte> encode(FrameType type, std::uint32_t number, Bytes body) {
  std::vector<std::byte> frame;
  frame.reserve(kHeaderBytes + body.size() + kMacBytes);
  Writer writer(frame);
  writer.u32(kMagic);
  writer.u16(kVersion);
  writer.u16(static_cast<std::uint16_t>(type));
  writer.u32(static_cast<std::uint32_t>(body.size()));
  writer.u32(number);
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
    if (const Got got = check_beginning(); got != Got::too_little) return got;
    if (held_.size() < kHeaderBytes) return Got::too_little;
    if (!header_is_possible()) return Got::garbage;
  }
  const std::size_t all = kHeaderBytes + body_bytes_ + (rule_->sealed ? kMacBytes : 0);
  top_up(bytes, all);
  if (held_.size() < all) return Got::too_little;
  whole_ = true;
  ++next_number_;
  return Got::frame;
}

void FrameReader::top_up(Bytes& bytes, std::size_t to_bytes) {
  if (held_.size() >= to_bytes) return;
  const std::size_t count = std::min(to_bytes - held_.size(), bytes.size());
  held_.insert(held_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  bytes = bytes.subspan(count);
}

/// As soon as there is something to see: whoever sends one wrong byte is not listened to further.
FrameReader::Got FrameReader::check_beginning() {
  std::vector<std::byte> right;
  Writer(right).u32(kMagic);
  const std::size_t seen = std::min(held_.size(), right.size());
  if (!std::equal(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(seen), right.begin()))
    return Got::garbage;
  if (held_.size() < kSameInAllVersions) return Got::too_little;
  version_ = Reader(Bytes(held_).subspan(right.size())).u16();
  return version_ == kVersion ? Got::too_little : Got::other_version;
}

bool FrameReader::header_is_possible() {
  Reader reader(Bytes(held_).subspan(kSameInAllVersions));
  const FrameRule* rule = rule_of(reader.u16());
  const std::uint32_t body_bytes = reader.u32(), number = reader.u32();
  if (rule == nullptr || rule->from != from_ || rule->sealed != sealed_) return false;
  if (body_bytes < rule->min_bytes || body_bytes > rule->max_bytes) return false;
  if (number != next_number_) return false;
  rule_ = rule;
  body_bytes_ = body_bytes;
  return true;
}

Bytes FrameReader::header_and_body() const noexcept {
  return Bytes(held_).first(kHeaderBytes + body_bytes_);
}

Bytes FrameReader::mac() const noexcept { return Bytes(held_).subspan(kHeaderBytes + body_bytes_); }

}  // namespace dunlin::meeting
