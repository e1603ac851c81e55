#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <dunlin/pubsub/qos.hpp>

#include "pubsub/remote_writer.hpp"
#include "pubsub/wire.hpp"

namespace dunlin::pubsub {

/// The samples of a topic that stores them, in the order of delivery: the newest ones, as its
/// policy says. The same at all members that were given the same messages, but for those that are
/// too old by the clock of one member and not yet by another's.
class Storage {
 public:
  struct Stored {
    MessageHeader header;
    std::shared_ptr<RemoteWriter> writer;
    std::uint64_t received_ns = 0;
    std::uint64_t position = 0;
    std::vector<std::byte> payload;
  };

  explicit Storage(const TopicQos& qos)
      : history_(qos.history),
        max_samples_(qos.max_samples),
        max_bytes_(qos.max_bytes),
        max_age_ns_(qos.max_age_ns) {}

  void add(const MessageHeader& header, std::span<const std::byte> payload,
           const std::shared_ptr<RemoteWriter>& writer, std::uint64_t received_ns,
           std::uint64_t position);
  /// Samples that are too old at that time go.
  void expire(std::uint64_t now_ns) { expire(now_ns, 0); }
  [[nodiscard]] const std::list<Stored>& samples() const noexcept { return samples_; }

 private:
  using Place = std::list<Stored>::iterator;
  [[nodiscard]] bool keeps_last() const noexcept {
    return history_.kind == History::Kind::keep_last;
  }
  [[nodiscard]] Place make_place(std::uint64_t key_hash, std::size_t bytes);
  void drop(Place place, std::uint64_t adding);
  void expire(std::uint64_t now_ns, std::uint64_t adding);

  History history_;
  std::uint32_t max_samples_;
  std::uint64_t max_bytes_;
  std::uint64_t max_age_ns_;
  std::uint64_t bytes_ = 0;  // of the payloads
  std::list<Stored> samples_;
  std::list<Stored> free_;  // one at most: the node and its buffer are used again
  std::unordered_map<std::uint64_t, std::deque<Place>> by_key_;  // of keep_last only
};

}  // namespace dunlin::pubsub
