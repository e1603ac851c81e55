#pragma once

#include <cstddef>

#include <dunlin/multicast.hpp>
#include <dunlin/table/layout.hpp>

/// A member's row, as docs/multicast.md says: one hot line, whose order matters (B1), and for
/// unordered subgroups a word for each sender.
namespace dunlin::multicast::row {

inline constexpr std::size_t kReal = 0;
inline constexpr std::size_t kSent = 8;
inline constexpr std::size_t kReceived = 16;
inline constexpr std::size_t kDelivered = 24;
inline constexpr std::size_t kLineBytes = 32;
inline constexpr std::size_t kPersisted = 32;  // durable
inline constexpr std::size_t kDurableLineBytes = 40;
inline constexpr std::size_t kConsumed = 64;  // [sender]

static_assert(kDurableLineBytes <= kCacheLineBytes && kConsumed % kCacheLineBytes == 0);

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
  layout.columns = {words("real", kReal, 1), words("sent", kSent, 1)};
  layout.row_bytes = kLineBytes;
  if (mode != Mode::unordered) {
    layout.columns.push_back(words("received", kReceived, 1));
    layout.columns.push_back(words("delivered", kDelivered, 1));
    if (mode == Mode::durable) {
      layout.columns.push_back(words("persisted", kPersisted, 1));
      layout.row_bytes = kDurableLineBytes;
    }
  } else if (senders > 0) {
    layout.columns.push_back(words("consumed", kConsumed, senders));
    layout.row_bytes = kConsumed + senders * kWordBytes;
  }
  return layout;
}

}  // namespace dunlin::multicast::row
