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
/// policy says. The same at all members that were given the same messages, but for those that are
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
    std::uint64_t dropped_at = 0;  // the last way that had begun then, and 1; 0: it is kept
    [[nodiscard]] bool kept() const noexcept { return dropped_at == 0; }
  };
  struct Way {
    std::list<Stored>::iterator next;
    std::uint64_t number = 0;  // of the ways
  };
  using WayPlace = std::list<Way>::iterator;

  explicit Storage(const TopicQos& qos)
      : history_(qos.history),
        max_samples_(qos.max_samples),
        max_bytes_(qos.max_bytes),
        max_age_ns_(qos.max_age_ns) {}

  /// A sample of that writer, `in.writer`. An unregister is no sample: it is noted at the newest
  /// stored sample of its instance, if there is one.
  void add(const Incoming& in, const std::shared_ptr<RemoteWriter>& writer);
  /// Samples that are too old at that time go.
  void expire(std::uint64_t now_ns) { expire(now_ns, 0); }
  [[nodiscard]] std::size_t size() const noexcept { return kept_; }
  /// Of the payloads that are kept.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Of each that is kept.
  template <class Look>
  void each(const Look& look) const {
    for (const Stored& stored : samples_)
      if (stored.kept()) look(stored);
  }

  // --- a late reader's way -----------------------------------------------------------------------
  /// From the oldest kept sample, over all that are kept now and all that come from now on.
  [[nodiscard]] WayPlace begin_way();
  /// The next sample of it; null: it has passed all that there are. Then the way ends before
  /// another one is added.
  [[nodiscard]] const Stored* next(WayPlace way) noexcept;
  /// It has been given; requires that next() found it.
  void pass(WayPlace way) noexcept { ++way->next; }
  void end_way(WayPlace way);
  /// Whether the newest sample of that instance lies before the way's end still.
  [[nodiscard]] bool lies_ahead(WayPlace way, std::uint64_t key_hash) const noexcept;
  /// Overtaken samples that all ways have passed go.
  void let_go_of_overtaken();
  /// So many samples are overtaken that no more may be added before readers have gone on.
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
  std::uint64_t bytes_ = 0;  // of the payloads that are kept
  std::size_t kept_ = 0;
  std::uint64_t added_ = 0;
  std::list<Stored> samples_;
  Place oldest_ = samples_.end();  // that is kept
  std::list<Stored> free_;         // one at most: the node and its buffer are used again
  std::unordered_map<std::uint64_t, std::deque<Place>> by_key_;  // of keep_last only
  std::unordered_map<std::uint64_t, Place> newest_;              // of each key, overtaken ones too
  std::list<Way> ways_;
  std::uint64_t ways_begun_ = 0;
  std::map<std::uint64_t, Place> overtaken_;  // by number
  std::uint64_t overtaken_bytes_ = 0;
};

}  // namespace dunlin::pubsub
