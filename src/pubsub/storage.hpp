#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <dunlin/pubsub/limits.hpp>
#include <dunlin/pubsub/qos.hpp>

#include "pubsub/remote_writer.hpp"
#include "pubsub/wire.hpp"

namespace dunlin::pubsub {

/// The samples of a topic that stores them, in the order of delivery: the newest ones, as its
/// policy says. Members that were given equal messages store equal samples, except those that are
/// too old by the clock of one member and not yet by another's.
///
/// Late readers are on their ways through them while more come and old ones go (PUB-T5). A sample
/// that the policy has dropped, and that may lie before a reader on its way, is *overtaken*: it is
/// not kept any more, and stays in its place until all ways have passed it.
class Storage {
 public:
  struct Stored {
    MessageHeader header;
    std::shared_ptr<RemoteWriter> writer;
    std::uint64_t received_ns = 0;
    std::uint64_t position = 0;
    std::uint64_t order_position = 0;
    std::vector<std::byte> payload;
    /// Writers that unregistered the instance behind this sample, while it was its newest one.
    std::vector<std::shared_ptr<RemoteWriter>> unregistered;
    std::uint64_t number = 0;      // ascending
    std::uint64_t dropped_at = 0;  // 1 + the last way that had begun then; 0: it is kept
    [[nodiscard]] bool kept() const noexcept { return dropped_at == 0; }
  };
  struct Way {
    std::list<Stored>::iterator next;
    std::uint64_t number = 0;  // the way's number
  };
  using WayPlace = std::list<Way>::iterator;

  explicit Storage(const TopicQos& qos)
      : history_(qos.history),
        max_samples_(qos.max_samples),
        max_bytes_(qos.max_bytes),
        max_age_ns_(qos.max_age_ns) {}

  /// Adds a sample of that writer, `in.writer`. An unregister is no sample: it is noted at the
  /// newest stored sample of its instance, if there is one.
  void add(const Incoming& in, const std::shared_ptr<RemoteWriter>& writer);
  /// Removes samples that are too old at that time.
  void expire(std::uint64_t now_ns) { expire(now_ns, 0); }
  [[nodiscard]] std::size_t size() const noexcept { return kept_; }
  /// How many bytes the payloads of the kept samples have.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Visits each sample that is kept.
  template <class Look>
  void each(const Look& look) const {
    for (const Stored& stored : samples_)
      if (stored.kept()) look(stored);
  }

  // --- a late reader's way -----------------------------------------------------------------------
  /// Begins a way from the oldest kept sample, over all samples that are kept now or come from now
  /// on.
  [[nodiscard]] WayPlace begin_way();
  /// The next sample of the way; null: the way has passed all samples. Then it must end before
  /// another sample is added.
  [[nodiscard]] const Stored* next(WayPlace way) noexcept;
  /// Moves the way behind the sample that next() found, which the reader was given.
  void pass(WayPlace way) noexcept { ++way->next; }
  void end_way(WayPlace way);
  /// Whether the newest sample of that instance lies before the way's end still.
  [[nodiscard]] bool lies_ahead(WayPlace way, std::uint64_t key_hash) const noexcept;
  /// Removes overtaken samples that all ways have passed.
  void let_go_of_overtaken();
  /// Whether so many samples are overtaken that no more may be added before readers have gone on.
  [[nodiscard]] bool is_overtaking() const noexcept {
    return overtaken_.size() >= kMaxOvertakenSamples || overtaken_bytes_ >= kMaxOvertakenBytes;
  }

 private:
  using Place = std::list<Stored>::iterator;
  [[nodiscard]] bool keeps_last() const noexcept {
    return history_.kind == History::Kind::keep_last;
  }
  [[nodiscard]] Place make_place(std::uint64_t key_hash, std::size_t bytes);
  void drop(Place place, std::uint64_t adding);
  void expire(std::uint64_t now_ns, std::uint64_t adding);
  [[nodiscard]] std::uint64_t first_needed() const noexcept;
  void remove(Place place);
  void note_unregistered(std::uint64_t key_hash, const std::shared_ptr<RemoteWriter>& writer);

  History history_;
  std::uint32_t max_samples_;
  std::uint64_t max_bytes_;
  std::uint64_t max_age_ns_;
  std::uint64_t bytes_ = 0;  // payload bytes of kept samples
  std::size_t kept_ = 0;
  std::uint64_t added_ = 0;
  std::list<Stored> samples_;
  Place oldest_ = samples_.end();  // the oldest that is kept
  std::list<Stored> free_;         // at most one node, to reuse it with its buffer
  std::unordered_map<std::uint64_t, std::deque<Place>> by_key_;  // for keep_last only
  std::unordered_map<std::uint64_t, Place> newest_;  // of each key, overtaken samples too
  std::list<Way> ways_;
  std::uint64_t ways_begun_ = 0;
  std::map<std::uint64_t, Place> overtaken_;  // by number
  std::uint64_t overtaken_bytes_ = 0;
};

}  // namespace dunlin::pubsub
