#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// The reports of writers and readers: the result of a write, the facts about a sample, and
/// statuses. All are plain values; times are nanoseconds of the fabric's clock.
namespace dunlin::pubsub {

/// The result of a write. Only `written` takes the sample; otherwise the caller still has it.
enum class WriteResult : std::uint8_t {
  written,
  no_room,  // the ring is full, or a reader holds the topic back: poll, and try again
  /// The writer is not announced yet, or a view ends, or this member leaves the group: poll, and
  /// try again.
  not_ready,
  refused,  // the topic has another type: why_refused() shows both
  ended     // the writer is closed, or the group has ended here
};
[[nodiscard]] std::string_view describe(WriteResult result) noexcept;

enum class SampleState : std::uint8_t { not_read = 1, read = 2, any = 3 };
enum class ViewState : std::uint8_t { new_view = 1, not_new_view = 2, any = 3 };
enum class InstanceState : std::uint8_t {
  alive = 1,
  disposed = 2,
  no_writers = 4,
  not_alive = 6,
  any = 7
};

/// Names an instance of a keyed topic, at one reader. 0: no instance.
using InstanceHandle = std::uint64_t;

/// Names a writer: the member's name, and the writer's number there.
struct EndpointId {
  std::string_view member;
  std::uint16_t number = 0;
};

struct SampleInfo {
  bool valid_data = true;  // false: only the instance's state changed, and only the key is there
  SampleState sample_state = SampleState::not_read;
  ViewState view_state = ViewState::new_view;
  InstanceState instance_state = InstanceState::alive;
  InstanceHandle instance = 0;
  EndpointId publication = {};
  std::uint64_t sequence = 0;      // the writer's number of the sample, from 1 on
  std::uint64_t source_ns = 0;     // when it was written, by the writer's clock
  std::uint64_t reception_ns = 0;  // when it was received, by this member's clock
  /// The sample's number in the topic, from 1 on: equal at all members, if the topic has one order.
  std::uint64_t position = 0;
  /// The sample's number in the order of several topics, equal at all members; 0: it has none.
  std::uint64_t order_position = 0;
  std::uint32_t disposed_generation = 0;
  std::uint32_t no_writers_generation = 0;
  std::uint32_t sample_rank = 0;  // how many samples of the instance follow in this result
  [[nodiscard]] bool valid() const noexcept { return valid_data; }
};

/// Selects the samples that a read() or take() returns.
struct Selection {
  std::uint32_t max_samples = UINT32_MAX;
  SampleState sample_states = SampleState::any;
  ViewState view_states = ViewState::any;
  InstanceState instance_states = InstanceState::any;
  InstanceHandle instance = 0;  // 0: all instances
};

/// The statuses, as bits of a StatusMask.
enum class Status : std::uint32_t {
  none = 0,
  data_available = 1U << 0U,
  requested_deadline_missed = 1U << 1U,
  requested_incompatible_qos = 1U << 2U,
  liveliness_changed = 1U << 3U,
  subscription_matched = 1U << 4U,
  sample_rejected = 1U << 5U,
  sample_lost = 1U << 6U,
  offered_deadline_missed = 1U << 7U,
  offered_incompatible_qos = 1U << 8U,
  liveliness_lost = 1U << 9U,
  publication_matched = 1U << 10U,
  inconsistent_topic = 1U << 11U,
  all = 0xffffU
};
[[nodiscard]] constexpr Status operator|(Status a, Status b) noexcept {
  return static_cast<Status>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr bool has(Status mask, Status one) noexcept {
  return (static_cast<std::uint32_t>(mask) & static_cast<std::uint32_t>(one)) != 0;
}

struct MatchedStatus {
  std::uint32_t current_count = 0;
  std::uint32_t total_count = 0;
};
struct DeadlineMissedStatus {
  std::uint32_t total_count = 0;
  InstanceHandle last_instance = 0;
};
struct IncompatibleQosStatus {
  std::uint32_t total_count = 0;
  std::string last = {};  // a sentence that names both sides and the policy
};
struct LivelinessChangedStatus {
  std::uint32_t alive_count = 0;
  std::uint32_t not_alive_count = 0;
};
struct LivelinessLostStatus {
  std::uint32_t total_count = 0;
};
struct SampleRejectedStatus {
  std::uint32_t total_count = 0;  // how often an instance beyond ResourceLimits::max_instances came
};
struct SampleLostStatus {
  std::uint32_t total_count = 0;  // samples that could not be decoded, or were trimmed from the log
  bool dropped = false;           // this reader was too slow (SlowReader), and gets no more
};
struct InconsistentTopicStatus {
  std::uint32_t total_count = 0;
  std::string last = {};  // both types, and the first line that differs
};

}  // namespace dunlin::pubsub
