#include "pubsub/storage.hpp"

namespace dunlin::pubsub {

/// At the end; of an old sample, once there are enough.
Storage::Place Storage::make_place(std::uint64_t key_hash) {
  const bool keeps_last = history_.kind == History::Kind::keep_last;
  Place reused = samples_.end();
  if (keeps_last) {
    std::deque<Place>& of_key = by_key_[key_hash];
    if (of_key.size() >= history_.depth) {
      reused = of_key.front();
      of_key.pop_front();
    }
  }
  if (reused == samples_.end() && samples_.size() >= max_samples_) {
    reused = samples_.begin();
    if (keeps_last) {
      const auto old = by_key_.find(reused->header.key_hash);
      old->second.pop_front();
      if (old->second.empty() && old->first != key_hash) by_key_.erase(old);
    }
  }
  if (reused == samples_.end())
    reused = samples_.emplace(samples_.end());
  else
    samples_.splice(samples_.end(), samples_, reused);
  if (keeps_last) by_key_[key_hash].push_back(reused);
  return reused;
}

void Storage::add(const MessageHeader& header, std::span<const std::byte> payload,
                  const std::shared_ptr<RemoteWriter>& writer, std::uint64_t received_ns,
                  std::uint64_t position) {
  Stored& stored = *make_place(header.key_hash);
  stored.header = header;
  stored.writer = writer;
  stored.received_ns = received_ns;
  stored.position = position;
  stored.payload.assign(payload.begin(), payload.end());
}

}  // namespace dunlin::pubsub
