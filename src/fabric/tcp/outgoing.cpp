#include "fabric/tcp/outgoing.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "assert.hpp"

namespace dunlin::tcp {
namespace {

const std::array<std::byte, kWordBytes> kPadding{};

/// The piece as an iovec; the kernel only reads it.
iovec piece_of(const std::byte* at, std::size_t bytes) noexcept {
  return {const_cast<std::byte*>(at), bytes};
}

/// Sends what is left of the frame, and returns whether that is all; `error` becomes errno, unless
/// the kernel has no room.
bool send_rest(OutgoingFrame& frame, Wire& wire, int& error) noexcept {
  for (;;) {
    std::array<iovec, kMaxPieces> pieces;
    const std::size_t count = frame.gather(pieces);
    const ssize_t sent = wire.send(std::span(pieces).first(count));
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) error = errno;
      return false;
    }
    if (frame.was_sent(static_cast<std::size_t>(sent))) return true;
  }
}

}  // namespace

std::size_t OutgoingFrame::attach(const std::byte* from, std::size_t bytes) noexcept {
  DUNLIN_ASSERT(sent_ == 0, "TCP-O2: a frame is composed before the kernel takes a part of it");
  const std::size_t piece = std::min(bytes, kMaxBehindBytes - behind_bytes());
  if (source_count_ == kMaxSources || piece == 0) return 0;
  sources_[source_count_++] = piece_of(from, piece);
  unsettled_bytes_ += piece;
  return piece;
}

void OutgoingFrame::settle() {
  if (source_count_ == 0) return;
  if (!copied_) copied_ = std::make_unique_for_overwrite<std::byte[]>(kMaxBehindBytes);
  DUNLIN_ASSERT(behind_bytes() <= kMaxBehindBytes, "TCP-O1: there is room to copy all sources");
  std::size_t sent = sent_ - std::min(sent_, head_bytes_ + copied_bytes_);  // of the sources
  for (std::size_t i = 0; i < source_count_; ++i) {
    const iovec& source = sources_[i];
    const std::size_t skipped = std::min(sent, source.iov_len);
    sent -= skipped;
    if (skipped < source.iov_len)
      std::memcpy(copied_.get() + copied_bytes_ + skipped,
                  static_cast<const std::byte*>(source.iov_base) + skipped,
                  source.iov_len - skipped);
    copied_bytes_ += source.iov_len;
  }
  source_count_ = 0;
  unsettled_bytes_ = 0;
}

void OutgoingFrame::seal(std::size_t frame_bytes) noexcept {
  const Prefix prefix{static_cast<std::uint32_t>(frame_bytes),
                      static_cast<std::uint32_t>(behind_bytes())};
  std::memcpy(head_.get(), &prefix, sizeof prefix);
  head_bytes_ = sizeof prefix + frame_bytes;
}

std::size_t OutgoingFrame::gather(std::array<iovec, kMaxPieces>& pieces) const noexcept {
  std::size_t count = 0;
  std::size_t skip = sent_;
  const auto add = [&](iovec piece) {
    const std::size_t skipped = std::min(skip, piece.iov_len);
    skip -= skipped;
    if (skipped == piece.iov_len) return;
    pieces[count++] = {static_cast<std::byte*>(piece.iov_base) + skipped, piece.iov_len - skipped};
  };
  add(piece_of(head_.get(), head_bytes_));
  if (copied_bytes_ > 0) add(piece_of(copied_.get(), copied_bytes_));
  for (std::size_t i = 0; i < source_count_; ++i) add(sources_[i]);
  add(piece_of(kPadding.data(), padding_of(behind_bytes())));
  return count;
}

bool OutgoingFrame::was_sent(std::size_t bytes) noexcept {
  sent_ += bytes;
  DUNLIN_ASSERT(sent_ <= all_bytes(), "TCP-O2: the kernel takes a frame once");
  return sent_ == all_bytes();
}

void OutgoingFrame::reset() noexcept {
  head_bytes_ = copied_bytes_ = source_count_ = unsettled_bytes_ = sent_ = 0;
}

std::unique_ptr<OutgoingFrame> FramePool::take() {
  if (frames_.empty()) return std::make_unique<OutgoingFrame>();
  std::unique_ptr<OutgoingFrame> frame = std::move(frames_.back());
  frames_.pop_back();
  return frame;
}

void FramePool::give_back(std::unique_ptr<OutgoingFrame> frame) noexcept {
  frame->reset();
  if (frames_.empty()) frames_.reserve(kMostKept);
  if (frames_.size() >= kMostWithCopies) frame->free_copies();
  if (frames_.size() < kMostKept) frames_.push_back(std::move(frame));
}

std::byte* Outgoing::lend() {
  if (waiting_.full()) return nullptr;
  if (!composed_) composed_ = pool_->take();
  return composed_->frame();
}

std::size_t Outgoing::attach(const std::byte* from, std::size_t bytes) noexcept {
  return composed_ ? composed_->attach(from, bytes) : 0;
}

void Outgoing::settle() {
  if (composed_) composed_->settle();
}

int Outgoing::commit(Wire& wire, std::size_t frame_bytes) {
  if (!composed_) return 0;
  composed_->seal(frame_bytes);
  int error = 0;
  if (!blocked() && send_rest(*composed_, wire, error)) {
    pool_->give_back(std::move(composed_));
    return 0;
  }
  composed_->settle();
  DUNLIN_ASSERT(!waiting_.full(),
                "TCP-O2: a frame that was lent has a place among those that wait");
  waiting_.push(std::move(composed_));
  return error;
}

int Outgoing::push(Wire& wire) {
  int error = 0;
  while (!waiting_.empty() && send_rest(*waiting_.front(), wire, error)) {
    pool_->give_back(std::move(waiting_.front()));
    waiting_.pop();
  }
  return error;
}

void Outgoing::clear() noexcept {
  for (; !waiting_.empty(); waiting_.pop()) pool_->give_back(std::move(waiting_.front()));
  if (composed_) pool_->give_back(std::move(composed_));
}

}  // namespace dunlin::tcp
