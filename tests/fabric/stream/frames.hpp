#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fabric/stream/frame.hpp"

/// Making frames entry by entry, sound ones and others.
namespace dunlin::stream::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& text) {
  const auto all = std::as_bytes(std::span(text.data(), text.size()));
  return {all.begin(), all.end()};
}

class FrameBuilder {
 public:
  FrameBuilder& add(EntryHead head, const Bytes& payload = {}) {
    if (head.kind != EntryKind::read) head.bytes = static_cast<std::uint32_t>(payload.size());
    const std::size_t at = frame_.size();
    frame_.resize(at + entry_bytes(head));
    std::byte* const to = begin_entry(frame_.data() + at, head);
    std::copy(payload.begin(), payload.end(), to);
    return *this;
  }
  [[nodiscard]] const Bytes& frame() const { return frame_; }

 private:
  Bytes frame_;
};

/// A frame in memory of exactly its size, so that the address sanitizer sees each step beyond.
class Exact {
 public:
  explicit Exact(std::span<const std::byte> frame) : bytes_(frame.begin(), frame.end()) {}
  [[nodiscard]] std::span<const std::byte> view() const { return bytes_; }

 private:
  const Bytes bytes_;
};

/// A sound entry of any kind, about regions and tickets that are mostly there.
inline void add_any(FrameBuilder& builder, std::minstd_rand& random) {
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  const auto payload = [&](std::size_t bytes) {
    Bytes made(bytes);
    for (std::byte& byte : made) byte = static_cast<std::byte>(random());
    return made;
  };
  const std::uint32_t region = kMaxRegions + (below(8) == 0 ? below(3) : 0);
  const std::uint64_t offset = below(below(8) == 0 ? 300 : 180);
  const std::uint8_t asks = below(2) == 0 ? kAsks : 0;
  switch (static_cast<EntryKind>(2 + below(14))) {
    case EntryKind::put:
      builder.add({.kind = EntryKind::put, .flags = asks, .region = region, .value = offset},
                  payload(below(70)));
      break;
    case EntryKind::write:
      builder.add({.kind = EntryKind::write, .flags = asks, .region = region, .value = offset},
                  payload(below(70)));
      break;
    case EntryKind::read:
      builder.add({.kind = EntryKind::read,
                   .bytes = below(70),
                   .region = region,
                   .ticket = below(4),
                   .value = offset});
      break;
    case EntryKind::bytes:
      builder.add({.kind = EntryKind::bytes, .ticket = below(3), .value = below(64)},
                  payload(below(70)));
      break;
    case EntryKind::fetch_add:
      builder.add({.kind = EntryKind::fetch_add,
                   .flags = kAsks,
                   .region = region,
                   .ticket = below(4),
                   .value = 8 * below(32)},
                  payload(8));
      break;
    case EntryKind::compare_swap:
      builder.add({.kind = EntryKind::compare_swap, .region = region, .value = 8 * below(32)},
                  payload(16));
      break;
    case EntryKind::former:
      builder.add({.kind = EntryKind::former, .ticket = below(3), .value = random()});
      break;
    case EntryKind::message:
      builder.add({.kind = EntryKind::message, .channel = static_cast<std::uint16_t>(below(4))},
                  payload(below(kMaxMessageBytes + 1)));
      break;
    case EntryKind::heard:
      builder.add({.kind = EntryKind::heard, .value = below(100)});
      break;
    case EntryKind::announce: {
      const Announcement words{.generation = 1 + below(3), .layout_hash = 0, .name = "box"};
      Bytes said(words.bytes());
      words.encode(said.data());
      builder.add({.kind = EntryKind::announce, .region = kMaxRegions + below(600), .value = 64},
                  said);
      break;
    }
    case EntryKind::withdraw:
      builder.add({.kind = EntryKind::withdraw, .region = kMaxRegions + below(600)});
      break;
    case EntryKind::placed:
      builder.add({.kind = EntryKind::placed, .value = below(4)});
      break;
    default:
      builder.add({.kind = EntryKind::beat});
  }
}

/// Changes some bytes, or the length.
inline void spoil(Bytes& frame, std::minstd_rand& random) {
  const std::size_t times = random() % 4;
  for (std::size_t i = 0; i < times && !frame.empty(); ++i) {
    const std::size_t at = random() % frame.size();
    switch (random() % 4) {
      case 0:
        frame[at] = static_cast<std::byte>(random());
        break;
      case 1:
        frame[at] ^= static_cast<std::byte>(1U << (random() % 8));
        break;
      case 2:
        frame[at] = std::byte{0xff};
        break;
      default:
        frame.resize(at);
    }
  }
}

}  // namespace dunlin::stream::test
