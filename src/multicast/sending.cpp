#include <algorithm>
#include <array>
#include <cstring>

#include <dunlin/error.hpp>
#include <dunlin/limits.hpp>

#include "assert.hpp"
#include "fault_injection.hpp"
#include "multicast/order.hpp"
#include "multicast/row.hpp"
#include "multicast/subgroup_view.hpp"

namespace dunlin::multicast {
namespace {

/// Bytes that are put to each peer before it is said what was received meanwhile.
constexpr std::size_t kLeastAtOnce = 4096;
constexpr std::size_t kMostAtOnce = 65'536;

}  // namespace

std::span<std::byte> SubgroupView::prepare(std::size_t bytes) noexcept {
  std::byte* at = nullptr;
  if (own_sender_rank_ && !wedged_ && !long_.feeding()) {
    at = writer_.prepare(bytes);
    if (at == nullptr) {
      reclaim();
      at = writer_.prepare(bytes);
    }
  }
  if (at == nullptr) {
    note_no_room();
    return {};
  }
  if (no_room_since_ns_ != 0) [[unlikely]]
    note_room();
  return {at, bytes};
}

void SubgroupView::commit() noexcept {
  if (!writer_.prepared() || over_) return;
  counters_.bytes_sent += writer_.commit();
  ++counters_.messages_sent;
  if (timed_.due) [[unlikely]]
    time_own();
}

SendResult SubgroupView::send(std::span<const std::byte> message) {
  if (!own_sender_rank_) return SendResult::not_a_sender;
  if (message.size() > kMaxCastBytes) {
    throw Error("subgroup '" + options_.name + "': a message of " + std::to_string(message.size()) +
                " bytes; at most " + std::to_string(kMaxCastBytes) +
                " (kMaxCastBytes) are allowed");
  }
  if (message.size() <= largest_in_place()) {
    const std::span<std::byte> room = prepare(message.size());
    if (room.data() == nullptr) return wedged_ ? SendResult::wedged : SendResult::no_room;
    if (!message.empty()) std::memcpy(room.data(), message.data(), message.size());
    commit();
    return SendResult::sent;
  }
  if (wedged_ || long_.feeding()) {
    note_no_room();
    return wedged_ ? SendResult::wedged : SendResult::no_room;
  }
  if (no_room_since_ns_ != 0) [[unlikely]]
    note_room();
  long_.add(message);
  ++counters_.messages_sent;
  counters_.bytes_sent += message.size();
  feed();
  return SendResult::sent;
}

/// What all have delivered is free again (MC-B2).
void SubgroupView::reclaim() noexcept {
  const std::size_t offset =
      ordered() ? row::kDelivered : row::kConsumed + *own_sender_rank_ * kWordBytes;
  std::uint64_t lowest = UINT64_MAX;
  for (std::size_t member = 0; member < posted_.size(); ++member)
    if (member == me_ || !is_injected(FaultInjection::ring_reused_too_early))
      lowest = std::min(lowest, seen(member, offset));
  const std::uint64_t slots =
      ordered() ? order::slots_below(lowest, *own_sender_rank_, taken_.size()) : lowest;
  writer_.free_below(slots);
  long_.free_below(is_injected(FaultInjection::copy_freed_too_early) ? announced_.taken : slots);
}

/// Makes records of a long message, as there is room.
void SubgroupView::feed() noexcept {
  const std::size_t most = shape_.bytes / 8 - kWordBytes;
  while (long_.feeding()) {
    SentLong::Message& message = long_.last();
    const std::size_t bytes = std::min(most, message.bytes.size() - message.fed);
    std::byte* at = writer_.prepare(bytes);
    if (at == nullptr) {
      reclaim();
      at = writer_.prepare(bytes);
    }
    if (at == nullptr) return;
    std::memcpy(at, message.bytes.data() + message.fed, bytes);
    if (message.fed == 0) message.first_slot = writer_.taken();
    message.fed += bytes;
    const bool last = message.fed == message.bytes.size();
    if (last) message.last_slot = writer_.taken();
    writer_.commit(!last);
  }
}

/// Second stage: records to all peers, then one line that announces them and acknowledges others'.
std::size_t SubgroupView::send_stage() noexcept {
  bool announced = false;
  if (own_sender_rank_) {
    if (long_.feeding()) [[unlikely]]
      feed();
    if (goal_.taken == announced_.taken) choose_goal();
    if (goal_.taken != announced_.taken && (inline_payload() || post_records()))
      announced = announce();
  }
  // A queue that is full says nothing when it has room again.
  const bool refused = own_sender_rank_ && rings_connected_ && goal_.taken != announced_.taken;
  return publish(announced) + (refused ? 1 : 0);
}

/// As much as receipts may wait behind: they travel on the same queue.
void SubgroupView::choose_goal() noexcept {
  const bool batch = options_.switches.batch_send;
  const std::uint64_t most =
      announced_.head + std::clamp(shape_.bytes / 16, kLeastAtOnce, kMostAtOnce);
  if (!batch || writer_.head() > most) {
    std::uint64_t slots = 0;
    while (posting_.next(writer_.real()) != kNoSlot) {
      slots = posting_.take().slot + 1;
      if (!batch || posting_.position() >= most) break;
    }
    if (slots != 0 && posting_.next(writer_.real()) != kNoSlot) {
      goal_ = {posting_.position(), slots, slots, posting_.records()};
      return;
    }
  }
  posting_ = writer_.end();
  goal_ = {writer_.head(), writer_.real(), writer_.taken(), writer_.records()};
}

/// What is that small goes in the line itself, unless somebody may not have seen the words that it
/// carried last (MC-B6).
bool SubgroupView::inline_payload() noexcept {
  const std::uint64_t bytes = goal_.head - announced_.head;
  if (bytes == 0 || bytes > row::kMaxInlinedWords * kWordBytes) return false;
  if (options_.mode != Mode::ordered || !options_.switches.one_cache_line || !rings_connected_)
    return false;
  for (std::size_t member = 0; member < posted_.size(); ++member) {
    if (member != me_ && others_received_[member] < inlined_below_ &&
        !is_injected(FaultInjection::inlined_is_replaced_too_early))
      return false;
  }
  DUNLIN_ASSERT(bytes % kWordBytes == 0, "MC-B6: a line carries whole words");
  const RingShape ring = ring_of(*own_sender_rank_);
  const RingRun run = first_run(ring, announced_.head, goal_.head);
  if (run.bytes != bytes) return false;
  memory::fetch(table_->mine() + row::kInlined, ring.memory + run.place, run.bytes);
  publish_word(row::kInlinedAt, announced_.head + bytes / kWordBytes);
  std::ranges::fill(posted_, goal_.head);
  inlined_below_ = order::sequence_of(goal_.real - 1, *own_sender_rank_, taken_.size()) + 1;
  inlines_ = true;
  return true;
}

/// Up to the goal; false if a queue is full, or a peer's ring is not there yet.
bool SubgroupView::post_records() noexcept {
  if (!rings_connected_) return false;
  if (goal_.head == announced_.head) return true;
  const bool timed = options_.switches.time_posting;
  const std::uint64_t start = timed ? fabric_.now_ns() : 0;
  bool all = true;
  for (std::size_t member = 0; member < posted_.size(); ++member)
    if (member != me_) all &= post_to(member);
  if (timed) counters_.posting_ns += fabric_.now_ns() - start;
  return all || is_injected(FaultInjection::announced_too_early);
}

bool SubgroupView::post_to(std::size_t member) noexcept {
  if (posted_[member] == goal_.head) return true;
  const RingShape ring = ring_of(*own_sender_rank_);
  const std::size_t base = *own_sender_rank_ * shape_.bytes;
  std::array<Operation, 2> puts;
  std::size_t runs = 0;
  // Two are enough, unless a peer has spoilt what frees the ring (MC-R3): then the rest comes
  // later.
  for (std::uint64_t at = posted_[member]; at != goal_.head && runs < puts.size(); ++runs) {
    const RingRun run = first_run(ring, at, goal_.head);
    puts[runs] = put(options_.members[member], rings_.id(), base + run.place,
                     ring.memory + run.place, run.bytes);
    at += run.bytes;
  }
  const Posted posted = fabric_.post(std::span(puts).first(runs));
  for (std::size_t i = 0; i < posted.accepted; ++i) posted_[member] += puts[i].bytes;
  counters_.puts += posted.accepted;
  return posted.all() && posted_[member] == goal_.head;
}

/// All peers have the records, or will before they see this (MC-B1).
bool SubgroupView::announce() noexcept {
  DUNLIN_ASSERT(own_sender_rank_.has_value() && rings_connected_,
                "MC-B1: only a sender announces, and only once every peer has a ring for it");
  DUNLIN_ASSERT(is_injected(FaultInjection::announced_too_early) || goal_.head == announced_.head ||
                    std::ranges::all_of(posted_,
                                        [&](const std::uint64_t& posted) {
                                          return &posted == &posted_[me_] || posted == goal_.head;
                                        }),
                "MC-B1: all peers have been sent the records before they are announced");
  counters_.records_announced += goal_.records - announced_.records;
  counters_.send_batches += goal_.records != announced_.records ? 1 : 0;
  announced_ = goal_;
  publish_word(row::kReal, announced_.real);
  publish_word(row::kSent, announced_.taken);
  taken_[*own_sender_rank_] = announced_.taken;
  real_[*own_sender_rank_] = announced_.real;
  received_ = order::received(taken_);
  changed_ = true;
  return true;
}

std::size_t SubgroupView::publish(bool announced) noexcept {
  if (!ordered()) {
    if (announced) push(row::kReal, 2 * kWordBytes);
    if (must_publish_freed_) push_consumed();
    return announced ? 1 : 0;
  }
  const bool said =
      announced || must_publish_freed_ ||
      (!is_injected(FaultInjection::receipts_are_not_published) &&
       order::worth_publishing(published_received_, received_, own_sender_rank_, taken_, real_)) ||
      (durable() && must_publish_persisted());
  if (!said) return 0;
  publish_word(row::kReceived, received_);
  if (durable()) publish_word(row::kPersisted, persisted_);
  if (options_.switches.one_cache_line) {
    const std::size_t from = inlines_ ? row::kInlined : durable() ? row::kPersisted : row::kReal;
    push(from, row::kHotLineBytes - from);
    inlines_ = false;
  } else {
    if (announced) push(row::kReal, kWordBytes);
    if (announced) push(row::kSent, kWordBytes);
    if (published_received_ != received_) push(row::kReceived, kWordBytes);
    if (must_publish_freed_) push(row::kDelivered, kWordBytes);
    if (published_persisted_ != persisted_) push(row::kPersisted, kWordBytes);
  }
  // A line says what is freed, too, whatever it is pushed for.
  if (options_.switches.one_cache_line || must_publish_freed_)
    for (Source& source : sources_) source.published_freed = source.freed;
  published_received_ = received_;
  published_persisted_ = persisted_;
  must_publish_freed_ = false;
  return 1;
}

void SubgroupView::push(std::size_t offset, std::size_t bytes) noexcept {
  const bool timed = options_.switches.time_posting;
  const std::uint64_t start = timed ? fabric_.now_ns() : 0;
  const PushItem item{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)};
  counters_.pushes += table_->push(std::span(&item, 1)).sent;
  if (timed) counters_.posting_ns += fabric_.now_ns() - start;
}

/// Unordered: each sender alone has to know what is free of its ring.
void SubgroupView::push_consumed() noexcept {
  must_publish_freed_ = false;
  for (std::size_t sender_rank = 0; sender_rank < sources_.size(); ++sender_rank) {
    if (sender_rank == own_sender_rank_ || !freed_enough(sender_rank)) continue;
    const PushItem item{static_cast<std::uint32_t>(row::kConsumed + sender_rank * kWordBytes),
                        kWordBytes};
    const std::uint32_t to = sources_[sender_rank].member;
    counters_.pushes += table_->push_to(std::span(&to, 1), std::span(&item, 1)).sent;
    sources_[sender_rank].published_freed = sources_[sender_rank].freed;
  }
}

}  // namespace dunlin::multicast
