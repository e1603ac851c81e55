#include "pubsub/storage.hpp"

namespace dunlin::pubsub {

/// `adding`: the hash of the key whose sample comes next; its place stays.
void Storage::drop(Place place, std::uint64_t adding) {
  if (keeps_last()) {
    const auto of_key = by_key_.find(place->header.key_hash);
    of_key->second.pop_front();  // no sample of a key goes before an older one
    if (of_key->second.empty() && of_key->first != adding) by_key_.erase(of_key);
  }
  bytes_ -= place->payload.size();
  place->writer.reset();
  if (free_.empty())
    free_.splice(free_.end(), samples_, place);
  else
    samples_.erase(place);
}

void Storage::expire(std::uint64_t now_ns, std::uint64_t adding) {
  if (max_age_ns_ == kInfiniteNs) [[likely]]
    return;
  while (!samples_.empty() && now_ns > samples_.front().received_ns &&
         now_ns - samples_.front().received_ns >= max_age_ns_)
    drop(samples_.begin(), adding);
}

/// At the end. Old samples go, once there are enough.
Storage::Place Storage::make_place(std::uint64_t key_hash, std::size_t bytes) {
  if (keeps_last()) {
    const std::deque<Place>& of_key = by_key_[key_hash];
    if (of_key.size() >= history_.depth) drop(of_key.front(), key_hash);
  }
  const auto is_full = [&] {
    return samples_.size() >= max_samples_ || (max_bytes_ != 0 && bytes_ + bytes > max_bytes_);
  };
  while (!samples_.empty() && is_full()) drop(samples_.begin(), key_hash);
  if (free_.empty())
    samples_.emplace_back();
  else
    samples_.splice(samples_.end(), free_, free_.begin());
  const Place place = std::prev(samples_.end());
  if (keeps_last()) by_key_[key_hash].push_back(place);
  return place;
}

void Storage::add(const MessageHeader& header, std::span<const std::byte> payload,
                  const std::shared_ptr<RemoteWriter>& writer, std::uint64_t received_ns,
                  std::uint64_t position) {
  expire(received_ns, header.key_hash);
  Stored& stored = *make_place(header.key_hash, payload.size());
  stored.header = header;
  stored.writer = writer;
  stored.received_ns = received_ns;
  stored.position = position;
  stored.payload.assign(payload.begin(), payload.end());
  bytes_ += payload.size();
}

}  // namespace dunlin::pubsub
