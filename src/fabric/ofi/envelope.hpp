#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <dunlin/fabric/memory.hpp>

#include "fabric/stream/frame.hpp"

/// The envelope of a frame: a word with its length before it, and a mark behind it. A receiver that
/// watches the buffer can tell by them when the frame is complete, if the buffer is filled from the
/// front; completions, which would tell as well, cost 1 us each with libfabric's tcp.
///
///  OFI-E1  The length of an empty buffer is 0. A receiver that has taken a frame empties its
///       buffer.
///  OFI-E2  A mark is a random word, another one for each frame, drawn from the proof that the ends
///      of the connection have exchanged. So what an earlier frame has left in a buffer is not
///      taken for it. A peer that forges one spoils only its own stream, because the receiver
///      checks every frame anyway (STR-S6).
namespace dunlin::ofi {

inline constexpr std::size_t kEnvelopeBytes = 2 * kWordBytes;

/// The marks of one direction of a connection.
class Marks {
 public:
  Marks() = default;
  explicit Marks(const stream::Proof& secret) noexcept {
    std::memcpy(&secret_, secret.data(), sizeof secret_);
  }
  [[nodiscard]] std::uint64_t current() const noexcept {
    std::uint64_t mixed = secret_ + number_ * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  void advance() noexcept { ++number_; }

 private:
  std::uint64_t secret_ = 0;
  std::uint64_t number_ = 1;
};

/// Writes the envelope around the frame of `frame_bytes` that begins one word after `at`; `at` is
/// aligned to a word.
inline void seal(std::byte* at, std::size_t frame_bytes, std::uint64_t mark) noexcept {
  const std::uint64_t length = frame_bytes;
  std::memcpy(at, &length, sizeof length);
  std::memcpy(at + kWordBytes + frame_bytes, &mark, sizeof mark);
}

enum class Arrival { none, whole, garbage };

/// Examines a buffer, which must have room for the longest frame; sets `frame` if the frame is
/// whole.
[[nodiscard]] inline Arrival look(const std::byte* at, std::uint64_t mark,
                                  std::span<const std::byte>& frame) noexcept {
  const auto length = memory::load(*reinterpret_cast<const std::uint64_t*>(at));
  if (length == 0) [[likely]]
    return Arrival::none;
  if (length > stream::kMaxFrameBytes || length % kWordBytes != 0) return Arrival::garbage;
  const std::byte* const end = at + kWordBytes + length;
  if (memory::load(*reinterpret_cast<const std::uint64_t*>(end)) != mark) return Arrival::none;
  frame = {at + kWordBytes, length};
  return Arrival::whole;
}

inline void empty(std::byte* at) noexcept { std::memset(at, 0, kWordBytes); }

}  // namespace dunlin::ofi
