#pragma once

#include <cstddef>

#include <dunlin/multicast.hpp>
#include <dunlin/table/layout.hpp>

/// A member's row, as docs/multicast.md says: one hot line, whose order matters (MC-B1, MC-B6); and
/// for unordered subgroups a word for each sender.
namespace dunlin::multicast::row {

// Ordered: the words of the sender's ring that the line carried last, in place of a put.
inline constexpr std::size_t kInlined = 0;  // [kMaxInlinedWords]
inline constexpr std::size_t kMaxInlinedWords = 3;
inline constexpr std::size_t kInlinedAt = 24;  // their position, a multiple of 8, + how many
inline constexpr std::size_t kPersisted = 24;  // durable, where no words are inlined
inline constexpr std::size_t kReal = 32;
inline constexpr std::size_t kSent = 40;
inline constexpr std::size_t kReceived = 48;
inline constexpr std::size_t kAsked = 48;  // unordered, where `consumed` says what is received
inline constexpr std::size_t kDelivered = 56;
inline constexpr std::size_t kHotLineBytes = 64;
inline constexpr std::size_t kRowBytes = 128;  // if ordered: processors fetch lines in pairs
inline constexpr std::size_t kConsumed = 64;   // [sender]

// docs/formats/multicast-row.md
static_assert(kInlined == 0 && kMaxInlinedWords * kWordBytes == kInlinedAt &&
              kPersisted == kInlinedAt);
static_assert(kReal == 32 && kSent == 40 && kReceived == 48 && kDelivered == 56);
static_assert(kAsked == kReceived);
static_assert(kHotLineBytes == 64 && kConsumed == 64);
static_assert(kHotLineBytes == kCacheLineBytes && kConsumed % kCacheLineBytes == 0);
static_assert(kMaxInlinedWords < kWordBytes, "or the position has no room for how many");

[[nodiscard]] inline Column words(std::string name, std::size_t offset, std::size_t count) {
  return {.name = std::move(name),
          .kind = ColumnKind::word,
          .type = EntryType::u64,
          .offset = offset,
          .count = count,
          .entry_bytes = kWordBytes,
          .stride_bytes = kWordBytes,
          .bytes = count * kWordBytes};
}

[[nodiscard]] inline Layout layout(std::size_t senders, Mode mode) {
  Layout layout;
  if (mode == Mode::ordered) {
    layout.columns.push_back(words("inlined", kInlined, kMaxInlinedWords));
    layout.columns.push_back(words("inlined_at", kInlinedAt, 1));
  }
  if (mode == Mode::durable) layout.columns.push_back(words("persisted", kPersisted, 1));
  layout.columns.push_back(words("real", kReal, 1));
  layout.columns.push_back(words("sent", kSent, 1));
  if (mode != Mode::unordered) {
    layout.columns.push_back(words("received", kReceived, 1));
    layout.columns.push_back(words("delivered", kDelivered, 1));
  } else {
    layout.columns.push_back(words("asked", kAsked, 1));
    if (senders > 0) layout.columns.push_back(words("consumed", kConsumed, senders));
  }
  layout.row_bytes = mode == Mode::unordered ? kConsumed + senders * kWordBytes : kRowBytes;
  return layout;
}

}  // namespace dunlin::multicast::row
