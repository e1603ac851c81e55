#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sys/uio.h>

#include "fabric/tcp/prefix.hpp"
#include "fabric/tcp/wire.hpp"
#include "ring.hpp"

/// The frames on their way to one peer: the frame under composition, and frames that the kernel has
/// not taken whole.
///  TCP-O1  A source that was attached is read until the next settle() or commit() returns, and not
///      later: bytes that the kernel has not taken by then have been copied.
///  TCP-O2  Frames leave in the order of their commits. A frame of which the kernel has taken a
///      part stays first until the kernel has taken all of it.
namespace dunlin::tcp {

/// A frame, and the bytes behind it: first copied bytes, then those still at their source.
class OutgoingFrame {
 public:
  [[nodiscard]] std::byte* frame() noexcept { return head_.get() + sizeof(Prefix); }
  /// Attaches bytes; returns how many of them find room.
  [[nodiscard]] std::size_t attach(const std::byte* from, std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t unsettled_bytes() const noexcept { return unsettled_bytes_; }
  /// Copies the attached sources, or what the kernel has not taken of them.
  void settle();
  void seal(std::size_t frame_bytes) noexcept;
  /// Lists the bytes that the kernel has not taken yet.
  [[nodiscard]] std::size_t gather(std::array<iovec, kMaxPieces>& pieces) const noexcept;
  /// Says that the kernel has taken so many more; returns whether that is all.
  [[nodiscard]] bool was_sent(std::size_t bytes) noexcept;
  void reset() noexcept;
  void free_copies() noexcept { copied_.reset(); }

 private:
  static constexpr std::size_t kMaxSources = kMaxPieces - 3;  // and head, copies, padding

  [[nodiscard]] std::size_t behind_bytes() const noexcept {
    return copied_bytes_ + unsettled_bytes_;
  }
  [[nodiscard]] std::size_t all_bytes() const noexcept {
    return head_bytes_ + behind_bytes() + padding_of(behind_bytes());
  }

  std::unique_ptr<std::byte[]> head_ =
      std::make_unique_for_overwrite<std::byte[]>(sizeof(Prefix) + stream::kMaxFrameBytes);
  std::unique_ptr<std::byte[]> copied_;  // kMaxBehindBytes, once it is needed
  std::size_t head_bytes_ = 0;
  std::size_t copied_bytes_ = 0;
  std::array<iovec, kMaxSources> sources_;
  std::size_t source_count_ = 0;
  std::size_t unsettled_bytes_ = 0;
  std::size_t sent_ = 0;
};

/// Frames that are not in use, which all connections share: the one used last is in the cache.
class FramePool {
 public:
  [[nodiscard]] std::unique_ptr<OutgoingFrame> take();
  void give_back(std::unique_ptr<OutgoingFrame> frame) noexcept;

 private:
  static constexpr std::size_t kMostKept = 64;
  static constexpr std::size_t kMostWithCopies = 8;
  std::vector<std::unique_ptr<OutgoingFrame>> frames_;
};

class Outgoing {
 public:
  explicit Outgoing(FramePool& pool) : pool_(&pool) {}

  /// A place to compose the next frame, if there is room for one; null otherwise.
  [[nodiscard]] std::byte* lend();
  [[nodiscard]] std::size_t attach(const std::byte* from, std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t unsettled_bytes() const noexcept {
    return composed_ ? composed_->unsettled_bytes() : 0;
  }
  void settle();
  /// Sends the frame under composition. Returns 0, or errno.
  [[nodiscard]] int commit(Wire& wire, std::size_t frame_bytes);
  /// Sends the rest that the kernel has not taken. Returns 0, or errno.
  [[nodiscard]] int push(Wire& wire);
  /// Whether the kernel has not taken all frames.
  [[nodiscard]] bool blocked() const noexcept { return !waiting_.empty(); }
  void clear() noexcept;

 private:
  static constexpr std::size_t kMostWaiting = 4;

  FramePool* pool_;
  std::unique_ptr<OutgoingFrame> composed_;
  Ring<std::unique_ptr<OutgoingFrame>> waiting_{kMostWaiting};
};

}  // namespace dunlin::tcp
