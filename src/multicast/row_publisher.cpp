#include "multicast/row_publisher.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "multicast/log_stage.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"

namespace dunlin::multicast {

RowPublisher::RowPublisher(ViewMemory& memory, const Receipts& receipts, const LogStage* log,
                           Counters& counters)
    : memory_(memory),
      receipts_(receipts),
      log_(log),
      counters_(counters),
      freed_(memory.senders()),
      asked_(memory.senders()) {}

bool RowPublisher::freed_enough(std::size_t sender_rank) const noexcept {
  const auto& [now, published] = freed_[sender_rank];
  if (now.position - published.position >= memory_.shape().bytes / 8) return true;
  if (now.position > published.position && asked_[sender_rank] > published.position) return true;
  const std::uint32_t window = memory_.options().window_messages;
  return window != 0 && now.records - published.records >= std::max(window / 8, 1U);
}

bool RowPublisher::publish(bool announces) noexcept {
  if (!memory_.ordered()) return publish_unordered(announces);
  if (!announces && !must_publish_freed_ && !worth_publishing()) return false;
  const std::uint64_t received = receipts_.received();
  memory_.write(row::kReceived, received);
  if (log_ != nullptr) memory_.write(row::kPersisted, log_->persisted());
  const bool one_line = memory_.options().switches.one_cache_line;
  if (one_line) {
    push_one_line();
  } else {
    push_each_column(announces);
  }
  // The line always says what is freed, whatever it is pushed for.
  if (one_line || must_publish_freed_)
    for (FreedOfSender& freed : freed_) freed.published = freed.now;
  published_received_ = received;
  if (log_ != nullptr) published_persisted_ = log_->persisted();
  must_publish_freed_ = false;
  return true;
}

/// Whether others may wait to hear of receipts, or of the log.
bool RowPublisher::worth_publishing() const noexcept {
  return (order::worth_publishing(published_received_, receipts_.received(),
                                  memory_.own_sender_rank(), receipts_.taken(),
                                  receipts_.real())) ||
         (log_ != nullptr && log_->worth_publishing(published_persisted_));
}

inline void RowPublisher::push_one_line() noexcept {
  const std::size_t without_payload = log_ != nullptr ? row::kPersisted : row::kReal;
  const std::size_t from = carries_payload_ ? row::kInlined : without_payload;
  push(from, row::kHotLineBytes - from);
  carries_payload_ = false;
}

void RowPublisher::push_each_column(bool announces) noexcept {
  if (announces) push(row::kReal, kWordBytes);
  if (announces) push(row::kSent, kWordBytes);
  if (published_received_ != receipts_.received()) push(row::kReceived, kWordBytes);
  if (must_publish_freed_) push(row::kDelivered, kWordBytes);
  if (log_ != nullptr && published_persisted_ != log_->persisted())
    push(row::kPersisted, kWordBytes);
}

bool RowPublisher::publish_unordered(bool announces) noexcept {
  if (announces) push(row::kReal, 2 * kWordBytes);
  const bool asks = std::exchange(must_ask_, false);
  if (asks) push(row::kAsked, kWordBytes);
  if (must_publish_freed_) push_consumed();
  return announces || asks;
}

void RowPublisher::ask(std::uint64_t position) noexcept {
  if (position <= asks_) return;
  asks_ = position;
  memory_.write(row::kAsked, position);
  must_ask_ = true;
}

void RowPublisher::note_asked() noexcept {
  if (memory_.ordered()) return;
  for (std::size_t sender_rank = 0; sender_rank < asked_.size(); ++sender_rank) {
    const std::uint64_t asked = memory_.seen(memory_.options().senders[sender_rank], row::kAsked);
    if (asked <= asked_[sender_rank]) continue;
    asked_[sender_rank] = asked;
    must_publish_freed_ = must_publish_freed_ || freed_enough(sender_rank);
  }
}

/// Only the sender has to know what is free in its ring.
void RowPublisher::push_consumed() noexcept {
  must_publish_freed_ = false;
  const SenderRank own = memory_.own_sender_rank();
  for (std::size_t sender_rank = 0; sender_rank < freed_.size(); ++sender_rank) {
    if (sender_rank == own || !freed_enough(sender_rank)) continue;
    const PushItem item{static_cast<std::uint32_t>(row::kConsumed + sender_rank * kWordBytes),
                        kWordBytes};
    const std::uint32_t to = memory_.options().senders[sender_rank];
    counters_.pushes += memory_.table().push_to(std::span(&to, 1), std::span(&item, 1)).sent;
    freed_[sender_rank].published = freed_[sender_rank].now;
  }
}

void RowPublisher::push(std::size_t offset, std::size_t bytes) noexcept {
  const bool timed = memory_.options().switches.time_posting;
  const std::uint64_t start = timed ? memory_.fabric().now_ns() : 0;
  const PushItem item{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)};
  counters_.pushes += memory_.table().push(std::span(&item, 1)).sent;
  if (timed) counters_.posting_ns += memory_.fabric().now_ns() - start;
}

}  // namespace dunlin::multicast
