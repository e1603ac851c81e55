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
/// policy says. The same at all members that were given the same messages.
class Storage {
 public:
  struct Stored {
    MessageHeader header;
    std::shared_ptr<RemoteWriter> writer;
    std::uint64_t received_ns = 0;
    std::uint64_t position = 0;
    std::vector<std::byte> payload;
  };

  explicit Storage(const TopicQos& qos) : history_(qos.history), max_samples_(qos.max_samples) {}

  void add(const MessageHeader& header, std::span<const std::byte> payload,
           const std::shared_ptr<RemoteWriter>& writer, std::uint64_t received_ns,
           std::uint64_t position);
  [[nodiscard]] const std::list<Stored>& samples() const noexcept { return samples_; }

 private:
  using Place = std::list<Stored>::iterator;
  [[nodiscard]] Place make_place(std::uint64_t key_hash);

  History history_;
  std::uint32_t max_samples_;
  std::list<Stored> samples_;  // nodes and their buffers are used again
  std::unordered_map<std::uint64_t, std::deque<Place>> by_key_;  // of keep_last only
};

}  // namespace dunlin::pubsub
