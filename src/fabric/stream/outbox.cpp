#include "fabric/stream/outbox.hpp"

#include <cstring>
#include <utility>

#include "assert.hpp"

namespace dunlin::stream {

std::size_t Outbox::insist(std::size_t bytes) {
  if (const std::size_t room = offer(bytes)) return room;
  const std::size_t whole = transport_->frame_bytes();
  DUNLIN_ASSERT(bytes <= whole, "STR-O2: an entry that must not be refused fits into a frame");
  if (waiting_.empty() || whole - waiting_.back().used < bytes)
    waiting_.push_back({.frame = std::make_unique_for_overwrite<std::byte[]>(whole)});
  return whole - waiting_.back().used;
}

void Outbox::commit() noexcept {
  DUNLIN_ASSERT(lent_ != nullptr && used_ <= transport_->frame_bytes(),
                "STR-O1: an entry leaves in the frame that it was made in");
  transport_->commit(to_, std::exchange(used_, 0));
  ++frames_sent_;
  lent_ = nullptr;
}

void Outbox::flush() noexcept {
  if (used_ > 0) commit();
  while (!waiting_.empty()) {
    if (lent_ == nullptr) lent_ = transport_->lend(to_);
    if (lent_ == nullptr) return;
    const Waiting& next = waiting_.front();
    std::memcpy(lent_, next.frame.get(), next.used);
    used_ = next.used;
    answer_bytes_waiting_ -= next.answer_bytes;
    waiting_.pop_front();
    commit();
  }
}

void Outbox::clear() noexcept {
  lent_ = nullptr;
  used_ = 0;
  waiting_.clear();
  answer_bytes_waiting_ = 0;
}

}  // namespace dunlin::stream
