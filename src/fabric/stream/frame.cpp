#include "fabric/stream/frame.hpp"

#include <algorithm>
#include <limits>

namespace dunlin::stream {
namespace {

constexpr std::size_t kAny = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kAnnouncementHeadBytes = 40;
constexpr std::size_t kMaxAnnouncementBytes =
    kAnnouncementHeadBytes + kMaxRegionNameBytes + kMaxLayoutTextBytes;
static_assert(sizeof(EntryHead) + whole_words(kMaxAnnouncementBytes) + sizeof(EntryHead) +
                  sizeof(Hello) <=
              kMinFrameBytes);

/// The fields that an entry of a kind may have; any other entry is garbage.
struct Rule {
  bool known = false;
  std::uint8_t flags = 0;
  bool region = false;
  bool ticket = false;
  bool value = false;
  std::size_t min_bytes = 0;
  std::size_t max_bytes = 0;
};

using Rules = std::array<Rule, 19>;

constexpr Rules make_rules() {
  Rules rules{};
  const auto rule = [&](EntryKind kind) -> Rule& {
    Rule& made = rules[static_cast<std::size_t>(kind)];
    made.known = true;
    return made;
  };
  rule(EntryKind::hello) = {.known = true, .min_bytes = sizeof(Hello), .max_bytes = sizeof(Hello)};
  rule(EntryKind::put) = {
      .known = true, .flags = kAsks, .region = true, .value = true, .max_bytes = kAny};
  rule(EntryKind::write) = rule(EntryKind::put);
  rule(EntryKind::put).flags = kAsks | kBehind;
  rule(EntryKind::read) = {
      .known = true, .region = true, .ticket = true, .value = true, .max_bytes = kAny};
  rule(EntryKind::bytes) = {
      .known = true, .flags = kGone, .ticket = true, .value = true, .max_bytes = kAny};
  rule(EntryKind::fetch_add) = {.known = true,
                                .flags = kAsks,
                                .region = true,
                                .ticket = true,
                                .value = true,
                                .min_bytes = 8,
                                .max_bytes = 8};
  rule(EntryKind::compare_swap) = rule(EntryKind::fetch_add);
  rule(EntryKind::compare_swap).min_bytes = rule(EntryKind::compare_swap).max_bytes = 16;
  rule(EntryKind::former) = {.known = true, .flags = kGone, .ticket = true, .value = true};
  rule(EntryKind::message) = {.known = true, .max_bytes = kMaxMessageBytes};
  rule(EntryKind::heard) = {.known = true, .value = true};
  rule(EntryKind::announce) = {.known = true,
                               .region = true,
                               .value = true,
                               .min_bytes = kAnnouncementHeadBytes + 1,
                               .max_bytes = kMaxAnnouncementBytes};
  rule(EntryKind::withdraw) = {.known = true, .region = true};
  rule(EntryKind::placed) = {.known = true, .flags = kGone, .value = true};
  rule(EntryKind::let_go) = {.known = true, .region = true};
  rule(EntryKind::dozing) = {.known = true, .value = true};
  rule(EntryKind::noted) = {.known = true};
  return rules;
}

constexpr Rules kRules = make_rules();

bool keeps_to(const Rule& rule, const EntryHead& head) noexcept {
  if (!rule.known && head.kind != EntryKind::beat && head.kind != EntryKind::leave) return false;
  if ((head.flags & ~rule.flags) != 0) return false;
  if (!rule.region && head.region != 0) return false;
  if (!rule.ticket && head.ticket != 0) return false;
  if (!rule.value && head.value != 0) return false;
  if (head.bytes < rule.min_bytes || head.bytes > rule.max_bytes) return false;
  if (head.kind == EntryKind::message) return head.channel < kMaxChannels;
  if (head.channel != 0) return false;
  if ((head.flags & kBehind) != 0 && head.bytes == 0) return false;
  const bool atomic = head.kind == EntryKind::fetch_add || head.kind == EntryKind::compare_swap;
  if (atomic && (head.flags & kAsks) == 0 && head.ticket != 0) return false;
  return (head.flags & kGone) == 0 || head.bytes == 0;
}

std::uint32_t load_length(const std::byte* at) noexcept {
  std::uint32_t length = 0;
  std::memcpy(&length, at, sizeof length);
  return length;
}

}  // namespace

bool FrameReader::next(Entry& entry) noexcept {
  if (garbage_ || rest_.empty()) return false;
  garbage_ = true;  // unless all of this holds
  if (rest_.size() < sizeof(EntryHead)) return false;
  EntryHead& head = entry.head;
  std::memcpy(&head, rest_.data(), sizeof head);
  const auto kind = static_cast<std::size_t>(head.kind);
  if (kind >= kRules.size() || !keeps_to(kRules[kind], head)) return false;
  const std::size_t bytes = entry_bytes(head);
  if (bytes > rest_.size()) return false;
  entry.payload = head.kind == EntryKind::read || (head.flags & kBehind) != 0
                      ? nullptr
                      : rest_.data() + sizeof head + lead_of(head.kind, head.value);
  rest_ = rest_.subspan(bytes);
  garbage_ = false;
  return true;
}

std::size_t Announcement::bytes() const noexcept {
  return kAnnouncementHeadBytes + name.size() + layout_text.size();
}

void Announcement::encode(std::byte* to) const noexcept {
  const auto name_bytes = static_cast<std::uint32_t>(name.size());
  const auto text_bytes = static_cast<std::uint32_t>(layout_text.size());
  std::memcpy(to, &generation, 8);
  std::memcpy(to + 8, &layout_hash, 8);
  const std::uint32_t unused = 0;
  std::memcpy(to + 16, &key.address, 8);
  std::memcpy(to + 24, &key.key, 4);
  std::memcpy(to + 28, &unused, 4);
  std::memcpy(to + 32, &name_bytes, 4);
  std::memcpy(to + 36, &text_bytes, 4);
  std::memcpy(to + kAnnouncementHeadBytes, name.data(), name.size());
  if (!layout_text.empty())
    std::memcpy(to + kAnnouncementHeadBytes + name.size(), layout_text.data(), layout_text.size());
}

std::optional<Announcement> decode_announcement(std::span<const std::byte> payload) noexcept {
  if (payload.size() < kAnnouncementHeadBytes) return std::nullopt;
  Announcement made;
  std::memcpy(&made.generation, payload.data(), 8);
  std::memcpy(&made.layout_hash, payload.data() + 8, 8);
  std::memcpy(&made.key.address, payload.data() + 16, 8);
  std::memcpy(&made.key.key, payload.data() + 24, 4);
  const std::size_t name_bytes = load_length(payload.data() + 32);
  const std::size_t text_bytes = load_length(payload.data() + 36);
  if (name_bytes == 0 || name_bytes > kMaxRegionNameBytes || text_bytes > kMaxLayoutTextBytes ||
      payload.size() != kAnnouncementHeadBytes + name_bytes + text_bytes)
    return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(payload.data() + kAnnouncementHeadBytes);
  made.name = {text, name_bytes};
  made.layout_text = {text + name_bytes, text_bytes};
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::all_of(made.name.begin(), made.name.end(), printable)) return std::nullopt;
  return made;
}

bool same_proof(const Proof& one, const Proof& other) noexcept {
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference |= std::to_integer<unsigned>(one[i] ^ other[i]);
  return difference == 0;
}

}  // namespace dunlin::stream
