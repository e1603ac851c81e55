#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dunlin/multicast.hpp>
#include <dunlin/pubsub/limits.hpp>
#include <dunlin/pubsub/qos.hpp>

#include "fabric/bytes.hpp"
#include "pubsub/remote_writer.hpp"

/// What a member remembers of a topic whose log keeps its samples: counts, places in the log, and
/// the writers. No sample is in memory. Pure; docs/pubsub.md has the promises.
///
///  PUB-K1  The samples that a late reader is given are the newest ones at its place: a suffix of
///          all, which the counts determine. All that is kept lies behind the first landmark.
///  PUB-K2  There are at most kMaxLandmarks landmarks, however many samples there are: if there are
///          more, every second one goes, and the next ones are twice as far apart.
namespace dunlin::pubsub {

inline constexpr std::size_t kMaxLandmarks = 1024;

/// Whether a topic's samples stay only in its logs. Histories of other kinds need the samples, or
/// the times of their receipt, in memory.
[[nodiscard]] constexpr bool is_kept_in_log(const TopicQos& qos) noexcept {
  return qos.level == Level::logged && qos.history.kind == History::Kind::keep_all &&
         qos.max_age_ns == kInfiniteNs;
}

class LogHistory {
 public:
  /// Counts so far: samples, their bytes, and the topic's position.
  struct Counts {
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t position = 0;
  };
  /// A place in the log, and what lies before it.
  struct Landmark {
    Counts before;
    std::uint64_t number = 1;
    std::uint64_t from = 1;
    std::uint64_t view = 0;
    std::shared_ptr<const std::vector<std::string>> members;
    [[nodiscard]] multicast::LogPosition position() const {
      return {.number = number, .from = from, .view = view, .members = *members};
    }
  };
  /// A writer, from its announcement on.
  struct Incarnation {
    std::uint64_t announced = 0;  // the record of the announcement
    std::shared_ptr<RemoteWriter> writer;
  };
  /// What late readers on their way still use: samples behind that many, from this record on.
  struct InUse {
    std::uint64_t samples = UINT64_MAX;
    std::uint64_t record = UINT64_MAX;
  };

  explicit LogHistory(const TopicQos& qos)
      : max_samples_(qos.max_samples), max_bytes_(qos.max_bytes) {}

  // --- in the order of the topic -----------------------------------------------------------------
  [[nodiscard]] bool begun() const noexcept { return !landmarks_.empty(); }
  /// Adds the landmark before the first sample.
  void begin(const multicast::LogPosition& at) { add_landmark(at); }
  void announce(std::uint64_t record, std::shared_ptr<RemoteWriter> writer);
  void add(std::size_t payload_bytes, RemoteWriter& writer, std::uint64_t position,
           std::uint64_t now_ns, std::uint64_t source_ns) noexcept;
  /// Whether the place behind the latest sample is worth a landmark.
  [[nodiscard]] bool wants_landmark() const noexcept {
    return counts_.samples >= landmarks_.back().before.samples + apart_;
  }
  /// Adds a landmark, and forgets what is needed no more.
  void mark(const multicast::LogPosition& at, const InUse& in_use);
  /// Notes that this record has a sample that does not count, for example one that was sent again.
  void pass_over(std::uint64_t record) { passed_over_.push_back(record); }

  // --- what a late reader is given ---------------------------------------------------------------
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  /// The first landmark: all that is kept lies behind it.
  [[nodiscard]] const Landmark& first() const noexcept { return landmarks_[first_kept()]; }
  /// The first one that needs no record before that one; null: none.
  [[nodiscard]] std::uint64_t max_samples() const noexcept {
    return max_samples_ == kAllSamples ? UINT64_MAX : max_samples_;
  }
  [[nodiscard]] const Landmark* first_from(std::uint64_t record) const noexcept;
  /// Whether a reader that came at `place` is given the sample behind these.
  [[nodiscard]] bool gives(const Counts& before, const Counts& place) const noexcept;
  [[nodiscard]] bool is_passed_over(std::uint64_t record) const noexcept;
  /// The writer of the log's record; null: that writer was never announced.
  [[nodiscard]] std::shared_ptr<RemoteWriter> writer_of(std::string_view member,
                                                        std::uint16_t number,
                                                        std::uint64_t record) const;

  // --- for the state of the topic ----------------------------------------------------------------
  /// Visits all writers of samples that are kept.
  template <class Look>
  void each_writer(const Look& look) const {
    for (const auto& [id, incarnations] : writers_)
      for (const Incarnation& one : incarnations) look(one);
  }
  void add(Incarnation one);
  void save(Writer& to) const;
  [[nodiscard]] bool load(Reader& from);
  /// Things in memory, for a test: they do not grow with the log.
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  void add_landmark(const multicast::LogPosition& at);
  [[nodiscard]] std::size_t first_kept() const noexcept;
  [[nodiscard]] bool lies_before_kept(const Landmark& landmark) const noexcept;
  void forget_writers(std::uint64_t samples);

  std::uint32_t max_samples_;
  std::uint64_t max_bytes_;
  Counts counts_;
  std::uint64_t apart_ = 64;  // samples between two landmarks
  std::deque<Landmark> landmarks_;
  std::deque<std::uint64_t> passed_over_;  // ascending
  std::map<std::pair<std::string_view, std::uint16_t>, std::vector<Incarnation>> writers_;
};

}  // namespace dunlin::pubsub
