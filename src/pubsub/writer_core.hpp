#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <dunlin/pubsub/core.hpp>

#include "pubsub/wire.hpp"

namespace dunlin::pubsub {

class TopicCore;

/// A writer of this member.
class WriterCore {
 public:
  WriterCore(std::shared_ptr<TopicCore> topic, std::shared_ptr<const TypeSupport> type,
             std::uint16_t number, DataWriterQos qos);

  [[nodiscard]] WriteResult put(const void* sample, Kind kind, const ClientStamp* from = nullptr) {
    return noted(try_put(sample, kind, from));
  }
  [[nodiscard]] void* loan() noexcept;
  [[nodiscard]] std::span<std::byte> loan(const void* fields, std::size_t elements);
  void publish() noexcept;
  [[nodiscard]] WriteResult assert_liveliness();
  [[nodiscard]] bool acknowledged() const;

  /// Looks whether there is room for what was refused last; if so, flush() calls on_room.
  [[nodiscard]] bool note_room() noexcept;

  /// Fires timers that are due, and sends signs of life.
  void check_time(std::uint64_t now_ns);
  [[nodiscard]] std::uint64_t next_due_ns() const noexcept;

  void changed(Status status) noexcept;
  [[nodiscard]] bool wants_flush() const noexcept { return pending_ != Status::none || room_came_; }
  void flush();
  [[nodiscard]] Status take_changes() noexcept;
  [[nodiscard]] Status changes() const noexcept { return changes_; }

  std::shared_ptr<TopicCore> topic;
  std::function<void(Status)> on_status;
  std::function<void()> on_room;
  std::string why_refused;
  std::uint64_t announcement = 0;  // counts this member's announcements
  bool active = false;             // whether its announcement was delivered
  MatchedStatus matched_status;
  DeadlineMissedStatus deadline_status;
  IncompatibleQosStatus incompatible_status;
  LivelinessLostStatus lost_status;

  [[nodiscard]] const DataWriterQos& qos() const noexcept { return qos_; }
  [[nodiscard]] const TypeSupport& type() const noexcept { return *type_; }
  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  void close() noexcept { closed_ = true; }

 private:
  [[nodiscard]] WriteResult try_put(const void* sample, Kind kind, const ClientStamp* from);
  [[nodiscard]] WriteResult noted(WriteResult result) noexcept;
  [[nodiscard]] std::span<std::byte> prepare(std::size_t bytes) noexcept;
  [[nodiscard]] WriteResult why_not() const noexcept;
  [[nodiscard]] MessageHeader header(Kind kind, const void* sample);
  void written(const MessageHeader& header);

  std::shared_ptr<const TypeSupport> type_;
  std::uint16_t number_;
  DataWriterQos qos_;
  bool closed_ = false;
  std::uint64_t sequence_ = 0;
  std::byte* loaned_ = nullptr;
  std::uint64_t loaned_as_ = 0;                 // Channel::prepared() when the memory was lent
  std::optional<MessageHeader> loaned_header_;  // set if the header is in the ring already
  std::vector<std::byte> key_;
  std::vector<std::byte> message_;  // for samples that are not built in place
  std::uint64_t asserted_ns_ = 0;   // when the writer last showed that it is alive
  bool lost_ = false;
  std::unordered_map<std::uint64_t, std::uint64_t> deadlines_ns_;  // by key hash
  std::uint64_t deadline_due_ns_ = kInfiniteNs;
  bool refused_ = false;           // the last call found no room, and on_room was not called since
  std::size_t refused_bytes_ = 0;  // the bytes for which there was no room
  bool room_came_ = false;
  Status pending_ = Status::none;
  Status changes_ = Status::none;
};

}  // namespace dunlin::pubsub
