#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "multicast/ring.hpp"

/// Messages of several records: the sender's copies, and the fragments that a receiver has put
/// together. They are not on the data path, and may allocate.
namespace dunlin::multicast {

/// The long messages that a sender keeps whole until all have them: the first records of one may be
/// written over by then, and the view may end before its last record counts. Records are made of
/// the last message as there is room.
class SentLong {
 public:
  struct Message {
    std::vector<std::byte> bytes;
    std::size_t fed = 0;  // bytes that are in records
    std::uint64_t first_slot = kNoSlot;
    std::uint64_t last_slot = kNoSlot;  // kNoSlot: some bytes are not in records yet
  };

  [[nodiscard]] bool feeding() const noexcept {
    return !messages_.empty() && messages_.back().last_slot == kNoSlot;
  }
  void add(std::span<const std::byte> message) {
    messages_.push_back({.bytes = {message.begin(), message.end()}});
  }
  [[nodiscard]] Message& last() noexcept { return messages_.back(); }
  void free_below(std::uint64_t slot) noexcept {
    while (!messages_.empty() && messages_.front().last_slot < slot) messages_.pop_front();
  }
  [[nodiscard]] const std::deque<Message>& messages() const noexcept { return messages_; }

 private:
  std::deque<Message> messages_;
};

/// The part of a sender's long message that has come to a receiver.
class Reassembly {
 public:
  [[nodiscard]] bool open() const noexcept { return open_; }
  /// Whether a message is complete, and let_go() has not been called.
  [[nodiscard]] bool held() const noexcept { return held_; }

  /// Returns whether that was the last part. Requires that no message is held.
  bool add(const Record& fragment) {
    if (bytes_.size() + fragment.message.size() <= kMaxCastBytes)  // or a peer has spoilt its ring
      bytes_.insert(bytes_.end(), fragment.message.begin(), fragment.message.end());
    open_ = fragment.continues;
    held_ = !fragment.continues;
    if (fragment.continues) unfinished_slots_.push_back(fragment.slot);
    return held_;
  }
  [[nodiscard]] std::span<const std::byte> message() const noexcept { return bytes_; }
  void let_go() noexcept {
    if (!held_) return;
    bytes_.clear();
    held_ = false;
  }

  /// How many slots from `slot` on had parts of messages, but no last part.
  [[nodiscard]] std::uint64_t fragments_from(std::uint64_t slot) const noexcept {
    std::uint64_t fragments = 0;
    for (const std::uint64_t fragment : unfinished_slots_) fragments += fragment >= slot ? 1 : 0;
    return fragments;
  }
  [[nodiscard]] const std::deque<std::uint64_t>& unfinished_slots() const noexcept {
    return unfinished_slots_;
  }
  /// Nobody asks for slots that all members have delivered.
  void forget_fragments_below(std::uint64_t slot) noexcept {
    while (!unfinished_slots_.empty() && unfinished_slots_.front() < slot)
      unfinished_slots_.pop_front();
  }

 private:
  std::vector<std::byte> bytes_;
  std::deque<std::uint64_t> unfinished_slots_;
  bool open_ = false;
  bool held_ = false;
};

}  // namespace dunlin::multicast
