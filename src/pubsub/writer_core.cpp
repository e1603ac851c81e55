#include "pubsub/writer_core.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <dunlin/pubsub/cdr.hpp>

#include "pubsub/topic_core.hpp"

namespace dunlin::pubsub {
namespace {

/// How often a writer with automatic liveliness shows in each lease that it is alive.
constexpr std::uint64_t kAssertionsALease = 3;

}  // namespace

WriterCore::WriterCore(std::shared_ptr<TopicCore> of, std::shared_ptr<const TypeSupport> type,
                       std::uint16_t number, DataWriterQos qos)
    : topic(std::move(of)), type_(std::move(type)), number_(number), qos_(qos) {}

WriteResult WriterCore::why_not() const noexcept {
  if (closed_ || topic->ended()) return WriteResult::ended;
  if (!why_refused.empty()) return WriteResult::refused;
  return WriteResult::not_ready;
}

MessageHeader WriterCore::header(Kind kind, const void* sample) {
  MessageHeader made{.kind = kind,
                     .flags = type_->plain ? std::uint8_t{0} : kXcdrFlag,
                     .endpoint = number_,
                     .topic = topic->number(),
                     .sequence = sequence_ + 1,
                     .source_ns = topic->now_ns()};
  if (type_->raw) {
    const auto& raw = *static_cast<const RawSample*>(sample);
    made.flags = raw.plain ? std::uint8_t{0} : kXcdrFlag;
    made.key_hash = raw.key_hash;
  } else if (type_->keyed) {
    key_.clear();
    type_->append_key(sample, key_);
    made.key_hash = hash_key(key_);
  }
  return made;
}

WriteResult WriterCore::noted(WriteResult result) noexcept {
  refused_ = result == WriteResult::no_room || result == WriteResult::not_ready;
  return result;
}

/// Memory in the ring; the writer is told when there is room if there is none now.
std::span<std::byte> WriterCore::prepare(std::size_t bytes) noexcept {
  refused_bytes_ = bytes;
  const auto room = topic->channel()->prepare(bytes);
  refused_ = room.data() == nullptr && bytes <= topic->channel()->largest_in_place();
  return room;
}

bool WriterCore::note_room() noexcept {
  if (!refused_ || !on_room) [[likely]]
    return false;
  const Channel* const channel = topic->channel();
  if (!active || closed_ || channel == nullptr || !channel->has_room(refused_bytes_)) return false;
  refused_ = false;
  room_came_ = true;
  return true;
}

WriteResult WriterCore::try_put(const void* sample, Kind kind, const ClientStamp* from) {
  if (!active || closed_ || topic->channel() == nullptr) [[unlikely]]
    return why_not();
  MessageHeader made = header(kind, sample);
  if (type_->plain && from == nullptr) {
    const std::size_t bytes = kHeaderBytes + type_->bytes;
    if (const auto room = prepare(bytes); room.data() != nullptr) [[likely]] {
      std::memcpy(room.data(), &made, kHeaderBytes);
      std::memcpy(room.data() + kHeaderBytes, sample, type_->bytes);
      topic->channel()->commit();
      written(made);
      return WriteResult::written;
    }
    if (topic->ended()) return WriteResult::ended;
    if (bytes <= topic->channel()->largest_in_place()) return WriteResult::no_room;
  }
  if (from != nullptr) made.flags |= kClientFlag;
  message_.resize(kHeaderBytes);
  std::memcpy(message_.data(), &made, kHeaderBytes);
  if (from != nullptr) Writer(message_).bytes(std::as_bytes(std::span(from, 1)));
  if (type_->plain) {
    const auto* const begin = static_cast<const std::byte*>(sample);
    message_.insert(message_.end(), begin, begin + type_->bytes);
  } else {
    type_->encode(sample, message_);
  }
  refused_bytes_ = message_.size();
  const WriteResult result = topic->send(message_);
  if (result == WriteResult::written) written(made);
  return result;
}

void WriterCore::written(const MessageHeader& made) {
  sequence_ = made.sequence;
  loaned_ = nullptr;
  asserted_ns_ = topic->now_ns();
  if (std::exchange(lost_, false)) topic->due_at(next_due_ns());
  if (qos_.deadline.period_ns == kInfiniteNs) return;
  if (made.kind == Kind::sample) {
    const std::uint64_t due_ns = asserted_ns_ + qos_.deadline.period_ns;
    deadlines_ns_[made.key_hash] = due_ns;
    deadline_due_ns_ = std::min(deadline_due_ns_, due_ns);
    topic->due_at(deadline_due_ns_);
  } else {
    deadlines_ns_.erase(made.key_hash);
  }
}

void* WriterCore::loan() noexcept {
  if (!type_->plain) return nullptr;
  if (!active || closed_ || topic->channel() == nullptr) {
    refused_ = !closed_;
    return nullptr;
  }
  const auto room = prepare(kHeaderBytes + type_->bytes);
  loaned_ = room.data();
  loaned_as_ = topic->channel()->prepared();
  loaned_header_.reset();
  return loaned_ == nullptr ? nullptr : loaned_ + kHeaderBytes;
}

std::span<std::byte> WriterCore::loan(const void* fields, std::size_t elements) {
  if (type_->encode_head == nullptr) return {};
  if (!active || closed_ || topic->channel() == nullptr) {
    refused_ = !closed_;
    return {};
  }
  loaned_header_ = header(Kind::sample, fields);
  message_.resize(kHeaderBytes);
  std::memcpy(message_.data(), &*loaned_header_, kHeaderBytes);
  type_->encode_head(fields, elements, message_);
  const std::size_t bytes = elements * type_->element_bytes;
  const std::size_t all = round_up(message_.size() + bytes, cdr::kHeaderBytes);
  const std::size_t padding = all - message_.size() - bytes;
  message_[kHeaderBytes + cdr::kHeaderBytes - 1] = static_cast<std::byte>(padding);
  const auto room = prepare(all);
  loaned_ = room.data();
  loaned_as_ = topic->channel()->prepared();
  if (loaned_ == nullptr) return {};
  std::memcpy(loaned_, message_.data(), message_.size());
  std::memset(loaned_ + all - padding, 0, padding);
  return room.subspan(message_.size(), bytes);
}

void WriterCore::publish() noexcept {
  if (loaned_ == nullptr || topic->channel() == nullptr) return;
  if (topic->channel()->prepared() != loaned_as_) {  // the memory was taken back
    loaned_ = nullptr;
    return;
  }
  const MessageHeader made =
      loaned_header_ ? *loaned_header_ : header(Kind::sample, loaned_ + kHeaderBytes);
  if (!loaned_header_) std::memcpy(loaned_, &made, kHeaderBytes);
  topic->channel()->commit();
  written(made);
}

/// Whether the others have all samples; the multicast counts those of all writers here in the
/// topic, or in its order.
bool WriterCore::acknowledged() const {
  return sequence_ == 0 || (topic->channel() != nullptr && topic->channel()->acknowledged());
}

WriteResult WriterCore::assert_liveliness() {
  if (!active || closed_ || topic->channel() == nullptr) return why_not();
  const WriteResult result = topic->send(
      make_message({.kind = Kind::alive, .endpoint = number_, .topic = topic->number()}, nullptr));
  if (result == WriteResult::written) {
    asserted_ns_ = topic->now_ns();
    lost_ = false;
    topic->due_at(asserted_ns_);
  }
  return result;
}

void WriterCore::check_time(std::uint64_t now_ns) {
  if (!active) return;
  const std::uint64_t lease_ns = qos_.liveliness.lease_ns;
  if (lease_ns != kInfiniteNs) {
    if (asserted_ns_ == 0) asserted_ns_ = now_ns;
    if (qos_.liveliness.kind == Liveliness::Kind::automatic) {
      if (now_ns - asserted_ns_ >= lease_ns / kAssertionsALease)
        static_cast<void>(assert_liveliness());
    } else if (!lost_ && now_ns - asserted_ns_ >= lease_ns) {
      lost_ = true;
      ++lost_status.total_count;
      changed(Status::liveliness_lost);
    }
  }
  if (now_ns < deadline_due_ns_) return;
  deadline_due_ns_ = kInfiniteNs;
  for (auto& [key, due_ns] : deadlines_ns_) {
    if (due_ns <= now_ns) {
      ++deadline_status.total_count;
      changed(Status::offered_deadline_missed);
      due_ns += qos_.deadline.period_ns;
      if (due_ns <= now_ns) due_ns = now_ns + qos_.deadline.period_ns;
    }
    deadline_due_ns_ = std::min(deadline_due_ns_, due_ns);
  }
}

std::uint64_t WriterCore::next_due_ns() const noexcept {
  std::uint64_t due_ns = deadline_due_ns_;
  const std::uint64_t lease_ns = qos_.liveliness.lease_ns;
  if (lease_ns == kInfiniteNs || lost_ || !active) return due_ns;
  const bool automatic = qos_.liveliness.kind == Liveliness::Kind::automatic;
  return std::min(due_ns, asserted_ns_ + (automatic ? lease_ns / kAssertionsALease : lease_ns));
}

void WriterCore::changed(Status status) noexcept {
  pending_ = pending_ | status;
  changes_ = changes_ | status;
}

Status WriterCore::take_changes() noexcept { return std::exchange(changes_, Status::none); }

void WriterCore::flush() {
  if (std::exchange(room_came_, false) && !closed_) {
    // The handler may set another one, and must not destroy itself by that.
    if (const auto handler = on_room) handler();
  }
  const Status now = std::exchange(pending_, Status::none);
  if (now != Status::none && on_status && !closed_) on_status(now);
}

}  // namespace dunlin::pubsub
