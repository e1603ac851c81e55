#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <dunlin/pubsub/limits.hpp>

/// The policies of topics, writers and readers: plain values. A policy has the name that it has in
/// DDS; docs/qos.md compares each of them with the standard.
///
///     dunlin::pubsub::DataReaderQos qos;
///     qos << History::keep_last(10) << Deadline{.period_ns = 20'000'000};
namespace dunlin::pubsub {

inline constexpr std::uint64_t kInfiniteNs = std::numeric_limits<std::uint64_t>::max();

/// A topic's promises for its samples: the four levels of the Spindle DDS. All members that use a
/// topic give the same level.
enum class Level : std::uint8_t {
  unordered,         // samples are delivered on receipt, discarded after that
  atomic,            // one order of all writers' samples at all readers; all members or none
  volatile_storage,  // atomic; every member of the topic keeps the samples in memory
  logged             // volatile_storage, and in logs on the disks of all members of the topic
};
[[nodiscard]] std::string_view describe(Level level) noexcept;

/// How many samples of each instance a reader holds; in a TopicQos: how many its storage holds.
struct History {
  enum class Kind : std::uint8_t { keep_last, keep_all };
  Kind kind = Kind::keep_last;
  std::uint32_t depth = 1;  // for keep_last
  static constexpr History keep_last(std::uint32_t depth) noexcept {
    return {.kind = Kind::keep_last, .depth = depth};
  }
  static constexpr History keep_all() noexcept { return {.kind = Kind::keep_all, .depth = 0}; }
  friend constexpr bool operator==(const History& a, const History& b) noexcept {
    return a.kind == b.kind && (a.kind == Kind::keep_all || a.depth == b.depth);
  }
};

struct ResourceLimits {
  std::uint32_t max_samples = 4096;  // a reader holds of all instances together
  /// Beyond that, a best-effort reader loses samples of further instances, and a reliable reader
  /// holds the topic back until the application has taken all samples of an ended instance.
  std::uint32_t max_instances = 65'536;
  friend bool operator==(const ResourceLimits&, const ResourceLimits&) = default;
};

/// Whether samples may be lost. A reader may request at most what the writer offers.
struct Reliability {
  enum class Kind : std::uint8_t { best_effort, reliable };
  Kind kind = Kind::reliable;
  static constexpr Reliability best_effort() noexcept { return {.kind = Kind::best_effort}; }
  static constexpr Reliability reliable() noexcept { return {.kind = Kind::reliable}; }
  friend bool operator==(const Reliability&, const Reliability&) = default;
};

/// Requested by readers. A topic offers what its level stores: volatile_ for unordered and atomic,
/// transient for volatile_storage, persistent for logged.
struct Durability {
  // NOLINTNEXTLINE(readability-identifier-naming): `volatile` is a keyword
  enum class Kind : std::uint8_t { volatile_, transient_local, transient, persistent };
  Kind kind = Kind::volatile_;
  friend bool operator==(const Durability&, const Durability&) = default;
};

/// A writer writes each instance at least once in this time.
struct Deadline {
  std::uint64_t period_ns = kInfiniteNs;
  friend bool operator==(const Deadline&, const Deadline&) = default;
};

/// How a writer shows that it is alive, and how long it may be silent.
struct Liveliness {
  enum class Kind : std::uint8_t { automatic, manual_by_participant, manual_by_topic };
  Kind kind = Kind::automatic;
  std::uint64_t lease_ns = kInfiniteNs;
  friend bool operator==(const Liveliness&, const Liveliness&) = default;
};

/// A sample older than this, counted from its receipt, is given to no reader.
struct Lifespan {
  std::uint64_t duration_ns = kInfiniteNs;
  friend bool operator==(const Lifespan&, const Lifespan&) = default;
};

struct Ownership {
  /// `either` is for readers, such as those of tools: writers of both kinds match.
  enum class Kind : std::uint8_t { shared, exclusive, either };
  Kind kind = Kind::shared;
  std::uint32_t strength = 0;  // a writer's strength; the strongest live writer owns an instance
  friend bool operator==(const Ownership&, const Ownership&) = default;
};

/// A reader is given at most one sample of an instance in this time.
struct TimeBasedFilter {
  std::uint64_t minimum_separation_ns = 0;
  friend bool operator==(const TimeBasedFilter&, const TimeBasedFilter&) = default;
};

/// What happens when a reliable reader with History::keep_all() is full; `drop` also concerns a
/// reader that requests best_effort, which otherwise loses samples when it is full.
struct SlowReader {
  enum class Kind : std::uint8_t {
    hold,  // it holds the topic back: writers see WriteResult::no_room
    /// The reader holds the topic back for `after_ns`; then it is given no more samples, and is
    /// told so.
    drop
  };
  Kind kind = Kind::hold;
  std::uint64_t after_ns = 0;
  friend bool operator==(const SlowReader&, const SlowReader&) = default;
};

/// TopicQos::max_samples of a logged topic that keeps all samples.
inline constexpr std::uint32_t kAllSamples = std::numeric_limits<std::uint32_t>::max();

/// The name of an order that several topics share; empty: a topic has an order of its own.
class OrderName {
 public:
  constexpr OrderName() noexcept = default;
  // The constructor is implicit, for TopicQos{.order = "flight"}.
  constexpr OrderName(std::string_view name) noexcept
      : size_(static_cast<std::uint8_t>(std::min(name.size(), kMaxOrderNameBytes + 1))) {
    std::ranges::copy(name.substr(0, size_), characters_.begin());
  }
  constexpr OrderName(const char* name) noexcept : OrderName(std::string_view(name)) {}
  OrderName(const std::string& name) noexcept : OrderName(std::string_view(name)) {}
  [[nodiscard]] constexpr std::string_view view() const noexcept {
    return {characters_.data(), size_};
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  friend constexpr bool operator==(const OrderName&, const OrderName&) noexcept = default;

 private:
  std::uint8_t size_ = 0;
  std::array<char, kMaxOrderNameBytes + 1> characters_ =
      {};  // one byte more than the limit, to notice a name that is too long
};

struct TopicQos {
  Level level = Level::atomic;
  /// The storage of volatile_storage and logged: samples of each instance, and in all. The oldest
  /// ones go first.
  History history = History::keep_all();
  std::uint32_t max_samples = 8192;
  /// The ring of each writing member, at every member of the topic; a power of two. A sample that
  /// is built in place takes at most a quarter of it.
  std::size_t ring_bytes = std::size_t{1} << 20;
  /// Most bytes of all payloads in the storage. The oldest samples go first, and the newest one
  /// stays in any case. 0: no limit.
  std::uint64_t max_bytes = 0;
  /// Samples that were received so long ago leave the storage. While no member of the topic runs,
  /// they do not age.
  std::uint64_t max_age_ns = kInfiniteNs;
  /// For logged topics: each time that about so many more bytes are in a member's log, the member
  /// trims the log to what the storage has. At least kLeastLogTrimBytes; 0: never, and the log
  /// keeps all samples.
  std::uint64_t log_trim_bytes = 0;
  /// All topics that name one order have one order of their samples together
  /// (SampleInfo::order_position). For atomic and volatile_storage topics with equal ring_bytes.
  OrderName order = {};
  friend bool operator==(const TopicQos&, const TopicQos&) = default;
};

struct DataWriterQos {
  Reliability reliability = {};
  Deadline deadline = {};
  Liveliness liveliness = {};
  Lifespan lifespan = {};
  Ownership ownership = {};
  friend bool operator==(const DataWriterQos&, const DataWriterQos&) = default;
};

struct DataReaderQos {
  Reliability reliability = Reliability::best_effort();
  Durability durability = {};
  History history = {};
  ResourceLimits limits = {};
  Deadline deadline = {};
  Liveliness liveliness = {};
  Ownership ownership = {};
  TimeBasedFilter time_based_filter = {};
  SlowReader slow_reader = {};
  friend bool operator==(const DataReaderQos&, const DataReaderQos&) = default;
};

// Policies are set as DDS programs write them: qos << Reliability::reliable() <<
// History::keep_last(3).
inline DataWriterQos& operator<<(DataWriterQos& q, Reliability p) { return q.reliability = p, q; }
inline DataWriterQos& operator<<(DataWriterQos& q, Deadline p) { return q.deadline = p, q; }
inline DataWriterQos& operator<<(DataWriterQos& q, Liveliness p) { return q.liveliness = p, q; }
inline DataWriterQos& operator<<(DataWriterQos& q, Lifespan p) { return q.lifespan = p, q; }
inline DataWriterQos& operator<<(DataWriterQos& q, Ownership p) { return q.ownership = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, Reliability p) { return q.reliability = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, Durability p) { return q.durability = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, History p) { return q.history = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, ResourceLimits p) { return q.limits = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, Deadline p) { return q.deadline = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, Liveliness p) { return q.liveliness = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, Ownership p) { return q.ownership = p, q; }
inline DataReaderQos& operator<<(DataReaderQos& q, TimeBasedFilter p) {
  return q.time_based_filter = p, q;
}
inline DataReaderQos& operator<<(DataReaderQos& q, SlowReader p) { return q.slow_reader = p, q; }

}  // namespace dunlin::pubsub
