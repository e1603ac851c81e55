#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "relay/frame.hpp"

namespace dunlin::test {

/// Reads frames, and what is in them, until they end or one breaks the protocol. Each lies in
/// memory of its own. Returns how many could be understood.
inline std::size_t read_all_frames(relay::Bytes rest, relay::Side from) {
  using namespace dunlin::relay;
  FrameParser parser(from);
  std::size_t understood = 0;
  for (;;) {
    const auto copy = std::make_unique<std::byte[]>(rest.size());
    if (!rest.empty()) std::memcpy(copy.get(), rest.data(), rest.size());
    const auto frame = parser.parse({copy.get(), rest.size()});
    if (!frame) return understood;
    bool good = true;
    switch (frame->header.kind) {
      case FrameKind::hello:
        good = read_hello(*frame).has_value();
        break;
      case FrameKind::open_writer:
      case FrameKind::open_reader:
        good = read_open(*frame).has_value();
        break;
      case FrameKind::sample:
        good = read_sample(*frame).has_value();
        break;
      case FrameKind::welcome:
        good = read_welcome(*frame).has_value();
        break;
      case FrameKind::opened:
        good = read_opened(*frame).has_value();
        break;
      case FrameKind::acknowledged:
        good = read_acknowledged(*frame).has_value();
        break;
      case FrameKind::delivered:
        good = read_delivered(*frame).has_value();
        break;
      case FrameKind::refused:
      case FrameKind::goodbye:
        good = read_sentence(*frame).has_value();
        break;
      default:
        break;
    }
    understood += good ? 1U : 0U;
    rest = rest.subspan(kFrameHeaderBytes + frame->body.size());
  }
}

}  // namespace dunlin::test
