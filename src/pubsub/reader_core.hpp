#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dunlin/pubsub/core.hpp>

#include "pubsub/remote_writer.hpp"

/// A reader's cache and its instances. Pure: samples and the time come in, and it asks for nothing
/// else.
///
///  PUB-R1  A known instance costs no allocation, and a slot is allocated at most once for each
///          sample that is cached or lent at a time.
///  PUB-R2  A slot that is lent is not reused before it is given back, also if it is evicted.
namespace dunlin::pubsub {

class TopicCore;

struct ReaderInstance {
  InstanceHandle handle = 0;
  std::string key = {};
  /// An object with the key members of this instance; null if the instance is told apart by a hash.
  void* key_holder = nullptr;
  InstanceState state = InstanceState::alive;
  bool is_new = true;
  std::uint32_t disposed_generation = 0;
  std::uint32_t no_writers_generation = 0;
  std::vector<RemoteWriter*> writers = {};
  RemoteWriter* owner = nullptr;  // with exclusive ownership
  std::uint32_t cached = 0;
  ReaderSlot* oldest = nullptr;
  ReaderSlot* newest = nullptr;
  std::uint64_t deadline_ns = kInfiniteNs;
  std::uint64_t passed_ns = 0;  // when a sample last passed the time-based filter
  bool passed_any = false;
  std::uint32_t rank = 0;  // while samples are lent: how many of the instance lie behind
};

/// A place in the order of several topics.
struct InOrder {
  std::uint64_t position = 0;
  bool is_behind = false;  // the sample at the position is what happened before the next one
};

struct ReaderSlot {
  void* data = nullptr;
  SampleInfo info = {};
  ReaderInstance* instance = nullptr;
  std::uint64_t expires_ns = kInfiniteNs;
  std::uint32_t loans = 0;
  bool cached = false;
  bool is_behind = false;  // as InOrder::is_behind
  // The list of all slots in the order of reception, and that of the instance's slots.
  ReaderSlot* before = nullptr;
  ReaderSlot* after = nullptr;
  ReaderSlot* instance_before = nullptr;
  ReaderSlot* instance_after = nullptr;
};

class ReaderCore {
 public:
  ReaderCore(std::shared_ptr<TopicCore> topic, std::shared_ptr<const TypeSupport> type,
             std::uint16_t number, DataReaderQos qos, AnyReader::Filter filter);
  ~ReaderCore();
  ReaderCore(const ReaderCore&) = delete;
  ReaderCore& operator=(const ReaderCore&) = delete;

  // --- what arrives ------------------------------------------------------------------------------
  void receive(const Incoming& in, std::uint64_t now_ns);
  /// Says that the order of several topics has reached this position, at which what follows
  /// happens.
  void comes_to(std::uint64_t order_position) noexcept {
    if (catches_up) return;
    order_.position = std::max(order_.position, order_position);
    order_.is_behind = true;
  }
  /// Tells the reader that a writer matches it, is silent, is heard again, or has gone for good.
  void matched(bool alive);
  void unmatched(RemoteWriter& writer, std::uint64_t now_ns);
  void went_silent(RemoteWriter& writer, std::uint64_t now_ns);
  void heard_again();
  /// Says that the writer writes no instance any more.
  void forget(RemoteWriter& writer, std::uint64_t now_ns);
  void mismatched(std::string why);
  /// Fires all timers that are due.
  void check_time(std::uint64_t now_ns);
  [[nodiscard]] std::uint64_t next_due_ns() const noexcept { return next_due_ns_; }
  /// Whether the topic has to wait for this reader: its cache is full, or the last message was the
  /// first one of an instance too many.
  [[nodiscard]] bool is_full() const noexcept {
    const bool lacks_room = (holds_ && cached_ >= room_) || instances_.size() > most_instances_;
    return lacks_room && !dropped_ && !closed_;
  }
  /// Lets a full cache take as many samples more, until it has no more than usual again.
  void make_room() noexcept {
    if (cached_ >= room_) room_ = cached_ + qos_.limits.max_samples;
    most_instances_ = std::max(most_instances_, instances_.size());
  }
  /// PUB-S1: gives up this reader, which has been full for too long.
  void drop() noexcept;

  // --- what is taken -----------------------------------------------------------------------------
  std::size_t lend(const Selection& selection, bool take, std::vector<ReaderSlot*>& slots,
                   std::vector<SampleInfo>& infos, std::uint64_t now_ns);
  void give_back(std::vector<ReaderSlot*>& slots) noexcept;
  [[nodiscard]] bool available(const Selection& selection, std::uint64_t now_ns) const noexcept;
  [[nodiscard]] bool any(const Selection& selection, std::uint64_t now_ns,
                         const AnyReader::Filter& query) const;
  [[nodiscard]] InstanceHandle lookup(const void* key_holder) const;
  /// The position of the oldest cached sample in the order of several topics; none: nothing is
  /// cached.
  [[nodiscard]] std::optional<InOrder> next_in_order(std::uint64_t now_ns) const noexcept;

  // --- statuses ----------------------------------------------------------------------------------
  [[nodiscard]] bool wants_flush() const noexcept { return pending_ != Status::none; }
  /// Calls the handler with the statuses that have changed since the last flush().
  void flush();
  [[nodiscard]] Status take_changes() noexcept;
  [[nodiscard]] Status changes() const noexcept { return changes_; }
  void changed(Status status) noexcept;

  std::shared_ptr<TopicCore> topic;
  AnyReader::SampleHandler on_sample;
  std::function<void(Status)> on_status;
  std::string why_refused;
  std::uint64_t announcement = 0;  // counts this member's announcements
  bool active = false;             // whether its announcement was delivered: it gets samples
  bool catches_up = false;         // whether it is on its way through stored samples
  std::uint64_t full_since_ns = 0;
  MatchedStatus matched_status;
  DeadlineMissedStatus deadline_status;
  IncompatibleQosStatus incompatible_status;
  LivelinessChangedStatus liveliness_status;
  SampleRejectedStatus rejected_status;
  SampleLostStatus lost_status;

  [[nodiscard]] const DataReaderQos& qos() const noexcept { return qos_; }
  [[nodiscard]] const TypeSupport& type() const noexcept { return *type_; }
  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  void close() noexcept { closed_ = true; }
  [[nodiscard]] bool dropped() const noexcept { return dropped_; }

  // Memory that Loan reuses.
  std::vector<ReaderSlot*> spare_slots;
  std::vector<SampleInfo> spare_infos;

 private:
  [[nodiscard]] const void* object_of(const Incoming& in);
  [[nodiscard]] ReaderInstance* instance_of(const void* object, bool make,
                                            std::uint64_t key_hash = 0);
  void append_key(const void* object) const;
  [[nodiscard]] bool owned(ReaderInstance& instance, RemoteWriter& writer) const noexcept;
  void sample(const Incoming& in, ReaderInstance& instance, const void* object,
              std::uint64_t now_ns);
  void key_only(const Incoming& in, ReaderInstance& instance, const void* object);
  void revive(ReaderInstance& instance) noexcept;
  void end_instance(ReaderInstance& instance, InstanceState state, const RemoteWriter& writer,
                    const MessageHeader& header, std::uint64_t received_ns);
  void forget_writer(ReaderInstance& instance, RemoteWriter& writer, std::uint64_t now_ns);
  [[nodiscard]] SampleInfo info_of(const Incoming& in, const ReaderInstance& instance) const;
  ReaderSlot* store(ReaderInstance& instance, const void* object, const SampleInfo& info);
  [[nodiscard]] ReaderSlot* free_slot();
  void unlink(ReaderSlot& slot) noexcept;
  void destroy_key_holder(const ReaderInstance& instance) const noexcept;
  void reclaim_instances(std::size_t most);
  [[nodiscard]] bool selected(const Selection& selection, const ReaderSlot& slot,
                              std::uint64_t now_ns) const noexcept;
  void due_at(std::uint64_t time_ns) noexcept {
    if (time_ns < next_due_ns_) next_due_ns_ = time_ns;
  }

  std::shared_ptr<const TypeSupport> type_;
  std::uint16_t number_;
  DataReaderQos qos_;
  AnyReader::Filter filter_;
  bool holds_;
  bool closed_ = false;
  bool dropped_ = false;
  // For types that are not plain: the sample that was decoded last.
  void* scratch_ = nullptr;
  mutable std::vector<std::byte> key_;

  InOrder order_;  // where the present message lies
  std::vector<std::unique_ptr<ReaderSlot>> slots_;
  std::vector<ReaderSlot*> free_;
  ReaderSlot* oldest_ = nullptr;
  ReaderSlot* newest_ = nullptr;
  std::uint32_t cached_ = 0;
  std::uint32_t room_;          // how many samples it may cache
  std::size_t most_instances_;  // how many instances it may have before it is full

  std::unordered_map<std::string_view, std::unique_ptr<ReaderInstance>> instances_;
  ReaderInstance* only_ = nullptr;  // the instance of a topic without keys
  InstanceHandle next_handle_ = 1;
  std::uint64_t next_due_ns_ = kInfiniteNs;
  Status pending_ = Status::none;
  Status changes_ = Status::none;
};

}  // namespace dunlin::pubsub
