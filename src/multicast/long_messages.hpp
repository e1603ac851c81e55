#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "multicast/ring.hpp"

/// Messages of several records: the sender's copies, and what a receiver has put together of one.
/// Beside the data path: these may allocate.
namespace dunlin::multicast {

/// A sender keeps a long message whole until all have it, as its first records may be written over
/// by then, and the view may end before its last one counts. Records are made of the last of them
/// as there is room.
class SentLong {
 public:
  struct Message {
    std::vector<std::byte> bytes;
    std::size_t fed = 0;  // bytes that are in records
    std::uint64_t first_turn = kNoTurn;
    std::uint64_t last_turn = kNoTurn;  // kNoTurn: some are not in records yet
  };

  [[nodiscard]] bool feeding() const noexcept {
    return !messages_.empty() && messages_.back().last_turn == kNoTurn;
  }
  void add(std::span<const std::byte> message) {
    messages_.push_back({.bytes = {message.begin(), message.end()}});
  }
  [[nodiscard]] Message& last() noexcept { return messages_.back(); }
  void free_below(std::uint64_t turn) noexcept {
    while (!messages_.empty() && messages_.front().last_turn < turn) messages_.pop_front();
  }
  [[nodiscard]] const std::deque<Message>& messages() const noexcept { return messages_; }

 private:
  std::deque<Message> messages_;
};

/// A receiver's part of one, by sender.
class Assembly {
 public:
  [[nodiscard]] bool open() const noexcept { return open_; }
  /// Whether a message was completed, and has not been let go of.
  [[nodiscard]] bool held() const noexcept { return held_; }

  /// Returns whether that was the last part. Requires that none is held.
  bool add(const Record& part) {
    if (bytes_.size() + part.message.size() <= kMaxCastBytes)  // or a peer has spoilt its ring
      bytes_.insert(bytes_.end(), part.message.begin(), part.message.end());
    open_ = part.continues;
    held_ = !part.continues;
    if (part.continues) unfinished_turns_.push_back(part.turn);
    return held_;
  }
  [[nodiscard]] std::span<const std::byte> message() const noexcept { return bytes_; }
  void let_go() noexcept {
    if (!held_) return;
    bytes_.clear();
    held_ = false;
  }

  /// How many turns from `turn` on were of parts but for a last one.
  [[nodiscard]] std::uint64_t parts_from(std::uint64_t turn) const noexcept {
    std::uint64_t parts = 0;
    for (const std::uint64_t part : unfinished_turns_) parts += part >= turn ? 1 : 0;
    return parts;
  }
  [[nodiscard]] const std::deque<std::uint64_t>& unfinished_turns() const noexcept {
    return unfinished_turns_;
  }
  /// Turns that all members have delivered are not asked for.
  void forget_parts_below(std::uint64_t turn) noexcept {
    while (!unfinished_turns_.empty() && unfinished_turns_.front() < turn)
      unfinished_turns_.pop_front();
  }

 private:
  std::vector<std::byte> bytes_;
  std::deque<std::uint64_t> unfinished_turns_;
  bool open_ = false;
  bool held_ = false;
};

}  // namespace dunlin::multicast
